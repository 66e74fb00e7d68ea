//! Versions of documents: what was changed, by whom, in order. What a delta or a snapshot says is opaque here.

mod append;
mod list;
mod marks;

use std::time::SystemTime;

use crate::{
    StoreError,
    database::Row,
    row::{from_json, time},
};

/// A version to be appended.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVersion {
    pub version_id: String,
    pub time: SystemTime,
    /// Cause of it, in the history's own words.
    pub kind: String,
    /// The agent's, if an agent made it.
    pub principal: Option<String>,
    /// Names, as people read them.
    pub authors: Vec<String>,
    pub tool: Option<String>,
    pub revision: Option<String>,
    pub summary: String,
    /// Of the document's content.
    pub size: i64,
    /// The versions that it takes back.
    pub undoes: Vec<String>,
    pub delta: Vec<u8>,
    /// The whole content after it.
    pub snapshot: Option<Snapshot>,
    /// Blobs that the delta mentions by hash. One that is stored already is not stored again.
    pub blobs: Vec<(String, Vec<u8>)>,
}

/// The whole content of a document after a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: Vec<u8>,
    /// The hashes of all blobs that it mentions: they stay as long as it does.
    pub blobs: Vec<String>,
}

/// Result of appending a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// As this one.
    Ok(i64),
    /// Somebody else has appended one; nothing was changed.
    Conflict { latest_seq: i64 },
}

/// A version without its delta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRow {
    pub document: i64,
    pub seq: i64,
    pub version_id: String,
    pub time: SystemTime,
    pub kind: String,
    pub principal: Option<String>,
    pub authors: Vec<String>,
    pub tool: Option<String>,
    pub revision: Option<String>,
    pub summary: String,
    pub size: i64,
    pub undoes: Vec<String>,
}

/// Filter for the versions of a document.
#[derive(Debug, Clone, Default)]
pub struct VersionFilter {
    pub limit: usize,
    /// A principal, or the name of an author.
    pub author: Option<String>,
    pub before: Option<Before>,
}

/// The moment before which versions are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    Version(String),
    Time(SystemTime),
}

const COLUMNS: &str = "versions.document, versions.seq, version_id, time, versions.kind, principal, authors, tool, \
     revision, summary, size, undoes";

impl VersionRow {
    fn read(row: &Row) -> Result<Self, sqlx::Error> {
        Ok(Self {
            document: row.get("document")?,
            seq: row.get("seq")?,
            version_id: row.get("version_id")?,
            time: time(row.get("time")?),
            kind: row.get("kind")?,
            principal: row.get("principal")?,
            authors: from_json(&row.get::<String>("authors")?)?,
            tool: row.get("tool")?,
            revision: row.get("revision")?,
            summary: row.get("summary")?,
            size: row.get("size")?,
            undoes: from_json(&row.get::<String>("undoes")?)?,
        })
    }
}

fn as_count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unknown(version_id: &str) -> StoreError {
    StoreError::UnknownVersion {
        version: version_id.to_owned(),
    }
}
