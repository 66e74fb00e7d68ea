//! Reasons for the end of a room's connection, and their consequences.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::Deserialize;

use super::{document::UpdateError, scan::Excess};

/// The code by which Jupyter says that a document does not exist.
pub(crate) const GONE: u16 = 4404;
/// Reason for the end of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Disconnect {
    Cut(String),
    Malformed(String),
    /// The document breaks a limit.
    Excess(String),
    Closed {
        code: u16,
        reason: String,
    },
}

impl From<UpdateError> for Disconnect {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Excess(Excess::Malformed(_)) | UpdateError::Unreadable(_) | UpdateError::Unfitting(_) => {
                Self::Malformed(error.to_string())
            }
            UpdateError::Excess(excess) => Self::Excess(excess.to_string()),
        }
    }
}

/// The JSON that newer servers put into the reason of a closure.
#[derive(Deserialize)]
struct CloseReason {
    reason: String,
}

impl Disconnect {
    /// Returns whether joining again may help: the connection was cut, or the server wants a new session.
    pub(crate) fn is_recoverable(&self) -> bool {
        match self {
            Self::Cut(_) => true,
            Self::Malformed(_) | Self::Excess(_) => false,
            Self::Closed { code, reason } => match code {
                1003 => serde_json::from_str::<CloseReason>(reason)
                    .map_or(true, |said| said.reason != "initialization_error"),
                4400..=4599 => false,
                _ => true,
            },
        }
    }
}

/// A defect in decoding what came over the wire must cost one room, not the gateway.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Disconnect>) -> Result<T, Disconnect> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Disconnect::Malformed("an update could not be applied".to_owned())))
}
