//! Appending a version: all of it in one transaction, and only after the one that its author knew.

use std::{collections::BTreeSet, time::SystemTime};

use super::{Appended, NewVersion, Snapshot, as_count, unknown};
use crate::{
    Store, StoreError,
    database::{Statement, Transaction},
    row::{micros, to_json},
};

/// About what a version takes beside its delta.
const VERSION_BYTES: usize = 256;

impl Store {
    /// Appends a version after the one that its author knew as the latest. One that was appended before under the
    /// same id is not appended again.
    pub async fn append_version(
        &self,
        document: i64,
        expected_seq: i64,
        version: &NewVersion,
    ) -> Result<Appended, StoreError> {
        let mut transaction = self.database.begin().await?;
        if !advance(&mut transaction, document, expected_seq, version).await? {
            return latest(&mut transaction, document, &version.version_id).await;
        }
        let seq = expected_seq + 1;
        insert(&mut transaction, document, seq, version).await?;
        for (hash, bytes) in &version.blobs {
            put_blob(&mut transaction, hash, bytes).await?;
        }
        let hashes = version.blobs.iter().map(|(hash, _)| hash.as_str());
        use_blobs(&mut transaction, document, seq, hashes).await?;
        if let Some(snapshot) = &version.snapshot {
            insert_snapshot(&mut transaction, document, seq, snapshot).await?;
        }
        transaction.commit().await?;
        self.compaction.on_appended(version.bytes(), &self.limits.history);
        Ok(Appended::Ok(seq))
    }

    /// Keeps the whole content as it was after a version, in the place of what was kept before.
    pub async fn put_snapshot(&self, document: i64, seq: i64, snapshot: &Snapshot) -> Result<(), StoreError> {
        let mut transaction = self.database.begin().await?;
        let bytes = as_count(snapshot.bytes.len());
        let add = Statement::new("UPDATE versions SET bytes = bytes + $3 WHERE document = $1 AND seq = $2");
        if transaction.execute(add.bind(document).bind(seq).bind(bytes)).await? == 0 {
            return Err(unknown(&seq.to_string()));
        }
        let add = Statement::new("UPDATE documents SET bytes = bytes + $2 WHERE document = $1");
        transaction.execute(add.bind(document).bind(bytes)).await?;
        insert_snapshot(&mut transaction, document, seq, snapshot).await?;
        transaction.commit().await
    }
}

/// Takes the next number, unless somebody else has.
async fn advance(
    transaction: &mut Transaction,
    document: i64,
    expected_seq: i64,
    version: &NewVersion,
) -> Result<bool, StoreError> {
    let statement = Statement::new(
        "UPDATE documents SET latest_seq = latest_seq + 1, versions = versions + 1, bytes = bytes + $3, \
         changed_at = $4, oldest_at = CASE WHEN versions = 0 THEN $4 ELSE oldest_at END \
         WHERE document = $1 AND latest_seq = $2",
    );
    let statement = statement.bind(document).bind(expected_seq);
    let statement = statement.bind(version.bytes()).bind(micros(version.time));
    Ok(transaction.execute(statement).await? > 0)
}

/// Reason why nothing was appended. A version whose first attempt was written, though its answer was lost, is there.
async fn latest(transaction: &mut Transaction, document: i64, version_id: &str) -> Result<Appended, StoreError> {
    let statement = Statement::new("SELECT seq FROM versions WHERE version_id = $1 AND document = $2");
    if let Some(row) = transaction.row(statement.bind(version_id).bind(document)).await? {
        return Ok(Appended::Ok(row.first()?));
    }
    let statement = Statement::new("SELECT latest_seq FROM documents WHERE document = $1").bind(document);
    match transaction.row(statement).await? {
        Some(row) => Ok(Appended::Conflict {
            latest_seq: row.first()?,
        }),
        None => Err(StoreError::UnknownDocument { document }),
    }
}

async fn insert(
    transaction: &mut Transaction,
    document: i64,
    seq: i64,
    version: &NewVersion,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "INSERT INTO versions (document, seq, version_id, time, kind, principal, authors, tool, revision, summary, \
         size, undoes, bytes, delta) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
    );
    let statement = statement
        .bind(document)
        .bind(seq)
        .bind(&version.version_id)
        .bind(micros(version.time))
        .bind(&version.kind)
        .bind(&version.principal)
        .bind(to_json(&version.authors)?)
        .bind(&version.tool)
        .bind(&version.revision)
        .bind(&version.summary)
        .bind(version.size)
        .bind(to_json(&version.undoes)?)
        .bind(version.bytes())
        .bind(&version.delta);
    transaction.execute(statement).await?;
    let names: BTreeSet<&String> = version.authors.iter().chain(&version.principal).collect();
    if names.is_empty() {
        return Ok(());
    }
    let mut statement = Statement::new("INSERT INTO version_authors (document, author, seq) VALUES ");
    for (index, author) in names.into_iter().enumerate() {
        statement.push(if index == 0 { "(" } else { ", (" }).push_bind(document);
        statement.push(", ").push_bind(author);
        statement.push(", ").push_bind(seq).push(")");
    }
    transaction.execute(statement).await?;
    Ok(())
}

/// The time of its use keeps it from those who remove what nobody uses.
async fn put_blob(transaction: &mut Transaction, hash: &str, bytes: &[u8]) -> Result<(), StoreError> {
    let statement = Statement::new(
        "INSERT INTO blobs (hash, used_at, content) VALUES ($1, $2, $3) \
         ON CONFLICT (hash) DO UPDATE SET used_at = excluded.used_at",
    );
    let statement = statement.bind(hash).bind(micros(SystemTime::now())).bind(bytes);
    transaction.execute(statement).await?;
    Ok(())
}

async fn use_blobs<'a>(
    transaction: &mut Transaction,
    document: i64,
    seq: i64,
    hashes: impl Iterator<Item = &'a str>,
) -> Result<(), StoreError> {
    for hash in hashes {
        let statement =
            Statement::new("INSERT INTO blob_uses (hash, document, seq) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING");
        transaction
            .execute(statement.bind(hash).bind(document).bind(seq))
            .await?;
    }
    Ok(())
}

async fn insert_snapshot(
    transaction: &mut Transaction,
    document: i64,
    seq: i64,
    snapshot: &Snapshot,
) -> Result<(), StoreError> {
    let statement = Statement::new(
        "INSERT INTO snapshots (document, seq, content) VALUES ($1, $2, $3) \
         ON CONFLICT (document, seq) DO UPDATE SET content = excluded.content",
    );
    let statement = statement.bind(document).bind(seq).bind(&snapshot.bytes);
    transaction.execute(statement).await?;
    let hashes = snapshot.blobs.iter().map(String::as_str);
    use_blobs(transaction, document, seq, hashes).await
}

impl NewVersion {
    /// About what it takes.
    fn bytes(&self) -> i64 {
        let blobs: usize = self.blobs.iter().map(|(_, bytes)| bytes.len()).sum();
        let snapshot = self.snapshot.as_ref().map_or(0, |snapshot| snapshot.bytes.len());
        as_count(VERSION_BYTES + self.summary.len() + self.delta.len() + blobs + snapshot)
    }
}
