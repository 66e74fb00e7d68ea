//! `use_notebook`, `unuse_notebook`, `list_notebooks`, `restart_notebook`.

use std::{collections::BTreeMap, fmt::Write, sync::Arc};

use futures::future::join_all;
use jupyter_client::{DocPath, JupyterError, JupyterServer, NewDocument};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{
    answer::{TableAnswer, TextAnswer, table, text},
    kernels::{KernelChoice, choose_kernel},
    target::{current_server, place},
};
use crate::{
    tools::{
        Call, ToolError,
        kernel::restart_kernel,
        named::{
            Connection, NameUse, Notebook, SHOWN_CELLS, check_name, current_path, name_use, not_connected,
            table::CellTable,
        },
        notebook::{empty_notebook, require_notebook_name},
        output::ToolReply,
    },
    types::Permission,
};

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Mode {
    #[default]
    Connect,
    Create,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UseArguments {
    notebook_name: String,
    notebook_path: String,
    /// create makes the notebook first
    #[serde(default)]
    #[schemars(extend("default" = "connect"))]
    mode: Mode,
    /// A running kernel for the notebook, or NEW (default: the one it has, else one is started)
    kernel_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NameArguments {
    notebook_name: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

pub(super) async fn use_notebook(call: Call, arguments: UseArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let name = arguments.notebook_name.as_str();
    check_name(name)?;
    let path = call.file(&arguments.notebook_path)?;
    require_notebook_name("notebook_path", &path)?;
    let choice = KernelChoice::parse(&call, arguments.kernel_id.as_deref())?;
    let server = current_server(&call)?;
    let is_known = is_used(&call, name, &server, &path).await?;
    match arguments.mode {
        Mode::Create => create(&call, &server, &path).await?,
        Mode::Connect => {
            let found = server.document(&path).await;
            found.map_err(|error| missing(error, &path))?;
        }
    }
    // Found first: a kernel that does not exist must leave everything as it is.
    let choice = choice.find(&call, &server).await?;
    let notebook = Notebook::open(&call, name, server, path.as_str()).await?;
    let before = place(&call).active().map(str::to_owned);
    let kernel = choose_kernel(&call, &notebook, &choice).await?;
    call.connections().activate(&call.principal().id, call.session(), name);
    let mut answer = match before {
        Some(before) if is_known && before == name => {
            let answer = format!("Notebook '{name}' is already connected and active. {kernel}");
            return Ok(text("notebook.use", answer));
        }
        Some(before) if is_known => {
            format!("[INFO] Reactivating notebook '{name}' and deactivating '{before}'.\n[INFO] {kernel}")
        }
        _ => format!("[INFO] {kernel}\n[INFO] Successfully activate notebook '{name}'."),
    };
    let cells = CellTable::page(&notebook.room, 0, SHOWN_CELLS)?;
    let (count, shown) = (cells.cell_count(), cells.cell_count().min(SHOWN_CELLS));
    // A string takes everything.
    let _ = write!(
        answer,
        "\n\nNotebook has {count} cells.\nShowing first {shown} cells:\n\n{}",
        cells.brief()
    );
    Ok(text("notebook.use", answer))
}

/// Returns whether the name is already this notebook's. It must not be another's, unless that one is gone.
async fn is_used(call: &Call, name: &str, server: &JupyterServer, path: &DocPath) -> Result<bool, ToolError> {
    let (other, now) = match name_use(call, name, server, path).await {
        NameUse::ThisNotebook => return Ok(true),
        NameUse::Another { server, path } => (server, path),
        NameUse::Free => return Ok(false),
    };
    let why = format!(
        "the path '{path}' is not the correct path for notebook '{name}', which is '{now}' on `{other}`; use another name, or \
         give this one up with unuse_notebook"
    );
    Err(ToolError::argument("notebook_name", why))
}

/// Creates a notebook with the cell that the original gives it.
async fn create(call: &Call, server: &JupyterServer, path: &DocPath) -> Result<(), ToolError> {
    call.principal().require(Permission::Write)?;
    let mut notebook = empty_notebook(server, None).await?;
    notebook["cells"] = json!([{
        "id": uuid::Uuid::new_v4().to_string(),
        "cell_type": "markdown",
        "metadata": {},
        "source": "New Notebook Created by Jupyter MCP Gateway",
    }]);
    match server.create(path, NewDocument::Notebook(notebook)).await {
        Err(JupyterError::Exists { .. }) => {
            let why = format!(
                "'{path}' already exists in jupyter server; use a different path, or mode=\"connect\" to open it"
            );
            Err(ToolError::argument("notebook_path", why))
        }
        created => Ok(created.map(drop)?),
    }
}

/// Error about a missing document, in the words of the original.
fn missing(error: JupyterError, path: &DocPath) -> ToolError {
    match error {
        JupyterError::NotFound { .. } => ToolError::argument(
            "notebook_path",
            format!("'{path}' not found in jupyter server; list_files shows what exists, and mode=\"create\" makes it"),
        ),
        error => error.into(),
    }
}

pub(super) async fn unuse_notebook(call: Call, arguments: NameArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let name = arguments.notebook_name.as_str();
    let was_active = place(&call).active() == Some(name);
    if !call.connections().remove(&call.principal().id, name) {
        return Err(not_connected(&call, name));
    }
    let switched = match place(&call).active() {
        Some(active) if was_active => format!(" Current notebook switched to '{active}'."),
        None if was_active => " No notebook is active.".to_owned(),
        _ => String::new(),
    };
    Ok(text(
        "notebook.unuse",
        format!("Notebook '{name}' unused successfully.{switched}"),
    ))
}

pub(super) async fn restart_notebook(call: Call, arguments: NameArguments) -> Result<ToolReply<TextAnswer>, ToolError> {
    let name = arguments.notebook_name;
    let Notebook { server, path, room } = Notebook::find(&call, &name).await?;
    restart_kernel(&call, &server, &path, &room, None).await?;
    let done = format!(
        "Notebook '{name}' kernel restarted successfully. Memory state and imported packages have been cleared."
    );
    Ok(text("notebook.restart", done))
}

/// A notebook in use that the caller may know of.
struct Used {
    name: String,
    server: Arc<JupyterServer>,
    path: DocPath,
}

pub(super) async fn list_notebooks(call: Call, _: NoArguments) -> Result<ToolReply<TableAnswer>, ToolError> {
    let connections = call.connections().of(&call.principal().id).into_iter();
    let used = |(name, connection): (String, Connection)| {
        let server = connection.server.find(&call).ok()?;
        let path = current_path(&call, &connection);
        call.principal().may_touch(&path).then_some(Used { name, server, path })
    };
    let used: Vec<Used> = connections.filter_map(used).collect();
    // One request for each server, however many notebooks it has.
    let servers: BTreeMap<&str, &Arc<JupyterServer>> =
        used.iter().map(|used| (used.server.name(), &used.server)).collect();
    let asked = servers
        .values()
        .map(async |server| (server.name(), server.sessions().await));
    let sessions: BTreeMap<&str, _> = join_all(asked).await.into_iter().collect();
    let place = place(&call);
    let rows = used.iter().map(|used| {
        let (kernel, state) = match sessions.get(used.server.name()) {
            Some(Ok(sessions)) => match sessions.iter().find(|session| session.is_of(&used.path)) {
                Some(session) => (session.kernel.id.clone(), session.kernel.execution_state.clone()),
                None => ("-".to_owned(), "not_initialized".to_owned()),
            },
            Some(Err(error)) => ("-".to_owned(), format!("unknown: {error}")),
            None => ("-".to_owned(), "unknown".to_owned()),
        };
        let active = if place.active() == Some(&used.name) { "✓" } else { "" };
        vec![
            used.name.clone(),
            used.path.to_string(),
            kernel,
            state,
            active.to_owned(),
        ]
    });
    Ok(table(
        "notebooks.list",
        "",
        &["Name", "Path", "Kernel_ID", "Kernel_Status", "Activate"],
        rows.collect(),
        "No managed notebooks. Use the use_notebook tool to manage notebooks first.",
    ))
}
