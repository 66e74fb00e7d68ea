//! One execution: its request, its progress and its outputs. The core changes it; any number of callers look
//! at it and wait for it. Does no I/O.

mod cell_run;
mod copy;
mod progress;
mod record;
mod recording;
mod snapshot;
mod trace;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::DocPath;
use live_document::pool::Account;
use parking_lot::{Mutex, MutexGuard};
use store::{ExecutionKind, ExecutionStatus};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use tracing::Span;

pub use self::copy::{CopiedCell, Keep, NotebookCopy};
pub use self::snapshot::{CellSnapshot, Snapshot};
pub(crate) use self::{
    cell_run::{CellRun, Outcome, RunEvent, RunState, pages},
    copy::PendingCopy,
    trace::Trace,
};
use super::{actor::Actor, code_gate::CodeGate, notebook::Notebook};

/// Owner of an execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub tenant: Arc<str>,
    pub principal: Arc<str>,
    /// Display name, as collaborators see it.
    pub name: String,
    /// Of the tenant.
    pub max_open_rooms: usize,
}

impl Owner {
    pub fn actor(&self) -> Actor {
        Actor::Agent {
            principal: Arc::clone(&self.principal),
            name: self.name.clone(),
        }
    }

    pub(crate) fn account(&self) -> Account {
        Account {
            tenant: Arc::clone(&self.tenant),
            principal: None,
            max_open_rooms: self.max_open_rooms,
        }
    }

    pub(crate) fn owns(&self, execution: &Execution) -> bool {
        self.tenant == execution.owner.tenant && self.principal == execution.owner.principal
    }
}

/// Cells or code that somebody runs.
pub struct Execution {
    pub(crate) id: String,
    pub(crate) owner: Owner,
    /// The name of the Jupyter server.
    pub(crate) server: Arc<str>,
    pub(crate) notebook: Option<Arc<Notebook>>,
    pub(crate) kind: ExecutionKind,
    pub(crate) stop_on_error: bool,
    /// Kept per cell.
    max_output_bytes: usize,
    /// Time when an earlier process was last known to listen to it.
    pub(crate) last_noted: Option<SystemTime>,
    /// Final check of the code that is sent.
    pub(crate) gate: Option<CodeGate>,
    /// Of a kernel that is no notebook's.
    pub(crate) kernel_name: Option<String>,
    /// An earlier process of the gateway began it.
    pub(crate) is_resumed: bool,
    pub(crate) created_at: SystemTime,
    /// Its spans in the trace of the call that requested it.
    pub(crate) trace: Trace,
    state: Mutex<State>,
    /// Counts changes that somebody may wait for.
    changes: watch::Sender<u64>,
}

pub(crate) struct State {
    pub(crate) status: ExecutionStatus,
    pub(crate) kernel_id: Option<String>,
    pub(crate) kernel_session: Option<String>,
    pub(crate) started_at: Option<SystemTime>,
    pub(crate) ended_at: Option<SystemTime>,
    pub(crate) reason: Option<String>,
    /// The question that callers are shown.
    pub(crate) question: Option<Question>,
    /// Number of questions so far.
    asked: usize,
    /// True if some of its output may not have been received.
    has_gaps: bool,
    /// Remarks for its owner beside its outcome.
    remarks: Vec<String>,
    /// True once somebody cancelled it, whatever state its cells are in.
    is_cancelled: bool,
    /// Notices for its owner that have not been delivered yet.
    notices: Vec<String>,
    /// True while the kernel is busy with code of somebody else.
    awaits_kernel: bool,
    /// A copy that is to be kept when it has run.
    pub(crate) pending_copy: Option<PendingCopy>,
    /// The file in which a copy was kept.
    pub(crate) kept: Option<String>,
    pub(crate) cells: Vec<CellRun>,
    /// No cell before this one is queued.
    next: usize,
    /// The cells before this one may have been sent, as far as the record tells.
    pub(crate) sent_before: usize,
    /// Time of the last record of its progress.
    recorded_at: Option<Instant>,
}

/// Question that running code asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub prompt: String,
    /// The answer must not be shown.
    pub password: bool,
    /// Number of earlier questions of the execution.
    pub number: usize,
}

/// A run of an earlier process, by which it is found again.
pub(crate) struct EarlierRun {
    pub(crate) position: usize,
    pub(crate) msg_id: String,
    pub(crate) kernel_id: String,
    pub(crate) session: String,
}

