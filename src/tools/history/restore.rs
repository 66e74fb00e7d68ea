//! `restore_document_version`.

use history::Delta;
use live_document::{DeltaOptions, DeltaOutcome, Planned};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::subject::Place;
use crate::{
    history::HistoryError,
    tools::{
        Call, ToolError,
        text::{Describe, Page},
    },
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    version_id: String,
    server: Option<String>,
}

/// Result of restoring a document.
#[derive(Serialize, JsonSchema)]
pub(super) struct Changed {
    pub(super) message: String,
    pub(super) path: String,
    /// The version that this made, if anything was changed.
    pub(super) version_id: Option<String>,
    pub(super) revision: String,
    pub(super) summary: String,
    /// Cells that stay since somebody changed them meanwhile
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) kept: Vec<String>,
    /// Cells that are gone and would have been changed
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) gone: Vec<String>,
    /// Cells whose outputs were not kept
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) without_outputs: Vec<String>,
}

pub(super) async fn restore_document_version(call: Call, arguments: Arguments) -> Result<Changed, ToolError> {
    let place = Place::of(&call, arguments.server.as_deref(), &arguments.path)?;
    let subjects = place.subjects(&call).await?;
    let history = call.history()?;
    let (subject, version, wanted) = subjects.version(history, &arguments.version_id).await?;
    let room = place.room(&call).await?;
    let now = room.content_for_history();
    let delta = Delta::between(&now.content, &wanted);
    let outputs = history.outputs(subject, &delta.outputs()).await?;
    let options = DeltaOptions {
        planned: Planned::From(&now.content),
        tool: None,
        undoes: &[],
        outputs: &outputs,
    };
    let outcome = call.apply_delta(&room, &delta, options).await?;
    if let Some(document) = room.document_id() {
        history.on_restored(document);
    }
    let by = version.author();
    let done = format!(
        "Restored {} to version {} ({by}, {})",
        place.path, version.id, version.summary
    );
    let none = format!(
        "{} is as it was at version {} already; nothing was changed",
        place.path, version.id
    );
    changed(&call, &place, &room, outcome, (done, none))
}

/// Describes the outcome of a delta.
pub(super) fn changed(
    call: &Call,
    place: &Place,
    room: &live_document::pool::Lease,
    outcome: DeltaOutcome,
    (done, none): (String, String),
) -> Result<Changed, ToolError> {
    let DeltaOutcome::Applied {
        edited,
        delta,
        kept,
        gone,
        without_outputs,
    } = outcome
    else {
        return Err(HistoryError::Busy.into());
    };
    let history = call.history()?;
    let is_changed = !delta.is_empty();
    let version = room
        .document_id()
        .and_then(|document| history.version_of(document, &edited.revision));
    let owned = |ids: Vec<std::sync::Arc<str>>| ids.iter().map(ToString::to_string).collect();
    Ok(Changed {
        message: if is_changed { done } else { none },
        path: place.path.to_string(),
        version_id: version.filter(|_| is_changed).map(|id| id.to_string()),
        revision: edited.revision,
        summary: delta.summary(),
        kept: owned(kept),
        gone: owned(gone),
        without_outputs: owned(without_outputs),
    })
}

impl Describe for Changed {
    fn describe(&self, page: &mut Page) {
        let summary = match self.summary.is_empty() {
            true => String::new(),
            false => format!(": {}", self.summary),
        };
        page.line(format!("{}{summary}; revision {}", self.message, self.revision));
        if let Some(version) = &self.version_id {
            page.line(format!("This is version {version}; undo_changes takes it back"));
        }
        for (cells, what) in [
            (&self.kept, "stay since somebody changed them meanwhile"),
            (&self.gone, "are gone"),
            (&self.without_outputs, "have no outputs: those were not kept"),
        ] {
            if !cells.is_empty() {
                page.line(format!("Cells that {what}: {}", cells.join(", ")));
            }
        }
    }
}
