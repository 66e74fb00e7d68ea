//! Jupyter servers as the gateway sees them: REST through one pooled client each, rooms and kernels through
//! sockets.
//! The only place that knows `reqwest`. Knows nothing of principals, MCP or the HTTP edge.

mod client;
pub(crate) mod collaboration;
mod contents;
mod error;
mod feed;
pub mod kernel;
mod kernels;
mod kernelspecs;
mod limits;
mod links;
pub mod room;
mod servers;
mod sessions;
pub(crate) mod socket;
mod status;
mod urls;

pub use client::JupyterServer;
pub use contents::{Content, Document, DocumentKind, NewDocument};
pub use error::JupyterError;
pub use feed::{Feed, ServerEvent};
pub use kernels::RunningKernel;
pub use kernelspecs::Kernelspec;
pub use links::Links;
pub use servers::{Servers, UnknownServer};
pub use sessions::{NotebookSession, SESSIONS_FRESH};
pub use status::ServerStatus;
pub use urls::{NotebookUrl, UrlError, allowed_base, locate_notebook, locate_server};
