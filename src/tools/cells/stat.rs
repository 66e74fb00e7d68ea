//! `get_nb_stat`: from the open room if there is one, else from the file; never opens or starts anything.

use jupyter_client::{Content, DocPath, RunningKernel};
use live_document::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tools::text::{Describe, Page};
use crate::tools::{
    Call, ToolError,
    notebook::require_notebook_name,
    output::JsonObject,
    people::{PersonHere, people},
};
use jupyter_client::counted;

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
}

impl Describe for Stat {
    fn describe(&self, page: &mut Page) {
        page.line(format_args!("{}: {}", self.path, counted(self.cell_count, "cell")));
    }
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
    let open = call.pool().lease_open(server.name(), &path, RoomKind::Notebook);
    let (document, session) = match &open {
        Some(_) => tokio::join!(server.document(&path), server.kernel_of(&path)),
        None => tokio::join!(server.document_with_content(&path), server.kernel_of(&path)),
    };
    let (document, kernel) = (document?, session?);
    let last_modified = document.last_modified.clone();
    let (cell_count, revision) = match &open {
        Some(room) => (room.cell_count(), Some(room.revision())),
        None => (count_cells(&path, document.into_content())?, None),
    };
    Ok(Stat {
        path: path.to_string(),
        cell_count,
        last_modified,
        kernel: kernel.map(Kernel::from),
        revision,
        people: open.as_ref().map_or_else(Vec::new, |room| people(room)),
    })
}

fn count_cells(path: &DocPath, content: Content) -> Result<usize, ToolError> {
    match content {
        Content::Notebook(notebook) => Ok(notebook.get("cells").and_then(Value::as_array).map_or(0, Vec::len)),
        Content::Text(_) | Content::Binary(_) | Content::Directory(_) => {
            Err(ToolError::argument("path", format!("{path:?} is no notebook")))
        }
    }
}
