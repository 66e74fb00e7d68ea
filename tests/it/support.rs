//! Plumbing: real JupyterLab servers, gateways in front of them, and agents that talk to those.

pub mod agent;
pub mod beside;
pub mod browser;
pub mod collector;
pub mod command;
pub mod console;
pub mod console_page;
pub mod deadline;
pub mod engines;
pub mod gateway;
pub mod hub;
pub mod human;
pub mod jupyter;
pub mod lab;
pub mod nginx;
pub mod node;
pub mod notebook;
pub mod operator_tools;
pub mod own_lab;
pub mod process;
pub mod process_scene;
pub mod provider;
pub mod proxy;
pub mod running;
pub mod scene;
pub mod schema;
pub mod soak;
pub mod tab;
pub mod tap;
pub mod watcher;
pub mod wire;

pub use agent::{Agent, Era};
pub use deadline::{TIMEOUT, within};
pub use gateway::{Gateway, TOKEN};
pub use human::Human;
pub use lab::lab;
pub use watcher::Watcher;

use std::time::{Duration, Instant};

/// Waits until a condition holds; panics with its name if it does not in time.
pub async fn eventually<T>(what: &str, mut condition: impl AsyncFnMut() -> Option<T>) -> T {
    deadline::note_wait(what);
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = condition().await {
            return found;
        }
        assert!(Instant::now() < deadline, "not in 30 s: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
