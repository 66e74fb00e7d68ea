//! Failures of a call in words that its caller can act on: what the gateway knows beyond the failure, and the caller may.

use jupyter_client::{DocPath, JupyterError};
use live_document::{
    EditError, Refusal, Room, RoomError,
    pool::{OpenRoom, PoolError},
};

use super::Call;
use crate::{tools::ToolError, types::Toolset};

/// Number of open documents a refusal names.
const MAX_NAMED: usize = 5;

impl Call {
    /// Adds to a failure what the gateway knows and the principal may: where a document is that is not where it was, and
    /// what is open if too much is.
    pub(in crate::tools) fn explained(&self, error: ToolError) -> ToolError {
        let error = match error {
            ToolError::Room(RoomError::Edit(EditError::Refused(mut refused))) => {
                refused.read_whole = refused.part().map(|part| self.whole_reading(part));
                return EditError::Refused(refused).into();
            }
            error => error,
        };
        let missing = match &error {
            ToolError::Jupyter(missing)
            | ToolError::Room(RoomError::Jupyter(missing))
            | ToolError::Pool(PoolError::Room(RoomError::Jupyter(missing))) => missing,
            ToolError::Pool(why @ PoolError::Full { .. }) => {
                return ToolError::Full {
                    why: why.clone(),
                    open: self.open_documents(),
                };
            }
            _ => return error,
        };
        let JupyterError::NotFound { server, path } = missing else {
            return error;
        };
        let new_name = DocPath::parse(path)
            .ok()
            .and_then(|path| self.services.pool.new_name_of(server, &path));
        match new_name.filter(|name| self.principal.require_path(name).is_ok()) {
            Some(name) => ToolError::Renamed {
                server: server.clone(),
                path: path.clone(),
                to: name.to_string(),
            },
            None => error,
        }
    }

    /// The call that shows something whole, in the vocabulary of the caller.
    fn whole_reading(&self, part: &Refusal) -> String {
        let length = part.length;
        match &part.cell {
            Some(cell) if self.offers(Toolset::Notebook) => {
                format!("read_nb_cells(ranges=[{{\"cell_id\": {cell:?}}}], max_cell_data={length})")
            }
            Some(_) if self.offers(Toolset::Classic) => "read_notebook".to_owned(),
            Some(_) if self.offers(Toolset::Datalayer) => "read_cell".to_owned(),
            Some(_) => format!("get_notebook(max_content_length={})", length.saturating_mul(10)),
            None if self.offers(Toolset::Document) => format!("get_document_content(max_content={length})"),
            None => format!("get_document(max_content_length={length})"),
        }
    }

    /// Some of the open documents that the principal may see.
    fn open_documents(&self) -> String {
        let rooms = self.services.pool.open_rooms().into_iter();
        let is_visible = |room: &OpenRoom| {
            let is_ours = self.servers().iter().any(|server| *server.name() == *room.server);
            is_ours && self.principal.require_path(&room.info.path).is_ok()
        };
        let mut names: Vec<String> = rooms
            .filter(is_visible)
            .map(|room| room.info.path.to_string())
            .collect();
        names.sort_unstable();
        match names.len() {
            0 => "nothing that you may see".to_owned(),
            count if count > MAX_NAMED => format!("{} and {} more", names[..MAX_NAMED].join(", "), count - MAX_NAMED),
            _ => names.join(", "),
        }
    }
}

/// A refusal of an edit that names cells by their short ids, as all texts do.
pub(super) fn with_short_ids(room: &Room, mut error: RoomError) -> RoomError {
    if let RoomError::Edit(EditError::Refused(refused)) = &mut error {
        shorten_ids(room, refused.refusals.iter_mut().map(|refusal| &mut refusal.cell));
    }
    error
}

pub(super) fn shorten_ids<'a>(room: &Room, cells: impl Iterator<Item = &'a mut Option<String>>) {
    for cell in cells.flatten() {
        *cell = room.short_ids_of(&[cell.as_str()]).get(cell).to_owned();
    }
}
