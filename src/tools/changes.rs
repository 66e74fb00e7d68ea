//! Descriptions of edits for models: the smallest diff, the cells around it, and what is gone.

use std::{collections::BTreeMap, fmt::Write as _};

use jupyter_client::counted;
use live_document::{Edited, Room, ShortIds, Source, SourceChange};

use super::{cells, diff::unified, text::cell::cut};

/// Number of lines around those that differ.
const DIFF_CONTEXT: usize = 1;
/// Number of lines that are shown of one diff, or of one cell that is gone, and of all of them.
const MAX_LINES: usize = 60;
const MAX_LINES_IN_ALL: usize = 240;
/// Characters of a line in a list of cells, and of any other line.
const MAX_FIRST_LINE: usize = 60;
const MAX_LINE: usize = 400;
/// Number of cells that are shown before and after a place.
const AROUND: usize = 2;
/// Number of cells in a list.
const MAX_ROWS: usize = 30;

/// Text about an edit of a notebook, in which `moved` cells are in new places.
pub(super) fn of_cells(room: &Room, edited: &Edited, moved: &[String]) -> String {
    let rows = rows(room, edited, moved);
    let around = room.sources(rows.keys().copied().take(MAX_ROWS));
    let short = short_ids(room, &edited.changes, &around);
    let mut text = format!("{}; {}", summary(&edited.changes, moved), revision(&edited.into()));
    let mut left = MAX_LINES_IN_ALL;
    for change in &edited.changes {
        let named = format!(
            "[{}] {}",
            change.position,
            short.get(change.cell.as_deref().unwrap_or_default())
        );
        let shown = match (&change.before, &change.after) {
            (Some(before), Some(after)) => {
                let kind = change
                    .old_kind
                    .as_ref()
                    .map(|old| format!(" {old} is {} now", change.kind));
                let diff = unified(before, after, DIFF_CONTEXT);
                format!("{named}{}\n{diff}", kind.unwrap_or_default())
            }
            (Some(before), None) => {
                let lines = before.lines().map(|line| format!("\n-{line}"));
                format!("-{named} {}{}", change.kind, lines.collect::<String>())
            }
            (None, _) => continue,
        };
        push_lines(&mut text, &shown, &mut left);
    }
    push_rows(&mut text, &rows, &around, &short);
    text
}

/// Text about an edit of a text document.
pub(super) fn of_text(path: &str, edited: &Edited) -> String {
    let mut text = format!("{path}: {}", revision(&edited.into()));
    let diffs = edited.changes.iter().filter_map(difference);
    let diff = diffs.collect::<Vec<_>>().join("\n");
    match diff.is_empty() {
        true => text.push_str("; nothing changed"),
        false => push_lines(&mut text, &diff, &mut { MAX_LINES_IN_ALL }),
    }
    text
}

/// The smallest diff of a source that stays.
pub(super) fn difference(change: &SourceChange) -> Option<String> {
    let (before, after) = (change.before.as_deref()?, change.after.as_deref()?);
    Some(unified(before, after, DIFF_CONTEXT))
}

/// The short ids of all cells that are named, those that are gone included.
fn short_ids(room: &Room, changes: &[SourceChange], around: &[Source]) -> ShortIds {
    let changed = changes.iter().filter_map(|change| change.cell.as_deref());
    let named: Vec<&str> = changed
        .chain(around.iter().filter_map(|source| source.cell.as_deref()))
        .collect();
    room.short_ids_of(&named)
}

fn summary(changes: &[SourceChange], moved: &[String]) -> String {
    let count = |is_meant: fn(&SourceChange) -> bool| changes.iter().filter(|change| is_meant(change)).count();
    let parts = [
        (
            count(|change| change.before.is_some() && change.after.is_some()),
            "changed",
        ),
        (count(|change| change.before.is_none()), "inserted"),
        (count(|change| change.after.is_none()), "deleted"),
        (moved.len(), "moved"),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = parts
        .map(|(count, done)| format!("{} {done}", counted(*count, "cell")))
        .collect();
    match told.is_empty() {
        true => "Nothing changed".to_owned(),
        false => told.join(", "),
    }
}

/// The revision after an edit.
pub(super) fn revision(edited: &cells::Edited) -> String {
    let unconfirmed = match edited.acknowledged {
        true => "",
        false => ", which Jupyter has not confirmed yet",
    };
    format!("revision {}{unconfirmed}", edited.revision)
}

/// Positions to list: those of cells in new places, marked, and of those around a change.
fn rows(room: &Room, edited: &Edited, moved: &[String]) -> BTreeMap<usize, char> {
    let (mut new, mut places) = (Vec::new(), Vec::new());
    let mut gone = 0;
    // Those that are gone come last, in the order in which they stood.
    for change in &edited.changes {
        match (&change.before, &change.after) {
            (None, _) => new.push(change.position),
            (_, None) => {
                places.push(change.position.saturating_sub(gone));
                gone += 1;
            }
            _ => {}
        }
    }
    new.extend(moved.iter().filter_map(|id| room.position_of(id)));
    places.extend(new.iter().flat_map(|position| [*position, position + 1]));
    let count = room.cell_count();
    let around = places
        .iter()
        .flat_map(|place| place.saturating_sub(AROUND)..place.saturating_add(AROUND).min(count));
    let mut rows: BTreeMap<usize, char> = around.map(|position| (position, ' ')).collect();
    rows.extend(new.into_iter().map(|position| (position, '+')));
    rows
}

fn push_rows(text: &mut String, rows: &BTreeMap<usize, char>, around: &[Source], short: &ShortIds) {
    let mut next = None;
    for source in around {
        if next.is_some_and(|next| next != source.position) {
            text.push_str("\n ...");
        }
        next = Some(source.position + 1);
        let mark = rows.get(&source.position).copied().unwrap_or(' ');
        let first = source.text.lines().next().unwrap_or_default();
        let id = source.cell.as_deref().unwrap_or_default();
        // A string takes everything.
        let _ = write!(text, "\n{mark}[{}] {} {} ", source.position, short.get(id), source.kind);
        text.push_str(&cut(first, MAX_FIRST_LINE));
        let lines = source.text.lines().count();
        if lines > 1 {
            let _ = write!(text, " ({lines} lines)");
        }
        text.truncate(text.trim_end_matches(' ').len());
    }
    if rows.len() > MAX_ROWS {
        let _ = write!(text, "\n[{} more]", counted(rows.len() - MAX_ROWS, "cell"));
    }
}

/// Adds lines as far as there may be more, and says how many are left out.
fn push_lines(text: &mut String, lines: &str, left: &mut usize) {
    let max = MAX_LINES.min(*left);
    let count = lines.lines().count();
    for line in lines.lines().take(max) {
        text.push('\n');
        text.push_str(&cut(line, MAX_LINE));
    }
    if count > max {
        let _ = write!(text, "\n[{} left out]", counted(count - max, "line"));
    }
    *left -= max.min(count);
}
