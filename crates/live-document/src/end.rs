//! How a room's connection may end, and what that means.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jupyter_client::{DocPath, JupyterError, JupyterServer};
use serde::Deserialize;
use tokio_tungstenite::tungstenite::{self, error::CapacityError, protocol::CloseFrame};

use super::{RoomError, document::UpdateError, scan::Excess};

/// The code by which Jupyter says that a document does not exist.
pub(super) const GONE: u16 = 4404;
/// What is left of the code by which servers before jupyter-collaboration 4 say that they cannot open a
/// file: it is one that nobody may send. That the file exists is known by then.
const UNSPEAKABLE: u16 = 1002;

/// How a connection ended.
#[derive(Debug)]
pub(super) enum End {
    Cut(String),
    Malformed(String),
    /// The document breaks a limit.
    Excess(String),
    Closed {
        code: u16,
        reason: String,
    },
}

impl From<UpdateError> for End {
    fn from(error: UpdateError) -> Self {
        match error {
            UpdateError::Excess(Excess::Malformed(_)) | UpdateError::Unreadable(_) | UpdateError::Unfitting(_) => {
                Self::Malformed(error.to_string())
            }
            UpdateError::Excess(excess) => Self::Excess(excess.to_string()),
        }
    }
}

impl From<tungstenite::Error> for End {
    fn from(error: tungstenite::Error) -> Self {
        match error {
            // It would come again.
            tungstenite::Error::Capacity(CapacityError::MessageTooLong { .. }) => {
                Self::Excess(Excess::Size.to_string())
            }
            error => Self::Cut(error.to_string()),
        }
    }
}

/// The JSON that newer servers put into the reason of a closure.
#[derive(Deserialize)]
struct CloseReason {
    reason: String,
}

impl End {
    pub(super) fn closed(frame: Option<CloseFrame>) -> Self {
        match frame {
            Some(frame) => Self::Closed {
                code: frame.code.into(),
                reason: frame.reason.to_string(),
            },
            None => Self::Cut("the server closed the connection".to_owned()),
        }
    }

    /// Whether joining again may help: the line was cut, or the server wants a new session.
    pub(super) fn can_be_mended(&self) -> bool {
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

    pub(super) fn into_error(self, server: &JupyterServer, path: &DocPath) -> RoomError {
        let (name, path) = (server.name().to_owned(), path.to_string());
        match self {
            Self::Closed { code: GONE, .. } => JupyterError::NotFound { server: name, path }.into(),
            Self::Closed {
                code: 4400 | UNSPEAKABLE,
                ..
            } => {
                let why = "it is a directory, a binary file or not a valid notebook; \
                    get_document_info shows what is in the file, overwrite_document replaces it"
                    .to_owned();
                RoomError::Refused {
                    server: name,
                    path,
                    why,
                }
            }
            Self::Closed { reason, code } => RoomError::Refused {
                server: name,
                path,
                why: format!("{reason} (code {code})"),
            },
            Self::Cut(why) => server.unreachable(why).into(),
            Self::Malformed(why) => RoomError::Refused {
                server: name,
                path,
                why,
            },
            Self::Excess(why) => RoomError::Excess {
                server: name,
                path,
                why,
            },
        }
    }
}

/// A defect in decoding what came over the wire must cost one room, not the gateway.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, End>) -> Result<T, End> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(End::Malformed("an update could not be applied".to_owned())))
}
