//! One thing that somebody did.

use std::{sync::Arc, time::SystemTime};

use jupyter_client::DocPath;
use serde_json::{Map, Value};

/// The kinds that the gateway itself records; agents may broadcast any other.
pub mod kinds {
    pub const EDIT: &str = "edit";
    pub const EXECUTE: &str = "execute";
    pub const JOIN: &str = "join";
    pub const LEAVE: &str = "leave";
    pub const SAVE: &str = "save";
    pub const CREATE: &str = "create";
    pub const COPY: &str = "copy";
    pub const DELETE: &str = "delete";
    pub const RENAME: &str = "rename";
    pub const KERNEL: &str = "kernel";
    pub const LOSS: &str = "content_lost";
    pub const MENTION: &str = "mention";
}

/// Somebody who does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub id: Arc<str>,
    pub name: String,
    pub is_agent: bool,
}

impl Actor {
    pub fn agent(id: &Arc<str>, name: &str) -> Self {
        Self {
            id: Arc::clone(id),
            name: name.to_owned(),
            is_agent: true,
        }
    }

    pub fn person(id: &str, name: &str) -> Self {
        Self {
            id: id.into(),
            name: name.to_owned(),
            is_agent: false,
        }
    }

    /// Somebody of whom nothing is known.
    pub fn unknown() -> Self {
        Self::person("unknown", "somebody")
    }
}

/// An action of a person or an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    pub id: String,
    /// The last time at which it was done.
    pub time: SystemTime,
    pub server: Arc<str>,
    pub path: Option<DocPath>,
    /// Jupyter's id of the file, where it is known.
    pub file_id: Option<Arc<str>>,
    pub actor: Actor,
    pub kind: String,
    pub description: String,
    pub metadata: Map<String, Value>,
    /// The tenant of an agent that did it: what concerns no document is told to nobody else.
    pub tenant: Option<Arc<str>>,
}

/// Member in which a mention names the agent that is meant.
const MENTIONED: &str = "agent_id";

impl Activity {
    pub fn new(kind: &str, actor: Actor, server: &str, description: String) -> Self {
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            time: SystemTime::now(),
            server: server.into(),
            path: None,
            file_id: None,
            actor,
            kind: kind.to_owned(),
            description,
            metadata: Map::new(),
            tenant: None,
        }
    }

    /// The same about a document.
    pub fn about(mut self, path: DocPath) -> Self {
        self.path = Some(path);
        self
    }

    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(name.to_owned(), value.into());
        self
    }

    /// The agent that a mention calls.
    pub fn mentioned(&self) -> Option<&str> {
        let named = self.metadata.get(MENTIONED)?.as_str();
        named.filter(|_| self.kind == kinds::MENTION)
    }
}
