//! An activity as readers get it, in the words that tools and resources share.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Activity;

/// An activity as a reader gets it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ShownActivity {
    pub activity_id: String,
    pub timestamp: String,
    pub user_id: String,
    pub user_name: String,
    pub is_agent: bool,
    pub activity_type: String,
    pub description: String,
    pub server: String,
    pub document_path: Option<String>,
    pub metadata: Map<String, Value>,
    /// It calls the reader.
    pub mentions_you: bool,
}

impl Activity {
    pub fn shown_to(&self, reader: &Arc<str>) -> ShownActivity {
        ShownActivity {
            activity_id: self.id.clone(),
            timestamp: humantime::format_rfc3339_millis(self.time).to_string(),
            user_id: self.actor.id.to_string(),
            user_name: self.actor.name.clone(),
            is_agent: self.actor.is_agent,
            activity_type: self.kind.clone(),
            description: self.description.clone(),
            server: self.server.to_string(),
            document_path: self.path.as_ref().map(ToString::to_string),
            metadata: self.metadata.clone(),
            mentions_you: self.mentioned() == Some(reader),
        }
    }
}

impl ShownActivity {
    /// The cell that it is about, if there is one.
    pub fn cell_id(&self) -> Option<&str> {
        self.metadata.get("cell_id").and_then(Value::as_str)
    }
}
