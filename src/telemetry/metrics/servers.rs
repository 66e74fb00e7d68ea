//! Names of Jupyter servers as attributes: those of the config have series of their own. Of servers that agents or people
//! bring along there may be any number, and they share one.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The name that all share which are not the operator's.
const OTHERS: &str = "(others)";

/// The operator's servers, and whether they answered when they were last asked.
#[derive(Default)]
pub(super) struct KnownServers(Mutex<BTreeMap<String, Option<bool>>>);

impl KnownServers {
    pub(super) fn add(&self, server: &str) {
        self.0.lock().entry(server.to_owned()).or_default();
    }

    /// The name under which a server is measured. One in brackets is no server's, but that of a kind of them.
    pub(super) fn label(&self, server: &str) -> String {
        match server.starts_with('(') || self.0.lock().contains_key(server) {
            true => server.to_owned(),
            false => OTHERS.to_owned(),
        }
    }

    /// Notes whether a server answered.
    pub(super) fn on_asked(&self, server: &str, answered: bool) {
        if let Some(up) = self.0.lock().get_mut(server) {
            *up = Some(answered);
        }
    }

    /// Those that have been asked.
    pub(super) fn asked(&self) -> Vec<(String, bool)> {
        let known = self.0.lock();
        let asked = known.iter().filter_map(|(name, up)| Some((name.clone(), (*up)?)));
        asked.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_servers_of_the_config_have_names() {
        let servers = KnownServers::default();
        servers.add("lab");
        assert_eq!(servers.asked(), [], "nobody has asked it");
        for name in ["lab", "hub-of-ana", "(by url)"] {
            servers.on_asked(name, true);
        }
        assert_eq!(servers.asked(), [("lab".to_owned(), true)]);
        let labels = ["lab", "hub-of-ana", "(by url)"].map(|name| servers.label(name));
        assert_eq!(labels, ["lab", OTHERS, "(by url)"]);
    }
}
