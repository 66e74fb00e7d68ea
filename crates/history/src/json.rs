//! JSON that is kept as text: small, cheap to share and to compare.

use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JSON value in its one spelling, with the members of objects in order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Arc<str>);

impl Json {
    pub fn new(value: &Value) -> Self {
        match value {
            Value::Object(members) if members.is_empty() => Self::empty(),
            _ => Self(value.to_string().into()),
        }
    }

    /// An object without members, which most cells have.
    pub fn empty() -> Self {
        static EMPTY: LazyLock<Arc<str>> = LazyLock::new(|| "{}".into());
        Self(Arc::clone(&EMPTY))
    }

    /// The value; null if what was stored is none.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether both are the same but for some members.
    pub fn is_same_without(&self, other: &Self, members: &[&str]) -> bool {
        let without = |json: &Self| {
            let mut value = json.value();
            if let Value::Object(object) = &mut value {
                object.retain(|key, _| !members.contains(&key.as_str()));
            }
            value
        };
        self == other || without(self) == without(other)
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        Self::new(value)
    }
}
