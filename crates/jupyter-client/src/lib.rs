//! Client of Jupyter servers: REST through one pooled connection each, rooms and kernels through WebSockets.
//! The only place that knows `reqwest`. Knows nothing of principals, MCP or how a document is merged.
//!
//! [`Servers`] has the servers by name; nearly everything is asked of a [`JupyterServer`].
//!
//! | modules | what they own |
//! | --- | --- |
//! | `client`, `options`, `authorities`, `accounts`, `error`, `limits` | a server, how it is reached and by whom, and what its answers may cost |
//! | `contents`, `collaboration`, `forks`, `room_kind` | documents: files by path, the way into their rooms, and copies of those |
//! | `sessions`, `kernels`, `kernel_starts`, `kernelspecs` | which kernel a notebook has; starting and ending kernels |
//! | `hub` | a JupyterHub: whose a token is, which servers they have, starting one |
//! | [`kernel`] | the connection to a running kernel and its messages |
//! | [`socket`], `feed` | WebSockets; what a server tells of itself |
//! | `doc_path`, `urls`, `links` | paths of one spelling; addresses as people write and open them |
//! | `text`, `terminal`, `nesting`, `secret` | small things that those who use the client need too |

mod accounts;
mod authorities;
mod client;
pub mod collaboration;
mod contents;
mod doc_path;
mod error;
mod feed;
mod forks;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod hub;
pub mod kernel;
mod kernel_starts;
mod kernels;
mod kernelspecs;
pub mod limits;
mod links;
mod nesting;
mod options;
mod room_kind;
mod secret;
mod servers;
mod sessions;
pub mod socket;
mod status;
mod terminal;
mod text;
mod urls;

pub use accounts::Account;
pub use authorities::Authorities;
pub use client::JupyterServer;
pub use contents::{Content, Document, DocumentKind, NewDocument};
pub use doc_path::{DocPath, PathError};
pub use error::JupyterError;
pub use feed::{Feed, ServerEvent};
pub use forks::{ForkInfo, NewFork};
pub use hub::{
    Hub, HubError, HubName, HubOptions, HubPlace, HubServer, HubServerState, HubService, HubUser, SpawnProgress,
};
pub use kernel_starts::Starter;
pub use kernels::RunningKernel;
pub use kernelspecs::Kernelspec;
pub use links::Links;
pub use nesting::{MAX_NESTING, is_shallow_json};
pub use options::{RequestObserver, RequestOutcome, ServerOptions};
pub use room_kind::RoomKind;
pub use secret::Secret;
pub use servers::{Servers, UnknownServer};
pub use sessions::{NotebookSession, SESSIONS_FRESH};
pub use status::ServerStatus;
pub use terminal::{as_shown, without_ansi};
pub use text::{Truncated, counted, cut_middle, truncate};
pub use urls::{NotebookUrl, UrlError, allowed_base, locate_notebook, locate_server};
