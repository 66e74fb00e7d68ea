//! Clients that registered themselves.

use std::time::SystemTime;

use crate::{Store, StoreError, database::Statement, row::micros};

/// A client that registered itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredClient {
    pub client_id: String,
    /// JSON.
    pub metadata: String,
    pub expires_at: SystemTime,
}

impl Store {
    /// Adds a client unless there are `max` already. Says whether it did.
    pub async fn add_oauth_client(&self, client: &RegisteredClient, max: usize) -> Result<bool, StoreError> {
        let statement = Statement::new(
            "INSERT INTO oauth_clients (client_id, metadata, expires_at) \
             SELECT $1, $2, $3 WHERE (SELECT COUNT(*) FROM oauth_clients) < $4",
        );
        let statement = statement
            .bind(&client.client_id)
            .bind(&client.metadata)
            .bind(micros(client.expires_at))
            .bind(i64::try_from(max).unwrap_or(i64::MAX));
        Ok(self.database.execute(statement).await? > 0)
    }

    /// The metadata of a client that has not expired.
    pub async fn oauth_client(&self, client_id: &str) -> Result<Option<String>, StoreError> {
        let statement = Statement::new("SELECT metadata FROM oauth_clients WHERE client_id = $1 AND expires_at > $2");
        let statement = statement.bind(client_id).bind(micros(SystemTime::now()));
        let row = self.database.row(statement).await?;
        Ok(row.as_ref().map(|row| row.get("metadata")).transpose()?)
    }

    /// Has a client that is used expire later.
    pub async fn keep_oauth_client(&self, client_id: &str, expires_at: SystemTime) -> Result<(), StoreError> {
        let statement =
            Statement::new("UPDATE oauth_clients SET expires_at = $2 WHERE client_id = $1 AND expires_at < $2");
        self.database
            .execute(statement.bind(client_id).bind(micros(expires_at)))
            .await?;
        Ok(())
    }
}
