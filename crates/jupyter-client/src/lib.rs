//! Jupyter servers as the gateway sees them: REST through one pooled client each, rooms and kernels through
//! sockets.
//! The only place that knows `reqwest`. Knows nothing of principals, MCP or the HTTP edge.

mod client;
pub mod collaboration;
mod contents;
mod doc_path;
mod error;
mod feed;
pub mod kernel;
mod kernels;
mod kernelspecs;
pub mod limits;
mod links;
mod nesting;
mod options;
mod recent_map;
mod room_kind;
mod secret;
mod servers;
mod sessions;
pub mod socket;
mod status;
mod text;
mod urls;

pub use client::JupyterServer;
pub use contents::{Content, Document, DocumentKind, NewDocument};
pub use doc_path::{DocPath, PathError};
pub use error::JupyterError;
pub use feed::{Feed, ServerEvent};
pub use kernels::RunningKernel;
pub use kernelspecs::Kernelspec;
pub use links::Links;
pub use nesting::{MAX_NESTING, is_shallow_json, is_shallow_value};
pub use options::{RequestObserver, ServerOptions};
pub use recent_map::RecentMap;
pub use room_kind::RoomKind;
pub use secret::Secret;
pub use servers::{Servers, UnknownServer};
pub use sessions::{NotebookSession, SESSIONS_FRESH};
pub use status::ServerStatus;
pub use text::{Truncated, counted, cut_middle, truncate, without_ansi};
pub use urls::{NotebookUrl, UrlError, allowed_base, locate_notebook, locate_server};
