//! A change of an older content, done in a newer one: both sides of a merge survive.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde_json::Value;

use crate::{Cell, Content, Delta, Json, Notebook, Operation, Place, Splice, Unfitting, delta::between_with, text};

/// A delta for another content than the one it was made for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rebased {
    pub delta: Delta,
    /// Cells that it would have deleted, and that stay since somebody changed them meanwhile.
    pub kept: Vec<Arc<str>>,
    /// Cells that it would have changed and that are gone.
    pub gone: Vec<Arc<str>>,
}

impl Delta {
    /// This delta, which was made for `base`, for what that has become meanwhile. What others wrote stays: texts are merged,
    /// and elsewhere it gives way where they changed the same.
    pub fn rebase(&self, base: &Content, now: &Content) -> Result<Rebased, Unfitting> {
        let wanted = self.apply(base)?;
        match (base, now, wanted) {
            (Content::Text(base), Content::Text(text), Content::Text(wanted)) => {
                let splices = merged(base, text, &self.text_splices(), &wanted)?;
                Ok(Rebased {
                    delta: between_with(now, &Content::Text(spliced(text, &splices)?), |_, _, _| splices.clone()),
                    ..Rebased::default()
                })
            }
            (Content::Notebook(base), Content::Notebook(notebook), Content::Notebook(wanted)) => {
                let mut merge = Merge::new(base, notebook, &wanted);
                for operation in &self.operations {
                    merge.perform(operation)?;
                }
                let merged = Content::Notebook(Notebook {
                    metadata: merge.metadata,
                    cells: merge.cells,
                });
                let splices = merge.splices;
                let of = |cell: Option<&str>| cell.and_then(|cell| splices.get(cell)).cloned().unwrap_or_default();
                Ok(Rebased {
                    delta: between_with(now, &merged, |cell, _, _| of(cell)),
                    kept: merge.kept,
                    gone: merge.gone,
                })
            }
            _ => Err(Unfitting::new("one is a notebook and the other a text")),
        }
    }

    fn text_splices(&self) -> Vec<Splice> {
        let splices = self.operations.iter().filter_map(|operation| match operation {
            Operation::Text { splices } => Some(splices.clone()),
            _ => None,
        });
        splices.flatten().collect()
    }
}

/// Splices of `base` for what it has become. What is the same in the end needs none.
fn merged(base: &str, now: &str, ours: &[Splice], wanted: &str) -> Result<Vec<Splice>, Unfitting> {
    if now == wanted {
        return Ok(Vec::new());
    }
    if now == base {
        return Ok(ours.to_vec());
    }
    text::rebase(base, ours, &text::between(base, now)).ok_or_else(|| Unfitting::new("a text is another one"))
}

fn spliced(text: &str, splices: &[Splice]) -> Result<Arc<str>, Unfitting> {
    let spliced = text::apply(text, splices).map(Into::into);
    spliced.ok_or_else(|| Unfitting::new("a text is another one"))
}

/// The cells of the present content, while a delta is done to them.
struct Merge<'c> {
    base: HashMap<&'c str, &'c Arc<Cell>>,
    /// The order in which the delta would have left the cells of its own content.
    wanted: Vec<&'c Arc<Cell>>,
    metadata: Json,
    cells: Vec<Arc<Cell>>,
    splices: HashMap<Arc<str>, Vec<Splice>>,
    kept: Vec<Arc<str>>,
    gone: Vec<Arc<str>>,
}

impl<'c> Merge<'c> {
    fn new(base: &'c Notebook, now: &Notebook, wanted: &'c Notebook) -> Self {
        Self {
            base: base.cells.iter().map(|cell| (&*cell.id, cell)).collect(),
            wanted: wanted.cells.iter().collect(),
            metadata: now.metadata.clone(),
            cells: now.cells.clone(),
            splices: HashMap::new(),
            kept: Vec::new(),
            gone: Vec::new(),
        }
    }

