//! `list_document_forks`.

use std::sync::Arc;

use live_document::{CellDifference, differences};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::ForkRecord;

use super::fork::Fork;
use crate::{
    forks::{Root, contents},
    tools::{
        Call, ToolError,
        text::{Describe, Page},
    },
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Forks {
    path: String,
    forks: Vec<ListedFork>,
}

#[derive(Serialize, JsonSchema)]
struct ListedFork {
    #[serde(flatten)]
    fork: Fork,
    /// The cells in which it differs
    changed_cells: Vec<ChangedCell>,
    /// Whether it differs at all
    is_changed: bool,
}

/// A cell in which a fork differs from its document.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangedCell {
    pub(super) cell_id: String,
    /// inserted, deleted, changed, moved
    pub(super) change: &'static str,
}

impl From<&CellDifference> for ChangedCell {
    fn from(found: &CellDifference) -> Self {
        Self {
            cell_id: found.cell.clone(),
            change: found.difference.as_str(),
        }
    }
}

impl Describe for Forks {
    fn describe(&self, page: &mut Page) {
        if self.forks.is_empty() {
            page.line(format!("{} has no forks", self.path));
        }
        for ListedFork {
            fork,
            changed_cells,
            is_changed,
        } in &self.forks
        {
            let cells: Vec<String> = changed_cells
                .iter()
                .map(|cell| format!("{} {}", cell.cell_id, cell.change))
                .collect();
            let changes = match (cells.is_empty(), is_changed) {
                (false, _) => cells.join(", "),
                (true, true) => "changed".to_owned(),
                (true, false) => "unchanged".to_owned(),
            };
            let review = if fork.review { ", under review" } else { "" };
            page.line(format!(
                "{} {:?} by {}, {}{review}: {changes}",
                fork.fork_id, fork.title, fork.author, fork.created_at
            ));
        }
    }
}

pub(super) async fn list_document_forks(call: Call, arguments: Arguments) -> Result<Forks, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let (path, account) = (call.file(&arguments.path)?, call.account());
    server.document(&path).await?;
    let records = call.forks().list(Root::of(&server, &path, &account)).await?;
    Ok(Forks {
        path: path.to_string(),
        forks: records.iter().map(listed).collect(),
    })
}

fn listed(record: &ForkRecord) -> ListedFork {
    // One that cannot be read is listed all the same, to be discarded.
    let contents = contents(record).ok();
    let found = contents.as_ref().map(|(base, content)| differences(base, content));
    ListedFork {
        fork: record.into(),
        changed_cells: found.iter().flatten().map(ChangedCell::from).collect(),
        is_changed: contents.is_some_and(|(base, content)| base != content),
    }
}
