//! Target of a call: a notebook by the name under which it was connected, and a cell by its index.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterError, JupyterServer};
use live_document::{CellOrder, Room, RoomKind, pool::Lease};
use schemars::JsonSchema;
use serde::Deserialize;

use super::connections::{Connection, ServerRef};
use crate::tools::{Call, ToolError, cells::Range};

/// A connected notebook, open.
pub(in crate::tools) struct Notebook {
    pub(in crate::tools) server: Arc<JupyterServer>,
    pub(in crate::tools) path: DocPath,
    pub(in crate::tools) room: Lease,
}

impl Notebook {
    /// The notebook that a caller has connected under a name.
    pub(in crate::tools) async fn find(call: &Call, name: &str) -> Result<Self, ToolError> {
        let connections = call.connections();
        let connection = connections
            .get(&call.principal().id, name)
            .ok_or_else(|| not_connected(call, name))?;
        let path = current_path(call, &connection);
        Self::open(call, name, connection.server.find(call)?, path.as_str()).await
    }

    /// Opens a notebook and has it known by a name from then on.
    pub(in crate::tools) async fn open(
        call: &Call,
        name: &str,
        server: Arc<JupyterServer>,
        path: &str,
    ) -> Result<Self, ToolError> {
        let path = call.file(path)?;
        let room = call.room(&server, &path, RoomKind::Notebook).await?;
        let connection = Connection {
            server: ServerRef::of(&server),
            path: path.clone(),
            session_id: room.session_id().to_owned(),
        };
        call.connections().put(&call.principal().id, name, connection);
        Ok(Self { server, path, room })
    }
}

/// The current path of a connected notebook, as far as it is known: people rename files while agents work in them.
pub(in crate::tools) fn current_path(call: &Call, connection: &Connection) -> DocPath {
    match call.pool().session(&connection.session_id) {
        // One that was moved to where the caller may not go is gone as far as they can tell.
        Some(open) if call.principal().may_touch(&open.info.path) => open.info.path,
        _ => connection.path.clone(),
    }
}

/// Present meaning of a name that is to be given to a notebook.
#[derive(PartialEq, Eq)]
pub(in crate::tools) enum NameUse {
    /// It has no meaning, or its notebook is gone.
    Free,
    /// It names this very notebook.
    ThisNotebook,
    Another {
        server: String,
        path: DocPath,
    },
}

pub(in crate::tools) async fn name_use(call: &Call, name: &str, server: &JupyterServer, path: &DocPath) -> NameUse {
    let Some(connection) = call.connections().get(&call.principal().id, name) else {
        return NameUse::Free;
    };
    let now = current_path(call, &connection);
    if connection.server.name == server.name() && now == *path {
        return NameUse::ThisNotebook;
    }
    let is_gone = match connection.server.find(call) {
        Ok(other) => matches!(other.document(&now).await, Err(JupyterError::NotFound { .. })),
        Err(_) => true,
    };
    match is_gone {
        true => NameUse::Free,
        false => NameUse::Another {
            server: connection.server.name,
            path: now,
        },
    }
}

pub(in crate::tools) fn not_connected(call: &Call, name: &str) -> ToolError {
    let shown: String = name.chars().take(100).collect();
    let names: Vec<String> = call
        .connections()
        .of(&call.principal().id)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let connected = match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    };
    let why = format!("notebook {shown:?} is not connected; connected: {connected}; connect it with connect_notebook");
    ToolError::argument("notebook_name", why)
}

// A cell by index or id. Not a doc comment, which would be repeated in every schema.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "expected an index from 0, or an id as in {\"cell_id\": \"...\"}"
)]
pub(in crate::tools) enum CellIndex {
    Index(usize),
    Id { cell_id: String },
}

impl CellIndex {
    pub(in crate::tools) fn range(&self) -> Range {
        match self {
            Self::Index(index) => Range::one(*index),
            Self::Id { cell_id } => Range::cell(cell_id.clone()),
        }
    }

    /// The position that is meant among the cells of one moment.
    pub(in crate::tools) fn position(&self, cells: &(impl CellOrder + ?Sized)) -> Result<usize, ToolError> {
        match self.range().resolve(cells) {
            Ok(range) => Ok(range.start),
            Err(why) => Err(ToolError::argument("cell_index", why)),
        }
    }

    /// The id of the cell that is meant.
    pub(in crate::tools) fn id(&self, room: &Room) -> Result<String, ToolError> {
        let mut ids = room.ids(|order| Ok::<_, ToolError>(vec![self.position(order)?]))?;
        ids.pop()
            .ok_or_else(|| ToolError::argument("cell_index", "the cell was removed meanwhile"))
    }
}
