//! Grants: what a person allowed to a client. One row each, however often its tokens are refreshed.

use std::time::SystemTime;

use crate::{
    Store, StoreError,
    database::{Row, Statement},
    row::{micros, time},
};

/// A grant, as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGrant {
    pub grant_id: String,
    pub issuer: String,
    pub subject: String,
    pub client_id: String,
    /// The person, as JSON.
    pub identity: String,
    /// Terms of the grant, as JSON.
    pub terms: String,
    /// Tokens of the upstream provider, encrypted.
    pub upstream: Option<String>,
    /// Digest of its code.
    pub code: String,
    /// Expiry of the code, and of the grant unless it is redeemed.
    pub code_expires: SystemTime,
}

/// A grant that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub grant_id: String,
    pub issuer: String,
    pub subject: String,
    pub client_id: String,
    pub identity: String,
    pub terms: String,
    pub upstream: Option<String>,
    /// Digest of its current refresh token.
    pub refresh: Option<String>,
    pub expires_at: SystemTime,
}

/// Result of redeeming a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    Unknown,
    /// It was redeemed before; what it granted is revoked.
    Reused,
    /// For the first time and in time.
    Granted(Box<Grant>),
}

impl Store {
    /// Keeps a grant. Of one person there are at most `max`: the oldest go.
    pub async fn add_oauth_grant(&self, grant: &NewGrant, max: usize) -> Result<(), StoreError> {
        let statement = Statement::new(
            "INSERT INTO oauth_grants (grant_id, issuer, subject, client_id, identity, terms, upstream, code, \
             code_expires, is_redeemed, refresh, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, FALSE, NULL, $10, $9)",
        );
        let statement = statement
            .bind(&grant.grant_id)
            .bind(&grant.issuer)
            .bind(&grant.subject)
            .bind(&grant.client_id)
            .bind(&grant.identity)
            .bind(&grant.terms)
            .bind(&grant.upstream)
            .bind(&grant.code)
            .bind(micros(grant.code_expires))
            .bind(micros(SystemTime::now()));
        self.database.execute(statement).await?;
        let statement = Statement::new(
            "DELETE FROM oauth_grants WHERE issuer = $1 AND subject = $2 AND created_at < \
             (SELECT created_at FROM oauth_grants WHERE issuer = $1 AND subject = $2 \
             ORDER BY created_at DESC LIMIT 1 OFFSET $3)",
        );
        let last = i64::try_from(max.saturating_sub(1)).unwrap_or(i64::MAX);
        let statement = statement.bind(&grant.issuer).bind(&grant.subject).bind(last);
        self.database.execute(statement).await?;
        Ok(())
    }

    /// Redeems a code, once. A second time takes away what the first has given.
    pub async fn redeem_oauth_code(&self, code: &str) -> Result<Redeemed, StoreError> {
        let mut transaction = self.database.begin().await?;
        let statement = Statement::new(
            "UPDATE oauth_grants SET is_redeemed = TRUE WHERE code = $1 AND is_redeemed = FALSE RETURNING *",
        );
        let first = transaction.row(statement.bind(code)).await?;
        let redeemed = match first {
            Some(row) if row.get::<i64>("code_expires")? > micros(SystemTime::now()) => {
                Redeemed::Granted(Box::new(Grant::read(&row)?))
            }
            // It came too late, and nothing was given for it.
            Some(_) => Redeemed::Unknown,
            None => {
                let statement = Statement::new("DELETE FROM oauth_grants WHERE code = $1").bind(code);
                match transaction.execute(statement).await? {
                    0 => Redeemed::Unknown,
                    _ => Redeemed::Reused,
                }
            }
        };
        transaction.commit().await?;
        Ok(redeemed)
    }

    /// A grant that was neither revoked nor has expired.
    pub async fn oauth_grant(&self, grant_id: &str) -> Result<Option<Grant>, StoreError> {
        let statement = Statement::new("SELECT * FROM oauth_grants WHERE grant_id = $1 AND expires_at > $2");
        let statement = statement.bind(grant_id).bind(micros(SystemTime::now()));
        let row = self.database.row(statement).await?;
        Ok(row.as_ref().map(Grant::read).transpose()?)
    }

    /// Revokes a grant with all of its tokens. Says whether it was there.
    pub async fn revoke_oauth_grant(&self, grant_id: &str) -> Result<bool, StoreError> {
        let statement = Statement::new("DELETE FROM oauth_grants WHERE grant_id = $1").bind(grant_id);
        Ok(self.database.execute(statement).await? > 0)
    }
}

impl Grant {
    pub(super) fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            grant_id: row.get("grant_id")?,
            issuer: row.get("issuer")?,
            subject: row.get("subject")?,
            client_id: row.get("client_id")?,
            identity: row.get("identity")?,
            terms: row.get("terms")?,
            upstream: row.get("upstream")?,
            refresh: row.get("refresh")?,
            expires_at: time(row.get("expires_at")?),
        })
    }
}
