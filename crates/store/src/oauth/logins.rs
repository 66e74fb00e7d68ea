//! Logins under way. Each is found once: whoever takes one has it alone.

use std::time::SystemTime;

use crate::{Store, StoreError, database::Statement, row::micros};

impl Store {
    /// Keeps a login under a digest. Beyond `max` those go that would expire first.
    pub async fn put_oauth_login(
        &self,
        login: &str,
        data: &str,
        expires_at: SystemTime,
        max: usize,
    ) -> Result<(), StoreError> {
        let statement = Statement::new("INSERT INTO oauth_logins (login, data, expires_at) VALUES ($1, $2, $3)");
        let statement = statement.bind(login).bind(data).bind(micros(expires_at));
        self.database.execute(statement).await?;
        let statement = Statement::new(
            "DELETE FROM oauth_logins WHERE expires_at < \
             (SELECT expires_at FROM oauth_logins ORDER BY expires_at DESC LIMIT 1 OFFSET $1)",
        );
        let last = i64::try_from(max.saturating_sub(1)).unwrap_or(i64::MAX);
        self.database.execute(statement.bind(last)).await?;
        Ok(())
    }

    /// Takes a login that has not expired: nobody finds it again.
    pub async fn take_oauth_login(&self, login: &str) -> Result<Option<String>, StoreError> {
        let statement = Statement::new("DELETE FROM oauth_logins WHERE login = $1 RETURNING data, expires_at");
        let rows = self.database.rows(statement.bind(login)).await?;
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let is_valid = row.get::<i64>("expires_at")? > micros(SystemTime::now());
        Ok(is_valid.then(|| row.get("data")).transpose()?)
    }
}
