//! Limits of the history of documents. Of one document the oldest versions go, up to one whose whole
//! content is kept; of all documents those go that were not changed for longest.

use std::{collections::HashMap, time::SystemTime};

use super::{Compacted, ago};
use crate::{
    Store, StoreError,
    database::{Row, Statement, readable},
    row::micros,
};

/// Documents that are looked at in one pass.
const DOCUMENTS: i64 = 1000;
/// Versions that are deleted in one transaction.
const CHUNK: i64 = 1000;

/// Counts of what is kept of one document.
struct Kept {
    document: i64,
    latest_seq: i64,
    versions: i64,
    bytes: i64,
    oldest_at: i64,
    changed_at: i64,
    /// The oldest version that must stay.
    pinned: Option<i64>,
}

/// By document the oldest version that must stay.
type Pinned = HashMap<i64, i64>;

/// The limits of one document, as the database counts.
struct Limits {
    versions: i64,
    bytes: i64,
    oldest_at: i64,
}

impl Store {
    pub(super) async fn compact_documents(&self, removed: &mut Compacted) -> Result<(), StoreError> {
        let limits = self.document_limits();
        let pinned = self.pinned_versions().await?;
        for mut kept in self.documents_beyond(&limits).await? {
            kept.pinned = pinned.get(&kept.document).copied();
            if kept.changed_at < limits.oldest_at && kept.pinned.is_none() {
                removed.versions += u64::try_from(kept.versions).unwrap_or_default();
                removed.documents += self.forget_document(kept.document).await?;
            } else if let Some(seq) = self.first_to_keep(&kept, &limits).await? {
                removed.versions += self.remove_versions_before(&kept, seq, &limits).await?;
            }
        }
        self.compact_total(removed, &pinned).await
    }

    async fn pinned_versions(&self) -> Result<Pinned, StoreError> {
        let ids = self.compaction.source.get().map(|source| source.pinned());
        let mut pinned = Pinned::new();
        for id in ids.unwrap_or_default() {
            let statement = Statement::new("SELECT document, seq FROM versions WHERE version_id = $1").bind(&id);
            if let Some(row) = self.database.row(statement).await? {
                let seq: i64 = row.get("seq")?;
                let oldest = pinned.entry(row.get("document")?).or_insert(seq);
                *oldest = seq.min(*oldest);
            }
        }
        Ok(pinned)
    }

    fn document_limits(&self) -> Limits {
        let history = self.limits.history;
        Limits {
            versions: i64::try_from(history.versions_per_document).unwrap_or(i64::MAX),
            bytes: i64::try_from(history.bytes_per_document).unwrap_or(i64::MAX),
            oldest_at: micros(ago(history.keep)),
        }
    }

    async fn documents_beyond(&self, limits: &Limits) -> Result<Vec<Kept>, StoreError> {
        let statement = Statement::new(
            "SELECT document, latest_seq, versions, bytes, oldest_at, changed_at FROM documents \
             WHERE versions > $1 OR bytes > $2 OR oldest_at < $3 ORDER BY changed_at LIMIT $4",
        );
        // Not as soon as one version is a moment too old.
        let keep = micros(SystemTime::now()).saturating_sub(limits.oldest_at);
        let oldest_at = limits.oldest_at.saturating_sub(keep / 10);
        let statement = statement.bind(limits.versions).bind(limits.bytes).bind(oldest_at);
        let rows = self.database.rows(statement.bind(DOCUMENTS)).await?;
        Ok(readable(rows, "documents", Kept::read))
    }

    /// The oldest version that fits into all limits, if some do not.
    async fn first_to_keep(&self, kept: &Kept, limits: &Limits) -> Result<Option<i64>, StoreError> {
        let mut first = 0;
        if kept.versions > limits.versions {
            first = kept.latest_seq - after_cut(limits.versions) + 1;
        }
        if kept.bytes > limits.bytes {
            let statement = Statement::new(
                "SELECT MIN(seq) FROM (SELECT seq, SUM(bytes) OVER (ORDER BY seq DESC) AS kept FROM versions \
                 WHERE document = $1) AS ranked WHERE kept <= $2",
            );
            let statement = statement.bind(kept.document).bind(after_cut(limits.bytes));
            first = first.max(self.minimum(statement).await?.unwrap_or(kept.latest_seq));
        }
        if kept.oldest_at < limits.oldest_at {
            let statement = Statement::new("SELECT MIN(seq) FROM versions WHERE document = $1 AND time >= $2");
            let statement = statement.bind(kept.document).bind(limits.oldest_at);
            first = first.max(self.minimum(statement).await?.unwrap_or(kept.latest_seq));
        }
        let first = first.min(kept.pinned.unwrap_or(i64::MAX));
        Ok(Some(first.min(kept.latest_seq)).filter(|first| *first > kept.latest_seq - kept.versions + 1))
    }

    async fn minimum(&self, statement: Statement<'_>) -> Result<Option<i64>, StoreError> {
        match self.database.row(statement).await? {
            Some(row) => Ok(row.first()?),
            None => Ok(None),
        }
    }

    /// Removes the versions before one, or before one nearby that has a snapshot. Says how many.
    async fn remove_versions_before(&self, kept: &Kept, seq: i64, limits: &Limits) -> Result<u64, StoreError> {
        let Some(first) = self.beginning(kept, seq, limits).await? else {
            return Ok(0);
        };
        let mut removed = 0;
        loop {
            let deleted = self.delete_chunk(kept.document, first).await?;
            removed += deleted;
            if deleted == 0 {
                return Ok(removed);
            }
        }
    }

