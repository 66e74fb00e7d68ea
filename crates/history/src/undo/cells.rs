//! Cells from which nothing is ever removed, and their places.

use std::{collections::HashMap, sync::Arc};

use super::{
    register::{By, Members, Register, counts},
    sequence::Sequence,
};
use crate::{Cell, CellKind, Content, Json, Notebook, Operation, Outputs, Place, Unfitting, text};

/// All cells that a notebook ever had.
#[derive(Debug)]
pub(super) struct Cells {
    metadata: Members,
    cells: Vec<CellPast>,
    by_id: HashMap<Arc<str>, usize>,
    /// Places in the order of cells. A cell has one for each time it was put somewhere, of which the last that counts is
    /// its own.
    slots: Vec<Slot>,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    cell: usize,
    by: By,
    /// Later ones have a greater one.
    serial: usize,
}

/// A cell with all that was ever done to it.
#[derive(Debug)]
struct CellPast {
    /// Content when it was first seen.
    first: Arc<Cell>,
    /// True if nothing but its outputs was changed since.
    is_untouched: bool,
    exists: Register<bool>,
    source: Sequence,
    kind: Register<CellKind>,
    metadata: Members,
    attachments: Register<Option<Json>>,
    outputs: Register<(Outputs, Option<i64>)>,
}

impl CellPast {
    fn new(cell: &Arc<Cell>, by: By) -> Self {
        let mut exists = Register::new(by.is_none());
        if by.is_some() {
            exists.write(by, true);
        }
        Self {
            first: Arc::clone(cell),
            is_untouched: true,
            exists,
            source: Sequence::new(&cell.source, by),
            kind: Register::new(cell.kind),
            metadata: Members::new(cell.metadata.clone()),
            attachments: Register::new(cell.attachments.clone()),
            outputs: Register::new((cell.outputs, cell.execution_count)),
        }
    }

    fn is_visible(&self, active: &[bool]) -> bool {
        match self.exists.last(active) {
            None if *self.exists.value(active) => true,
            // Characters of others that were written since keep it.
            None => self.source.shows_later_than(None, active),
            Some((_, true)) => true,
            Some((by, false)) => self.source.shows_later_than(*by, active),
        }
    }

    fn cell(&self, active: &[bool]) -> Arc<Cell> {
        let (outputs, execution_count) = *self.outputs.value(active);
        let is_first =
            self.is_untouched && (outputs, execution_count) == (self.first.outputs, self.first.execution_count);
        if is_first && *self.exists.value(active) {
            return Arc::clone(&self.first);
        }
        Arc::new(Cell {
            id: Arc::clone(&self.first.id),
            kind: *self.kind.value(active),
            source: self.source.text(active).into(),
            metadata: self.metadata.value(active),
            attachments: self.attachments.value(active).clone(),
            execution_count,
            outputs,
        })
    }

    /// Makes what is visible of it another cell with its id.
    fn become_cell(&mut self, cell: &Cell, by: By, active: &[bool]) -> Result<(), Unfitting> {
        let now = self.cell(active);
        self.is_untouched = false;
        self.exists.write(by, true);
        self.source
            .splice(&text::between(&now.source, &cell.source), by, active)?;
        self.metadata.write(by, &now.metadata, &cell.metadata);
        if now.kind != cell.kind {
            self.kind.write(by, cell.kind);
        }
        if now.attachments != cell.attachments {
            self.attachments.write(by, cell.attachments.clone());
        }
        if (now.outputs, now.execution_count) != (cell.outputs, cell.execution_count) {
            self.outputs.write(by, (cell.outputs, cell.execution_count));
        }
        Ok(())
    }
}

impl Cells {
    pub(super) fn new(notebook: &Notebook) -> Self {
        let mut cells = Self {
            metadata: Members::new(notebook.metadata.clone()),
            cells: Vec::new(),
            by_id: HashMap::new(),
            slots: Vec::new(),
        };
        for cell in &notebook.cells {
            if !cells.by_id.contains_key(&cell.id) {
                let at = cells.slots.len();
                cells.add(at, cell, None);
            }
        }
        cells
    }

    fn add(&mut self, at: usize, cell: &Arc<Cell>, by: By) {
        let index = self.cells.len();
        self.cells.push(CellPast::new(cell, by));
        self.by_id.insert(Arc::clone(&cell.id), index);
        self.put(at, index, by);
    }

    fn put(&mut self, at: usize, cell: usize, by: By) {
        let serial = self.slots.len();
        self.slots.insert(at, Slot { cell, by, serial });
    }

