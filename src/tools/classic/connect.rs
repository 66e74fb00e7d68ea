//! `connect_notebook`, `list_notebook`.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::join_all;
use jupyter_client::{DocPath, JupyterError, JupyterServer, NewDocument};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    tools::{
        Call, ToolError,
        cells::Kernel,
        kernel::start_kernel,
        named::{
            NameUse, Notebook, SHOWN_CELLS, blocks, check_name, current_path, find_server, name_use,
            table::{CellTable, tsv},
        },
        notebook::{empty_notebook, require_notebook_name},
        output::ToolReply,
    },
    types::Permission,
};

#[derive(Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Connect,
    Create,
    Reconnect,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Name or URL of a server the gateway knows (default: the first)
    server_url: Option<String>,
    /// Only for other servers an operator allows
    token: Option<String>,
    /// What the other tools call it
    notebook_name: String,
    notebook_path: String,
    /// create makes the notebook first; reconnect gives the name to another
    #[serde(default)]
    mode: Mode,
}

/// A connected notebook: the server, the kernel on it and the notebook that runs there.
#[derive(Serialize, JsonSchema)]
struct Layers {
    notebook_name: String,
    server: Server,
    /// Null if none runs.
    kernel: Option<Kernel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_error: Option<String>,
    path: String,
}

#[derive(Serialize, JsonSchema)]
struct Server {
    name: String,
    url: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Connected {
    message: String,
    #[serde(flatten)]
    layers: Layers,
    #[serde(flatten)]
    table: CellTable,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

#[derive(Serialize, JsonSchema)]
pub(super) struct Notebooks {
    notebooks: Vec<Layers>,
}

pub(super) async fn connect_notebook(call: Call, arguments: Arguments) -> Result<ToolReply<Connected>, ToolError> {
    let name = arguments.notebook_name.as_str();
    check_name(name)?;
    let path = call.file(&arguments.notebook_path)?;
    require_notebook_name("notebook_path", &path)?;
    let server = find_server(&call, arguments.server_url.as_deref(), arguments.token).await?;
    let known = is_connected(&call, name, &server, &path, arguments.mode).await?;
    if arguments.mode == Mode::Create {
        call.principal().require(Permission::Write)?;
        let notebook = empty_notebook(&server, None).await?;
        match server.create(&path, NewDocument::Notebook(notebook)).await {
            Err(JupyterError::Exists { .. }) => {
                let why = format!("{path:?} exists already; connect it with mode=\"connect\", or choose another path");
                return Err(ToolError::argument("notebook_path", why));
            }
            created => created?,
        };
    }
    let notebook = Notebook::open(&call, name, server, path.as_str()).await?;
    let message = match known && arguments.mode == Mode::Connect {
        true => format!("{name} is already connected"),
        false => format!("{name} connection successful!"),
    };
    let layers = Layers::of(&call, name, &notebook).await?;
    let table = CellTable::page(&notebook.room, 0, SHOWN_CELLS)?;
    let text = format!("{message}\n{layers}, {} cells\n\n{table}", table.cell_count());
    Ok(ToolReply::in_blocks(
        blocks([text]),
        Connected { message, layers, table },
    ))
}

/// Returns whether the name is already this notebook's. It must not be another's, unless that one is gone or the mode
/// gives the name to this one.
async fn is_connected(
    call: &Call,
    name: &str,
    server: &JupyterServer,
    path: &DocPath,
    mode: Mode,
) -> Result<bool, ToolError> {
    let (other, now) = match name_use(call, name, server, path).await {
        NameUse::ThisNotebook => return Ok(true),
        NameUse::Another { server, path } if mode != Mode::Reconnect => (server, path),
        NameUse::Another { .. } | NameUse::Free => return Ok(false),
    };
    let why = format!(
        "{name:?} is connected to '{now}' on `{other}`; choose another name, or give it to this notebook with mode=\"reconnect\""
    );
    Err(ToolError::argument("notebook_name", why))
}

impl Layers {
    /// Those of a notebook that is being connected, its kernel started if it has none and the caller may do so. A
    /// notebook whose kernel cannot be started can still be read.
    async fn of(call: &Call, name: &str, notebook: &Notebook) -> Result<Self, ToolError> {
        let Notebook { server, path, room } = notebook;
        let (kernel, kernel_error) = match server.kernel_of(path).await? {
            Some(kernel) => (Some(kernel), None),
            None if call.principal().require(Permission::Execute).is_err() => (None, None),
            None => match start_kernel(call, server, path, room).await {
                Ok(kernel) => (Some(kernel), None),
                Err(error) => (None, Some(error.to_string())),
            },
        };
        Ok(Self {
            kernel: kernel.map(Kernel::from),
            kernel_error,
            ..Self::without_kernel(name, server, path)
        })
    }

    fn without_kernel(name: &str, server: &JupyterServer, path: &DocPath) -> Self {
        Self {
            notebook_name: name.to_owned(),
            server: Server {
                name: server.name().to_owned(),
                url: server.public_base_url().to_owned(),
            },
            kernel: None,
            kernel_error: None,
            path: path.to_string(),
        }
    }

    fn kernel_text(&self) -> String {
        match (&self.kernel, &self.kernel_error) {
            (Some(kernel), _) => format!("{} ({}, {})", kernel.name, kernel.state, kernel.id),
            (None, Some(error)) => format!("none: {error}"),
            (None, None) => "none".to_owned(),
        }
    }
}

impl fmt::Display for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, path, .. } = self;
        writeln!(f, "Server: {} ({})", server.name, server.url)?;
        writeln!(f, "Kernel: {}", self.kernel_text())?;
        write!(f, "Notebook: {path}")
    }
}

