//! Three-way merge of whole documents: what was made of a copy is taken over into the original, cell by cell, beside what
//! others did to the original meanwhile. Pure; knows nothing of rooms or of Yjs.
//!
//! | in the copy | in the original meanwhile | result |
//! | --- | --- | --- |
//! | changed | unchanged | as in the copy |
//! | changed | changed elsewhere in the cell | both |
//! | changed | changed in the same place, or deleted | conflict |
//! | deleted | its source was changed | conflict |
//! | inserted, moved | anything | behind the cell that it follows in the copy |
//!
//! Outputs never conflict: those of the copy are taken if the source is the one that they are of.

mod cells;

use serde_json::{Map, Value};

use self::cells::combine_cells;
use super::{Cell, DocumentContent, merge::merged_text};

/// What is to be taken over from a copy.
#[derive(Debug, Clone, Copy)]
pub struct TakeOver<'a> {
    /// What both were when the copy was made.
    pub base: &'a DocumentContent,
    pub copy: &'a DocumentContent,
    /// These cells only; everything if nothing is said.
    pub only: Option<&'a [String]>,
    /// The copy wins where both changed the same place.
    pub force: bool,
}

/// How a cell of a copy differs from the original's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellDifference {
    pub cell: String,
    pub difference: Difference,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    Inserted,
    Deleted,
    Changed,
    Moved,
    MovedAndChanged,
}

impl Difference {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inserted => "inserted",
            Self::Deleted => "deleted",
            Self::Changed => "changed",
            Self::Moved => "moved",
            Self::MovedAndChanged => "moved and changed",
        }
    }

    fn is_move(self) -> bool {
        matches!(self, Self::Moved | Self::MovedAndChanged)
    }

    fn is_change(self) -> bool {
        matches!(self, Self::Changed | Self::MovedAndChanged)
    }
}

/// A place that both changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// Nothing for a text, or for the metadata of a notebook.
    pub(crate) cell: Option<String>,
    pub(crate) clash: Clash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clash {
    /// Both changed the same place of a text.
    SamePlace,
    /// Both changed something else of a cell, or of the notebook.
    Properties,
    /// The copy deleted what others changed.
    DeletedInCopy,
    /// Others deleted what the copy changed.
    DeletedMeanwhile,
}

/// The cells in which a copy differs, those that are gone last.
pub fn differences(base: &DocumentContent, copy: &DocumentContent) -> Vec<CellDifference> {
    cells::differences(base.cells(), copy.cells())
}

/// The original with what is to be taken over, if that fits.
pub fn combined(take_over: &TakeOver<'_>, original: &DocumentContent) -> Option<DocumentContent> {
    combine(take_over, original).ok()
}

/// The original with what is to be taken over.
pub(crate) fn combine(take_over: &TakeOver<'_>, original: &DocumentContent) -> Result<DocumentContent, Vec<Conflict>> {
    let TakeOver { base, copy, .. } = take_over;
    match (base, copy, original) {
        (
            DocumentContent::Notebook { metadata: before, .. },
            DocumentContent::Notebook { metadata: wanted, .. },
            DocumentContent::Notebook { metadata: now, .. },
        ) => {
            let mut conflicts = Vec::new();
            let cells = combine_cells(take_over, base.cells(), copy.cells(), original.cells(), &mut conflicts);
            let metadata = match (take_over.only, combine_members(before, wanted, now, take_over.force)) {
                (Some(_), _) => now.clone(),
                (None, Ok(metadata)) => metadata,
                (None, Err(clash)) => {
                    conflicts.push(Conflict { cell: None, clash });
                    now.clone()
                }
            };
            match conflicts.is_empty() {
                true => Ok(DocumentContent::Notebook { metadata, cells }),
                false => Err(conflicts),
            }
        }
        _ => {
            let text = combine_text(take_over, base.text(), copy.text(), original.text());
            let conflict = |clash| vec![Conflict { cell: None, clash }];
            text.map(DocumentContent::Text).map_err(conflict)
        }
    }
}

/// A copy's base after some cells were taken over: these are no differences any more.
pub(crate) fn advanced(take_over: &TakeOver<'_>) -> DocumentContent {
    match (take_over.base, take_over.copy, take_over.only) {
        (DocumentContent::Notebook { metadata, cells }, copy, Some(_)) => {
            let forced = TakeOver {
                force: true,
                ..*take_over
            };
            let cells = combine_cells(&forced, cells, copy.cells(), cells, &mut Vec::new());
            DocumentContent::Notebook {
                metadata: metadata.clone(),
                cells,
            }
        }
        (_, copy, _) => copy.clone(),
    }
}

fn combine_text(take_over: &TakeOver<'_>, base: &str, copy: &str, now: &str) -> Result<String, Clash> {
    if base == copy {
        return Ok(now.to_owned());
    }
    match merged_text(base, now, copy) {
        Ok(text) => Ok(text),
        Err(_) if take_over.force => Ok(copy.to_owned()),
        Err(_) => Err(Clash::SamePlace),
    }
}

/// One of three values: that of whoever changed it.
fn combine_value<T: Clone + PartialEq>(base: &T, copy: &T, now: &T, force: bool) -> Result<T, Clash> {
    if copy == base || copy == now {
        Ok(now.clone())
    } else if now == base || force {
        Ok(copy.clone())
    } else {
        Err(Clash::Properties)
    }
}

/// The same for each member of an object.
fn combine_members(base: &Value, copy: &Value, now: &Value, force: bool) -> Result<Value, Clash> {
    let (Value::Object(before), Value::Object(wanted), Value::Object(present)) = (base, copy, now) else {
        return combine_value(base, copy, now, force);
    };
    let mut combined = Map::new();
    let added = wanted.keys().filter(|key| !present.contains_key(*key));
    for key in present.keys().chain(added) {
        let value = combine_value(&before.get(key), &wanted.get(key), &present.get(key), force)?;
        if let Some(value) = value {
            combined.insert(key.clone(), value.clone());
        }
    }
    Ok(combined.into())
}

/// Whether two cells are the same to whoever reads them.
fn is_same(one: &Cell, other: &Cell) -> bool {
    one.source == other.source
        && one.cell_type == other.cell_type
        && one.metadata == other.metadata
        && one.attachments == other.attachments
        && has_same_outputs(one, other)
}

fn has_same_outputs(one: &Cell, other: &Cell) -> bool {
    one.outputs == other.outputs && one.execution_count == other.execution_count
}

#[cfg(test)]
mod tests;
