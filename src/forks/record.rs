//! Contents of forks as the store keeps them.

use jupyter_client::DocPath;
use live_document::DocumentContent;
use store::ForkRecord;

use super::{ForkError, MAX_BYTES};

/// The content that a fork began as, with what of it was taken over since.
pub(super) fn base_of(fork: &ForkRecord) -> Result<DocumentContent, ForkError> {
    decode(&fork.base, &fork.fork_id)
}

/// The content of a fork when it was last written down.
pub(super) fn content_of(fork: &ForkRecord) -> Result<DocumentContent, ForkError> {
    decode(&fork.content, &fork.fork_id)
}

/// The content that a fork began as, and the one that it had when it was last written down.
pub fn contents(fork: &ForkRecord) -> Result<(DocumentContent, DocumentContent), ForkError> {
    Ok((base_of(fork)?, content_of(fork)?))
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

fn decode(bytes: &[u8], fork_id: &str) -> Result<DocumentContent, ForkError> {
    serde_json::from_slice(bytes).map_err(|error| {
        tracing::error!(%error, fork_id, "the content of a fork cannot be read");
        ForkError::Unreadable {
            fork_id: fork_id.to_owned(),
        }
    })
}
