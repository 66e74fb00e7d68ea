//! The agents by whose names people can call: those of the config, and those who used the gateway.

use std::{collections::HashMap, num::NonZeroUsize, sync::Arc};

use lru::LruCache;

/// Agents that are remembered; those of the config are known anyway.
const MAX_AGENTS: NonZeroUsize = NonZeroUsize::new(4096).unwrap();

/// An agent that can be called by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAgent {
    pub id: Arc<str>,
    pub name: String,
    pub tenant: Arc<str>,
}

pub(super) struct KnownAgents {
    configured: Vec<KnownAgent>,
    used: LruCache<Arc<str>, KnownAgent>,
    names: Arc<AgentNames>,
}

/// Agents by their names as they are compared.
#[derive(Debug, Default)]
pub(super) struct AgentNames {
    /// Names of letters, digits, `-`, `_` and `.`, which can be told from the text around them.
    pub(super) plain: HashMap<String, KnownAgent>,
    /// All others.
    pub(super) odd: Vec<(String, KnownAgent)>,
}

impl KnownAgents {
    pub(super) fn new(configured: Vec<KnownAgent>) -> Self {
        let mut known = Self {
            configured,
            used: LruCache::new(MAX_AGENTS),
            names: Arc::default(),
        };
        known.index();
        known
    }

    /// Puts other agents in the place of those of the config. Who is not among them any more cannot be called.
    pub(super) fn set_configured(&mut self, configured: Vec<KnownAgent>) {
        let is_removed = |id: &Arc<str>| !configured.iter().any(|agent| agent.id == *id);
        for agent in self.configured.iter().filter(|agent| is_removed(&agent.id)) {
            self.used.pop(&agent.id);
        }
        self.configured = configured;
        self.index();
    }

    /// Records an agent that uses the gateway.
    pub(super) fn note(&mut self, id: &Arc<str>, name: &str, tenant: &str) {
        if self.used.get(id).is_some_and(|known| known.name == name) {
            return;
        }
        let agent = KnownAgent {
            id: Arc::clone(id),
            name: name.to_owned(),
            tenant: tenant.into(),
        };
        self.used.put(Arc::clone(id), agent);
        self.index();
    }

    pub(super) fn names(&self) -> Arc<AgentNames> {
        Arc::clone(&self.names)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &KnownAgent> {
        let used = self.used.iter().map(|(_, agent)| agent);
        let configured = self.configured.iter().filter(|agent| !self.used.contains(&agent.id));
        configured.chain(used)
    }

    fn index(&mut self) {
        let mut names = AgentNames::default();
        for agent in self.all() {
            let name = agent.name.trim().to_lowercase();
            match name.chars().all(is_plain) {
                _ if name.is_empty() => {}
                true => drop(names.plain.insert(name, agent.clone())),
                false => names.odd.push((name, agent.clone())),
            }
        }
        self.names = Arc::new(names);
    }
}

pub(super) fn is_plain(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_' | '.')
}
