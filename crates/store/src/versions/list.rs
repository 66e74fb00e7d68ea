//! Reading versions: lists without their deltas, deltas in order, snapshots and blobs.

use super::{Before, COLUMNS, VersionFilter, VersionRow, as_count, unknown};
use crate::{
    DocumentRow, Store, StoreError,
    database::{Statement, readable},
    row::micros,
};

/// Versions that one page of deltas has at most.
const PAGE_VERSIONS: i64 = 500;
/// Bytes of deltas after which a page ends.
const PAGE_BYTES: i64 = 8 * 1024 * 1024;

impl Store {
    /// The newest first.
    pub async fn versions(&self, document: i64, filter: &VersionFilter) -> Result<Vec<VersionRow>, StoreError> {
        let mut statement = Statement::new("SELECT ");
        statement.push(COLUMNS).push(" FROM ");
        match &filter.author {
            Some(author) => {
                statement.push("version_authors JOIN versions ON versions.document = version_authors.document");
                statement.push(" AND versions.seq = version_authors.seq WHERE version_authors.document = ");
                statement.push_bind(document).push(" AND author = ").push_bind(author);
                statement.push(" AND version_authors.seq < ");
            }
            None => {
                statement
                    .push("versions WHERE versions.document = ")
                    .push_bind(document);
                statement.push(" AND versions.seq < ");
            }
        }
        statement.push_bind(self.upper_bound(document, filter).await?);
        if let Some(Before::Time(before)) = filter.before {
            statement.push(" AND time < ").push_bind(micros(before));
        }
        statement.push(match filter.author {
            Some(_) => " ORDER BY version_authors.seq DESC LIMIT ",
            None => " ORDER BY versions.seq DESC LIMIT ",
        });
        statement.push_bind(as_count(filter.limit));
        Ok(readable(
            self.database.rows(statement).await?,
            "versions",
            VersionRow::read,
        ))
    }

    /// The number before which a filter wants versions.
    async fn upper_bound(&self, document: i64, filter: &VersionFilter) -> Result<i64, StoreError> {
        let Some(Before::Version(version_id)) = &filter.before else {
            return Ok(i64::MAX);
        };
        let statement = Statement::new("SELECT seq FROM versions WHERE version_id = $1 AND document = $2");
        let row = self.database.row(statement.bind(version_id).bind(document)).await?;
        let row = row.ok_or_else(|| unknown(version_id))?;
        Ok(row.first()?)
    }

    /// A version with its document.
    pub async fn version(&self, version_id: &str) -> Result<Option<(DocumentRow, VersionRow)>, StoreError> {
        let mut statement = Statement::new("SELECT ");
        statement.push(COLUMNS).push(" FROM versions WHERE version_id = ");
        statement.push_bind(version_id);
        let Some(row) = self.database.row(statement).await? else {
            return Ok(None);
        };
        let version = VersionRow::read(&row)?;
        let statement = Statement::new(
            "SELECT document, server, file_id, path, kind, latest_seq FROM documents WHERE document = $1",
        );
        let row = self.database.row(statement.bind(version.document)).await?;
        let document = row.as_ref().map(DocumentRow::read).transpose()?;
        Ok(document.map(|document| (document, version)))
    }

    /// The deltas between two versions, in order, as far as one page holds them: the next page begins after the last
    /// of this one, and an empty one is the end. A gap in the numbers is a version that cannot be read.
    pub async fn deltas(
        &self,
        document: i64,
        from_seq_exclusive: i64,
        to_seq_inclusive: i64,
    ) -> Result<Vec<(i64, VersionRow, Vec<u8>)>, StoreError> {
        let last = self.page_end(document, from_seq_exclusive, to_seq_inclusive).await?;
        let mut statement = Statement::new("SELECT ");
        statement.push(COLUMNS).push(", delta FROM versions WHERE document = ");
        statement.push_bind(document);
        statement.push(" AND seq > ").push_bind(from_seq_exclusive);
        statement.push(" AND seq <= ").push_bind(last).push(" ORDER BY seq");
        let rows = self.database.rows(statement).await?;
        Ok(readable(rows, "versions", |row| {
            let version = VersionRow::read(row)?;
            Ok((version.seq, version, row.get("delta")?))
        }))
    }

    /// The last version of a page of deltas. A page has one delta, however large that is.
    async fn page_end(&self, document: i64, from: i64, to: i64) -> Result<i64, StoreError> {
        let statement = Statement::new(
            "SELECT seq, bytes FROM versions WHERE document = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4",
        );
        let statement = statement.bind(document).bind(from).bind(to).bind(PAGE_VERSIONS);
        let (mut last, mut bytes) = (from, 0);
        for row in self.database.rows(statement).await? {
            bytes += row.get::<i64>("bytes")?;
            if bytes > PAGE_BYTES && last > from {
                break;
            }
            last = row.get("seq")?;
        }
        Ok(last)
    }

    /// The newest snapshot that is not newer than a version.
    pub async fn nearest_snapshot(&self, document: i64, seq: i64) -> Result<Option<(i64, Vec<u8>)>, StoreError> {
        let statement = Statement::new(
            "SELECT seq, content FROM snapshots WHERE document = $1 AND seq <= $2 ORDER BY seq DESC LIMIT 1",
        );
        let row = self.database.row(statement.bind(document).bind(seq)).await?;
        let read = |row: crate::database::Row| Ok((row.get("seq")?, row.get("content")?));
        row.map(read).transpose().map_err(StoreError::Query)
    }

    /// The versions of a principal after a number, the oldest first.
    pub async fn versions_of(
        &self,
        document: i64,
        principal: &str,
        since_seq: i64,
    ) -> Result<Vec<VersionRow>, StoreError> {
        let mut statement = Statement::new("SELECT ");
        statement.push(COLUMNS);
        statement.push(" FROM version_authors JOIN versions ON versions.document = version_authors.document");
        statement.push(" AND versions.seq = version_authors.seq WHERE version_authors.document = ");
        statement
            .push_bind(document)
            .push(" AND author = ")
            .push_bind(principal);
        // A person may have the name of a principal.
        statement.push(" AND principal = author AND version_authors.seq > ");
        statement.push_bind(since_seq).push(" ORDER BY version_authors.seq");
        Ok(readable(
            self.database.rows(statement).await?,
            "versions",
            VersionRow::read,
        ))
    }

    pub async fn blob(&self, hash: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let statement = Statement::new("SELECT content FROM blobs WHERE hash = $1").bind(hash);
        let row = self.database.row(statement).await?;
        Ok(row.map(|row| row.first()).transpose()?)
    }
}
