//! The person's decision about a fork: what it changes, as they see it, and which of its cells are taken over.

use std::{sync::Arc, time::SystemTime};

use jupyter_client::{counted, truncate};
use live_document::{CellDifference, Difference};
use sha2::{Digest, Sha256};

use crate::{
    forks::{ForkContent, Root},
    tools::{Call, Choice, ChoiceForm, ChoiceReply, ToolError, diff::unified},
    types::Permission,
};

/// Cells that a person is shown at once.
const MAX_CHOICES: usize = 20;
/// Characters of the diff of a cell, and lines around what differs.
const MAX_DIFF: usize = 800;
const DIFF_CONTEXT: usize = 1;
/// Lines around what differs on a page, which has more room.
const PAGE_CONTEXT: usize = 3;
/// Characters of the diff of a cell on a page.
const MAX_PAGE_DIFF: usize = 20_000;
/// Names the whole of a text document.
const EVERYTHING: &str = "everything";

pub(super) enum Decision {
    /// Take over these cells, or everything.
    Take(Option<Vec<String>>),
    /// Take over nothing. The client may still have to ask its person.
    Leave { text: String, asks: Option<ChoiceForm> },
}

/// Asks the person of the client to decide, if the client can ask.
pub(super) async fn decide(call: &Call, fork: &ForkContent, named: Option<&[String]>) -> Decision {
    let form = form(fork, named);
    if form.choices.is_empty() {
        return Decision::Leave {
            text: format!("Fork {} has no changes to merge", fork.record.fork_id),
            asks: None,
        };
    }
    let reply = match call.choice(&form.version) {
        Some(choice) => choice.clone(),
        None => call.client().choose(&form).await,
    };
    let id = &fork.record.fork_id;
    match reply {
        ChoiceReply::Chosen(keys) => {
            let cells: Vec<String> = chosen(&form, &keys);
            match cells.is_empty() {
                true => leave(format!(
                    "The person accepted none of the changes; fork {id} is unchanged"
                )),
                false if fork.base.cells().is_empty() && fork.content.cells().is_empty() => Decision::Take(None),
                false => Decision::Take(Some(cells)),
            }
        }
        ChoiceReply::Declined => leave(format!(
            "The person declined; nothing was merged, and fork {id} is unchanged"
        )),
        ChoiceReply::Unable => Decision::Leave {
            text: format!(
                "Nothing was merged: your edits are under review, and this client cannot ask its person. A person who is not \
                 under review, or somebody else with permission `admin`, merges on the gateway's page or with \
                 merge_document_fork(path={:?}, fork_id={id:?}), cell by cell with cell_ids; list_document_forks shows what it \
                 changes",
                fork.record.path
            ),
            asks: Some(form),
        },
    }
}

fn leave(text: String) -> Decision {
    Decision::Leave { text, asks: None }
}

/// The cells that were chosen among those that were shown.
fn chosen(form: &ChoiceForm, keys: &[String]) -> Vec<String> {
    let shown = form.choices.iter().map(|choice| &choice.key);
    shown.filter(|key| keys.contains(key)).cloned().collect()
}

fn form(fork: &ForkContent, named: Option<&[String]>) -> ChoiceForm {
    let mut differences = fork.differences();
    differences.retain(|found| named.is_none_or(|named| named.contains(&found.cell)));
    let more = differences.len().saturating_sub(MAX_CHOICES);
    let mut choices: Vec<Choice> = differences
        .iter()
        .take(MAX_CHOICES)
        .map(|found| choice(fork, found))
        .collect();
    if choices.is_empty() && fork.base != fork.content && named.is_none() {
        let diff = unified(fork.base.text(), fork.content.text(), DIFF_CONTEXT);
        choices.push(Choice {
            key: EVERYTHING.to_owned(),
            title: "Changes of the document".to_owned(),
            description: truncate(diff, MAX_DIFF).text,
        });
    }
    let rest = match more {
        0 => String::new(),
        more => format!(" ({} more later)", counted(more, "cell")),
    };
    ChoiceForm {
        version: version(&fork.content),
        message: format!(
            "{} proposes changes of {}{rest}. Which of them are to be merged?",
            fork.record.author_name, fork.record.path
        ),
        choices,
    }
}

