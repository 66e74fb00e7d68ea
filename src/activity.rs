//! Activities of agents and people, as they happen: a bounded log of the latest, a stream for those who follow it, and mentions of
//! agents. What outlives the process is in the store. Knows nothing of MCP, and nothing of who may see what: readers
//! filter what they show.

mod agents;
mod burst;
mod follow;
mod log;
mod mention;
mod mention_watch;
mod record;
mod shown;
mod stored;
mod visible;

pub use agents::KnownAgent;
pub use follow::follow;
pub use log::{ActivityLog, Found, Selection};
pub use record::{Activity, Actor, kinds};
pub use shown::ShownActivity;
