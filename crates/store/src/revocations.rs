//! Tokens of the config that were revoked while gateways run: every gateway that uses the database honours them.

use std::time::SystemTime;

use crate::{
    Store, StoreError,
    database::{Database, Row, Statement, readable},
    row::{micros, time},
};

/// A token that opens nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    /// SHA-256 of the token in hexadecimal digits.
    pub digest: String,
    /// Its name in the config at the time.
    pub name: String,
    pub revoked_at: SystemTime,
}

impl Store {
    /// Every token that was revoked.
    pub async fn revoked_tokens(&self) -> Result<Vec<RevokedToken>, StoreError> {
        all(&self.database).await
    }
}

pub(crate) async fn all(database: &Database) -> Result<Vec<RevokedToken>, StoreError> {
    let statement = Statement::new("SELECT digest, name, revoked_at FROM revoked_tokens ORDER BY revoked_at, digest");
    let rows = database.rows(statement).await?;
    Ok(readable(rows, "revoked_tokens", RevokedToken::read))
}

/// Adds a token, and says whether it was not there yet.
pub(crate) async fn add(database: &Database, token: &RevokedToken) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "INSERT INTO revoked_tokens (digest, name, revoked_at) VALUES ($1, $2, $3) ON CONFLICT (digest) DO NOTHING",
    );
    let statement = statement.bind(&token.digest).bind(&token.name);
    Ok(database.execute(statement.bind(micros(token.revoked_at))).await? > 0)
}

impl RevokedToken {
    fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            digest: row.get("digest")?,
            name: row.get("name")?,
            revoked_at: time(row.get("revoked_at")?),
        })
    }
}
