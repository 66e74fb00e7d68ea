//! Undo of versions although others were made since: everybody else's characters stay, also inside the same cell.
//!
//! A version is active unless an active version undoes it. The log is replayed into sequences in which nothing is ever removed: each
//! character knows the version that inserted it and those that deleted it, and is visible iff the former is active and
//! none of the latter is. Cells are there likewise, by the last active version that inserted or deleted them; one whose insertion is
//! undone stays if it shows characters of others. For everything else the last active version that wrote it counts.
//! So what is left depends only on which versions are active, and not on the order in which they were undone.

mod activity;
mod cells;
mod register;
mod replay;
mod sequence;

use std::collections::HashSet;

pub use activity::{oldest_needed, redoable, undoable};
use replay::Replay;

use crate::{Content, Delta, LoggedVersion, Unfitting, VersionId};

/// The delta from the present content to what it would be if the versions `undone` had not been made, and nothing else were
/// different. `base` is the content before the first version of `log`, which must reach back as far as [`oldest_needed`]
/// says. To redo, undo an undo.
#[expect(clippy::implicit_hasher, reason = "callers have the usual one")]
pub fn plan_undo(base: &Content, log: &[LoggedVersion], undone: &HashSet<VersionId>) -> Result<Delta, Unfitting> {
    let mut replay = replayed(base, log)?;
    let now = Delta::apply_all(base, log.iter().map(|version| &version.delta))?;
    replay.reconcile(&now)?;
    Ok(replay.without(undone))
}

fn replayed(base: &Content, log: &[LoggedVersion]) -> Result<Replay, Unfitting> {
    let mut replay = Replay::new(base);
    for version in log {
        replay.add(version)?;
    }
    Ok(replay)
}

/// Result of replaying a log.
#[cfg(test)]
pub(crate) fn present(base: &Content, log: &[LoggedVersion]) -> Content {
    replayed(base, log).expect("a log that fits").present()
}

#[cfg(test)]
mod proptests;
#[cfg(test)]
mod tests;
