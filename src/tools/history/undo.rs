//! `undo_changes`.

use std::sync::Arc;

use jupyter_client::counted;
use live_document::{DeltaOptions, DeltaOutcome, Planned};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    restore::{Changed, changed},
    subject::Place,
};
use crate::{
    forks::Root,
    history::{Choice, HistoryError, UndoPlan, Whose},
    tools::{Call, ToolError},
    types::Permission,
};

const MAX_STEPS: usize = 10_000;
/// Number of plans, since the document may change while one is made.
const MAX_PLANS: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[serde(default = "one")]
    steps: usize,
    /// Undo all since then
    since_revision: Option<String>,
    #[serde(default)]
    redo: bool,
    /// Somebody else's (needs admin)
    author: Option<String>,
    server: Option<String>,
}

fn one() -> usize {
    1
}

pub(super) async fn undo_changes(call: Call, arguments: Arguments) -> Result<Changed, ToolError> {
    let place = Place::of(&call, arguments.server.as_deref(), &arguments.path)?;
    let choice = choice(&call, &arguments)?;
    if call.is_reviewed() && !call.names_fork() {
        require_review(&call, &place).await?;
    }
    let history = Arc::clone(call.history()?);
    // Before a room is opened: what has no history has nothing to undo.
    place.subjects(&call).await?;
    let room = place.room(&call).await?;
    for _ in 0..MAX_PLANS {
        let now = room.content_for_history();
        if let Some(document) = room.document_id() {
            history.observe(document, &now.content);
            history.flush(document).await?;
        }
        let subjects = place.subjects(&call).await?;
        let subject = subjects.latest();
        let plan = history.plan_undo(subject, &place.path, &choice).await?;
        if !plan.content.is_same_but_for_runs(&now.content) {
            continue;
        }
        let outputs = history.outputs(subject, &plan.delta.outputs()).await?;
        let undoes = plan.undoes();
        let options = DeltaOptions {
            planned: Planned::Exactly(&plan.content),
            tool: None,
            undoes: &undoes,
            outputs: &outputs,
        };
        match call.apply_delta(&room, &plan.delta, options).await? {
            DeltaOutcome::ChangedMeanwhile => {}
            outcome @ DeltaOutcome::Applied { .. } => {
                return changed(&call, &place, &room, outcome, words(&plan, choice.redo));
            }
        }
    }
    Err(HistoryError::Busy.into())
}

/// Refuses a caller under review who has no fork: what is in the document itself is nobody's to undo then, and no fork is made
/// for it.
async fn require_review(call: &Call, place: &Place) -> Result<(), ToolError> {
    let account = call.account();
    let root = Root::of(&place.server, &place.path, &account);
    match call.forks().review_of(root, &call.principal().id).await? {
        Some(_) => Ok(()),
        None => {
            let why = format!("you have changed nothing of {} that could be undone", place.path);
            Err(HistoryError::NothingToUndo(why).into())
        }
    }
}

fn choice(call: &Call, arguments: &Arguments) -> Result<Choice, ToolError> {
    if !(1..=MAX_STEPS).contains(&arguments.steps) {
        return Err(ToolError::argument("steps", format!("must be from 1 to {MAX_STEPS}")));
    }
    let author = match arguments
        .author
        .as_deref()
        .map(str::trim)
        .filter(|author| !author.is_empty())
    {
        Some(author) => {
            call.principal().require(Permission::Admin)?;
            Whose::Named(author.to_owned())
        }
        None => Whose::Principal(Arc::clone(&call.principal().id)),
    };
    Ok(Choice {
        author,
        steps: arguments.steps,
        since_revision: arguments.since_revision.clone(),
        redo: arguments.redo,
    })
}

/// Words for what was done, or for nothing that had to be.
fn words(plan: &UndoPlan, redo: bool) -> (String, String) {
    let (what, versions) = match redo {
        false => ("Undid", counted(plan.versions.len(), "version")),
        true => ("Redid", counted(plan.versions.len(), "undo")),
    };
    let ids: Vec<&str> = plan
        .versions
        .iter()
        .take(5)
        .map(|version| version.id.as_str())
        .collect();
    let more = match plan.versions.len().saturating_sub(ids.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let done = format!("{what} {versions} ({}{more})", ids.join(", "));
    let none = format!("{done}, of which nothing was left in the document; nothing was changed");
    (done, none)
}
