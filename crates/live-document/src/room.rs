//! Handle of a room: reads from memory, edits that wait for their acknowledgement.

mod cell_ids;
mod forking;
mod history;
mod lifetime;
mod presence;
mod shown;

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use jupyter_client::{DocPath, JupyterServer, NewDocument};
use serde_json::Value;
use tokio::{sync::watch, time::timeout};
use tracing::Instrument;

pub use self::{
    cell_ids::{CellNameError, CellOrder, ShortIds},
    forking::TakenOver,
    history::{ContentRead, DeltaOptions, DeltaOutcome, Planned},
    shown::SourceShown,
};
use crate::{
    Activity, Cell, CellWrite, Edit, EditError, EditOptions, Fork, Host, Merged, OutputsWritten, QueuedCell, RoomError,
    RoomKind, RoomStatus, Source, SourceChange,
    core::{
        acknowledgement::{Lost, Ticket},
        awareness::Cursors,
        change_log::{Author, RunMark},
        document::{Applied, Document},
        policy::ACKNOWLEDGE_TIMEOUT,
        refusal::names,
        state::{Origin, State},
    },
    driver::{global_awareness, shared::Shared, task},
};

/// Number of cells that are named to who asked for one that is not there.
const MAX_NAMED: usize = 5;

/// Result of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    pub revision: String,
    /// True if the server has acknowledged it.
    pub acknowledged: bool,
    /// Parts of it that were merged with the work of others.
    pub merged: Vec<Merged>,
    /// Changes that it made to sources, or to the text.
    pub changes: Vec<SourceChange>,
}

/// Result of a write by a run.
pub struct CellWritten {
    pub outputs: Option<OutputsWritten>,
    pub incarnation: u64,
    pub acknowledgement: Acknowledgement,
}

/// Tells when the server has a change.
pub struct Acknowledgement(Ticket);

impl Acknowledgement {
    /// Waits for the server; returns whether it took the change, false if the document was closed before.
    pub async fn arrived(self) -> bool {
        matches!(self.0.await, Ok(Ok(())))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoomInfo {
    /// The gateway's own name for this opening of the document.
    pub session_id: String,
    pub file_id: String,
    pub path: DocPath,
    pub kind: RoomKind,
    pub status: RoomStatus,
    pub cell_count: usize,
}

/// Some cells with their positions, and the revision they belong to.
pub struct CellsRead {
    pub revision: String,
    pub cells: Vec<(usize, Cell)>,
    pub cell_count: usize,
}

impl CellOrder for Document {
    fn count(&self) -> usize {
        self.cell_count()
    }

    fn position_of(&self, cell: &str) -> Option<usize> {
        Self::position_of(self, cell)
    }

    fn starting_with<'a>(&'a self, prefix: &'a str) -> Vec<(usize, &'a str)> {
        Self::starting_with(self, prefix)
    }

    fn some_ids(&self) -> String {
        let ids = self.ids();
        let some = &ids[..ids.len().min(MAX_NAMED)];
        let short = ShortIds::of_some(self, some);
        let mut named: Vec<&str> = some.iter().map(|id| short.get(id)).collect();
        match named.is_empty() {
            true => named.push("none"),
            false if ids.len() > some.len() => named.push("..."),
            false => {}
        }
        named.join(", ")
    }
}

/// An open document. Clones are the same room.
#[derive(Clone)]
pub struct Room(pub(crate) Arc<Shared>);

impl Room {
    /// Opens a document and returns when it is complete in memory. Agents are shown there for `presence` after the last
    /// time they did something.
    pub async fn open(host: Arc<Host>, path: &DocPath, kind: RoomKind, presence: Duration) -> Result<Self, RoomError> {
        task::open(host, path, kind, None, presence).await
    }

    /// Opens a fork of a document, likewise.
    pub(crate) async fn open_fork(
        host: Arc<Host>,
        path: &DocPath,
        kind: RoomKind,
        fork: Fork,
        presence: Duration,
    ) -> Result<Self, RoomError> {
        task::open(host, path, kind, Some(fork), presence).await
    }

    pub fn info(&self) -> RoomInfo {
        let state = self.0.read();
        RoomInfo {
            session_id: self.0.session_id.clone(),
            file_id: state.file_id.clone(),
            path: state.path.clone(),
            kind: self.0.kind,
            status: self.0.status.borrow().clone(),
            cell_count: state.document.cell_count(),
        }
    }

