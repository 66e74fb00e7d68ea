//! The HTTP edge: sockets, the stack of layers, health, metrics, and the way into MCP.
//! The only place that knows axum; what comes out of it is an authenticated caller and a body.

mod connections;
mod cors;
mod edge;
mod guard;
mod health;
mod mcp_route;
mod origin;
mod problem;
mod selection;
mod server;
mod stack;
mod stream_body;

pub use connections::{ConnectionLimits, ConnectionTable, Timeouts, within_descriptors};
pub use edge::{Access, Edge, EdgeConfig};
pub use origin::OriginPolicy;
pub use server::{Drain, serve};
pub use stack::{metrics_router, router};
