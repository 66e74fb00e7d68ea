//! `diff_document`.

use history::{Difference, Part, Status, diff};
use jupyter_client::{counted, truncate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::subject::Place;
use crate::{
    history::difference_text,
    tools::{
        Call, ToolError,
        output::JsonObject,
        text::{Describe, Page},
    },
};

/// Lines around those that differ.
const CONTEXT: usize = 3;
/// Characters of one cell's diff.
const MAX_SHOWN: usize = 20_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// version_id, revision or fork_id
    from: String,
    /// Default: now
    to: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DocumentDiff {
    path: String,
    from: String,
    to: String,
    summary: String,
    #[schemars(with = "Vec<JsonObject>")]
    changes: Vec<Change>,
}

#[derive(Serialize)]
struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    status: Status,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    diff: String,
    #[serde(skip)]
    text: String,
}

pub(super) async fn diff_document(call: Call, arguments: Arguments) -> Result<DocumentDiff, ToolError> {
    let place = Place::of(&call, arguments.server.as_deref(), &arguments.path)?;
    let subjects = place.subjects(&call).await?;
    let from = place.named(&call, &subjects, &arguments.from).await?;
    let to = match arguments.to.as_deref().map(str::trim).filter(|to| !to.is_empty()) {
        Some(to) => place.named(&call, &subjects, to).await?,
        None => place.now(&call).await?,
    };
    let changes = diff(&from.content, &to.content, CONTEXT);
    Ok(DocumentDiff {
        path: place.path.to_string(),
        from: from.label,
        to: to.label,
        summary: summary(&changes),
        changes: changes.into_iter().map(Change::of).collect(),
    })
}

/// A line about all differences.
fn summary(changes: &[Difference]) -> String {
    if changes.is_empty() {
        return "no differences".to_owned();
    }
    let (added, removed) = changes.iter().fold((0, 0), |(added, removed), change| {
        (added + change.added, removed + change.removed)
    });
    let lines = format!("{} added, {removed} removed", counted(added, "line"));
    let of = |status: Status| {
        changes
            .iter()
            .filter(|change| change.cell_id.is_some() && change.status == status)
            .count()
    };
    let cells: Vec<String> = [
        (Status::Changed, "changed"),
        (Status::Inserted, "inserted"),
        (Status::Deleted, "deleted"),
        (Status::Moved, "moved"),
    ]
    .into_iter()
    .filter(|(status, _)| of(*status) > 0)
    .map(|(status, word)| format!("{} {word}", counted(of(status), "cell")))
    .collect();
    match cells.is_empty() {
        true => lines,
        false => format!("{}; {lines}", cells.join(", ")),
    }
}

impl Change {
    fn of(difference: Difference) -> Self {
        let shown = truncate(difference.unified.as_str(), MAX_SHOWN).text;
        Self {
            text: difference_text(&difference, &shown),
            diff: shown,
            cell_id: difference.cell_id.map(|id| id.to_string()),
            index: difference.index,
            status: difference.status,
            parts: difference.parts,
        }
    }
}

impl Describe for DocumentDiff {
    fn describe(&self, page: &mut Page) {
        page.line(format!(
            "{} from {} to {}: {}",
            self.path, self.from, self.to, self.summary
        ));
        let shown = page.items(self.changes.iter().map(|change| &change.text));
        let left = self.changes.len() - shown;
        if left > 0 {
            page.line(format!(
                "{} not shown; compare versions nearer to each other",
                counted(left, "more difference")
            ));
        }
    }
}
