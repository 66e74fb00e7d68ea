//! Differences for people: unified diffs, cell by cell.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use crate::{Cell, Content, Delta, Notebook, Operation};

/// Time limit for finding the smallest difference; the one found by then is right too.
const TIMEOUT: Duration = Duration::from_millis(200);

/// A difference of one cell, of the metadata of a notebook, or of a text document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// None in a text document, and for the metadata of a notebook.
    pub cell_id: Option<Arc<str>>,
    /// Its position in the new content; in the old one if it was deleted.
    pub index: Option<usize>,
    pub status: Status,
    /// Parts that differ beside the text.
    pub parts: Vec<Part>,
    /// The unified diff of the text, without a head; empty if it is the same.
    pub unified: String,
    /// Lines that are new, and lines that are gone.
    pub added: usize,
    pub removed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Changed,
    Inserted,
    Deleted,
    /// True if it was moved; its text may have changed too.
    Moved,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Kind,
    Metadata,
    Attachments,
    Outputs,
}

/// The differences in the order of the new content, each deleted cell where it was, that of the notebook's metadata last; with
/// `context` lines around each change.
pub fn diff(old: &Content, new: &Content, context: usize) -> Vec<Difference> {
    match (old, new) {
        (Content::Text(old), Content::Text(new)) if old == new => Vec::new(),
        (Content::Text(old), Content::Text(new)) => vec![Difference::new(None, Status::Changed, (old, new), context)],
        (Content::Notebook(old), Content::Notebook(new)) => of_notebooks(old, new, context),
        // No document becomes one of the other kind.
        _ => Vec::new(),
    }
}

fn of_notebooks(old: &Notebook, new: &Notebook, context: usize) -> Vec<Difference> {
    let moved = moved(old, new);
    let before: HashMap<&str, (usize, &Cell)> = places(old);
    let after: HashSet<&str> = new.cells.iter().map(|cell| &*cell.id).collect();
    let mut found: Vec<Difference> = Vec::new();
    let mut deleted = old.cells.iter().enumerate().peekable();
    let mut take_deleted = |until: usize, found: &mut Vec<Difference>| {
        while let Some((index, cell)) = deleted.next_if(|(index, _)| *index < until) {
            if !after.contains(&*cell.id) {
                found.push(Difference::new(
                    Some((cell, index)),
                    Status::Deleted,
                    (&cell.source, ""),
                    context,
                ));
            }
        }
    };
    for (index, cell) in new.cells.iter().enumerate() {
        match before.get(&*cell.id) {
            Some((place, earlier)) => {
                if !moved.contains(&*cell.id) {
                    take_deleted(*place, &mut found);
                }
                found.extend(of_cell(earlier, cell, index, moved.contains(&*cell.id), context));
            }
            None => found.push(Difference::new(
                Some((cell, index)),
                Status::Inserted,
                ("", &cell.source),
                context,
            )),
        }
    }
    take_deleted(usize::MAX, &mut found);
    if old.metadata != new.metadata {
        let mut difference = Difference::new(None, Status::Changed, ("", ""), context);
        difference.parts.push(Part::Metadata);
        found.push(difference);
    }
    found
}

fn places(notebook: &Notebook) -> HashMap<&str, (usize, &Cell)> {
    let cells = notebook.cells.iter().enumerate();
    cells.map(|(index, cell)| (&*cell.id, (index, &**cell))).collect()
}

fn moved(old: &Notebook, new: &Notebook) -> HashSet<Arc<str>> {
    let bare = |notebook: &Notebook| Content::Notebook(notebook.clone());
    let operations = Delta::between(&bare(old), &bare(new)).operations.into_iter();
    let moves = operations.filter_map(|operation| match operation {
        Operation::Move { cell, .. } => Some(cell),
        _ => None,
    });
    moves.collect()
}

