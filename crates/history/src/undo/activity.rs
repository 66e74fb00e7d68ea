//! Active versions, and those that can be undone or redone.

use std::collections::{HashMap, HashSet};

use crate::VersionId;

/// The active versions of a log, by their place in it: those that no active version undoes.
pub(super) fn active(undoes: &[Vec<usize>]) -> Vec<bool> {
    let mut active = vec![true; undoes.len()];
    // Only later versions undo one, so that going back every question is answered before it is asked.
    for index in (0..undoes.len()).rev() {
        if active[index] {
            for undone in undoes[index].iter().filter(|undone| **undone < index) {
                active[*undone] = false;
            }
        }
    }
    active
}

/// The oldest version that a log must reach back to, so that these can be undone: also those count which they undo
/// themselves. `versions` are in their order, each with those that it undoes. Nothing if none of them is known.
#[expect(clippy::implicit_hasher, reason = "callers have the usual one")]
pub fn oldest_needed<'v>(
    versions: impl IntoIterator<Item = (&'v VersionId, &'v [VersionId])>,
    undone: &HashSet<VersionId>,
) -> Option<VersionId> {
    let versions: Vec<_> = versions.into_iter().collect();
    let mut needed: HashSet<&VersionId> = undone.iter().collect();
    let mut oldest = None;
    for (id, undoes) in versions.iter().rev() {
        if needed.contains(id) {
            needed.extend(*undoes);
            oldest = Some(*id);
        }
    }
    oldest.cloned()
}

/// The versions that can be undone, the latest first: those of the chosen ones that take nothing back themselves and are
/// not taken back. `versions` are in their order; `view` gives the id of each and those that it undoes.
pub fn undoable<'v, V>(
    versions: &'v [V],
    view: impl Fn(&'v V) -> (&'v VersionId, &'v [VersionId]),
    is_chosen: impl Fn(&'v V) -> bool,
) -> Vec<&'v V> {
    let undoes = places(versions, &view);
    let active = active(&undoes);
    let is_edit = |index: usize| view(&versions[index]).1.is_empty();
    let latest = (0..versions.len()).rev();
    latest
        .filter(|index| active[*index] && is_edit(*index) && is_chosen(&versions[*index]))
        .map(|index| &versions[index])
        .collect()
}

/// The undos that can be taken back, the latest first: those of the chosen ones that are no redos and are not taken back.
pub fn redoable<'v, V>(
    versions: &'v [V],
    view: impl Fn(&'v V) -> (&'v VersionId, &'v [VersionId]),
    is_chosen: impl Fn(&'v V) -> bool,
) -> Vec<&'v V> {
    let undoes = places(versions, &view);
    let active = active(&undoes);
    let is_redo = |index: usize| {
        undoes[index]
            .iter()
            .any(|undone| !view(&versions[*undone]).1.is_empty())
    };
    let is_undo = |index: usize| !view(&versions[index]).1.is_empty() && !is_redo(index);
    let latest = (0..versions.len()).rev();
    latest
        .filter(|index| active[*index] && is_undo(*index) && is_chosen(&versions[*index]))
        .map(|index| &versions[index])
        .collect()
}

/// For each version the places of those that it undoes, as far as they are known.
fn places<'v, V>(versions: &'v [V], view: impl Fn(&'v V) -> (&'v VersionId, &'v [VersionId])) -> Vec<Vec<usize>> {
    let places: HashMap<&VersionId, usize> = versions
        .iter()
        .enumerate()
        .map(|(index, version)| (view(version).0, index))
        .collect();
    let undone = |version| {
        view(version)
            .1
            .iter()
            .filter_map(|id| places.get(id).copied())
            .collect()
    };
    versions.iter().map(undone).collect()
}
