//! Reads a document for the recorder of versions: the parts that a change touches, and their content.

use std::{collections::HashMap, sync::Arc};

use history::{
    Author as By, Blob, CellKind, Content, Delta, Json, MAX_OUTPUTS, Notebook, Operation, Outputs, VersionId,
};
use yrs::{Any, Array, Map, MapRef, Out, ReadTxn, Text, Transact, Update};

use super::{
    super::{
        json::shared_to_json,
        notebook::{cell_metadata, execution_count, notebook_metadata, outputs, text_of},
        recorder::{Label, Mode, Parts, Prepared, Recorder, Touched},
    },
    Author, Document,
    observing::{Changes, Observed, Step},
};

/// Origin of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// From here.
    Local,
    /// From others: the clients that added something.
    Remote(Vec<u64>),
}

impl Document {
    /// Begins to record versions. Returns the outputs that the content mentions.
    pub(crate) fn start_recording(&mut self) -> Vec<Blob> {
        let (content, blobs) = self.read_content();
        self.recorder = Some(Box::new(Recorder::new(content)));
        blobs
    }

    /// Goes on recording what another document, which this one replaces, has recorded.
    pub(crate) fn take_recorder_of(&mut self, old: &mut Self) {
        old.record_edit();
        self.recorder = old.recorder.take();
    }

    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_deref()
    }

    pub(crate) fn recorder_mut(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// All that the document says, and the outputs that this mentions.
    pub(crate) fn read_content(&self) -> (Content, Vec<Blob>) {
        let mut content = match self.is_notebook() {
            true => Content::Notebook(Notebook {
                metadata: Json::empty(),
                cells: Vec::new(),
            }),
            false => Content::Text("".into()),
        };
        let (_, blobs) = self.follow(&mut content, &Touched::everything());
        (content, blobs)
    }

    /// Makes the latest edit of an agent a version, unless it is one. That takes longer than the edit itself, so that it is
    /// done when the edit is on its way to the server, but before anything else changes the document.
    pub(crate) fn record_edit(&mut self) {
        if let Some(mut recorder) = self.recorder.take() {
            if let Some((author, label)) = recorder.edit.take() {
                self.record_version(&mut recorder, author, label);
            }
            self.recorder = Some(recorder);
        }
    }

    /// Makes what others did a version now.
    pub(crate) fn flush_versions(&mut self) {
        self.record_edit();
        let revision = self.revision();
        if let Some(mut recorder) = self.recorder.take() {
            if let Some(author) = recorder.take_pending() {
                let label = Label {
                    revision,
                    ..Label::default()
                };
                self.record_version(&mut recorder, author, label);
            }
            self.recorder = Some(recorder);
        }
    }

    /// Makes a change that is an edit of an agent, and takes versions back if any are named.
    pub(crate) fn editing<T>(&mut self, undoes: &[VersionId], change: impl FnOnce(&mut Self) -> T) -> T {
        self.flush_versions();
        self.set_mode(Mode::Editing {
            undoes: undoes.to_vec(),
        });
        let changed = change(self);
        self.set_mode(Mode::Following);
        changed
    }

    /// Looks away until [`Self::resume_recording`], while the document is made another one.
    pub(crate) fn pause_recording(&mut self) {
        self.flush_versions();
        self.set_mode(Mode::Paused);
    }

    /// Compares all of the document with the last version. What differs was done by nobody known.
    pub(crate) fn resume_recording(&mut self) {
        let revision = self.revision();
        if let Some(mut recorder) = self.recorder.take() {
            recorder.resume();
            let label = Label {
                revision,
                ..Label::default()
            };
            self.record_version(&mut recorder, By::Outside, label);
            self.recorder = Some(recorder);
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        if let Some(recorder) = &mut self.recorder {
            recorder.mode = mode;
        }
    }

    fn record_version(&self, recorder: &mut Recorder, author: By, label: Label) {
        if !recorder.touched.has_edits() {
            return;
        }
        let touched = std::mem::take(&mut recorder.touched);
        let (delta, blobs) = self.follow(&mut recorder.content, &touched);
        recorder.push(author, delta, blobs, label);
    }

    /// Looks at what others did before something of somebody else is applied on top of it. If that changes nothing, it is
    /// forgotten again.
    pub(super) fn prepare_version(&mut self, update: &Update) -> Origin {
        self.record_edit();
        let Some(mut recorder) = self.recorder.take() else {
            return Origin::Remote(Vec::new());
        };
        let clients = self.new_clients(update);
        if recorder.is_by_others_than_pending(&clients, self.clock().now()) {
            let mut content = recorder.content.clone();
            let (delta, blobs) = self.follow(&mut content, &recorder.touched);
            recorder.prepared = Some(Prepared {
                delta,
                blobs,
                content,
                revision: self.revision(),
            });
        }
        self.recorder = Some(recorder);
        Origin::Remote(clients)
    }

    /// The clients of whom an update has something that is not here yet.
    fn new_clients(&self, update: &Update) -> Vec<u64> {
        let known = self.state_vector();
        let insertions = update.insertions(true);
        let is_new = |client: &yrs::block::ClientID| {
            let ranges = insertions.get(client);
            ranges.is_some_and(|ranges| ranges.iter().any(|(range, ())| range.end > known.get(client)))
        };
        insertions
            .client_ids()
            .filter(is_new)
            .map(|client| client.get())
            .collect()
    }

    /// Records what a change touches, before the order of cells follows it.
    pub(super) fn touch(&mut self, observed: &Observed) {
        let Some(recorder) = &mut self.recorder else { return };
        match observed {
            Observed::Structure(steps) => {
                recorder.touch_whole();
                for step in steps {
                    if let Step::Add(entries) = step {
                        for entry in entries {
                            recorder.touch_cell(&entry.id, Parts::ALL);
                        }
                    }
                }
            }
            Observed::Identified(_, id) => {
                recorder.touch_whole();
                recorder.touch_cell(id, Parts::ALL);
            }
            Observed::Source(id) | Observed::Metadata(id) => recorder.touch_cell(id, Parts::CONTENT),
            Observed::Run(id, _) | Observed::Rest(id) => recorder.touch_cell(id, Parts::OUTPUTS),
            Observed::PartAt(index, _, _, changes) => {
                if let Some(entry) = self.order.get(*index) {
                    let parts = match changes {
                        Changes::Source | Changes::Metadata => Parts::CONTENT,
                        Changes::RunBegin | Changes::RunEnd | Changes::Rest => Parts::OUTPUTS,
                    };
                    recorder.touch_cell(&entry.id, parts);
                }
            }
            Observed::Text => recorder.touch_whole(),
        }
    }

    /// Ends the notes of one transaction, which waits to become a version or part of one.
    pub(super) fn record_change(&mut self, author: &Author, origin: &Origin) {
        let Some(mut recorder) = self.recorder.take() else {
            return;
        };
        if self.observer.take_metadata_changed() {
            recorder.touch_metadata();
        }
        match (origin, author, &mut recorder.mode) {
            (Origin::Local, Author::Local(principal), Mode::Editing { undoes }) => {
                let label = Label {
                    tool: self.tool.clone(),
                    revision: self.revision(),
                    undoes: std::mem::take(undoes),
                };
                let author = By::Agent {
                    principal: Arc::clone(principal),
                    name: Arc::clone(principal),
                };
                if recorder.touched.has_edits() {
                    recorder.edit = Some((author, label));
                }
            }
            (Origin::Remote(clients), _, Mode::Following) => recorder.note_remote(clients, self.clock().now()),
            _ => {}
        }
        recorder.end_step();
        self.recorder = Some(recorder);
    }

    /// Makes a content what the document says, where it was touched. Returns what that changed, and the outputs that were read.
    fn follow(&self, content: &mut Content, touched: &Touched) -> (Delta, Vec<Blob>) {
        let mut blobs = Vec::new();
        let delta = match content {
            Content::Text(text) => self.follow_text(text, touched),
            Content::Notebook(notebook) if touched.all || touched.whole => {
                let now = Notebook {
                    metadata: self.history_metadata(&notebook.metadata),
                    cells: self.follow_cells(&notebook.cells, touched, &mut blobs),
                };
                let before = Content::Notebook(std::mem::replace(notebook, now.clone()));
                Delta::between(&before, &Content::Notebook(now))
            }
            Content::Notebook(notebook) => self.follow_parts(notebook, touched, &mut blobs),
        };
        let by_edit = |cell: &str| touched.parts_of(cell).outputs_by_edit;
        (delta.with_outputs_by_runs(by_edit), blobs)
    }

    fn follow_text(&self, text: &mut Arc<str>, touched: &Touched) -> Delta {
        if !touched.whole && !touched.all {
            return Delta::default();
        }
        let before = Content::Text(std::mem::replace(text, self.text().into()));
        Delta::between(&before, &Content::Text(Arc::clone(text)))
    }

    /// Looks at the touched cells only.
    fn follow_parts(&self, notebook: &mut Notebook, touched: &Touched, blobs: &mut Vec<Blob>) -> Delta {
        let txn = self.doc.transact();
        let mut operations = Vec::new();
        for (id, parts) in &touched.cells {
            let Some(place) = self.position_of(id) else { continue };
            // Cells that are there twice count once.
            let near = notebook.cells.get(place).filter(|cell| cell.id == *id).map(|_| place);
            let known = near.or_else(|| notebook.cells.iter().position(|cell| cell.id == *id));
            let map = self.order[place].hook.as_ref().and_then(|hook| hook.get(&txn));
            if let (Some(at), Some(map)) = (known, map) {
                let old = &notebook.cells[at];
                let (new, blob) = history_cell(&map, &txn, id, Some(old), *parts);
                operations.extend(old.operations_to(&new));
                blobs.extend(blob);
                notebook.cells[at] = Arc::new(new);
            }
        }
        drop(txn);
        let metadata = match touched.metadata {
            true => self.history_metadata(&notebook.metadata),
            false => notebook.metadata.clone(),
        };
        if metadata != notebook.metadata {
            operations.push(Operation::Metadata {
                cell: None,
                old: std::mem::replace(&mut notebook.metadata, metadata.clone()),
                new: metadata,
            });
        }
        Delta { operations }
    }

    /// All cells in their order, those that are as they were shared with what was. Of several with one id the first counts.
    fn follow_cells(
        &self,
        old: &[Arc<history::Cell>],
        touched: &Touched,
        blobs: &mut Vec<Blob>,
    ) -> Vec<Arc<history::Cell>> {
        let txn = self.doc.transact();
        let mut known: HashMap<&str, Option<&Arc<history::Cell>>> =
            old.iter().map(|cell| (&*cell.id, Some(cell))).collect();
        let mut cells: Vec<Arc<history::Cell>> = Vec::with_capacity(self.order.len());
        for entry in self.order.iter() {
            let Some(hook) = &entry.hook else { continue };
            let before = match known.insert(&entry.id, None) {
                // It is there twice.
                Some(None) => continue,
                Some(before) => before,
                None => None,
            };
            let parts = match before {
                Some(_) => touched.parts_of(&entry.id),
                None => Parts::ALL,
            };
            match before.filter(|_| !parts.content && !parts.outputs) {
                Some(same) => cells.push(Arc::clone(same)),
                None => {
                    let Some(map) = hook.get(&txn) else { continue };
                    let (mut new, blob) = history_cell(&map, &txn, &entry.id, before.map(|cell| &**cell), parts);
                    blobs.extend(blob);
                    // Neighbours mostly say the same of themselves, and take the memory of one.
                    new.metadata = shared(new.metadata, cells.last().map(|cell| &cell.metadata));
                    cells.push(match before.filter(|before| ***before == new) {
                        Some(same) => Arc::clone(same),
                        None => Arc::new(new),
                    });
                }
            }
        }
        cells
    }

    fn history_metadata(&self, old: &Json) -> Json {
        shared(
            Json::new(&notebook_metadata(&self.meta, &self.doc.transact())),
            Some(old),
        )
    }
}

/// A cell as history has it; what was not touched is as it was.
fn history_cell(
    map: &MapRef,
    txn: &impl ReadTxn,
    id: &Arc<str>,
    old: Option<&history::Cell>,
    parts: Parts,
) -> (history::Cell, Option<Blob>) {
    let (outputs, blob) = match old.filter(|_| !parts.outputs) {
        Some(old) => (old.outputs, None),
        None => history_outputs(map, txn),
    };
    let source = text_of(map, txn, "source");
    let cell = history::Cell {
        id: Arc::clone(id),
        kind: CellKind::parse(&text_of(map, txn, "cell_type")),
        source: match old.filter(|old| *old.source == *source) {
            Some(old) => Arc::clone(&old.source),
            None => source.into(),
        },
        metadata: shared(Json::new(&cell_metadata(map, txn)), old.map(|old| &old.metadata)),
        attachments: map
            .get(txn, "attachments")
            .map(|attachments| shared_to_json(&attachments, txn))
            .filter(|attachments| !attachments.is_null())
            .map(|attachments| shared(Json::new(&attachments), old.and_then(|old| old.attachments.as_ref()))),
        execution_count: match old.filter(|_| !parts.outputs) {
            Some(old) => old.execution_count,
            None => execution_count(map, txn).as_i64(),
        },
        outputs,
    };
    (cell, blob)
}

/// A value that shares its text with an equal one.
fn shared(new: Json, old: Option<&Json>) -> Json {
    match old {
        Some(old) if *old == new => old.clone(),
        _ => new,
    }
}

/// The outputs of a cell, unless they are too large to be kept; large ones are not even read.
fn history_outputs(map: &MapRef, txn: &impl ReadTxn) -> (Outputs, Option<Blob>) {
    let fits = match map.get(txn, "outputs") {
        Some(outputs) => remaining(&outputs, txn, MAX_OUTPUTS).is_some(),
        None => true,
    };
    match fits {
        true => Blob::of(&outputs(map, txn)),
        false => (Outputs::Omitted, None),
    }
}

/// The rest of a number of bytes after a value; none if it is larger.
fn remaining(value: &Out, txn: &impl ReadTxn, left: usize) -> Option<usize> {
    match value {
        Out::Any(any) => remaining_after(any, left),
        Out::YText(text) => left.checked_sub(text.len(txn) as usize),
        Out::YArray(items) => items.iter(txn).try_fold(left, |left, item| remaining(&item, txn, left)),
        Out::YMap(members) => members
            .iter(txn)
            .try_fold(left, |left, (_, member)| remaining(&member, txn, left)),
        _ => Some(left),
    }
}

fn remaining_after(any: &Any, left: usize) -> Option<usize> {
    match any {
        Any::String(text) => left.checked_sub(text.len()),
        Any::Array(items) => items.iter().try_fold(left, |left, item| remaining_after(item, left)),
        Any::Map(members) => members
            .values()
            .try_fold(left, |left, member| remaining_after(member, left)),
        _ => left.checked_sub(1),
    }
}
