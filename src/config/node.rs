//! Owns the untyped tree that a file and the environment are merged into before it is read.

use std::collections::BTreeMap;

use toml::Value;

pub(super) type Table = BTreeMap<String, Node>;

/// A value of the tree. Text from the environment has no type until the key that it sets is known.
pub(super) enum Node {
    Table(Table),
    Array(Vec<Node>),
    Scalar(Value),
    Text(String),
}

impl Node {
    /// Name of the node's type, for messages; never its value.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Table(_) => "a table",
            Self::Array(_) => "an array",
            Self::Text(_) => "text",
            Self::Scalar(Value::String(_)) => "a string",
            Self::Scalar(Value::Integer(_)) => "an integer",
            Self::Scalar(Value::Float(_)) => "a float",
            Self::Scalar(Value::Boolean(_)) => "a boolean",
            Self::Scalar(_) => "a date or time",
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Scalar(Value::String(text)) => Some(text),
            _ => None,
        }
    }
}

impl From<Value> for Node {
    fn from(value: Value) -> Self {
        match value {
            Value::Table(entries) => Self::Table(table(entries)),
            Value::Array(items) => Self::Array(items.into_iter().map(Self::from).collect()),
            scalar => Self::Scalar(scalar),
        }
    }
}

pub(super) fn table(entries: toml::Table) -> Table {
    let node = |(key, value)| (key, Node::from(value));
    entries.into_iter().map(node).collect()
}
