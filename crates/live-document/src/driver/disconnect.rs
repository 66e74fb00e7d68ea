//! Reasons for the end of a WebSocket, in terms of the core, and the messages for callers.

use jupyter_client::{DocPath, JupyterError, JupyterServer};
use tokio_tungstenite::tungstenite::{self, error::CapacityError, protocol::CloseFrame};

use crate::{
    RoomError,
    core::{
        disconnect::{Disconnect, GONE},
        scan::Excess,
    },
};

/// Close code seen when servers before jupyter-collaboration 4 cannot open a file: theirs is one that nobody may
/// send. That the file exists is known by then.
const CLOSE_PROTOCOL_ERROR: u16 = 1002;

impl From<tungstenite::Error> for Disconnect {
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

impl Disconnect {
    pub(crate) fn closed(frame: Option<CloseFrame>) -> Self {
        match frame {
            Some(frame) => Self::Closed {
                code: frame.code.into(),
                reason: frame.reason.to_string(),
            },
            None => Self::Cut("the server closed the connection".to_owned()),
        }
    }

    pub(crate) fn into_error(self, server: &JupyterServer, path: &DocPath) -> RoomError {
        let (name, path) = (server.name().to_owned(), path.to_string());
        match self {
            Self::Closed { code: GONE, .. } => JupyterError::NotFound { server: name, path }.into(),
            Self::Closed {
                code: 4400 | CLOSE_PROTOCOL_ERROR,
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
