//! Whether edits can be done: checked before anything changes, so that a batch is done whole or not at all.

use std::sync::Arc;

use super::{Author, Document, Edit, EditError, RoomKind};

impl Document {
    pub(super) fn check(&self, edits: &[Edit]) -> Result<(), EditError> {
        let is_text = |edit: &Edit| {
            matches!(
                edit,
                Edit::SpliceText { .. } | Edit::AppendText { .. } | Edit::SetText { .. }
            )
        };
        let is_notebook = self.kind == RoomKind::Notebook;
        if edits.iter().any(|edit| is_text(edit) == is_notebook) {
            let wanted = if is_notebook { "text document" } else { "notebook" };
            return Err(EditError::WrongKind { wanted });
        }
        let length = if is_notebook { 0 } else { self.text().chars().count() };
        edits.iter().try_for_each(|edit| self.check_one(edit, length))?;
        check_overlaps(edits)
    }

    fn check_one(&self, edit: &Edit, length: usize) -> Result<(), EditError> {
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
            Edit::SetSource { cell, .. } | Edit::SetKind { cell, .. } | Edit::InsertBefore { cell, .. } => known(cell),
            Edit::DeleteCells { cells } => cells.iter().try_for_each(known),
            Edit::SpliceText { position, delete, .. } => check_splice(*position, *delete, length),
            Edit::InsertCells { .. }
            | Edit::AppendCells { .. }
            | Edit::SetNotebook { .. }
            | Edit::AppendText { .. }
            | Edit::SetText { .. } => Ok(()),
        }
    }

    /// Refuses cells that others changed since a revision.
    pub(in crate::jupyter::room) fn check_unchanged(
        &self,
        author: &Arc<str>,
        cells: &[String],
        revision: &str,
    ) -> Result<(), EditError> {
        let cells = cells.to_vec();
        self.check_revision(
            revision,
            &[Edit::DeleteCells { cells }],
            &Author::Local(Arc::clone(author)),
        )
    }

    pub(super) fn check_revision(&self, given: &str, edits: &[Edit], me: &Author) -> Result<(), EditError> {
        let since = self.log.parse(given).ok_or_else(|| EditError::UnknownRevision {
            given: given.to_owned(),
        })?;
        let mut changed: Vec<&str> = Vec::new();
        let mut whole = false;
        for edit in edits {
            match edit {
                Edit::SetSource { cell, .. } | Edit::SetKind { cell, .. } | Edit::InsertBefore { cell, .. } => {
                    changed.extend(self.changed(cell, since, me));
                }
                Edit::DeleteCells { cells } => {
                    changed.extend(cells.iter().filter_map(|cell| self.changed(cell, since, me)));
                }
                Edit::SetNotebook { .. } => {
                    changed.extend(
                        self.cell_ids()
                            .filter(|cell| self.log.cell_changed_by_others(cell, since, me)),
                    );
                    whole |= self.log.whole_changed_by_others(since, me);
                }
                // What is put at the end is put there whatever others did.
                Edit::AppendCells { .. } | Edit::AppendText { .. } => {}
                // Before what others moved, a position means what it meant.
                Edit::InsertCells { at, .. } => {
                    whole |= self.log.moved_by_others(since, me).is_some_and(|first| first < *at);
                }
                Edit::SpliceText { .. } | Edit::SetText { .. } => {
                    whole |= self.log.whole_changed_by_others(since, me);
                }
            }
        }
        match (changed.is_empty(), whole) {
            (true, false) => Ok(()),
            (false, _) => Err(EditError::Stale {
                what: format!("cells {}", changed.join(", ")),
            }),
            (true, true) if self.kind == RoomKind::Notebook => Err(EditError::Stale {
                what: "cells were inserted or removed".to_owned(),
            }),
            (true, true) => Err(EditError::Stale {
                what: "the text".to_owned(),
            }),
        }
    }

    fn changed<'a>(&self, cell: &'a str, since: u64, me: &Author) -> Option<&'a str> {
        self.log.cell_changed_by_others(cell, since, me).then_some(cell)
    }

    /// The first position that means another cell than at a revision, because others inserted or removed some.
    pub(in crate::jupyter::room) fn moved_by_others(
        &self,
        given: &str,
        me: &Arc<str>,
    ) -> Result<Option<usize>, EditError> {
        let since = self.log.parse(given).ok_or_else(|| EditError::UnknownRevision {
            given: given.to_owned(),
        })?;
        Ok(self.log.moved_by_others(since, &Author::Local(Arc::clone(me))))
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