fn of_cell(old: &Cell, new: &Arc<Cell>, index: usize, is_moved: bool, context: usize) -> Option<Difference> {
    let parts = [
        (old.kind != new.kind, Part::Kind),
        (old.metadata != new.metadata, Part::Metadata),
        (old.attachments != new.attachments, Part::Attachments),
        (old.outputs != new.outputs, Part::Outputs),
    ];
    let parts: Vec<Part> = parts
        .into_iter()
        .filter(|(differs, _)| *differs)
        .map(|(_, part)| part)
        .collect();
    if parts.is_empty() && old.source == new.source && !is_moved {
        return None;
    }
    let status = if is_moved { Status::Moved } else { Status::Changed };
    let mut difference = Difference::new(Some((new, index)), status, (&old.source, &new.source), context);
    difference.parts = parts;
    Some(difference)
}

impl Difference {
    fn new(cell: Option<(&Arc<Cell>, usize)>, status: Status, (old, new): (&str, &str), context: usize) -> Self {
        let mut config = TextDiff::configure();
        config.deadline(Instant::now() + TIMEOUT);
        let diff = config.diff_lines(old, new);
        let count = |tag: ChangeTag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
        let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
        let unified = match added + removed {
            0 => String::new(),
            // The last line of a cell has no line break, which is not worth a note.
            _ => diff
                .unified_diff()
                .context_radius(context)
                .missing_newline_hint(cell.is_none())
                .to_string(),
        };
        Self {
            cell_id: cell.map(|(cell, _)| Arc::clone(&cell.id)),
            index: cell.map(|(_, index)| index),
            status,
            parts: Vec::new(),
            unified,
            added,
            removed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Hash, Outputs,
        testing::{any_notebook, cell, notebook, of_cells, text},
    };

    #[test]
    fn each_cell_has_its_own_diff() {
        let old = notebook(&["a:x = 1\ny = 2\n", "b:gone", "c:same", "d:moves"]);
        let new = notebook(&["d:moves", "a:x = 1\ny = 3\n", "n:new", "c:same"]);
        let differences = diff(&old, &new, 3);
        let told: Vec<(&str, usize, Status, &str)> = differences
            .iter()
            .map(|one| {
                (
                    one.cell_id.as_deref().unwrap_or_default(),
                    one.index.unwrap_or_default(),
                    one.status,
                    one.unified.as_str(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("d", 0, Status::Moved, ""),
                ("a", 1, Status::Changed, "@@ -1,2 +1,2 @@\n x = 1\n-y = 2\n+y = 3\n"),
                ("n", 2, Status::Inserted, "@@ -0,0 +1 @@\n+new\n"),
                ("b", 1, Status::Deleted, "@@ -1 +0,0 @@\n-gone\n"),
            ]
        );
        assert_eq!((differences[1].added, differences[1].removed), (1, 1));
    }

    #[test]
    fn what_is_not_text_is_named() {
        let ran = Cell {
            outputs: Outputs::Kept(Hash::of(b"1")),
            kind: crate::CellKind::Raw,
            ..cell("a", "1")
        };
        let differences = diff(&notebook(&["a:1"]), &of_cells([ran]), 3);
        assert_eq!(differences.len(), 1);
        assert_eq!(
            (differences[0].parts.as_slice(), differences[0].unified.as_str()),
            ([Part::Kind, Part::Outputs].as_slice(), "")
        );
    }

    #[test]
    fn a_text_has_one() {
        let differences = diff(&text("a\nb\nc\n"), &text("a\nB\nc\n"), 0);
        assert_eq!(differences.len(), 1);
        assert_eq!(differences[0].unified, "@@ -2 +2 @@\n-b\n+B\n");
        assert!(diff(&text("a"), &text("a"), 3).is_empty());
    }

    proptest! {
        #[test]
        fn there_is_a_difference_iff_contents_differ(old in any_notebook(), new in any_notebook()) {
            let bare = |content: &Content| of_cells(content.cells().iter().map(|one| Cell { execution_count: None, ..(**one).clone() }));
            let (old, new) = (bare(&old), bare(&new));
            let differences = diff(&old, &new, 3);
            prop_assert_eq!(differences.is_empty(), old == new);
            let mut ids: Vec<_> = differences.iter().map(|one| one.cell_id.clone()).collect();
            ids.sort();
            ids.dedup();
            prop_assert_eq!(ids.len(), differences.len(), "each cell once");
        }
    }
}
