//! Target of a call: the active notebook or one by its name, and a cell by index or id.

use std::sync::Arc;

use jupyter_client::JupyterServer;
use live_document::{CellOrder, Room, pool::Lease};

use crate::tools::{
    Call, ToolError,
    cells::Range,
    named::{Notebook, Place},
};

/// Current notebook and server of the caller.
pub(super) fn place(call: &Call) -> Place {
    call.connections().place(&call.principal().id, call.session())
}

/// The server that the caller has chosen, or the default.
pub(super) fn current_server(call: &Call) -> Result<Arc<JupyterServer>, ToolError> {
    match place(call).server.map(|server| server.find(call)) {
        // One that was chosen elsewhere does not count where the URL says which servers do.
        Some(Err(_)) if call.selects_servers() => call.server(None).cloned(),
        Some(found) => found,
        None => call.server(None).cloned(),
    }
}

/// The name of the active notebook, unless another is named.
pub(super) fn notebook_name(call: &Call, named: Option<&str>) -> Result<String, ToolError> {
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        return Ok(name.to_owned());
    }
    place(call).active().map(str::to_owned).ok_or_else(|| {
        let used = call.connections().of(&call.principal().id);
        let used: Vec<String> = used.into_iter().map(|(name, _)| name).collect();
        let known = match used.is_empty() {
            true => String::new(),
            false => format!("; in use: {}", used.join(", ")),
        };
        ToolError::argument(
            "notebook_name",
            format!("no notebook is active; activate one with use_notebook{known}"),
        )
    })
}

/// The active notebook, unless another is named.
pub(super) async fn find(call: &Call, named: Option<&str>) -> Result<Notebook, ToolError> {
    Notebook::find(call, &notebook_name(call, named)?).await
}

/// Opens the notebook of a name, if the caller has used one under it.
pub async fn open_named(call: &Call, name: &str) -> Option<Result<Lease, ToolError>> {
    call.connections().get(&call.principal().id, name)?;
    Some(Notebook::find(call, name).await.map(|notebook| notebook.room))
}

/// A cell as a call names it.
pub(super) struct Target {
    range: Range,
    argument: &'static str,
}

impl Target {
    /// The cell of an index or an id, of which the id counts.
    pub(super) fn new(index: Option<usize>, id: Option<String>) -> Result<Self, ToolError> {
        Self::named(index, id, ("cell_index", "cell_id"))
    }

    /// The same, of arguments with other names.
    pub(super) fn named(
        index: Option<usize>,
        id: Option<String>,
        arguments: (&'static str, &'static str),
    ) -> Result<Self, ToolError> {
        match (index, id) {
            (_, Some(id)) => Ok(Self {
                range: Range::cell(id),
                argument: arguments.1,
            }),
            (Some(index), None) => Ok(Self {
                range: Range::one(index),
                argument: arguments.0,
            }),
            (None, None) => Err(ToolError::argument(
                arguments.0,
                format!("name the cell by {} or {}", arguments.0, arguments.1),
            )),
        }
    }

    /// The position that is meant among the cells of one moment.
    pub(super) fn position(&self, cells: &(impl CellOrder + ?Sized)) -> Result<usize, ToolError> {
        let range = self.range.resolve(cells);
        let range = range.map_err(|why| ToolError::argument(self.argument, why))?;
        Ok(range.start)
    }

    /// The id of the cell that is meant.
    pub(super) fn id(&self, room: &Room) -> Result<String, ToolError> {
        let mut ids = room.ids(|order| Ok::<_, ToolError>(vec![self.position(order)?]))?;
        ids.pop()
            .ok_or_else(|| ToolError::argument(self.argument, "the cell was removed meanwhile"))
    }

    pub(super) fn is_by_position(&self) -> bool {
        self.range.is_by_position()
    }
}
