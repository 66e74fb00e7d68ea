//! What a transaction changed, as it is seen at its end.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use yrs::{
    ArrayRef, BranchID, DeepObservable, Hook, MapRef, Observable, Out, ReadTxn, SharedRef, TextRef, TransactionMut,
    block::ID,
    types::{Change, Event, PathSegment},
};

use super::{OBSERVER, RoomKind, text_of};

/// Of so many parts of cells it is remembered whose they are; that of others is found out again.
const MAX_OWNERS: usize = 4096;

pub(super) enum Observed {
    Structure(Vec<Step>),
    Cell(Arc<str>),
    /// The same by its place, and the part of it that changed.
    CellAt(usize, ID),
    Text,
}

pub(super) enum Step {
    Keep(usize),
    Remove(usize),
    Add(Vec<CellEntry>),
}

/// A cell by its id, and where it is in the store. A reference could outlive its cell; this cannot.
#[derive(Debug, Clone)]
pub(super) struct CellEntry {
    pub(super) id: Arc<str>,
    pub(super) hook: Option<Hook<MapRef>>,
}

/// Looks at every transaction of a document.
#[derive(Clone, Default)]
pub(super) struct Observer(Arc<Mutex<Observations>>);

#[derive(Default)]
struct Observations {
    seen: Vec<Observed>,
    /// The cells that parts belong to, which never changes. To find it out one has to go through all cells before.
    owners: HashMap<ID, Arc<str>>,
}

impl Observer {
    pub(super) fn look_at(&self, kind: RoomKind, cells: &ArrayRef, source: &TextRef) {
        let observer = self.clone();
        match kind {
            RoomKind::Text => source.observe(OBSERVER, move |_, _| observer.lock().seen.push(Observed::Text)),
            RoomKind::Notebook => cells.observe_deep(OBSERVER, move |txn, events| {
                for event in events.iter() {
                    observer.note(event, txn);
                }
            }),
        }
    }

    /// What was seen since the last time.
    pub(super) fn take(&self) -> Vec<Observed> {
        std::mem::take(&mut self.lock().seen)
    }

    /// Remembers which cell a part belongs to.
    pub(super) fn belongs_to(&self, part: ID, cell: &Arc<str>) {
        let owners = &mut self.lock().owners;
        if owners.len() >= MAX_OWNERS {
            owners.clear();
        }
        owners.insert(part, Arc::clone(cell));
    }

    fn note(&self, event: &Event, txn: &TransactionMut<'_>) {
        let target = match event {
            Event::Array(array) => array.target().hook().id().clone(),
            Event::Map(map) => map.target().hook().id().clone(),
            Event::Text(text) => text.target().hook().id().clone(),
            _ => return,
        };
        let mut observations = self.lock();
        let observed = match (event, target) {
            (Event::Array(array), BranchID::Root(_)) => Observed::Structure(steps(array.delta(txn), txn)),
            (_, BranchID::Nested(part)) => match observations.owners.get(&part) {
                Some(cell) => Observed::Cell(Arc::clone(cell)),
                None => match event.path().front() {
                    Some(PathSegment::Index(index)) => Observed::CellAt(*index as usize, part),
                    _ => return,
                },
            },
            _ => return,
        };
        observations.seen.push(observed);
    }

    fn lock(&self) -> MutexGuard<'_, Observations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn steps(delta: &[Change], txn: &impl ReadTxn) -> Vec<Step> {
    let step = |change: &Change| match change {
        Change::Retain(count) => Step::Keep(*count as usize),
        Change::Removed(count) => Step::Remove(*count as usize),
        Change::Added(values) => Step::Add(values.iter().map(|value| entry(value, txn)).collect()),
    };
    delta.iter().map(step).collect()
}

fn entry(value: &Out, txn: &impl ReadTxn) -> CellEntry {
    match value {
        Out::YMap(cell) => CellEntry {
            id: text_of(cell, txn, "id").into(),
            hook: Some(cell.hook()),
        },
        // Something that is no cell still takes a place.
        _ => CellEntry {
            id: "".into(),
            hook: None,
        },
    }
}
