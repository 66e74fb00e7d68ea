//! What a transaction changed, as it is seen at its end.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
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
    /// A cell that has another id now, by its place.
    Identified(usize, Arc<str>),
    /// What a cell says, or of which kind it is.
    Source(Arc<str>),
    /// A part of the cell at a place, by which it is known from now on, and whether that changed what it says.
    PartAt(usize, ID, Part, bool),
    /// Outputs, counts and whatever else runs write into a cell.
    Rest(Arc<str>),
    Text,
}

/// What a shared part of a document is to its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Cell,
    Source,
    Other,
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
    /// The cells that parts belong to, which hardly ever changes. To find it out one has to go through all cells before.
    owners: HashMap<ID, (Part, Arc<str>)>,
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
    pub(super) fn belongs_to(&self, id: ID, part: Part, cell: &Arc<str>) {
        let owners = &mut self.lock().owners;
        if owners.len() >= MAX_OWNERS {
            owners.clear();
        }
        owners.insert(id, (part, Arc::clone(cell)));
    }

    /// The cell whose source a part is, if that is remembered.
    pub(super) fn owner(&self, id: &ID) -> Option<Arc<str>> {
        match self.lock().owners.get(id) {
            Some((Part::Source, cell)) => Some(Arc::clone(cell)),
            _ => None,
        }
    }

    fn note(&self, event: &Event, txn: &TransactionMut<'_>) {
        let target = match event {
            Event::Array(array) => array.target().hook().id().clone(),
            Event::Map(map) => map.target().hook().id().clone(),
            Event::Text(text) => text.target().hook().id().clone(),
            _ => return,
        };
        let mut observations = self.lock();
        if let (Event::Map(map), [PathSegment::Index(index)]) = (event, event.path().make_contiguous())
            && map.keys(txn).contains_key("id")
        {
            // It belongs to another now, whatever was remembered.
            observations.owners.clear();
            let id = text_of(map.target(), txn, "id").into();
            observations.seen.push(Observed::Identified(*index as usize, id));
            return;
        }
        let observed = match (event, target) {
            (Event::Array(array), BranchID::Root(_)) => Observed::Structure(steps(array.delta(txn), txn)),
            (_, BranchID::Nested(id)) => match observations.owners.get(&id) {
                Some((part, cell)) if changes_source(event, *part, txn) => Observed::Source(Arc::clone(cell)),
                Some((_, cell)) => Observed::Rest(Arc::clone(cell)),
                None => {
                    let path = event.path();
                    let Some(PathSegment::Index(index)) = path.front() else {
                        return;
                    };
                    let part = part_at(&path);
                    Observed::PartAt(*index as usize, id, part, changes_source(event, part, txn))
                }
            },
            _ => return,
        };
        observations.seen.push(observed);
    }

    fn lock(&self) -> MutexGuard<'_, Observations> {
        self.0.lock()
    }
}

/// What stands at a path that begins at the cells.
fn part_at(path: &VecDeque<PathSegment>) -> Part {
    match (path.len(), path.back()) {
        (1, _) => Part::Cell,
        (2, Some(PathSegment::Key(key))) if &**key == "source" => Part::Source,
        _ => Part::Other,
    }
}

/// Whether what a cell says is changed by an event of one of its parts. Some clients replace the text as a whole.
fn changes_source(event: &Event, part: Part, txn: &TransactionMut<'_>) -> bool {
    match (part, event) {
        (Part::Source, _) => true,
        (Part::Cell, Event::Map(cell)) => {
            let keys = cell.keys(txn);
            ["source", "cell_type", "id"].iter().any(|key| keys.contains_key(*key))
        }
        (Part::Cell | Part::Other, _) => false,
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
