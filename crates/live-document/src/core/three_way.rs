//! Three-way merge of whole documents: what was made of a copy is taken over into the original, cell by cell, beside what
//! others did to the original meanwhile. Pure; knows nothing of rooms or of Yjs.
//!
//! | in the copy | in the original meanwhile | result |
//! | --- | --- | --- |
//! | changed | unchanged | as in the copy |
//! | changed | changed elsewhere in the cell, be it in the same word | both |
//! | changed | the same characters were replaced by others | as [`Overlap`] says |
//! | changed | deleted | conflict |
//! | deleted | its source was changed | conflict |
//! | inserted, moved | anything | behind the cell that it follows in the copy |
//!
//! Outputs never conflict: those of the copy are taken if the source is the one that they are of.

mod cells;

use serde_json::{Map, Value};

use self::cells::combine_cells;
use super::{
    Cell, DocumentContent,
    merge::{Settlement, settled_text},
};

/// Treatment of a place that both changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    Refuse,
    /// Lines of a text stand there in both versions, the copy's below the original's, so that nobody's words are lost. What
    /// cannot stand there twice is refused: a cell that one side deleted, metadata.
    KeepBoth,
    /// The copy wins.
    Overwrite,
}

/// Changes of a copy that are to be taken over.
#[derive(Debug, Clone, Copy)]
pub struct TakeOver<'a> {
    /// The content of both when the copy was made.
    pub base: &'a DocumentContent,
    pub copy: &'a DocumentContent,
    /// These cells only; everything if nothing is said.
    pub only: Option<&'a [String]>,
    pub overlap: Overlap,
}

/// The original with what was taken over.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Combination {
    pub(crate) content: DocumentContent,
    /// The cells in which lines stand in both versions; nothing for a text.
    pub(crate) doubled: Vec<Option<String>>,
}

/// Conflicts and doubled lines found while a copy is taken over.
#[derive(Debug, Default)]
struct Findings {
    conflicts: Vec<Conflict>,
    doubled: Vec<Option<String>>,
}

/// A cell in which a copy differs from its base.
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
    combine(take_over, original).ok().map(|combination| combination.content)
}

/// The original with what is to be taken over.
pub(crate) fn combine(take_over: &TakeOver<'_>, original: &DocumentContent) -> Result<Combination, Vec<Conflict>> {
    let TakeOver { base, copy, .. } = take_over;
    let mut findings = Findings::default();
    let content = match (base, copy, original) {
        (
            DocumentContent::Notebook { metadata: before, .. },
            DocumentContent::Notebook { metadata: wanted, .. },
            DocumentContent::Notebook { metadata: now, .. },
        ) => {
            let cells = combine_cells(take_over, base.cells(), copy.cells(), original.cells(), &mut findings);
            let metadata = match (take_over.only, combine_members(before, wanted, now, take_over.overlap)) {
                (Some(_), _) => now.clone(),
                (None, Ok(metadata)) => metadata,
                (None, Err(clash)) => {
                    findings.conflicts.push(Conflict { cell: None, clash });
                    now.clone()
                }
            };
            DocumentContent::Notebook { metadata, cells }
        }
        _ => {
            let text = combine_text(
                take_over,
                base.text(),
                copy.text(),
                original.text(),
                None,
                &mut findings,
            );
            let conflict = |clash| vec![Conflict { cell: None, clash }];
            DocumentContent::Text(text.map_err(conflict)?)
        }
    };
    match findings.conflicts.is_empty() {
        true => Ok(Combination {
            content,
            doubled: findings.doubled,
        }),
        false => Err(findings.conflicts),
    }
}

/// A copy's base after some cells were taken over: these are no differences any more.
pub(crate) fn advanced(take_over: &TakeOver<'_>) -> DocumentContent {
    match (take_over.base, take_over.copy, take_over.only) {
        (DocumentContent::Notebook { metadata, cells }, copy, Some(_)) => {
            let forced = TakeOver {
                overlap: Overlap::Overwrite,
                ..*take_over
            };
            let cells = combine_cells(&forced, cells, copy.cells(), cells, &mut Findings::default());
            DocumentContent::Notebook {
                metadata: metadata.clone(),
                cells,
            }
        }
        (_, copy, _) => copy.clone(),
    }
}

fn combine_text(
    take_over: &TakeOver<'_>,
    base: &str,
    copy: &str,
    now: &str,
    cell: Option<&str>,
    findings: &mut Findings,
) -> Result<String, Clash> {
    if base == copy {
        return Ok(now.to_owned());
    }
    let settlement = match take_over.overlap {
        Overlap::Refuse | Overlap::KeepBoth => Settlement::Both,
        Overlap::Overwrite => Settlement::Ours,
    };
    let settled = settled_text(base, now, copy, settlement);
    match (settled.is_doubled, take_over.overlap) {
        (true, Overlap::Refuse) => return Err(Clash::SamePlace),
        (true, _) => findings.doubled.push(cell.map(str::to_owned)),
        (false, _) => {}
    }
    Ok(settled.text)
}

/// One of three values: that of whoever changed it.
fn combine_value<T: Clone + PartialEq>(base: &T, copy: &T, now: &T, overlap: Overlap) -> Result<T, Clash> {
    if copy == base || copy == now {
        Ok(now.clone())
    } else if now == base || overlap == Overlap::Overwrite {
        Ok(copy.clone())
    } else {
        Err(Clash::Properties)
    }
}

/// The same for each member of an object, and for the members of those.
fn combine_members(base: &Value, copy: &Value, now: &Value, overlap: Overlap) -> Result<Value, Clash> {
    let (Value::Object(before), Value::Object(wanted), Value::Object(present)) = (base, copy, now) else {
        return combine_value(base, copy, now, overlap);
    };
    let mut combined = Map::new();
    let added = wanted.keys().filter(|key| !present.contains_key(*key));
    for key in present.keys().chain(added) {
        let value = match (before.get(key), wanted.get(key), present.get(key)) {
            (Some(before), Some(wanted), Some(present)) => Some(combine_members(before, wanted, present, overlap)?),
            (before, wanted, present) => combine_value(&before, &wanted, &present, overlap)?.cloned(),
        };
        if let Some(value) = value {
            combined.insert(key.clone(), value);
        }
    }
    Ok(combined.into())
}

/// Returns whether two cells are the same to a reader.
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