    /// The version that becomes the first: one near this one whose whole content is kept.
    async fn beginning(&self, kept: &Kept, seq: i64, limits: &Limits) -> Result<Option<i64>, StoreError> {
        let statement = Statement::new("SELECT MIN(seq) FROM snapshots WHERE document = $1 AND seq >= $2");
        let after = self.minimum(statement.bind(kept.document).bind(seq)).await?;
        let after = after.filter(|after| kept.pinned.is_none_or(|pinned| *after <= pinned));
        if let Some(after) = after.filter(|after| after - seq <= (kept.latest_seq - seq) / 10) {
            return Ok(Some(after));
        }
        if let Some(source) = self.compaction.source.get()
            && let Some(snapshot) = source.snapshot(kept.document, seq).await
        {
            self.put_snapshot(kept.document, seq, &snapshot).await?;
            return Ok(Some(seq));
        }
        let statement = Statement::new("SELECT MAX(seq) FROM snapshots WHERE document = $1 AND seq < $2");
        let before = self.minimum(statement.bind(kept.document).bind(seq)).await?;
        let is_far_beyond = kept.pinned.is_none()
            && (kept.versions > limits.versions * 2 || kept.bytes > limits.bytes.saturating_mul(2));
        if is_far_beyond && after.is_none() {
            let document = kept.document;
            tracing::warn!(
                document,
                "old versions are removed though the content after them is not kept"
            );
        }
        Ok(match is_far_beyond {
            true => after.or(Some(seq)),
            false => before,
        })
    }

    /// Deletes some of the versions before one, the oldest first.
    async fn delete_chunk(&self, document: i64, first: i64) -> Result<u64, StoreError> {
        let mut transaction = self.database.begin().await?;
        if transaction.is_postgres() {
            // Whoever appends takes the document first too.
            let lock = Statement::new("SELECT 1 FROM documents WHERE document = $1 FOR UPDATE");
            transaction.execute(lock.bind(document)).await?;
        }
        let statement = Statement::new(
            "SELECT COUNT(*) AS versions, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes, MAX(seq) AS last FROM \
             (SELECT seq, bytes FROM versions WHERE document = $1 AND seq < $2 ORDER BY seq LIMIT $3) AS oldest",
        );
        let row = transaction
            .row(statement.bind(document).bind(first).bind(CHUNK))
            .await?;
        let row = row.ok_or(sqlx::Error::RowNotFound)?;
        let Some(last) = row.get::<Option<i64>>("last")? else {
            return Ok(0);
        };
        let (versions, bytes) = (row.get::<i64>("versions")?, row.get::<i64>("bytes")?);
        let delete = Statement::new("DELETE FROM versions WHERE document = $1 AND seq <= $2");
        transaction.execute(delete.bind(document).bind(last)).await?;
        let count = Statement::new(
            "UPDATE documents SET versions = versions - $2, bytes = bytes - $3, oldest_at = COALESCE((SELECT time \
             FROM versions WHERE versions.document = $1 ORDER BY seq LIMIT 1), changed_at) WHERE document = $1",
        );
        transaction
            .execute(count.bind(document).bind(versions).bind(bytes))
            .await?;
        transaction.commit().await?;
        Ok(u64::try_from(versions).unwrap_or_default())
    }

    /// Removes the history of the documents that were not changed for longest, while there is too much in all. One
    /// document stays, which has a limit of its own.
    async fn compact_total(&self, removed: &mut Compacted, pinned: &Pinned) -> Result<(), StoreError> {
        let limit = i64::try_from(self.limits.history.bytes).unwrap_or(i64::MAX);
        let statement = Statement::new("SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM documents");
        let mut total = self.minimum(statement).await?.unwrap_or_default();
        if total <= limit {
            return Ok(());
        }
        let statement = Statement::new(
            "SELECT document, latest_seq, versions, bytes, oldest_at, changed_at FROM documents \
             WHERE changed_at < (SELECT MAX(changed_at) FROM documents) ORDER BY changed_at LIMIT $1",
        );
        let rows = self.database.rows(statement.bind(DOCUMENTS)).await?;
        let kept = readable(rows, "documents", Kept::read);
        for kept in kept.iter().filter(|kept| !pinned.contains_key(&kept.document)) {
            if total <= after_cut(limit) {
                break;
            }
            total -= kept.bytes;
            removed.versions += u64::try_from(kept.versions).unwrap_or_default();
            removed.documents += self.forget_document(kept.document).await?;
        }
        Ok(())
    }

    /// Removes a document with its whole history.
    async fn forget_document(&self, document: i64) -> Result<u64, StoreError> {
        let statement = Statement::new("DELETE FROM documents WHERE document = $1").bind(document);
        self.database.execute(statement).await
    }
}

impl Kept {
    fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            document: row.get("document")?,
            latest_seq: row.get("latest_seq")?,
            versions: row.get("versions")?,
            bytes: row.get("bytes")?,
            oldest_at: row.get("oldest_at")?,
            changed_at: row.get("changed_at")?,
            pinned: None,
        })
    }
}

/// Nine tenths of a limit, to which is cut, so that it is not cut again at once.
fn after_cut(limit: i64) -> i64 {
    limit - limit / 10
}