    pub fn is_at(&self, path: &DocPath) -> bool {
        self.0.read().path == *path
    }

    pub fn server(&self) -> &Arc<JupyterServer> {
        self.0.server.server()
    }

    pub fn revision(&self) -> String {
        self.0.read().document.revision()
    }

    pub fn created(&self) -> Option<&str> {
        self.0.created.as_deref()
    }

    pub fn session_id(&self) -> &str {
        &self.0.session_id
    }

    /// The names of the people and agents who are known to be in the room.
    pub fn present(&self) -> Vec<String> {
        self.0.read().awareness.names()
    }

    /// Watch of the time of the last change; it moves with every edit, whoever made it.
    pub fn changes(&self) -> watch::Receiver<SystemTime> {
        self.0.read().document.changed.subscribe()
    }

    /// Watch of the document's path.
    pub fn paths(&self) -> watch::Receiver<DocPath> {
        self.0.read().paths.subscribe()
    }

    /// The metadata of a whole notebook.
    pub fn metadata(&self) -> Value {
        self.0.read().document.metadata()
    }

    /// Returns whether some cell of a notebook shows an error.
    pub fn has_errors(&self) -> bool {
        self.0.read().document.has_errors()
    }

    /// The last run of each cell as far as it was seen, in order, and since when runs and edits are seen.
    pub fn runs(&self) -> (Vec<RunMark>, SystemTime) {
        let document = &self.0.read().document;
        let log = document.log();
        let runs = document.ids().into_iter().map(|cell| log.run_of(cell));
        (runs.collect(), log.began())
    }

    /// The ids of cells that are chosen by position among those of the same moment.
    pub fn ids<E>(&self, choose: impl FnOnce(&dyn CellOrder) -> Result<Vec<usize>, E>) -> Result<Vec<String>, E> {
        let document = &self.0.read().document;
        let chosen = choose(document)?;
        Ok(chosen
            .into_iter()
            .filter_map(|position| document.id_at(position))
            .map(str::to_owned)
            .collect())
    }

    /// The short forms of the ids of some cells.
    pub fn short_ids_of(&self, cells: &[&str]) -> ShortIds {
        ShortIds::of_some(&self.0.read().document, cells)
    }

    /// The short forms of all cell ids.
    pub fn short_ids(&self) -> ShortIds {
        ShortIds::of_document(&self.0.read().document)
    }

    /// Cells by position, chosen among those of the same moment; positions beyond the end are left out.
    pub fn cells<E>(&self, choose: impl FnOnce(&dyn CellOrder) -> Result<Vec<usize>, E>) -> Result<CellsRead, E> {
        let document = &self.0.read().document;
        let cells = document.cells(choose(document)?);
        Ok(CellsRead {
            revision: document.revision(),
            cells,
            cell_count: document.cell_count(),
        })
    }

    pub fn cell_count(&self) -> usize {
        self.0.read().document.cell_count()
    }

    pub fn position_of(&self, cell: &str) -> Option<usize> {
        self.0.read().document.position_of(cell)
    }

    /// The sources of some cells with their places, and nothing else that cells have.
    pub fn sources(&self, positions: impl IntoIterator<Item = usize>) -> Vec<Source> {
        self.0.read().document.sources(positions)
    }

    /// The source of a cell as it stands now.
    pub fn source_of(&self, cell: &str) -> Option<String> {
        self.0.read().document.source(cell)
    }

    /// The outputs of a cell as nbformat has them.
    pub fn outputs_of(&self, cell: &str) -> Option<Vec<Value>> {
        let document = &self.0.read().document;
        let (_, cell) = document.cells(document.position_of(cell)).pop()?;
        Some(cell.outputs)
    }

    /// Yjs id (client and clock) of a cell; another cell of the same id has another.
    pub fn made(&self, cell: &str) -> Option<(u64, u32)> {
        self.0.read().document.made(cell)
    }

    /// The count of the last run of a cell; none while it runs, or if it never did.
    pub fn execution_count_of(&self, cell: &str) -> Option<i64> {
        self.0.read().document.execution_count_of(cell)
    }

    pub fn is_code(&self, cell: &str) -> bool {
        self.0.read().document.is_code(cell)
    }

