//! Versions of a document: who made them, and which others they take back.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::Delta;

/// Id of a version in the log of its document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VersionId(Arc<str>);

/// Author of a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// A principal of the gateway, and the name that people see.
    Agent { principal: Arc<str>, name: Arc<str> },
    /// People in the document; without names if it is not known who.
    People { names: Vec<Arc<str>> },
    /// Nobody known: the file was written from outside, or the document was rebuilt.
    Outside,
}

/// A version with what it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedVersion {
    pub id: VersionId,
    pub author: Author,
    /// The versions that it takes back; a redo takes back an undo.
    pub undoes: Vec<VersionId>,
    pub delta: Delta,
}

impl Author {
    /// Returns whether it is this principal of the gateway.
    pub fn is_principal(&self, name: &str) -> bool {
        matches!(self, Self::Agent { principal, .. } if **principal == *name)
    }
}

impl VersionId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for VersionId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for VersionId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