    fn perform(&mut self, operation: &Operation) -> Result<(), Unfitting> {
        match operation {
            Operation::Metadata { cell: None, old, new } => {
                self.metadata = merged_members(&self.metadata, old, new);
                return Ok(());
            }
            Operation::Insert { at, cell } => {
                if self.position(&cell.id).is_none() {
                    let at = self.place(&cell.id, at);
                    self.cells.insert(at, Arc::clone(cell));
                }
                return Ok(());
            }
            _ => {}
        }
        let Some((id, at)) = operation.cell().and_then(|id| Some((id, self.position(id)?))) else {
            let is_deletion = matches!(operation, Operation::Delete { .. });
            if let Some(id) = operation
                .cell()
                .filter(|id| !is_deletion && !self.gone.iter().any(|gone| **gone == **id))
            {
                self.gone.push(id.into());
            }
            return Ok(());
        };
        match operation {
            Operation::Delete { cell, .. } => match self.is_changed(at, cell) {
                true => self.kept.push(Arc::clone(&cell.id)),
                false => drop(self.cells.remove(at)),
            },
            Operation::Move { to, .. } => {
                let cell = self.cells.remove(at);
                let to = self.place(id, to);
                self.cells.insert(to, cell);
            }
            Operation::Source { splices, .. } => self.splice(at, splices)?,
            _ => change(Arc::make_mut(&mut self.cells[at]), operation),
        }
        Ok(())
    }

    fn splice(&mut self, at: usize, ours: &[Splice]) -> Result<(), Unfitting> {
        let id = Arc::clone(&self.cells[at].id);
        let base = self.base.get(&*id).map_or("", |cell| &cell.source);
        let wanted = spliced(base, ours)?;
        let splices = merged(base, &self.cells[at].source, ours, &wanted)?;
        let cell = Arc::make_mut(&mut self.cells[at]);
        cell.source = spliced(&cell.source, &splices)?;
        self.splices.insert(id, splices);
        Ok(())
    }

    /// Returns whether somebody has changed the source of a cell since.
    fn is_changed(&self, at: usize, deleted: &Cell) -> bool {
        self.cells[at].source != deleted.source
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.cells.iter().position(|cell| *cell.id == *id)
    }

    /// Place of a cell: beside its neighbour, else after the next one before it that is there, else before the next one
    /// after it.
    fn place(&self, id: &str, place: &Place) -> usize {
        let Some(after) = &place.after else { return 0 };
        let neighbour = self.position(after).map(|at| at + 1);
        let neighbour = neighbour.or_else(|| self.position(place.before.as_ref()?));
        if let Some(at) = neighbour {
            return at;
        }
        let there: HashMap<&str, usize> = self
            .cells
            .iter()
            .enumerate()
            .map(|(at, cell)| (&*cell.id, at))
            .collect();
        let wanted = self
            .wanted
            .iter()
            .position(|cell| *cell.id == *id)
            .unwrap_or(self.wanted.len());
        let (before, after) = self.wanted.split_at(wanted);
        let mut before = before.iter().rev().filter_map(|cell| there.get(&*cell.id));
        let mut after = after.iter().filter_map(|cell| there.get(&*cell.id));
        match (before.next(), after.next()) {
            (Some(before), _) => before + 1,
            (None, Some(after)) => *after,
            (None, None) => self.cells.len(),
        }
    }
}

/// Does what is not about texts, unless somebody else has changed the same.
fn change(cell: &mut Cell, operation: &Operation) {
    match operation {
        Operation::Kind { old, new, .. } if cell.kind == *old => cell.kind = *new,
        Operation::Metadata { old, new, .. } => cell.metadata = merged_members(&cell.metadata, old, new),
        Operation::Attachments { old, new, .. } if cell.attachments == *old => cell.attachments.clone_from(new),
        Operation::Outputs { old, new, .. } if (cell.outputs, cell.execution_count) == *old => {
            (cell.outputs, cell.execution_count) = *new;
        }
        _ => {}
    }
}