    /// Names the kernel that the notebook is written for, as nbformat does.
    pub fn set_kernelspec(&self, author: &Arc<str>, spec: &Value) -> Result<(), RoomError> {
        let mut state = self.0.write();
        self.accepts(&state)?;
        let applied = state.document.set_kernelspec(author, spec);
        self.dispatch(&mut state, applied, Origin::Caller);
        Ok(())
    }

    /// The whole text of a text document and the revision it belongs to.
    pub fn text(&self) -> (String, String) {
        let state = self.0.read();
        (state.document.revision(), state.document.text())
    }

    /// The whole document in the form of its file, what is not saved yet included.
    pub fn content(&self) -> NewDocument {
        let state = self.0.read();
        match self.0.kind {
            RoomKind::Notebook => NewDocument::Notebook(state.document.notebook()),
            RoomKind::Text => NewDocument::Text(state.document.text()),
        }
    }

    /// The first position that means another cell than at a revision, because others inserted or removed some, and the
    /// names of those.
    pub fn moved_by_others(&self, revision: &str, author: &Arc<str>) -> Result<Option<(usize, String)>, EditError> {
        let state = self.0.read();
        let moved = state
            .document
            .moved_by_others(revision, &Author::Local(Arc::clone(author)))?;
        Ok(moved.map(|(first, by)| {
            let by: Vec<String> = by.iter().map(|other| state.names.of(other)).collect();
            (first, names(&by))
        }))
    }

    /// Applies edits in one transaction, merged with what others did since the author looked, and waits until the server
    /// has them.
    pub async fn edit(
        &self,
        author: &Arc<str>,
        name: &str,
        edits: &[Edit],
        options: EditOptions<'_>,
    ) -> Result<Edited, RoomError> {
        self.wait_for_file_check().await;
        self.connected().await?;
        let (ticket, edited) = {
            let mut state = self.0.write();
            self.accepts(&state)?;
            self.can_be_saved(&state)?;
            state.names.record(Author::Local(Arc::clone(author)), name);
            let plan = self
                .reconcile(&state, author, options, |reconciler| reconciler.plan(edits))
                .inspect_err(|error| self.record_refused(&state, author, error))?;
            let touched = state.document.touched_by(&plan.edits);
            let mut applied = state
                .document
                .by_tool(options.tool, |document| document.apply_local(author, &plan.edits))?;
            self.record_known(&state, author, plan.known);
            self.show(&mut state, author, name, Activity::Editing, applied.cursors.take());
            let (ticket, revision) = self.dispatch(&mut state, applied, Origin::Caller);
            let edited = Edited {
                revision,
                acknowledged: false,
                merged: plan.merged,
                changes: state.document.changes_since(touched),
            };
            (ticket, edited)
        };
        self.acknowledged(ticket, edited).await
    }

    /// Waits until the server has an edit, for as long as a caller may be kept.
    async fn acknowledged(&self, ticket: Acknowledgement, mut edited: Edited) -> Result<Edited, RoomError> {
        edited.acknowledged = self.wait_for(ticket).await?;
        Ok(edited)
    }

    /// Waits until the server has an edit; returns whether it does.
    async fn wait_for(&self, ticket: Acknowledgement) -> Result<bool, RoomError> {
        let span = tracing::debug_span!("acknowledgement", otel.name = "send edits");
        match timeout(ACKNOWLEDGE_TIMEOUT, ticket.0).instrument(span).await {
            Ok(Ok(Ok(()))) => Ok(true),
            Ok(Ok(Err(Lost))) => Err(self.lost()),
            Ok(Err(_)) | Err(_) => Ok(false),
        }
    }

    /// Writes the state and outputs of a run to its cell without waiting for the server; none if the cell is gone.
    pub fn write_cell(
        &self,
        author: &Arc<str>,
        name: &str,
        cell: &str,
        write: &CellWrite,
    ) -> Result<Option<CellWritten>, RoomError> {
        let mut state = self.0.write();
        self.accepts(&state)?;
        let Some((mut applied, outputs)) = state.document.write_cell(author, cell, write) else {
            return Ok(None);
        };
        let cursors = applied.cursors.take().filter(|_| write.begin);
        // A run that is over before anybody could notice is not worth a word.
        let activity = match write.end {
            Some(_) => state.awareness.activity_after_run(author),
            None => Activity::Running,
        };
        self.show(&mut state, author, name, activity, cursors);
        let origin = match write.begin && write.end.is_some() {
            true => Origin::WholeRun,
            false => Origin::Run,
        };
        let (acknowledgement, _) = self.dispatch(&mut state, applied, origin);
        Ok(Some(CellWritten {
            outputs,
            incarnation: state.incarnation,
            acknowledgement,
        }))
    }

