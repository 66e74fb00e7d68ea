//! Names of Jupyter servers as attributes. Most are an operator's; where people have servers of their own there may be
//! any number, and each would be series of its own.

use std::collections::HashMap;

use parking_lot::Mutex;

/// Servers with series of their own; all others share one.
const MAX_SERVERS: usize = 200;
/// The name that those others share.
const OTHERS: &str = "(others)";
/// The name of all servers that agents gave the URL of, of which it means nothing whether they can be reached.
const BY_URL: &str = "(by url)";

/// Servers that have been asked something, and whether they answered last.
#[derive(Default)]
pub(super) struct KnownServers(Mutex<HashMap<Box<str>, bool>>);

impl KnownServers {
    /// The name under which a server is measured.
    pub(super) fn label(&self, server: &str) -> String {
        let known = self.0.lock();
        match server == BY_URL || known.contains_key(server) || known.len() < MAX_SERVERS {
            true => server.to_owned(),
            false => OTHERS.to_owned(),
        }
    }

    /// Notes whether a server answered.
    pub(super) fn on_asked(&self, server: &str, answered: bool) {
        let mut known = self.0.lock();
        if let Some(up) = known.get_mut(server) {
            *up = answered;
        } else if server != BY_URL && known.len() < MAX_SERVERS {
            known.insert(server.into(), answered);
        }
    }

    pub(super) fn all(&self) -> Vec<(String, bool)> {
        let known = self.0.lock();
        known.iter().map(|(name, up)| (name.to_string(), *up)).collect()
    }
}
