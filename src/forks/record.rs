//! What is kept of a fork, and where.

use std::time::SystemTime;

use async_trait::async_trait;
use jupyter_client::DocPath;
use live_document::DocumentContent;

use super::{ForkError, MAX_BYTES};

/// A fork while it exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkRecord {
    pub fork_id: String,
    pub server: String,
    /// That of the document's file.
    pub file_id: String,
    pub path: String,
    /// `notebook` or `file`.
    pub kind: String,
    pub title: String,
    pub description: String,
    /// Whether changes of the document flow into it.
    pub synchronize: bool,
    pub principal: String,
    pub author_name: String,
    pub created_at: SystemTime,
    /// The server's room, which is another one after a restart; nothing where the server knows no forks.
    pub room_id: Option<String>,
    /// Whether it has the edits of an agent that somebody has to review.
    pub is_review: bool,
    pub base: Vec<u8>,
    pub content: Vec<u8>,
    pub updated_at: SystemTime,
}

/// A place where forks outlive their rooms.
#[async_trait]
pub trait ForkStore: Send + Sync {
    async fn put_fork(&self, fork: ForkRecord) -> Result<(), ForkError>;

    async fn fork(&self, fork_id: &str) -> Result<Option<ForkRecord>, ForkError>;

    async fn forks_of(&self, server: &str, file_id: &str) -> Result<Vec<ForkRecord>, ForkError>;

    async fn delete_fork(&self, fork_id: &str) -> Result<(), ForkError>;
}

/// A content as it is kept.
pub(super) fn encode(content: &DocumentContent, path: &DocPath) -> Result<Vec<u8>, ForkError> {
    let bytes = serde_json::to_vec(content).unwrap_or_default();
    match bytes.len() > MAX_BYTES {
        true => Err(ForkError::TooLarge {
            path: path.to_string(),
            limit: MAX_BYTES,
        }),
        false => Ok(bytes),
    }
}

pub(super) fn decode(bytes: &[u8], fork_id: &str) -> Result<DocumentContent, ForkError> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, fork_id, "the content of a fork cannot be read");
        ForkError::Unreadable {
            fork_id: fork_id.to_owned(),
        }
    })
}
