//! The protocol: two eras of MCP on one endpoint, sessions, the catalogue as clients see it.
//! Together with `events` the only place that knows `rmcp`. Knows nothing of axum or of sockets.

mod answer;
mod catalogue;
mod client;
mod direct;
mod endpoint;
mod envelope;
mod handler;
mod identity;
mod observe;
mod prompts;
mod request_state;
mod resources;
mod sessions;
mod subscriptions;
mod tasks;

pub use answer::Answer;
pub use catalogue::Catalogue;
pub use direct::{Direct, DirectCall};
pub use endpoint::{Endpoint, EndpointConfig, Reply};
pub use handler::GatewayHandler;
pub use identity::{Caller, Selection};
pub use sessions::{SessionLimits, Sessions};
