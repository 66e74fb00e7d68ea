//! Browser logins: clients that registered themselves, logins under way, and what people have granted to clients. Codes
//! and tokens are known by their digests only; what is encrypted is opaque here. Everything expires.

mod clients;
mod grants;
mod logins;
mod tokens;

pub use clients::RegisteredClient;
pub use grants::{Grant, NewGrant, Redeemed};
pub use tokens::{AccessToken, NewTokens};

use std::time::SystemTime;

use crate::{Store, StoreError, database::Statement, row::micros};

/// Tables of which rows expire, the dependent ones first.
const TABLES: [&str; 4] = ["oauth_tokens", "oauth_grants", "oauth_logins", "oauth_clients"];

impl Store {
    /// Deletes what has expired, and says how many rows that were.
    pub(crate) async fn remove_expired_logins(&self) -> Result<u64, StoreError> {
        let mut removed = 0;
        for table in TABLES {
            let mut statement = Statement::new("DELETE FROM ");
            statement.push(table).push(" WHERE expires_at <= ");
            statement.push_bind(micros(SystemTime::now()));
            removed += self.database.execute(statement).await?;
        }
        Ok(removed)
    }
}