/// Digest of a content.
pub(super) fn version(content: &live_document::DocumentContent) -> String {
    let bytes = serde_json::to_vec(content).unwrap_or_default();
    Sha256::digest(&bytes)
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn choice(fork: &ForkContent, found: &CellDifference) -> Choice {
    let cell = reviewed(fork, found, DIFF_CONTEXT);
    let description = match (cell.diff.is_empty(), found.difference) {
        (false, _) => cell.diff,
        (true, Difference::Moved) => "moved".to_owned(),
        (true, _) => "outputs or metadata only".to_owned(),
    };
    Choice {
        key: cell.cell_id,
        title: format!("Cell {}: {}", cell.position.unwrap_or_default(), cell.change),
        description: truncate(description, MAX_DIFF).text,
    }
}

/// A fork as a person reviews it.
pub struct ForkReview {
    pub title: String,
    pub description: String,
    pub author: String,
    /// It has edits that somebody has to accept.
    pub is_review: bool,
    /// Whether the caller may take it over.
    pub may_accept: bool,
    pub created_at: SystemTime,
    /// Changes with the fork's content, so that nobody accepts what they did not see.
    pub version: String,
    /// None for a text document, which is taken over as a whole.
    pub cells: Option<Vec<ReviewedCell>>,
    /// The difference of a text document.
    pub text: String,
}

/// A cell in which a fork differs from its document.
pub struct ReviewedCell {
    pub cell_id: String,
    pub position: Option<usize>,
    pub change: &'static str,
    /// Empty if only outputs or metadata differ.
    pub diff: String,
}

/// Shows all that a fork changes.
pub async fn review_fork(call: &Call, server: &str, path: &str, fork_id: &str) -> Result<ForkReview, ToolError> {
    call.principal().require(Permission::Read)?;
    let server = Arc::clone(call.server(Some(server))?);
    let (path, account) = (call.file(path)?, call.account());
    let fork = call.forks().read(Root::of(&server, &path, &account), fork_id).await?;
    let is_notebook = path.is_notebook();
    let cells = fork.differences().into_iter();
    let cells = cells.map(|found| {
        let mut cell = reviewed(&fork, &found, PAGE_CONTEXT);
        cell.diff = truncate(cell.diff, MAX_PAGE_DIFF).text;
        cell
    });
    let cells = is_notebook.then(|| cells.collect());
    let text = match is_notebook {
        true => String::new(),
        false => unified(fork.base.text(), fork.content.text(), PAGE_CONTEXT),
    };
    let (version, may_accept) = (version(&fork.content), call.accepts(&fork.record));
    let record = fork.record;
    Ok(ForkReview {
        title: record.title.unwrap_or_default(),
        description: record.description.unwrap_or_default(),
        author: record.author_name,
        is_review: record.is_review,
        may_accept,
        created_at: record.created_at,
        version,
        cells,
        text: truncate(text, MAX_PAGE_DIFF).text,
    })
}

fn reviewed(fork: &ForkContent, found: &CellDifference, context: usize) -> ReviewedCell {
    let source = |cells: &live_document::DocumentContent| {
        let cell = cells.cell(&found.cell);
        cell.map(|cell| cell.source.clone()).unwrap_or_default()
    };
    let diff = unified(&source(&fork.base), &source(&fork.content), context);
    let content = match found.difference {
        Difference::Deleted => &fork.base,
        _ => &fork.content,
    };
    ReviewedCell {
        cell_id: found.cell.clone(),
        position: content.cells().iter().position(|cell| cell.id == found.cell),
        change: found.difference.as_str(),
        diff,
    }
}
