//! Application of a delta's operations, one after another.

use std::{collections::HashSet, sync::Arc};

use super::Unfitting;
use crate::{Cell, Content, Notebook, Operation, Place, Splice, text};

pub(super) fn apply<'o>(
    operations: impl Iterator<Item = &'o Operation> + Clone,
    content: &Content,
) -> Result<Content, Unfitting> {
    match content {
        Content::Text(text) => apply_to_text(operations, text).map(Content::Text),
        Content::Notebook(notebook) => apply_to_notebook(operations, notebook).map(Content::Notebook),
    }
}

fn apply_to_text<'o>(operations: impl Iterator<Item = &'o Operation>, text: &Arc<str>) -> Result<Arc<str>, Unfitting> {
    let mut text = Arc::clone(text);
    for operation in operations {
        let Operation::Text { splices } = operation else {
            return Err(Unfitting::new("it is one of a notebook"));
        };
        text = spliced(&text, splices)?;
    }
    Ok(text)
}

fn spliced(text: &str, splices: &[Splice]) -> Result<Arc<str>, Unfitting> {
    text::apply(text, splices)
        .map(Into::into)
        .ok_or_else(|| Unfitting::new("a text is another one"))
}

fn apply_to_notebook<'o>(
    operations: impl Iterator<Item = &'o Operation> + Clone,
    notebook: &Notebook,
) -> Result<Notebook, Unfitting> {
    let mut cells = Cells::new(notebook, operations.clone());
    let mut metadata = notebook.metadata.clone();
    for operation in operations {
        match operation {
            Operation::Text { .. } => return Err(Unfitting::new("it is one of a text")),
            Operation::Insert { at, cell } => cells.insert(at, cell)?,
            Operation::Delete { cell, .. } => cells.delete(cell)?,
            Operation::Move { cell, to, .. } => cells.relocate(cell, to)?,
            Operation::Metadata { cell: None, new, .. } => metadata = new.clone(),
            Operation::Source { cell, splices } => {
                let cell = cells.get(cell)?;
                cell.source = spliced(&cell.source, splices)?;
            }
            Operation::Kind { cell, new, .. } => cells.get(cell)?.kind = *new,
            Operation::Metadata {
                cell: Some(cell), new, ..
            } => cells.get(cell)?.metadata = new.clone(),
            Operation::Attachments { cell, new, .. } => cells.get(cell)?.attachments.clone_from(new),
            Operation::Outputs { cell, new, .. } => {
                let cell = cells.get(cell)?;
                (cell.outputs, cell.execution_count) = *new;
            }
        }
    }
    Ok(Notebook {
        metadata,
        cells: cells.order,
    })
}

/// Cells that are being changed.
struct Cells {
    order: Vec<Arc<Cell>>,
    /// The ids, if some are to be inserted.
    ids: HashSet<Arc<str>>,
    /// Place of the last change; the next is often beside it.
    last: usize,
}

impl Cells {
    fn new<'o>(notebook: &Notebook, mut operations: impl Iterator<Item = &'o Operation>) -> Self {
        let is_insertion = |operation: &Operation| matches!(operation, Operation::Insert { .. });
        let ids = match operations.any(is_insertion) {
            true => notebook.cells.iter().map(|cell| Arc::clone(&cell.id)).collect(),
            false => HashSet::new(),
        };
        Self {
            order: notebook.cells.clone(),
            ids,
            last: 0,
        }
    }

    fn find(&mut self, id: &str) -> Result<usize, Unfitting> {
        let at =
            position(&self.order, id, self.last).ok_or_else(|| Unfitting::new(format!("there is no cell {id:?}")))?;
        self.last = at;
        Ok(at)
    }

    fn get(&mut self, id: &str) -> Result<&mut Cell, Unfitting> {
        let at = self.find(id)?;
        Ok(Arc::make_mut(&mut self.order[at]))
    }

    fn insert(&mut self, at: &Place, cell: &Arc<Cell>) -> Result<(), Unfitting> {
        let at = self.index(at)?;
        if !self.ids.insert(Arc::clone(&cell.id)) {
            return Err(Unfitting::new(format!("there is a cell {:?} already", cell.id)));
        }
        self.order.insert(at, Arc::clone(cell));
        self.last = at;
        Ok(())
    }

    fn delete(&mut self, cell: &Cell) -> Result<(), Unfitting> {
        let at = self.find(&cell.id)?;
        if self.order[at].source != cell.source {
            return Err(Unfitting::new(format!(
                "the source of cell {:?} is another one",
                cell.id
            )));
        }
        self.order.remove(at);
        self.ids.remove(&cell.id);
        Ok(())
    }

    fn relocate(&mut self, id: &str, to: &Place) -> Result<(), Unfitting> {
        let from = self.find(id)?;
        let cell = self.order.remove(from);
        let to = self.index(to)?;
        self.order.insert(to, cell);
        Ok(())
    }

    fn index(&mut self, place: &Place) -> Result<usize, Unfitting> {
        match &place.after {
            None => Ok(0),
            Some(after) => Ok(self.find(after)? + 1),
        }
    }
}

/// Position of a cell; it is looked for beside `near` first.
fn position(cells: &[Arc<Cell>], id: &str, near: usize) -> Option<usize> {
    let is_at = |at: &usize| cells.get(*at).is_some_and(|cell| *cell.id == *id);
    let beside = near.saturating_sub(1)..near.saturating_add(3);
    beside
        .into_iter()
        .find(is_at)
        .or_else(|| cells.iter().position(|cell| *cell.id == *id))
}

impl Unfitting {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}
