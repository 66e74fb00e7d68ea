//! Changes of a transaction, as observed at its end.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use yrs::{
    Any, ArrayRef, BranchID, DeepObservable, Hook, MapRef, Observable, Out, ReadTxn, SharedRef, TextRef,
    TransactionMut,
    block::ID,
    types::{Change, EntryChange, Event, PathSegment},
};

use super::{
    super::changes::{ChangeKind, ChangeStream, Draft},
    Author, Document, OBSERVER, RoomKind,
    recording::Origin,
    text_of,
};

/// Of so many parts of cells it is remembered whose they are; that of others is found out again.
const MAX_OWNERS: usize = 4096;

pub(super) enum Observed {
    Structure(Vec<Step>),
    /// A cell that has another id now, by its place.
    Identified(usize, Arc<str>),
    /// The source or the type of a cell.
    Source(Arc<str>),
    /// A part of the cell at a place, by which it is known from now on, and what that changed.
    PartAt(usize, ID, Part, Changes),
    /// A run of a cell begins, or has ended.
    Run(Arc<str>, Changes),
    /// A cell's metadata or attachments.
    Metadata(Arc<str>),
    /// Outputs, counts and whatever else runs write into a cell.
    Rest(Arc<str>),
    Text,
}

/// Role of a shared type in its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Cell,
    Source,
    Metadata,
    Other,
}

/// Change of a cell by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Changes {
    Source,
    /// A run of it begins.
    RunBegin,
    /// It has the count of a run.
    RunEnd,
    Metadata,
    Rest,
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
    /// The metadata of the notebook was changed, which is no revision.
    metadata_changed: bool,
}

impl Observer {
    pub(super) fn observe(&self, kind: RoomKind, cells: &ArrayRef, source: &TextRef, meta: &MapRef) {
        let observer = self.clone();
        meta.observe_deep(OBSERVER, move |_, _| observer.0.lock().metadata_changed = true);
        let observer = self.clone();
        match kind {
            RoomKind::Text => source.observe(OBSERVER, move |_, _| observer.0.lock().seen.push(Observed::Text)),
            RoomKind::Notebook => cells.observe_deep(OBSERVER, move |txn, events| {
                for event in events.iter() {
                    observer.note(event, txn);
                }
            }),
        }
    }

    /// Takes what was observed since the last call.
    pub(super) fn take(&self) -> Vec<Observed> {
        std::mem::take(&mut self.0.lock().seen)
    }

    /// True if the metadata of the notebook was changed since the last time.
    pub(super) fn take_metadata_changed(&self) -> bool {
        std::mem::take(&mut self.0.lock().metadata_changed)
    }

    /// Remembers which cell a part belongs to.
    pub(super) fn belongs_to(&self, id: ID, part: Part, cell: &Arc<str>) {
        let owners = &mut self.0.lock().owners;
        if owners.len() >= MAX_OWNERS {
            owners.clear();
        }
        owners.insert(id, (part, Arc::clone(cell)));
    }

    /// The cell whose source a part is, if that is remembered.
    pub(super) fn owner(&self, id: &ID) -> Option<Arc<str>> {
        match self.0.lock().owners.get(id) {
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
        let mut observations = self.0.lock();
        // To find out where something is, one has to go through all cells before it.
        if let Event::Map(map) = event
            && map.keys(txn).contains_key("id")
            && let [PathSegment::Index(index)] = event.path().make_contiguous()
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
                Some((part, cell)) => match changes(event, *part, txn) {
                    Changes::Source => Observed::Source(Arc::clone(cell)),
                    run @ (Changes::RunBegin | Changes::RunEnd) => Observed::Run(Arc::clone(cell), run),
                    Changes::Metadata => Observed::Metadata(Arc::clone(cell)),
                    Changes::Rest => Observed::Rest(Arc::clone(cell)),
                },
                None => {
                    let path = event.path();
                    let Some(PathSegment::Index(index)) = path.front() else {
                        return;
                    };
                    let part = part_at(&path);
                    Observed::PartAt(*index as usize, id, part, changes(event, part, txn))
                }
            },
            _ => return,
        };
        observations.seen.push(observed);
    }
}

