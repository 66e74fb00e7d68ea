//! `list_document_forks`.

use std::sync::Arc;

use jupyter_client::ForkInfo;
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

/// Forks of people that are listed.
const MAX_OF_PEOPLE: usize = 50;

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
    /// Made by people in JupyterLab, and merged there
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jupyterlab_forks: Vec<PeoplesFork>,
}

/// A fork that somebody made in JupyterLab.
#[derive(Serialize, JsonSchema)]
struct PeoplesFork {
    fork_roomid: String,
    title: String,
    description: String,
    synchronize: bool,
}

#[derive(Serialize, JsonSchema)]
struct ListedFork {
    #[serde(flatten)]
    fork: Fork,
    /// The cells in which it differs
    changed_cells: Vec<ChangedCell>,
    /// It differs at all
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
        if self.forks.is_empty() && self.jupyterlab_forks.is_empty() {
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
        for fork in &self.jupyterlab_forks {
            page.line(format!(
                "{} {:?} by somebody in JupyterLab, where it is merged or discarded",
                fork.fork_roomid, fork.title
            ));
        }
    }
}

pub(super) async fn list_document_forks(call: Call, arguments: Arguments) -> Result<Forks, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let (path, account) = (call.file(&arguments.path)?, call.account());
    server.document(&path).await?;
    let root = Root::of(&server, &path, &account);
    let records = call.forks().list(root).await?;
    let of_people = call.forks().of_people(root).await?;
    Ok(Forks {
        path: path.to_string(),
        forks: records.iter().map(listed).collect(),
        jupyterlab_forks: of_people.into_iter().take(MAX_OF_PEOPLE).map(peoples).collect(),
    })
}

fn peoples((fork_roomid, fork): (String, ForkInfo)) -> PeoplesFork {
    PeoplesFork {
        fork_roomid,
        title: fork.title,
        description: fork.description,
        synchronize: fork.synchronize,
    }
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
