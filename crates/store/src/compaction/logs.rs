//! Removal of the oldest log records, and of blobs that no version mentions any more.

use std::time::Duration;

use super::ago;
use crate::{LogLimits, Store, StoreError, database::Statement, row::micros};

/// Rows that are deleted in one transaction, so that others get to write.
const CHUNK: u64 = 2000;
/// A blob is brought along before the version that mentions it is written.
const BLOB_GRACE: Duration = Duration::from_secs(10 * 60);

/// Refused logins of nobody knows whom are kept apart, up to this part of the number of calls: whoever has no token must
/// not push out what others did.
const UNKNOWN_CALLERS: usize = 10;

/// What is only ever added, and pruned together.
pub(super) struct Log {
    table: &'static str,
    key: &'static str,
    /// Which rows of the table.
    rows: &'static str,
}

pub(super) const ACTIVITY: Log = Log {
    table: "activity",
    key: "activity_id",
    rows: "1 = 1",
};
const CALLS: Log = Log {
    table: "audit",
    key: "entry",
    rows: "principal <> ''",
};
const REFUSED_LOGINS: Log = Log {
    rows: "principal = ''",
    ..CALLS
};

impl Store {
    pub(super) async fn prune_audit(&self, limits: LogLimits) -> Result<u64, StoreError> {
        let of_unknown = LogLimits {
            records: limits.records.div_ceil(UNKNOWN_CALLERS),
            ..limits
        };
        Ok(self.prune_log(&CALLS, limits).await? + self.prune_log(&REFUSED_LOGINS, of_unknown).await?)
    }

    pub(super) async fn prune_log(&self, log: &Log, limits: LogLimits) -> Result<u64, StoreError> {
        let Log { table, key, rows } = log;
        let mut oldest = micros(ago(limits.keep));
        let mut statement = Statement::new("SELECT time FROM ");
        statement.push(table).push(" WHERE ").push(rows);
        statement.push(" ORDER BY time DESC LIMIT 1 OFFSET ");
        statement.push_bind(i64::try_from(limits.records).unwrap_or(i64::MAX));
        if let Some(row) = self.database.row(statement).await? {
            // The first that is too many goes too.
            oldest = oldest.max(row.first::<i64>()?.saturating_add(1));
        }
        let mut removed = 0;
        loop {
            let mut statement = Statement::new("DELETE FROM ");
            statement.push(table).push(" WHERE ").push(key);
            statement.push(" IN (SELECT ").push(key).push(" FROM ").push(table);
            statement.push(" WHERE ").push(rows);
            statement.push(" AND time < ").push_bind(oldest);
            statement
                .push(" ORDER BY time LIMIT ")
                .push_bind(CHUNK.cast_signed())
                .push(")");
            let deleted = self.database.execute(statement).await?;
            removed += deleted;
            if deleted < CHUNK {
                return Ok(removed);
            }
        }
    }

    pub(super) async fn remove_unused_blobs(&self) -> Result<u64, StoreError> {
        let mut removed = 0;
        loop {
            let statement = Statement::new(
                "DELETE FROM blobs WHERE used_at < $1 AND hash IN (SELECT hash FROM blobs WHERE used_at < $1 \
                 AND NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob_uses.hash = blobs.hash) LIMIT $2)",
            );
            let statement = statement.bind(micros(ago(BLOB_GRACE))).bind(CHUNK.cast_signed());
            let deleted = self.database.execute(statement).await?;
            removed += deleted;
            if deleted < CHUNK {
                return Ok(removed);
            }
        }
    }
}