pub(super) async fn list_notebook(call: Call, _: NoArguments) -> Result<ToolReply<Notebooks>, ToolError> {
    let connections = call.connections().of(&call.principal().id);
    let listed = connections.iter().filter_map(|(name, connection)| {
        let server = connection.server.find(&call).ok()?;
        let path = current_path(&call, connection);
        call.principal().may_touch(&path).then_some((name, server, path))
    });
    let listed: Vec<_> = listed.collect();
    // One request for each server, however many notebooks it has.
    let asked: BTreeMap<&str, &Arc<JupyterServer>> =
        listed.iter().map(|(_, server, _)| (server.name(), server)).collect();
    let sessions = join_all(
        asked
            .values()
            .map(async |server| (server.name(), server.sessions().await)),
    )
    .await;
    let layers = |(name, server, path): &(&String, Arc<JupyterServer>, DocPath)| {
        let mut layers = Layers::without_kernel(name, server, path);
        match sessions.iter().find(|(name, _)| *name == server.name()) {
            Some((_, Ok(sessions))) => {
                let session = sessions.iter().find(|session| session.is_of(path));
                layers.kernel = session.map(|session| session.kernel.clone().into());
            }
            Some((_, Err(error))) => layers.kernel_error = Some(error.to_string()),
            None => {}
        }
        layers
    };
    let notebooks: Vec<Layers> = listed.iter().map(layers).collect();
    Ok(ToolReply::in_blocks(
        blocks([notebook_table(&notebooks)]),
        Notebooks { notebooks },
    ))
}

fn notebook_table(notebooks: &[Layers]) -> String {
    if notebooks.is_empty() {
        return "No notebook is currently connected".to_owned();
    }
    let rows = notebooks.iter().map(|notebook| {
        let Layers {
            notebook_name,
            server,
            path,
            ..
        } = notebook;
        let (name, path) = (notebook_name.clone(), path.clone());
        let (server, url) = (server.name.clone(), server.url.clone());
        vec![name, url, path, server, notebook.kernel_text()]
    });
    tsv(&["Name", "Jupyter URL", "Path", "Server", "Kernel"], rows)
}