impl Document {
    /// Makes a change by which those who follow changes are told the tool.
    pub(crate) fn by_tool<T>(&mut self, tool: Option<&str>, change: impl FnOnce(&mut Self) -> T) -> T {
        self.tool = tool.map(Into::into);
        let changed = change(self);
        self.tool = None;
        changed
    }

    /// Brings the order of cells and the log up to what the observer saw.
    pub(super) fn note_changes(&mut self, author: &Author, is_typing: bool, origin: &Origin) {
        let observed = self.observer.take();
        if observed.is_empty() {
            return self.record_change(author, origin);
        }
        self.log.advance();
        self.mark_changed();
        let mut draft = self.stream.as_ref().and_then(ChangeStream::begin);
        for change in observed {
            if let Some(draft) = &mut draft {
                self.describe(draft, &change);
            }
            self.touch(&change);
            match change {
                Observed::Structure(steps) => {
                    self.reorder(steps, author, is_typing);
                    self.log.whole_changed(author, is_typing);
                }
                Observed::Identified(index, id) => self.rename(index, id, author),
                Observed::Source(id) => self.note_cell(&id, Changes::Source, author, is_typing),
                Observed::Run(id, run) => self.note_cell(&id, run, author, is_typing),
                Observed::PartAt(index, id, part, changes) => {
                    if let Some(cell) = self.order.get(index).map(|entry| Arc::clone(&entry.id)) {
                        self.observer.belongs_to(id, part, &cell);
                        self.note_cell(&cell, changes, author, is_typing);
                    }
                }
                Observed::Metadata(_) | Observed::Rest(_) => {}
                Observed::Text => self.log.whole_changed(author, is_typing),
            }
        }
        self.publish(draft, author);
        self.record_change(author, origin);
    }

    /// Records that this document takes the place of another, by whoever rebuilt it.
    pub(crate) fn mark_adopted(&mut self) {
        self.mark_changed();
        let mut draft = self.stream.as_ref().and_then(ChangeStream::begin);
        if let Some(draft) = &mut draft {
            draft.add(
                ChangeKind::Structure,
                self.order.iter().map(|entry| Arc::clone(&entry.id)),
            );
        }
        self.publish(draft, &Author::Unknown);
    }

    fn publish(&self, draft: Option<Draft>, author: &Author) {
        if let (Some(stream), Some(draft)) = (&self.stream, draft) {
            let (revision, time) = (self.log.revision(), self.clock().wall());
            // Whoever follows may come to read it only when it is another one again.
            let calling = match draft.kind() {
                ChangeKind::Outputs => Vec::new(),
                ChangeKind::Source | ChangeKind::Structure => self.calling(draft.cells()),
            };
            stream.publish(draft, author, self.tool.as_ref(), revision, calling, time);
        }
    }

    fn note_cell(&mut self, cell: &Arc<str>, changes: Changes, author: &Author, is_typing: bool) {
        match changes {
            Changes::Source => {
                self.log.cell_changed(cell, author, is_typing);
                self.log.mark_edited(cell);
            }
            Changes::RunBegin => self.log.mark_run(cell),
            Changes::RunEnd => self.log.mark_run_ended(cell),
            Changes::Metadata | Changes::Rest => {}
        }
    }

    /// Adds what was seen to a change, before the order of cells follows it.
    fn describe(&self, draft: &mut Draft, observed: &Observed) {
        let id_at = |index: usize| self.order.get(index).map(|entry| Arc::clone(&entry.id));
        match observed {
            Observed::Structure(steps) => {
                let mut at = 0;
                for step in steps {
                    match step {
                        Step::Keep(count) => at += count,
                        Step::Remove(count) => {
                            draft.add(ChangeKind::Structure, (at..at + count).filter_map(id_at));
                            at += count;
                        }
                        Step::Add(entries) => {
                            let ids = entries.iter().map(|entry| Arc::clone(&entry.id));
                            draft.add(ChangeKind::Structure, ids);
                        }
                    }
                }
            }
            Observed::Identified(_, id) => draft.add(ChangeKind::Structure, [Arc::clone(id)]),
            Observed::Source(id) => draft.add(ChangeKind::Source, [Arc::clone(id)]),
            Observed::PartAt(index, _, _, Changes::Source) => draft.add(ChangeKind::Source, id_at(*index)),
            Observed::PartAt(index, ..) => draft.add(ChangeKind::Outputs, id_at(*index)),
            Observed::Run(id, _) | Observed::Metadata(id) | Observed::Rest(id) => {
                draft.add(ChangeKind::Outputs, [Arc::clone(id)]);
            }
            Observed::Text => draft.add(ChangeKind::Source, []),
        }
    }