    /// Returns whether changes wait to be sent, since the server is busy.
    pub fn has_unsent_changes(&self) -> bool {
        self.0.read().has_changes()
    }

    /// The code cells among some that look neither queued nor running, with their counts.
    pub fn idle_cells(&self, cells: &[String]) -> Vec<QueuedCell> {
        self.0.read().document.idle_cells(cells)
    }

    /// The cells that look queued or running, whoever runs them.
    pub fn running_cells(&self) -> Vec<String> {
        self.0.read().document.running_cells()
    }

    /// Shows code cells as queued.
    pub fn mark_queued(&self, author: &Arc<str>, cells: &[QueuedCell]) -> Result<(), RoomError> {
        self.write_state(|document| document.mark_queued(author, cells))
    }

    /// Shows cells that were queued and will not run as they were before.
    pub fn unmark_queued(&self, author: &Arc<str>, cells: &[QueuedCell]) -> Result<(), RoomError> {
        self.write_state(|document| document.unmark_queued(author, cells))
    }

    fn write_state(&self, change: impl FnOnce(&mut Document) -> Option<Applied>) -> Result<(), RoomError> {
        let mut state = self.0.write();
        self.accepts(&state)?;
        if let Some(applied) = change(&mut state.document) {
            self.dispatch(&mut state, applied, Origin::Run);
        }
        Ok(())
    }

    /// Shows what an agent does here, although it writes nothing.
    pub fn show_activity(&self, author: &Arc<str>, name: &str, activity: Activity) {
        if self.0.read().awareness.is_shown(author, activity, Instant::now()) {
            return;
        }
        self.show(&mut self.0.write(), author, name, activity, None);
        self.0.bell.notify_one();
    }

    /// Shows that what an agent executed here has ended.
    pub fn end_execution(&self, author: &Arc<str>) {
        self.0.write().awareness.end_execution(author);
        global_awareness::end_execution(&self.0.server, author);
        self.0.bell.notify_one();
    }

    /// Shows an agent to the people in the room, and in the list of who is online.
    fn show(&self, state: &mut State, author: &Arc<str>, name: &str, activity: Activity, cursors: Option<Cursors>) {
        let visit = self.visit(author, name, activity);
        if self.0.server.availabilities.hides(author) {
            state.awareness.leave(author);
            return;
        }
        state.awareness.show(&visit, cursors);
        global_awareness::enter(&self.0.server, &visit, &state.path);
    }

    /// Removes the outputs of all cells; how many had any.
    pub fn clear_outputs(&self, author: &Arc<str>, name: &str, tool: Option<&str>) -> Result<usize, RoomError> {
        let mut state = self.0.write();
        self.accepts(&state)?;
        state.names.record(Author::Local(Arc::clone(author)), name);
        let (applied, cleared) = state.document.by_tool(tool, |document| document.clear_outputs(author));
        self.show(&mut state, author, name, Activity::Editing, None);
        self.dispatch(&mut state, applied, Origin::Caller);
        Ok(cleared.len())
    }

    /// Counts the documents that this room has had: the server may come back with another one, in which what was
    /// written without waiting may be missing.
    pub fn incarnation(&self) -> u64 {
        self.0.read().incarnation
    }

    fn accepts(&self, state: &State) -> Result<(), RoomError> {
        if let RoomStatus::Disconnected(why) = &*self.0.status.borrow() {
            return Err(why.clone());
        }
        if state.is_full() {
            return Err(RoomError::Busy {
                server: self.0.server.name().to_owned(),
                path: state.path.to_string(),
            });
        }
        Ok(())
    }

    /// Jupyter takes and acknowledges edits of a file that it can never write.
    fn can_be_saved(&self, state: &State) -> Result<(), RoomError> {
        match state.writable {
            true => Ok(()),
            false => Err(RoomError::WriteProtected {
                server: self.0.server.name().to_owned(),
                path: state.path.to_string(),
            }),
        }
    }

    /// Sends a change that was made here.
    fn dispatch(&self, state: &mut State, applied: Applied, origin: Origin) -> (Acknowledgement, String) {
        state.changed(applied.update, origin);
        self.0.bell.notify_one();
        (Acknowledgement(applied.ticket), applied.revision)
    }
}
