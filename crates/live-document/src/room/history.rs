//! Access to an open document for history: its content, and applying a delta to it with the smallest edit.

use std::{collections::HashMap, sync::Arc};

use history::{Content, Delta, Hash, Rebased, Unfitting, VersionId};
use serde_json::Value;

use super::{Edited, Room};
use crate::{
    Activity, DocumentId, EditError, HistorySink, RoomError,
    core::{change_log::Author, document::Restoration, state::Origin},
};

/// The content of an open document, and the revision it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentRead {
    pub revision: String,
    pub content: Content,
}

/// Options for applying a delta to an open document.
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

/// Outcome of applying a delta.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeltaOutcome {
    Applied {
        edited: Edited,
        /// The delta as it was applied; empty if there was nothing to do.
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
    /// Begins to tell of its versions, unless it does already.
    pub(crate) fn start_history(&self, document: &DocumentId, sink: &Arc<dyn HistorySink>) {
        if self.0.read().history.is_none() {
            let mut state = self.0.write();
            state.start_history(Arc::new(document.clone()), Arc::clone(sink));
        }
    }

    /// The document as history sees it. What people did until now is recorded as a version first, so that the latest version
    /// is this content, but for what runs write.
    pub fn content_for_history(&self) -> ContentRead {
        let mut state = self.0.write();
        let content = state.recorded_content();
        ContentRead {
            revision: state.document.revision(),
            content,
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
        self.wait_for_file_check().await;
        self.connected().await?;
        let (ticket, mut outcome) = {
            let mut state = self.0.write();
            self.accepts(&state)?;
            self.can_be_saved(&state)?;
            state.names.record(Author::Local(Arc::clone(author)), name);
            let now = state.recorded_content();
            let Some(rebased) = fit(delta, &now, options.planned)? else {
                return Ok(DeltaOutcome::ChangedMeanwhile);
            };
            let mut outcome = Outcome::new(rebased, state.document.revision());
            if outcome.delta.is_empty() {
                outcome.edited.acknowledged = true;
                return Ok(outcome.into());
            }
            let restoration = Restoration {
                delta: &outcome.delta,
                now: &now,
                undoes: options.undoes,
                outputs: options.outputs,
            };
            let (mut applied, without_outputs) = state
                .document
                .by_tool(options.tool, |document| document.apply_delta(author, &restoration))
                .map_err(stale)?;
            outcome.without_outputs = without_outputs;
            self.show(&mut state, author, name, Activity::Editing, applied.cursors.take());
            let (ticket, revision) = self.dispatch(&mut state, applied, Origin::Caller);
            outcome.edited.revision = revision;
            (ticket, outcome)
        };
        outcome.edited.acknowledged = self.wait_for(ticket).await?;
        Ok(outcome.into())
    }
}

/// A delta for what stands there now; none if it is not what it was planned for.
fn fit(delta: &Delta, now: &Content, planned: Planned<'_>) -> Result<Option<Rebased>, EditError> {
    match planned {
        Planned::Exactly(expected) if !expected.is_same_but_for_runs(now) => Ok(None),
        Planned::Exactly(_) => Ok(Some(Rebased {
            delta: delta.clone(),
            ..Rebased::default()
        })),
        Planned::From(base) => delta.rebase(base, now).map(Some).map_err(stale),
    }
}

fn stale(error: Unfitting) -> EditError {
    EditError::Stale {
        what: error.to_string(),
    }
}

/// A delta on its way into the document.
struct Outcome {
    edited: Edited,
    delta: Delta,
    kept: Vec<Arc<str>>,
    gone: Vec<Arc<str>>,
    without_outputs: Vec<Arc<str>>,
}

impl Outcome {
    fn new(rebased: Rebased, revision: String) -> Self {
        Self {
            edited: Edited {
                revision,
                acknowledged: false,
                merged: Vec::new(),
                changes: Vec::new(),
            },
            delta: rebased.delta,
            kept: rebased.kept,
            gone: rebased.gone,
            without_outputs: Vec::new(),
        }
    }
}

impl From<Outcome> for DeltaOutcome {
    fn from(outcome: Outcome) -> Self {
        Self::Applied {
            edited: outcome.edited,
            delta: outcome.delta,
            kept: outcome.kept,
            gone: outcome.gone,
            without_outputs: outcome.without_outputs,
        }
    }
}