    /// Applies one operation of a version.
    pub(super) fn perform(&mut self, operation: &Operation, by: By, active: &[bool]) -> Result<(), Unfitting> {
        let by = by.filter(|_| !operation.is_by_run());
        match operation {
            Operation::Text { .. } => Err(Unfitting::new("it is one of a text")),
            Operation::Insert { at, cell } => self.insert(at, cell, by, active),
            Operation::Delete { cell, .. } => {
                self.visible(&cell.id, active)?.exists.write(by, false);
                Ok(())
            }
            Operation::Move { cell, to, .. } => {
                let index = self.index(cell, active)?;
                let at = self.place(to, active)?;
                self.put(at, index, by);
                Ok(())
            }
            Operation::Metadata { cell: None, old, new } => {
                self.metadata.write(by, old, new);
                Ok(())
            }
            Operation::Outputs { cell, new, .. } => {
                self.visible(cell, active)?.outputs.write(by, *new);
                Ok(())
            }
            _ => self.change(operation, by, active),
        }
    }

    fn change(&mut self, operation: &Operation, by: By, active: &[bool]) -> Result<(), Unfitting> {
        let cell = self.visible(operation.cell().unwrap_or_default(), active)?;
        cell.is_untouched = false;
        match operation {
            Operation::Source { splices, .. } => {
                if !*cell.exists.value(active) {
                    // It was there for its characters only. Who goes on writing in it keeps it, whatever becomes of them.
                    cell.exists.write(by, true);
                }
                cell.source.splice(splices, by, active)?;
            }
            Operation::Kind { new, .. } => cell.kind.write(by, *new),
            Operation::Metadata { old, new, .. } => cell.metadata.write(by, old, new),
            Operation::Attachments { new, .. } => cell.attachments.write(by, new.clone()),
            _ => {}
        }
        Ok(())
    }

    /// Puts a cell somewhere. One that was there before is the same again, with its characters' past.
    fn insert(&mut self, at: &Place, cell: &Arc<Cell>, by: By, active: &[bool]) -> Result<(), Unfitting> {
        let at = self.place(at, active)?;
        match self.by_id.get(&cell.id).copied() {
            None => self.add(at, cell, by),
            Some(index) if self.cells[index].is_visible(active) => {
                return Err(Unfitting::new(format!("there is a cell {:?} already", cell.id)));
            }
            Some(index) => {
                self.cells[index].become_cell(cell, by, active)?;
                self.put(at, index, by);
            }
        }
        Ok(())
    }

    fn index(&self, id: &str, active: &[bool]) -> Result<usize, Unfitting> {
        let index = self.by_id.get(id).copied();
        index
            .filter(|index| self.cells[*index].is_visible(active))
            .ok_or_else(|| Unfitting::new(format!("there is no cell {id:?}")))
    }

    fn visible(&mut self, id: &str, active: &[bool]) -> Result<&mut CellPast, Unfitting> {
        let index = self.index(id, active)?;
        Ok(&mut self.cells[index])
    }

    /// The index of the slot after that of a visible cell.
    fn place(&self, place: &Place, active: &[bool]) -> Result<usize, Unfitting> {
        let Some(after) = &place.after else { return Ok(0) };
        let index = self.index(after, active)?;
        let own = self.slots.iter().enumerate().filter(|(_, slot)| slot.cell == index);
        let valid = own.filter(|(_, slot)| counts(slot.by, active));
        let last = valid
            .max_by_key(|(_, slot)| slot.serial)
            .or_else(|| self.first_slot(index));
        Ok(last.map_or(0, |(at, _)| at + 1))
    }

    /// Place of a cell that stays although no active version has put it anywhere.
    fn first_slot(&self, cell: usize) -> Option<(usize, &Slot)> {
        let own = self.slots.iter().enumerate().filter(|(_, slot)| slot.cell == cell);
        own.min_by_key(|(_, slot)| slot.serial)
    }

    /// The visible cells.
    pub(super) fn notebook(&self, active: &[bool]) -> Notebook {
        let mut own: Vec<Option<Slot>> = vec![None; self.cells.len()];
        for slot in &self.slots {
            let known = &mut own[slot.cell];
            let is_better = known.is_none_or(|known| match (counts(slot.by, active), counts(known.by, active)) {
                (true, true) => slot.serial > known.serial,
                (true, false) => true,
                (false, true) => false,
                (false, false) => slot.serial < known.serial,
            });
            if is_better {
                *known = Some(*slot);
            }
        }
        let is_own = |slot: &&Slot| own[slot.cell].is_some_and(|known| known.serial == slot.serial);
        let visible = self.slots.iter().filter(is_own).map(|slot| &self.cells[slot.cell]);
        Notebook {
            metadata: self.metadata.value(active),
            cells: visible
                .filter(|cell| cell.is_visible(active))
                .map(|cell| cell.cell(active))
                .collect(),
        }
    }

    pub(super) fn content(&self, active: &[bool]) -> Content {
        Content::Notebook(self.notebook(active))
    }

    pub(super) fn source(&self, id: &str) -> Option<&Sequence> {
        self.by_id.get(id).map(|index| &self.cells[*index].source)
    }
}
