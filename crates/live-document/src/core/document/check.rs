//! Checks of edits before anything changes, so that a batch is applied whole or not at all.

use super::{Author, Document, Edit, EditError};

/// Changes by others of what edits are about.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Stale {
    pub(crate) cells: Vec<(String, Vec<Author>)>,
    /// Authors who moved cells, or changed the text.
    pub(crate) whole: Vec<Author>,
}

impl Stale {
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.whole.is_empty()
    }
}

impl Document {
    /// Refuses edits of another kind of document, of cells that are not there, and of the same place twice.
    pub(crate) fn check(&self, edits: &[Edit]) -> Result<(), EditError> {
        let is_text = |edit: &Edit| {
            matches!(
                edit,
                Edit::SpliceText { .. }
                    | Edit::AppendText { .. }
                    | Edit::SetText { .. }
                    | Edit::ReplaceText { cell: None, .. }
                    | Edit::Splice { cell: None, .. }
            )
        };
        if edits.iter().any(|edit| is_text(edit) == self.is_notebook()) {
            let wanted = if self.is_notebook() {
                "text document"
            } else {
                "notebook"
            };
            return Err(EditError::WrongKind { wanted });
        }
        edits.iter().try_for_each(|edit| self.check_one(edit))?;
        check_overlaps(edits)
    }

    fn check_one(&self, edit: &Edit) -> Result<(), EditError> {
        let known = |id: &String| match self.position_of(id) {
            Some(_) => Ok(()),
            None => Err(EditError::UnknownCell {
                id: id.clone(),
                count: self.cell_count(),
                some: self.some_ids(),
            }),
        };
        match edit {
            Edit::InsertCells { at, .. } if *at > self.cell_count() => Err(EditError::Position {
                position: *at,
                length: self.cell_count(),
            }),
            Edit::SetSource { cell, .. }
            | Edit::SetKind { cell, .. }
            | Edit::InsertBefore { cell, .. }
            | Edit::InsertAfter { cell, .. }
            | Edit::ReplaceText { cell: Some(cell), .. }
            | Edit::Splice { cell: Some(cell), .. } => known(cell),
            Edit::DeleteCells { cells } | Edit::ClearOutputs { cells } => cells.iter().try_for_each(known),
            Edit::MoveCells { cells, before } => cells.iter().chain(before).try_for_each(known),
            Edit::SpliceText { .. }
            | Edit::ReplaceText { cell: None, .. }
            | Edit::Splice { cell: None, .. }
            | Edit::InsertCells { .. }
            | Edit::AppendCells { .. }
            | Edit::DeleteBlank { .. }
            | Edit::SetNotebook { .. }
            | Edit::AppendText { .. }
            | Edit::SetText { .. } => Ok(()),
        }
    }

    /// Changes by others, since a revision, of what edits are about.
    pub(crate) fn changed_since(&self, given: &str, edits: &[Edit], me: &Author) -> Result<Stale, EditError> {
        let since = self.log.parse(given).ok_or_else(|| EditError::UnknownRevision {
            given: given.to_owned(),
        })?;
        let mut stale = Stale::default();
        let look_at = |stale: &mut Stale, cell: &str| {
            let by = self.log.cell_changed_by_others(cell, since, me);
            if !by.is_empty() {
                stale.cells.push((cell.to_owned(), by));
            }
        };
        for edit in edits {
            match edit {
                Edit::SetSource { cell, .. }
                | Edit::SetKind { cell, .. }
                | Edit::InsertBefore { cell, .. }
                | Edit::InsertAfter { cell, .. }
                | Edit::ReplaceText { cell: Some(cell), .. }
                | Edit::Splice { cell: Some(cell), .. } => look_at(&mut stale, cell),
                Edit::DeleteCells { cells } | Edit::MoveCells { cells, .. } => {
                    for cell in cells {
                        look_at(&mut stale, cell);
                    }
                }
                Edit::SetNotebook { .. } => {
                    self.cell_ids().for_each(|cell| look_at(&mut stale, cell));
                    stale.whole = self.log.whole_changed_by_others(since, me);
                }
                // What is put at the end is put there whatever others did; outputs are no edits.
                Edit::AppendCells { .. }
                | Edit::AppendText { .. }
                | Edit::DeleteBlank { .. }
                | Edit::ClearOutputs { .. } => {}
                // Before what others moved, a position means what it meant.
                Edit::InsertCells { at, .. } => {
                    if self.log.moved_by_others(since, me).is_some_and(|first| first < *at) {
                        stale.whole = self.log.whole_changed_by_others(since, me);
                    }
                }
                Edit::SpliceText { .. }
                | Edit::SetText { .. }
                | Edit::ReplaceText { cell: None, .. }
                | Edit::Splice { cell: None, .. } => {
                    stale.whole = self.log.whole_changed_by_others(since, me);
                }
            }
        }
        Ok(stale)
    }

    /// Refuses positions that are not in a text.
    pub(crate) fn check_positions<'e>(edits: impl Iterator<Item = &'e Edit>, text: &str) -> Result<(), EditError> {
        let length = text.chars().count();
        for edit in edits {
            if let Edit::SpliceText { position, delete, .. } = edit {
                check_splice(*position, *delete, length)?;
            }
        }
        Ok(())
    }

    /// The first position that means another cell than at a revision, because others inserted or removed some, and who
    /// they are.
    pub(crate) fn moved_by_others(&self, given: &str, me: &Author) -> Result<Option<(usize, Vec<Author>)>, EditError> {
        let since = self.log.parse(given).ok_or_else(|| EditError::UnknownRevision {
            given: given.to_owned(),
        })?;
        let first = self.log.moved_by_others(since, me);
        Ok(first.map(|first| (first, self.log.whole_changed_by_others(since, me))))
    }
}

fn check_splice(position: usize, delete: usize, length: usize) -> Result<(), EditError> {
    if position > length {
        return Err(EditError::Position { position, length });
    }
    if delete > length - position {
        return Err(EditError::Length {
            position,
            length: delete,
            available: length - position,
        });
    }
    Ok(())
}

/// Two changes of the same characters, or one in the midst of what another takes away, have no order that is right.
fn check_overlaps(edits: &[Edit]) -> Result<(), EditError> {
    let mut splices: Vec<(usize, usize)> = edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::SpliceText { position, delete, .. } => Some((*position, *delete)),
            _ => None,
        })
        .collect();
    splices.sort_unstable();
    let overlap = splices.windows(2).find_map(|pair| match pair {
        &[(first, delete), (second, _)] if first + delete > second => Some(EditError::Overlap { first, second }),
        _ => None,
    });
    overlap.map_or(Ok(()), Err)
}