/// Members that changed from old to new, in an object where they are still the old ones.
fn merged_members(now: &Json, old: &Json, new: &Json) -> Json {
    if now == old {
        return new.clone();
    }
    let (mut merged, old, new) = (now.value(), old.value(), new.value());
    let keys = |value: &Value| {
        value
            .as_object()
            .map(|object| object.keys().cloned().collect::<Vec<_>>())
    };
    let all: HashSet<String> = [&old, &new].into_iter().filter_map(keys).flatten().collect();
    if let Value::Object(object) = &mut merged {
        for key in all {
            if old.get(&key) != new.get(&key) && object.get(&key) == old.get(&key) {
                match new.get(&key) {
                    Some(value) => drop(object.insert(key, value.clone())),
                    None => drop(object.remove(&key)),
                }
            }
        }
    }
    Json::new(&merged)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::testing::{any_notebook, cell, notebook, of_cells, shown, text};

    #[track_caller]
    fn assert_merges(base: &[&str], ours: &[&str], theirs: &[&str], expected: &[&str]) -> Rebased {
        let (base, now) = (notebook(base), notebook(theirs));
        let rebased = Delta::between(&base, &notebook(ours))
            .rebase(&base, &now)
            .expect("it fits");
        assert_eq!(shown(&rebased.delta.apply(&now).expect("it fits")), expected);
        rebased
    }

    #[test]
    fn both_sides_survive() {
        let base = &["a:one", "b:two", "c:three"];
        let ours = &["a:one!", "x:new", "c:three"];
        let merged = assert_merges(
            base,
            ours,
            &["a:One", "b:two", "y:", "c:three"],
            &["a:One!", "x:new", "y:", "c:three"],
        );
        assert!(merged.kept.is_empty() && merged.gone.is_empty());
        let merged = assert_merges(base, ours, &["b:two typed"], &["b:two typed", "x:new"]);
        assert_eq!((merged.kept, merged.gone), (vec!["b".into()], vec!["a".into()]));
        let again = assert_merges(base, ours, ours, ours);
        assert!(again.delta.is_empty(), "what is done already is not done again");
        assert_merges(
            base,
            &["c:three", "a:one", "b:two"],
            &["b:two", "a:one", "c:3"],
            &["c:3", "b:two", "a:one"],
        );
    }

    #[test]
    fn chosen_cells_of_a_fork_are_taken_over() {
        let (base, fork) = (notebook(&["a:1", "b:2"]), notebook(&["a:10", "x:", "y:", "b:20"]));
        let now = notebook(&["a:1", "b:typed 2", "z:"]);
        let chosen = Delta::between(&base, &fork).only(&["y", "b"]);
        let rebased = chosen.rebase(&base, &now).expect("it fits");
        assert_eq!(
            shown(&rebased.delta.apply(&now).expect("it fits")),
            ["a:1", "y:", "b:typed 20", "z:"]
        );
    }

    #[test]
    fn what_others_set_stays_as_they_set_it() {
        let with = |metadata: Value| {
            of_cells([Cell {
                metadata: Json::new(&metadata),
                ..cell("a", "")
            }])
        };
        let (base, now) = (with(json!({ "x": 1, "y": 1 })), with(json!({ "x": 2, "y": 1, "w": 0 })));
        let delta = Delta::between(&base, &with(json!({ "x": 3, "y": 3, "z": 3 })));
        let merged = delta.rebase(&base, &now).expect("it fits").delta.apply(&now);
        assert_eq!(merged, Ok(with(json!({ "x": 2, "y": 3, "z": 3, "w": 0 }))));
    }

    #[test]
    fn texts_are_merged() {
        let (base, now) = (text("one two"), text("One two"));
        let delta = Delta::between(&base, &text("one 2"));
        assert_eq!(
            delta.rebase(&base, &now).expect("it fits").delta.apply(&now),
            Ok(text("One 2"))
        );
        assert!(delta.rebase(&text("other"), &now).is_err());
        assert!(delta.rebase(&base, &notebook(&[])).is_err());
    }

    proptest! {
        #[test]
        fn a_merge_fits_whatever_the_others_did(base in any_notebook(), ours in any_notebook(), theirs in any_notebook()) {
            let delta = Delta::between(&base, &ours);
            let rebased = delta.rebase(&base, &theirs).unwrap();
            let merged = rebased.delta.apply(&theirs).unwrap();
            for cell in theirs.cells() {
                let is_deleted = ours.cell(&cell.id).is_none() && base.cell(&cell.id).is_some_and(|old| old.source == cell.source);
                prop_assert_eq!(merged.cell(&cell.id).is_none(), is_deleted);
            }
            prop_assert_eq!(delta.rebase(&base, &base).unwrap().delta.apply(&base).unwrap(), ours.clone());
            prop_assert!(Delta::default().rebase(&base, &theirs).unwrap().delta.is_empty());
        }
    }
}