impl State {
    fn new(cells: Vec<CellRun>) -> Self {
        Self {
            status: ExecutionStatus::Queued,
            kernel_id: None,
            kernel_session: None,
            started_at: None,
            ended_at: None,
            reason: None,
            question: None,
            asked: 0,
            has_gaps: false,
            remarks: Vec::new(),
            is_cancelled: false,
            notices: Vec::new(),
            awaits_kernel: false,
            pending_copy: None,
            kept: None,
            cells,
            next: 0,
            sent_before: 0,
            recorded_at: None,
        }
    }

    fn hide_question(&mut self) {
        if self.status == ExecutionStatus::InputRequired {
            self.status = ExecutionStatus::Running;
        }
        self.question = None;
    }
}

impl Execution {
    /// An execution of cells of a notebook, or of code, which then is its only "cell".
    pub(crate) fn new(owner: Owner, server: &str, notebook: Option<Arc<Notebook>>, cells: Vec<CellRun>) -> Self {
        let is_code = cells.iter().any(|cell| cell.code.is_some());
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            owner,
            server: server.into(),
            notebook,
            kind: match is_code {
                true => ExecutionKind::Code,
                false => ExecutionKind::Cells,
            },
            stop_on_error: true,
            max_output_bytes: cells.first().map_or(usize::MAX, |cell| cell.outputs.limit()),
            last_noted: None,
            gate: None,
            kernel_name: None,
            is_resumed: false,
            created_at: SystemTime::now(),
            trace: Trace::default(),
            state: Mutex::new(State::new(cells)),
            changes: watch::Sender::new(0),
        }
    }

    /// Describes it in a list of executions under way.
    pub(crate) fn describe(&self) -> String {
        match self.path() {
            Some(path) => format!("{} in {path}", self.id),
            None => format!("{} in a kernel of its own", self.id),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn status(&self) -> ExecutionStatus {
        self.lock().status
    }

    /// Its span; none once it is over.
    pub fn span(&self) -> Span {
        self.trace.span()
    }

    /// Time since it was requested.
    pub(crate) fn age(&self) -> Duration {
        self.created_at.elapsed().unwrap_or_default()
    }

    /// Returns whether its outputs go into a fork of the notebook.
    pub(crate) fn is_in_fork(&self) -> bool {
        self.notebook
            .as_ref()
            .is_some_and(|notebook| notebook.fork_id().is_some())
    }

    pub fn path(&self) -> Option<DocPath> {
        self.notebook.as_ref().map(|notebook| notebook.path())
    }

    pub fn question(&self) -> Option<Question> {
        self.lock().question.clone()
    }

    /// Waits until the execution has ended, but not longer than `patience`.
    pub async fn ended(&self, patience: Duration) {
        let mut changes = self.changes.subscribe();
        let ended = changes.wait_for(|_| self.status().is_finished());
        let _ = timeout(patience, ended).await;
    }

    /// Follows changes; a value is there at once and for each change, of which some may be skipped.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The last line of its output.
    pub fn latest_line(&self) -> Option<String> {
        let state = self.lock();
        state.cells.iter().rev().find_map(|cell| cell.outputs.latest_line())
    }

    /// The number of cells that have ended, and of all cells.
    pub fn progress(&self) -> (usize, usize) {
        let state = self.lock();
        let ended = |cell: &&CellRun| cell.state.status().is_finished();
        (state.cells.iter().filter(ended).count(), state.cells.len())
    }

    /// Takes the notices for its owner, which are delivered once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notices)
    }

    pub(crate) fn is_awaiting_kernel(&self) -> bool {
        self.lock().awaits_kernel
    }

    /// The size of the code that it holds until it has run.
    pub(crate) fn code_bytes(&self) -> usize {
        let state = self.lock();
        let codes = state.cells.iter().filter_map(|cell| cell.code.as_ref());
        codes.map(String::len).sum()
    }

    /// The position of the cell that runs, if it runs one.
    pub(crate) fn running_cell(&self) -> Option<usize> {
        let state = self.lock();
        let mut cells = state.cells.iter().filter(|cell| !cell.cell_id.is_empty());
        cells
            .find(|cell| cell.state.status() == ExecutionStatus::Running)
            .map(|cell| cell.index)
    }

    /// Returns whether a cell is among its own.
    pub(crate) fn has_cell(&self, id: &str) -> bool {
        self.lock().cells.iter().any(|cell| cell.cell_id == id)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Looks at one of its cells, or changes it, under the lock.
    pub(crate) fn with_cell<T>(&self, position: usize, use_cell: impl FnOnce(&mut CellRun) -> T) -> Option<T> {
        self.lock().cells.get_mut(position).map(use_cell)
    }

    /// Wakes those who wait for changes.
    pub(crate) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}
