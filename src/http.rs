//! The HTTP edge: sockets, the stack of layers, health, metrics, and the way into MCP.
//! The only place that knows hyper, and with `app` the only one that knows axum. What goes on to `mcp` is the head of a
//! request with its authenticated caller, and the whole body; to `console` goes what a browser asked. Of rmcp it knows the name of a handler's trait.

mod challenge;
mod connections;
mod console_route;
mod cors;
mod edge;
mod forwarded;
mod guard;
mod health;
mod login;
mod mcp_route;
mod oauth;
mod origin;
mod problem;
mod selection;
mod server;
mod stack;
mod stream_body;
mod tls;

pub use challenge::Challenges;
pub use connections::{ConnectionLimits, ConnectionTable, Timeouts, within_descriptors};
pub use edge::{Access, Edge, EdgeConfig};
pub use forwarded::TrustedProxies;
pub use origin::OriginPolicy;
pub use server::{Drain, serve};
pub use stack::{metrics_router, router};
pub use tls::{Tls, TlsError, TlsFiles};
