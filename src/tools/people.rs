//! People in a document, for the answers of reads, and the record of what a caller was shown.

use live_document::{Person, Room, SourceShown};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Call, cells::ShownCell};

/// A person in the document.
#[derive(Serialize, JsonSchema)]
pub(super) struct PersonHere {
    name: String,
    /// The cell in which the cursor is; null if it is in none.
    cell_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
}

impl From<Person> for PersonHere {
    fn from(person: Person) -> Self {
        let (cell, line) = person.at.map_or((None, None), |at| (at.cell, Some(at.line)));
        let (index, cell_id) = cell.map_or((None, None), |(index, id)| (Some(index), Some(id)));
        Self {
            name: person.name,
            cell_id,
            index,
            line,
        }
    }
}

/// The people in a document.
pub(super) fn people(room: &Room) -> Vec<PersonHere> {
    room.people().into_iter().map(PersonHere::from).collect()
}

/// The people in a line of text; `None` if nobody is there.
pub(super) fn people_line(people: &[PersonHere]) -> Option<String> {
    let describe = |person: &PersonHere| match person.index {
        Some(index) => format!("{} (cell {index})", person.name),
        None => person.name.clone(),
    };
    let described: Vec<String> = people.iter().map(describe).collect();
    (!described.is_empty()).then(|| format!("People here now: {}", described.join(", ")))
}

impl Call {
    /// Records which sources the answer shows.
    pub(super) fn record_shown(&self, room: &Room, revision: &str, cells: &[ShownCell]) {
        let shown = cells.iter().map(|cell| SourceShown {
            cell: cell.id(),
            source: cell.whole_source(),
        });
        room.record_shown(&self.principal().id, revision, shown);
    }

    /// Records that the answer shows all cells of a notebook.
    pub(super) fn record_all_shown(&self, room: &Room, revision: &str, cells: &[ShownCell]) {
        self.record_shown(room, revision, cells);
        room.record_order(&self.principal().id, revision, cells.iter().map(ShownCell::id));
    }
}
