//! Access tokens of grants, and the rotation of their refresh tokens.

use std::time::SystemTime;

use super::Grant;
use crate::{
    Store, StoreError,
    database::{Statement, Transaction},
    row::{micros, time},
};

/// Access tokens that one grant may have at a time; clients that refresh early have several for a while.
const TOKENS_PER_GRANT: i64 = 16;

/// Tokens that a grant gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTokens {
    /// Digest of the access token.
    pub access: String,
    pub scope: String,
    pub access_expires: SystemTime,
    /// Digest of the refresh token.
    pub refresh: String,
    /// Expiry of the refresh token, and with it of the grant.
    pub refresh_expires: SystemTime,
    /// Newer tokens of the upstream provider and what it now says of the person, encrypted and as JSON.
    pub upstream: Option<(Option<String>, String)>,
}

/// An access token that is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessToken {
    pub grant: Grant,
    pub scope: String,
    pub expires_at: SystemTime,
}

impl Store {
    /// Gives a grant its next tokens if `before` is the refresh token that it has, none for a grant that has none yet.
    /// Says whether it did.
    pub async fn rotate_oauth_tokens(
        &self,
        grant_id: &str,
        before: Option<&str>,
        tokens: &NewTokens,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.database.begin().await?;
        let mut statement = Statement::new("UPDATE oauth_grants SET refresh = ");
        statement.push_bind(&tokens.refresh).push(", expires_at = ");
        statement.push_bind(micros(tokens.refresh_expires));
        if let Some((upstream, identity)) = &tokens.upstream {
            statement.push(", upstream = ").push_bind(upstream);
            statement.push(", identity = ").push_bind(identity);
        }
        statement
            .push(" WHERE is_redeemed = TRUE AND grant_id = ")
            .push_bind(grant_id);
        match before {
            Some(before) => statement.push(" AND refresh = ").push_bind(before),
            None => statement.push(" AND refresh IS NULL"),
        };
        if transaction.execute(statement).await? == 0 {
            return Ok(false);
        }
        add_access_token(&mut transaction, grant_id, tokens).await?;
        transaction.commit().await?;
        Ok(true)
    }

    /// An access token by its digest, unless it has expired or was revoked.
    pub async fn oauth_access_token(&self, token: &str) -> Result<Option<AccessToken>, StoreError> {
        let statement = Statement::new(
            "SELECT oauth_grants.*, oauth_tokens.scope AS token_scope, oauth_tokens.expires_at AS token_expires \
             FROM oauth_tokens JOIN oauth_grants ON oauth_grants.grant_id = oauth_tokens.grant_id \
             WHERE oauth_tokens.token = $1 AND oauth_tokens.expires_at > $2 AND oauth_grants.expires_at > $2",
        );
        let statement = statement.bind(token).bind(micros(SystemTime::now()));
        let Some(row) = self.database.row(statement).await? else {
            return Ok(None);
        };
        Ok(Some(AccessToken {
            grant: Grant::read(&row)?,
            scope: row.get("token_scope")?,
            expires_at: time(row.get("token_expires")?),
        }))
    }
}

/// Adds an access token. Of a grant's tokens those go that are too many or have expired.
async fn add_access_token(transaction: &mut Transaction, grant_id: &str, tokens: &NewTokens) -> Result<(), StoreError> {
    let statement =
        Statement::new("INSERT INTO oauth_tokens (token, grant_id, scope, expires_at) VALUES ($1, $2, $3, $4)");
    let statement = statement
        .bind(&tokens.access)
        .bind(grant_id)
        .bind(&tokens.scope)
        .bind(micros(tokens.access_expires));
    transaction.execute(statement).await?;
    let statement = Statement::new(
        "DELETE FROM oauth_tokens WHERE grant_id = $1 AND token <> $2 AND (expires_at <= $3 OR token NOT IN \
         (SELECT token FROM oauth_tokens WHERE grant_id = $1 ORDER BY expires_at DESC LIMIT $4))",
    );
    let statement = statement
        .bind(grant_id)
        .bind(&tokens.access)
        .bind(micros(SystemTime::now()))
        .bind(TOKENS_PER_GRANT);
    transaction.execute(statement).await?;
    Ok(())
}
