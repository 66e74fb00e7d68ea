//! Questions about the whole log of a document: where it begins, and which of its versions take others back.

use super::{COLUMNS, VersionRow};
use crate::{Store, StoreError, database::Statement, row::from_json};

impl Store {
    /// The oldest version that is kept of a document.
    pub async fn oldest_version(&self, document: i64) -> Result<Option<VersionRow>, StoreError> {
        let mut statement = Statement::new("SELECT ");
        statement.push(COLUMNS).push(" FROM versions WHERE document = ");
        statement.push_bind(document).push(" ORDER BY seq LIMIT 1");
        let row = self.database.row(statement).await?;
        Ok(row.as_ref().map(VersionRow::read).transpose()?)
    }

    /// The versions after a number that take others back, the newest first, each with those.
    pub async fn undoing_since(&self, document: i64, seq: i64) -> Result<Vec<(String, Vec<String>)>, StoreError> {
        let statement = Statement::new(
            "SELECT version_id, undoes FROM versions WHERE document = $1 AND seq > $2 AND undoes <> '[]' \
             ORDER BY seq DESC",
        );
        let rows = self.database.rows(statement.bind(document).bind(seq)).await?;
        Ok(crate::database::readable(rows, "versions", |row| {
            Ok((row.get("version_id")?, from_json(&row.get::<String>("undoes")?)?))
        }))
    }
}
