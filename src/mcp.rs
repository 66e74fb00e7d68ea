//! The protocol: two eras of MCP on one endpoint, sessions, the catalogue as clients see it. Knows nothing of axum or of
//! sockets.
//!
//! A request is read once (`message`, `headers`) and then answered: a call of a tool always by
//! `GatewayHandler::answer`. What lies between is framing. Requests that need nothing of their client are begun by an
//! [`Answerer`]; the others go through rmcp's service, which gives them a client to talk to. Either way the reply is
//! JSON (`endpoint::modern`) or a stream of events (`endpoint::legacy`, `sessions`).

mod answer;
mod catalogue;
mod client;
mod endpoint;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod handler;
mod headers;
mod identity;
mod instructions;
mod message;
mod observe;
mod plain;
mod prompts;
mod reply;
mod request_state;
mod resources;
mod sessions;
mod skills;
mod subscriptions;
mod tasks;

pub use answer::Answer;
pub use catalogue::Catalogue;
pub use endpoint::{Endpoint, EndpointConfig};
pub use handler::GatewayHandler;
pub use identity::{Caller, Selection};
pub use plain::{Answerer, Begun, PlainRequest, StepUp, Written};
pub use reply::{LackingScope, Reply};
pub use sessions::SessionLimits;

use sessions::Sessions;