    fn rename(&mut self, index: usize, id: Arc<str>, author: &Author) {
        let Some(old) = self.order.rename(index, &id) else {
            return;
        };
        let hook = self.order.get(index).and_then(|entry| entry.hook.clone());
        if let Some(hook) = hook.filter(|_| !author.is_local()) {
            self.renamed.push((Arc::clone(&old), hook));
        }
        self.log.cell_removed(&old);
        self.log.cell_changed(&id, author, false);
    }

    fn reorder(&mut self, steps: Vec<Step>, author: &Author, is_typing: bool) {
        let mut at = 0;
        let mut removed = HashMap::new();
        let mut added = Vec::new();
        let kept = |step: &Step| match step {
            Step::Keep(count) => Some(*count),
            Step::Remove(_) | Step::Add(_) => None,
        };
        self.log.moved(author, steps.iter().map_while(kept).sum());
        for step in steps {
            match step {
                Step::Keep(count) => at += count,
                Step::Remove(count) => {
                    let end = (at + count).min(self.order.len());
                    for entry in self.order.remove(at.min(end)..end) {
                        if let Some(history) = self.log.cell_removed(&entry.id) {
                            removed.insert(Arc::clone(&entry.id), history);
                        }
                        if !author.is_local() {
                            self.journal.forget(&entry.id);
                        }
                    }
                }
                Step::Add(entries) => {
                    if let Some(duplicated) = &mut self.duplicated {
                        let again = entries.iter().filter(|entry| self.order.contains(&entry.id));
                        duplicated.extend(again.map(|entry| Arc::clone(&entry.id)));
                    }
                    let count = entries.len();
                    added.extend(entries.iter().map(|entry| Arc::clone(&entry.id)));
                    let place = at.min(self.order.len());
                    self.order.insert(place, entries);
                    at += count;
                }
            }
        }
        // Noted last, since a cell may be replaced by one with the same id.
        for id in added {
            if let Some(history) = removed.remove(&id) {
                self.log.cell_replaced(&id, history);
            }
            self.log.cell_changed(&id, author, is_typing);
        }
    }
}

/// Part of a cell at a path that begins at the cells.
fn part_at(path: &VecDeque<PathSegment>) -> Part {
    match (path.len(), path.get(1)) {
        (1, _) => Part::Cell,
        (2, Some(PathSegment::Key(key))) if &**key == "source" => Part::Source,
        (_, Some(PathSegment::Key(key))) if matches!(&**key, "metadata" | "attachments") => Part::Metadata,
        _ => Part::Other,
    }
}

/// Change of a cell by an event of one of its parts. Some clients replace the text as a whole. A run begins when the
/// count of the one before is removed.
fn changes(event: &Event, part: Part, txn: &TransactionMut<'_>) -> Changes {
    match (part, event) {
        (Part::Source, _) => Changes::Source,
        (Part::Cell, Event::Map(cell)) => {
            let keys = cell.keys(txn);
            if ["source", "cell_type", "id"].iter().any(|key| keys.contains_key(*key)) {
                return Changes::Source;
            }
            let new = |key: &str| match keys.get(key) {
                Some(EntryChange::Inserted(value) | EntryChange::Updated(_, value)) => Some(value),
                _ => None,
            };
            match new("execution_count") {
                Some(Out::Any(Any::Null | Any::Undefined)) => Changes::RunBegin,
                Some(_) => Changes::RunEnd,
                None if keys.contains_key("metadata") || keys.contains_key("attachments") => Changes::Metadata,
                None => Changes::Rest,
            }
        }
        (Part::Metadata, _) => Changes::Metadata,
        (Part::Cell | Part::Other, _) => Changes::Rest,
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
