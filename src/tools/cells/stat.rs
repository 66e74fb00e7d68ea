//! `get_nb_stat`: from the open room if there is one, else from the file; never opens or starts anything.

mod overview;

use jupyter_client::{Content, DocPath, Document, JupyterServer, RunningKernel, counted};
use live_document::{Room, RoomKind, ShortIds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::overview::{Failure, Glimpse, Section, Seen, Stale, Why, failures, sections, stale};
use crate::tools::{
    Call, ToolError,
    notebook::require_notebook_name,
    output::JsonObject,
    people::{PersonHere, people, people_line},
    text::{Describe, Page, cell::cut},
};

/// Bytes of the text that headings have; the deepest are left out first.
const MAX_OUTLINE: usize = 700;
/// Cells that are named with their errors, and characters of an error.
const MAX_FAILURES: usize = 4;
const MAX_FAILURE: usize = 80;
/// Ranges of cells that are named in a line.
const MAX_RANGES: usize = 12;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Stat {
    path: String,
    cell_count: usize,
    last_modified: Option<String>,
    /// Null if no kernel runs for the notebook.
    kernel: Option<Kernel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    #[schemars(with = "Vec<JsonObject>")]
    people: Vec<PersonHere>,
    cell_types: CellTypes,
    #[schemars(with = "Vec<JsonObject>")]
    sections: Vec<Section>,
    #[schemars(with = "Vec<JsonObject>")]
    errors: Vec<Failure>,
    #[schemars(with = "Vec<JsonObject>")]
    stale: Vec<Stale>,
    /// Since when edits and runs were seen; null if the notebook is not open, so that edits are unknown
    seen_since: Option<String>,
    #[schemars(with = "Vec<JsonObject>")]
    running: Vec<CellRef>,
    #[schemars(with = "Vec<JsonObject>")]
    queued: Vec<CellRef>,
    #[serde(skip)]
    short_ids: ShortIds,
}

#[derive(Default, Serialize, JsonSchema)]
struct CellTypes {
    code: usize,
    markdown: usize,
    raw: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct CellRef {
    index: usize,
    cell_id: Option<String>,
}

#[derive(Clone, Serialize, JsonSchema)]
pub(in crate::tools) struct Kernel {
    pub(in crate::tools) name: String,
    pub(in crate::tools) id: String,
    pub(in crate::tools) state: String,
}

impl From<RunningKernel> for Kernel {
    fn from(kernel: RunningKernel) -> Self {
        Self {
            name: kernel.name,
            id: kernel.id,
            state: kernel.execution_state,
        }
    }
}

pub(super) async fn get_nb_stat(call: Call, arguments: Arguments) -> Result<Stat, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    let open = call.open_room(server, &path, RoomKind::Notebook).await?;
    let (document, session) = match &open {
        Some(_) => tokio::join!(server.document(&path), server.kernel_of(&path)),
        None => tokio::join!(server.document_with_content(&path), server.kernel_of(&path)),
    };
    let (document, kernel) = (document?, session?);
    let last_modified = document.last_modified.clone();
    let look = match &open {
        Some(room) => Look::at_room(room),
        None => Look::at_file(&path, document)?,
    };
    let people = open.as_ref().map_or_else(Vec::new, |room| people(room));
    let mut stat = look.stat(&call, server, &path, kernel.map(Kernel::from));
    (stat.last_modified, stat.people) = (last_modified, people);
    Ok(stat)
}

/// The cells of one moment, and what is known of them.
struct Look {
    cells: Vec<Glimpse>,
    revision: Option<String>,
    seen: Seen,
}

impl Look {
    fn at_room(room: &Room) -> Self {
        let (runs, since) = room.runs();
        let all = room.cells(|order| Ok::<_, ToolError>((0..order.count()).collect()));
        let (revision, cells) = match all {
            Ok(looked) => (looked.revision, looked.cells),
            Err(_) => (room.revision(), Vec::new()),
        };
        let run = |index: usize| runs.get(index).copied().unwrap_or_default();
        Self {
            cells: cells
                .into_iter()
                .map(|(index, cell)| Glimpse::of_cell(cell, run(index)))
                .collect(),
            revision: Some(revision),
            seen: Seen {
                since: Some(since),
                process_ended: None,
            },
        }
    }

    fn at_file(path: &DocPath, document: Document) -> Result<Self, ToolError> {
        let Content::Notebook(notebook) = document.into_content() else {
            return Err(ToolError::argument("path", format!("{path:?} is no notebook")));
        };
        let cells = notebook.get("cells").and_then(Value::as_array);
        Ok(Self {
            cells: cells.into_iter().flatten().map(Glimpse::of_json).collect(),
            revision: None,
            seen: Seen::default(),
        })
    }

    fn stat(mut self, call: &Call, server: &JupyterServer, path: &DocPath, kernel: Option<Kernel>) -> Stat {
        self.seen.process_ended = call.engine().process_ended(server.name(), path);
        let under_way = call.engine().cells_under_way(server.name(), path);
        let is_queued = |cell: &Glimpse| {
            under_way
                .iter()
                .any(|(id, begun)| cell.id.as_ref() == Some(id) && !begun)
        };
        let is_begun = |cell: &Glimpse| {
            under_way
                .iter()
                .any(|(id, begun)| cell.id.as_ref() == Some(id) && *begun)
        };
        let cells = &self.cells;
        let picked = |is_wanted: &dyn Fn(&Glimpse) -> bool| -> Vec<CellRef> {
            let wanted = cells.iter().enumerate().filter(|(_, cell)| is_wanted(cell));
            let named = wanted.map(|(index, cell)| CellRef {
                index,
                cell_id: cell.id.clone(),
            });
            named.collect()
        };
        let running = picked(&|cell| is_begun(cell) || cell.is_running && !is_queued(cell));
        let queued = picked(&|cell| is_queued(cell) && !is_begun(cell));
        let mut types = CellTypes::default();
        for cell in cells {
            match cell.kind.as_str() {
                "code" => types.code += 1,
                "markdown" => types.markdown += 1,
                _ => types.raw += 1,
            }
        }
        Stat {
            path: path.to_string(),
            cell_count: cells.len(),
            last_modified: None,
            // Jupyter takes a kernel for idle that was looked into while a cell ran.
            kernel: kernel.map(|kernel| match under_way.iter().any(|(_, begun)| *begun) {
                true => Kernel {
                    state: "busy".to_owned(),
                    ..kernel
                },
                false => kernel,
            }),
            revision: self.revision,
            people: Vec::new(),
            cell_types: types,
            sections: sections(cells),
            errors: failures(cells),
            stale: stale(cells, self.seen),
            seen_since: self
                .seen
                .since
                .map(|at| humantime::format_rfc3339_seconds(at).to_string()),
            running,
            queued,
            short_ids: ShortIds::of(cells.iter().filter_map(|cell| cell.id.as_deref())),
        }
    }
}

impl Describe for Stat {
    fn describe(&self, page: &mut Page) {
        let types = &self.cell_types;
        let kinds = [(types.code, "code"), (types.markdown, "markdown"), (types.raw, "raw")];
        let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
        let kinds: Vec<String> = kinds.map(|(count, kind)| format!("{count} {kind}")).collect();
        let cells = match kinds.is_empty() {
            true => "0 cells".to_owned(),
            false => format!("{} ({})", counted(self.cell_count, "cell"), kinds.join(", ")),
        };
        let kernel = match &self.kernel {
            Some(kernel) => format!("kernel {} {}", kernel.name, kernel.state),
            None => "no kernel runs".to_owned(),
        };
        let revision = self.revision.as_ref().map(|revision| format!("revision {revision}"));
        let facts: Vec<String> = [Some(cells), Some(kernel), revision].into_iter().flatten().collect();
        page.line(format_args!("{}: {}", self.path, facts.join(", ")));
        page.block(&people_line(&self.people).unwrap_or_default());
        for (what, cells) in [("running", &self.running), ("queued", &self.queued)] {
            if !cells.is_empty() {
                page.line(format_args!("{what}: {}", ranges(cells.iter().map(|cell| cell.index))));
            }
        }
        self.describe_sections(page);
        self.describe_errors(page);
        self.describe_stale(page);
    }
}

impl Stat {
    fn describe_sections(&self, page: &mut Page) {
        let line = |section: &Section| {
            let range = match section.index == section.end_index {
                true => format!("[{}]", section.index),
                false => format!("[{}]-[{}]", section.index, section.end_index),
            };
            format!("{} {} {range}", "#".repeat(section.level), section.title)
        };
        let size = |depth: usize| -> usize {
            let shown = self.sections.iter().filter(|section| section.level <= depth);
            shown.map(|section| line(section).len() + 1).sum()
        };
        let depth = (1..=6).rev().find(|depth| size(*depth) <= MAX_OUTLINE).unwrap_or(6);
        let (mut used, mut told) = (0, 0);
        for section in self.sections.iter().filter(|section| section.level <= depth) {
            let line = line(section);
            used += line.len() + 1;
            if used > MAX_OUTLINE {
                break;
            }
            page.line(line);
            told += 1;
        }
        if told < self.sections.len() {
            let left = counted(self.sections.len() - told, "more heading");
            page.line(format_args!("[{left}: read_nb_cells(view=\"outline\")]"));
        }
    }

    fn describe_errors(&self, page: &mut Page) {
        for error in self.errors.iter().take(MAX_FAILURES) {
            let id = error
                .cell_id
                .as_deref()
                .map(|id| self.short_ids.get(id))
                .unwrap_or_default();
            let what = format!("{}: {}", error.ename, error.evalue);
            let what = cut(what.lines().next().unwrap_or_default(), MAX_FAILURE);
            page.line(format_args!("error: [{}] {id} {what}", error.index));
        }
        let more = self.errors.iter().skip(MAX_FAILURES).map(|error| error.index);
        if more.clone().next().is_some() {
            page.line(format_args!("errors also: {}", ranges(more)));
        }
    }

    fn describe_stale(&self, page: &mut Page) {
        for why in [Why::Edited, Why::OutOfOrder, Why::KernelRestarted] {
            let cells = self.stale.iter().filter(|cell| cell.why.contains(&why));
            let mut cells = cells.map(|cell| cell.index).peekable();
            if cells.peek().is_some() {
                page.line(format_args!("stale, {}: {}", why.words(), ranges(cells)));
            }
        }
        let ran = self.cell_types.code > 0;
        match &self.seen_since {
            Some(since) if ran => drop(page.line(format_args!("edits before {since} are unknown"))),
            None if ran => drop(page.line("edits since runs are unknown: the notebook is not open here")),
            _ => {}
        }
    }
}

/// Positions in order, those that follow each other as one range.
fn ranges(positions: impl Iterator<Item = usize>) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for position in positions {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == position => *end = position,
            _ => ranges.push((position, position)),
        }
    }
    let told = ranges.iter().take(MAX_RANGES).map(|(start, end)| match start == end {
        true => format!("[{start}]"),
        false => format!("[{start}]-[{end}]"),
    });
    let mut told: Vec<String> = told.collect();
    if ranges.len() > MAX_RANGES {
        told.push(format!("and {} more", ranges.len() - MAX_RANGES));
    }
    told.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_follow_each_other_are_one_range() {
        assert_eq!(ranges([1, 2, 3, 7, 9, 10].into_iter()), "[1]-[3], [7], [9]-[10]");
        assert_eq!(ranges(std::iter::empty()), "");
        assert!(ranges((0..100).step_by(2)).ends_with("[22], and 38 more"));
    }
}
