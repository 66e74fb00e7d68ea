//! `get_notebook` and `get_document`.

use jupyter_client::counted;
use live_document::CellsRead;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    DEFAULT_MAX_CONTENT_LENGTH,
    session::{CollaborationState, file_type},
};
use crate::tools::text::{
    Describe, Page,
    cell::{CellNames, View, write_cells},
};
use crate::tools::{
    Call, ToolError,
    cells::{Limit, ShownCell, attach_all, drop_beyond, notebook, show_all, text_length},
    document::{self, DocumentContent},
    output::ToolReply,
    people::{PersonHere, people},
};

// Readings that tell of the collaboration remind of how to take part in it.
const NOTEBOOK_REMINDER: &str =
    " Consider creating a collaboration session (create_notebook_session) for real-time editing.";
const DOCUMENT_REMINDER: &str =
    " Consider creating a collaboration session (create_document_session) for real-time editing.";

/// Characters of a notebook's own metadata that are shown beside however many of its cells.
const SMALL_METADATA: usize = 2000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[schemars(extend("default" = true))]
    include_collaboration_state: Option<bool>,
    /// Characters in all
    #[schemars(extend("default" = 100_000))]
    max_content_length: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Notebook {
    description: String,
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    format: &'static str,
    content: NotebookContent,
    cell_count: usize,
    content_length: usize,
    truncated: bool,
    revision: String,
    people: Vec<PersonHere>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collaboration_state: Option<CollaborationState>,
}

#[derive(Serialize, JsonSchema)]
struct NotebookContent {
    cells: Vec<ShownCell>,
    /// Null if it is larger than the limit.
    metadata: Option<Value>,
}

pub(super) async fn get_notebook(call: Call, arguments: Arguments) -> Result<ToolReply<Notebook>, ToolError> {
    let (server, path, room) = notebook(&call, arguments.server.as_deref(), &arguments.path).await?;
    let max = arguments.max_content_length.unwrap_or(DEFAULT_MAX_CONTENT_LENGTH);
    let CellsRead {
        revision,
        mut cells,
        cell_count,
    } = room.cells(|order| Ok::<_, ToolError>((0..order.count()).collect()))?;
    let content_length = text_length(&cells);
    let hint = |_: usize| format!("max_content_length={content_length} shows all");
    drop_beyond(&mut cells, Limit::All(max));
    let outputs = cells.iter_mut().map(|(_, cell)| &mut cell.outputs).collect();
    let images = attach_all(outputs, &call.illustrator(true)).await?;
    let mut page = call.page();
    let ids: Vec<&str> = cells.iter().map(|(_, cell)| cell.id.as_str()).collect();
    write_cells(&mut page, &cells, &CellNames::of(&room, &ids), View::Full, max);
    let cells = show_all(cells, Limit::All(max), hint);
    match cells.len() == cell_count {
        true => call.record_all_shown(&room, &revision, &cells),
        false => call.record_shown(&room, &revision, &cells),
    }
    let metadata = room.metadata();
    let metadata = fits(&metadata, max, content_length).then_some(metadata);
    let lacks_metadata = metadata.is_none() || cells.iter().any(ShownCell::lacks_metadata);
    let truncated = lacks_metadata || cells.len() < cell_count || cells.iter().any(ShownCell::is_truncated);
    let is_shared = arguments.include_collaboration_state.unwrap_or(true);
    let exceeds = content_length > max;
    let mut description = describe("Notebook", content_length, "character", exceeds.then_some(max));
    if exceeds || cells.len() < cell_count {
        let shown = format!(" It shows {} of {}.", cells.len(), counted(cell_count, "cell"));
        description += &shown;
    }
    if lacks_metadata {
        description += " Metadata beyond the limit was left out.";
    }
    if truncated && !exceeds && !lacks_metadata && cells.len() == cell_count {
        description += " Outputs that were cut or left out are marked.";
    }
    if is_shared {
        description += NOTEBOOK_REMINDER;
    }
    let value = Notebook {
        description,
        path: path.to_string(),
        kind: "notebook",
        format: "json",
        content: NotebookContent { cells, metadata },
        cell_count,
        content_length,
        truncated,
        revision,
        people: people(&room),
        collaboration_state: is_shared.then(|| CollaborationState::of(&call, &server, &path, &room)),
    };
    let text = format!(
        "{}\nrevision {}\n{}",
        value.description,
        value.revision,
        page.into_text()
    );
    Ok(ToolReply {
        images,
        ..ToolReply::told(text, value)
    })
}

/// Returns whether a notebook's own metadata is shown. Extensions can store more there than the notebook itself has,
/// but the few lines about its kernel are wanted even where the cells fill the limit.
fn fits(metadata: &Value, max: usize, content_length: usize) -> bool {
    let size = metadata.to_string().len();
    size <= max && (size <= SMALL_METADATA || size <= max.saturating_sub(content_length))
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Document {
    description: String,
    path: String,
    #[serde(rename = "type")]
    kind: &'static str,
    file_type: String,
    #[serde(flatten)]
    content: DocumentContent,
    #[serde(skip_serializing_if = "Option::is_none")]
    collaboration_state: Option<CollaborationState>,
}

impl Describe for Document {
    fn describe(&self, page: &mut Page) {
        page.line(&self.description);
        self.content.describe(page);
    }
}

pub(super) async fn get_document(call: Call, arguments: Arguments) -> Result<Document, ToolError> {
    let max = arguments.max_content_length.unwrap_or(DEFAULT_MAX_CONTENT_LENGTH);
    let path = call.file(&arguments.path)?;
    let (room, content) = document::read(&call, arguments.server.as_deref(), &arguments.path, max).await?;
    let is_shared = room.is_some() && arguments.include_collaboration_state.unwrap_or(true);
    let unit = content
        .content_unit
        .map_or("character", |unit| unit.trim_end_matches('s'));
    let mut description = describe(
        "Document",
        content.content_length,
        unit,
        content.truncated.then_some(max),
    );
    if is_shared {
        description += DOCUMENT_REMINDER;
    }
    Ok(Document {
        description,
        path: path.to_string(),
        kind: "document",
        file_type: file_type(&path, None)?,
        content,
        collaboration_state: room
            .filter(|_| is_shared)
            .map(|(server, room)| CollaborationState::of(&call, &server, &path, &room)),
    })
}

fn describe(what: &str, length: usize, unit: &str, exceeded: Option<usize>) -> String {
    let length = counted(length, unit);
    match exceeded {
        Some(limit) => format!(
            "{what} content is {length} (exceeds limit of {limit}). Content has been truncated; a larger max_content_length shows more."
        ),
        None => format!("{what} content is {length}."),
    }
}
