//! Notebooks by the names that callers gave them, for the vocabularies that know notebooks so: what a name stands for, which
//! notebook is the active one, and tables of cells.

mod connections;
mod servers;
pub(super) mod table;
mod target;

pub use connections::Connections;
pub(super) use connections::{Connection, Place, ServerRef};
pub(super) use servers::find_server;
pub(super) use target::{CellIndex, NameUse, Notebook, current_path, name_use, not_connected};

use super::{Block, ToolError};

/// Characters of a source or an output, more than elsewhere since these tools have no argument to ask for more.
pub(super) const MAX_SHOWN: usize = 20_000;
/// Number of cells that are shown of a notebook that was connected.
pub(super) const SHOWN_CELLS: usize = 20;
const MAX_NAME: usize = 200;

/// Refuses a name that no notebook can have.
pub(super) fn check_name(name: &str) -> Result<(), ToolError> {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME {
        let why = format!("a name has 1 to {MAX_NAME} characters");
        return Err(ToolError::argument("notebook_name", why));
    }
    Ok(())
}

/// Texts as blocks. Empty ones are left out, which some models' interfaces refuse.
pub(super) fn blocks(texts: impl IntoIterator<Item = String>) -> Vec<Block> {
    let texts = texts.into_iter().filter(|text| !text.trim().is_empty());
    texts.map(Block::Text).collect()
}
