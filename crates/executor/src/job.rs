//! One execution: what was asked, how far it is, and what it has put out. Its worker changes it; any number of
//! callers look at it and wait for it.

mod snapshot;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use jupyter_client::{DocPath, JupyterServer, kernel::KernelLink};
use live_document::{QueuedCell, Room, pool::Account};
use serde_json::Value;
use store::{CellRecord, ExecutionKind, ExecutionRecord, ExecutionStatus, LeftBehind, StoredQuestion, Terms};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

pub use self::snapshot::{CellSnapshot, Snapshot};
use super::{actor::Actor, outputs::Outputs, worker::Command};

/// What is stored of the outputs of one execution, so that it can be asked for after it is forgotten here.
const MAX_STORED_OUTPUT_BYTES: usize = 1024 * 1024;

/// What is said of an execution whose outputs may have gaps.
const GAPS: &str = "output may be missing: the connection to the kernel was lost for a while";

/// Whose an execution is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub tenant: Arc<str>,
    pub principal: Arc<str>,
    /// What collaborators see.
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

    pub(super) fn account(&self) -> Account {
        Account {
            tenant: Arc::clone(&self.tenant),
            principal: None,
            max_open_rooms: self.max_open_rooms,
        }
    }

    pub(super) fn owns(&self, execution: &Execution) -> bool {
        self.tenant == execution.owner.tenant && self.principal == execution.owner.principal
    }
}

pub struct Execution {
    pub(super) id: String,
    pub(super) owner: Owner,
    pub(super) server: Arc<JupyterServer>,
    pub(super) kind: ExecutionKind,
    pub(super) stop_on_error: bool,
    /// Kept per cell.
    max_output_bytes: usize,
    /// When an earlier process was last known to listen to it.
    pub(super) last_noted: Option<SystemTime>,
    /// Of a kernel that is no notebook's.
    pub(super) kernel_name: Option<String>,
    /// An earlier process of the gateway began it.
    pub(super) is_resumed: bool,
    pub(super) created_at: SystemTime,
    state: Mutex<State>,
    /// Counts changes that somebody may wait for.
    changes: watch::Sender<u64>,
}

pub(super) struct State {
    pub(super) status: ExecutionStatus,
    pub(super) path: Option<DocPath>,
    pub(super) kernel_id: Option<String>,
    pub(super) kernel_session: Option<String>,
    pub(super) started_at: Option<SystemTime>,
    pub(super) ended_at: Option<SystemTime>,
    pub(super) reason: Option<String>,
    pub(super) question: Option<Question>,
    /// How many questions there were.
    asked: usize,
    /// Something that it put out may not have been heard.
    has_gaps: bool,
    /// What its owner should know beside how it ended.
    remarks: Vec<String>,
    /// Somebody does not want it any more, however its steps take that.
    unwanted: bool,
    /// What its owner must know and has not been told yet.
    notices: Vec<String>,
    /// The kernel is busy with what somebody else sent to it.
    awaits_kernel: bool,
    pub(super) steps: Vec<Step>,
    /// Where its worker is told what becomes of it.
    pub(super) worker: Option<mpsc::Sender<Command>>,
}

/// One piece of code of an execution: a cell, or code that is in no notebook.
pub(super) struct Step {
    pub(super) cell_id: String,
    pub(super) index: usize,
    /// Code that is in no notebook. A cell's is read when its turn comes.
    pub(super) code: Option<String>,
    pub(super) msg_id: Option<String>,
    pub(super) status: ExecutionStatus,
    pub(super) execution_count: Option<i64>,
    /// The count of the run before, which its cell shows until something is written of this one.
    pub(super) replaces: Option<i64>,
    /// Its cell is shown as queued.
    queued: bool,
    pub(super) outputs: Outputs,
    /// What widgets captured of it, which is shown there and not in its cell.
    pub(super) captured: Outputs,
    /// The header of the request by which it asks something at this moment.
    pub(super) asks: Option<StoredQuestion>,
    /// How often the kernel dropped it.
    dropped: u32,
    /// Its cell was gone or no code any more when its turn came, which is no fault of the others.
    passed_over: bool,
}

/// What running code asks the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub prompt: String,
    /// The answer must not be shown.
    pub password: bool,
    /// How many the execution had asked before.
    pub number: usize,
}

impl Execution {
    pub(super) fn new(
        owner: Owner,
        server: Arc<JupyterServer>,
        path: Option<DocPath>,
        kind: ExecutionKind,
        steps: Vec<Step>,
        stop_on_error: bool,
    ) -> Self {
        Self {
            id: uuid::Uuid::new_v4().to_string(),
            owner,
            server,
            kind,
            stop_on_error,
            max_output_bytes: steps.first().map_or(usize::MAX, |step| step.outputs.limit()),
            last_noted: None,
            kernel_name: None,
            is_resumed: false,
            created_at: SystemTime::now(),
            state: Mutex::new(State {
                status: ExecutionStatus::Queued,
                path,
                kernel_id: None,
                kernel_session: None,
                started_at: None,
                ended_at: None,
                reason: None,
                question: None,
                asked: 0,
                has_gaps: false,
                remarks: Vec::new(),
                unwanted: false,
                notices: Vec::new(),
                awaits_kernel: false,
                steps,
                worker: None,
            }),
            changes: watch::Sender::new(0),
        }
    }

    /// An execution that an earlier process of the gateway began and did not see the end of.
    pub(super) fn resumed(left: LeftBehind, server: Arc<JupyterServer>, limit: usize) -> Self {
        let LeftBehind { record, noted_at } = left;
        let (kept, terms) = (record.outputs.unwrap_or_default(), record.terms);
        let limit = terms.max_output_bytes.unwrap_or(limit);
        let step = |(position, cell): (usize, CellRecord)| {
            let mut step = Step::cell(cell.cell_id, cell.index, limit);
            (step.msg_id, step.status, step.execution_count) = (cell.msg_id, cell.status, cell.execution_count);
            (step.replaces, step.queued, step.asks) = (cell.replaces, cell.queued, cell.asks);
            if let Some(outputs) = kept.get(position).and_then(Value::as_array) {
                step.outputs.adopt(outputs);
            }
            step
        };
        Self {
            id: record.execution_id,
            owner: Owner {
                name: terms.name.unwrap_or_else(|| record.principal.clone()),
                tenant: record.tenant.into(),
                principal: record.principal.into(),
                max_open_rooms: terms.max_open_rooms.unwrap_or(usize::MAX),
            },
            server,
            kind: record.kind,
            stop_on_error: !terms.ignores_errors,
            max_output_bytes: limit,
            last_noted: noted_at,
            kernel_name: None,
            is_resumed: true,
            created_at: record.created_at,
            state: Mutex::new(State {
                status: match record.status {
                    // It is asked again when the answer can be passed on.
                    ExecutionStatus::InputRequired => ExecutionStatus::Running,
                    status => status,
                },
                path: record.path.and_then(|path| DocPath::parse(&path).ok()),
                kernel_id: record.kernel_id,
                kernel_session: record.kernel_session,
                started_at: record.started_at,
                ended_at: None,
                reason: None,
                question: None,
                asked: 0,
                has_gaps: false,
                remarks: Vec::new(),
                unwanted: false,
                notices: Vec::new(),
                awaits_kernel: false,
                steps: record.cells.into_iter().enumerate().map(step).collect(),
                worker: None,
            }),
            changes: watch::Sender::new(0),
        }
    }

    /// The question that an earlier process heard and nobody has answered.
    pub(super) fn open_question(&self) -> Option<StoredQuestion> {
        self.lock().steps.iter().find_map(|step| step.asks.clone())
    }

    /// Names it in a list of what is under way.
    pub(super) fn describe(&self) -> String {
        match self.path() {
            Some(path) => format!("{} in {path}", self.id),
            None => format!("{} in a kernel of its own", self.id),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn server(&self) -> &Arc<JupyterServer> {
        &self.server
    }

    pub fn status(&self) -> ExecutionStatus {
        self.lock().status
    }

    pub fn path(&self) -> Option<DocPath> {
        self.lock().path.clone()
    }

    pub fn question(&self) -> Option<Question> {
        self.lock().question.clone()
    }

    pub fn snapshot(&self) -> Snapshot {
        let state = self.lock();
        let cell = |step: &Step| CellSnapshot {
            cell_id: step.cell_id.clone(),
            index: step.index,
            status: step.status,
            execution_count: step.execution_count,
            outputs: [step.outputs.to_json(), step.captured.to_json()].concat(),
            missing: step.outputs.missing().characters() + step.captured.missing().characters(),
        };
        Snapshot {
            execution_id: self.id.clone(),
            server: self.server.name().to_owned(),
            path: state.path.as_ref().map(ToString::to_string),
            kind: self.kind,
            kernel_id: state.kernel_id.clone(),
            status: state.status,
            reason: state.reason.clone(),
            question: state.question.clone(),
            cells: state.steps.iter().map(cell).collect(),
            created_at: self.created_at,
            started_at: state.started_at,
            ended_at: state.ended_at,
        }
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

    /// The last line that was put out.
    pub fn latest_line(&self) -> Option<String> {
        let state = self.lock();
        state.steps.iter().rev().find_map(|step| step.outputs.latest_line())
    }

    /// How many cells have ended, and of how many.
    pub fn progress(&self) -> (usize, usize) {
        let state = self.lock();
        let ended = state.steps.iter().filter(|step| step.status.is_finished()).count();
        (ended, state.steps.len())
    }

    /// The first step that is still to run.
    pub(super) fn next_step(&self) -> Option<usize> {
        let state = self.lock();
        state
            .steps
            .iter()
            .position(|step| step.status == ExecutionStatus::Queued)
    }

    /// Cells that wait for their turn and are not shown so.
    pub(super) fn unmarked(&self) -> Vec<String> {
        let state = self.lock();
        let waits = |step: &&Step| step.status == ExecutionStatus::Queued && step.code.is_none() && !step.queued;
        state
            .steps
            .iter()
            .filter(waits)
            .map(|step| step.cell_id.clone())
            .collect()
    }

    /// Notes that cells are shown as queued.
    pub(super) fn mark_queued(&self, cells: &[QueuedCell]) {
        let mut state = self.lock();
        for step in state
            .steps
            .iter_mut()
            .filter(|step| step.status == ExecutionStatus::Queued)
        {
            if let Some(cell) = cells.iter().find(|cell| cell.id == step.cell_id) {
                (step.queued, step.replaces) = (true, cell.execution_count);
            }
        }
    }

    /// Cells that are shown as queued and will not run, or all of them.
    pub(super) fn take_queued(&self, all: bool) -> Vec<QueuedCell> {
        let mut state = self.lock();
        let shown = state
            .steps
            .iter_mut()
            .filter(|step| step.queued && (all || step.status.is_finished()));
        shown
            .map(|step| {
                step.queued = false;
                QueuedCell {
                    id: step.cell_id.clone(),
                    execution_count: step.replaces,
                }
            })
            .collect()
    }

    /// Notes what the owner must know.
    pub(super) fn notify(&self, notice: String) {
        self.lock().notices.push(notice);
    }

    /// What the owner must know; it is told once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notices)
    }

    /// The cell of a step, and its code if that is in no notebook.
    pub(super) fn code_of(&self, step: usize) -> (String, Option<String>) {
        let state = self.lock();
        let step = state.steps.get(step);
        step.map(|step| (step.cell_id.clone(), step.code.clone()))
            .unwrap_or_default()
    }

    /// Its turn has come, although its kernel may have to be started first.
    pub(super) fn takes_its_turn(&self) -> bool {
        let mut state = self.lock();
        let is_new = state.status == ExecutionStatus::Queued;
        if is_new {
            state.status = ExecutionStatus::Running;
            state.started_at.get_or_insert_with(SystemTime::now);
        }
        is_new
    }

    /// Waits for a kernel that is busy with what somebody else sent to it.
    pub(super) fn set_awaiting_kernel(&self) {
        let mut state = self.lock();
        let is_new = !std::mem::replace(&mut state.awaits_kernel, true);
        if state.steps.iter().all(|step| step.msg_id.is_none()) {
            (state.status, state.started_at) = (ExecutionStatus::Queued, None);
        }
        drop(state);
        if is_new {
            self.changed();
        }
    }

    pub(super) fn is_awaiting_kernel(&self) -> bool {
        self.lock().awaits_kernel
    }

    /// The size of the code that it holds until it has run.
    pub(super) fn code_bytes(&self) -> usize {
        let state = self.lock();
        state
            .steps
            .iter()
            .filter_map(|step| step.code.as_ref())
            .map(String::len)
            .sum()
    }

    /// The position of the cell that runs, if it runs one.
    pub(super) fn running_cell(&self) -> Option<usize> {
        let state = self.lock();
        let mut cells = state.steps.iter().filter(|step| !step.cell_id.is_empty());
        cells
            .find(|step| step.status == ExecutionStatus::Running)
            .map(|step| step.index)
    }

    pub(super) fn began(&self, step: usize, msg_id: &str, link: &KernelLink, path: Option<DocPath>) {
        let mut state = self.lock();
        state.awaits_kernel = false;
        state.kernel_id = Some(link.kernel_id().to_owned());
        state.kernel_session = Some(link.session_id().to_owned());
        state.path = path.or(state.path.take());
        if let Some(step) = state.steps.get_mut(step) {
            step.status = ExecutionStatus::Running;
            step.msg_id = Some(msg_id.to_owned());
            step.queued = false;
        }
    }

    /// A step that the kernel dropped waits for another turn; tells how often that has happened. Its cell may be shown as
    /// running already.
    pub(super) fn requeue(&self, step: usize, is_written: bool) -> u32 {
        let mut state = self.lock();
        let Some(step) = state.steps.get_mut(step) else {
            return u32::MAX;
        };
        step.status = ExecutionStatus::Queued;
        if is_written {
            (step.queued, step.replaces) = (true, None);
        }
        step.dropped += 1;
        step.dropped
    }

    /// Takes what an earlier process wrote into the notebook for its own.
    pub(super) fn adopt_outputs(&self, room: &Room, except: Option<usize>) {
        let mut state = self.lock();
        for (position, step) in state.steps.iter_mut().enumerate() {
            if step.msg_id.is_none() || except == Some(position) {
                continue;
            }
            if let Some(outputs) = room.outputs_of(&step.cell_id) {
                step.outputs.adopt(&outputs);
            }
        }
    }

    pub(super) fn asks(&self, step: usize, mut question: Question, header: &Value, asked_at: SystemTime) {
        let mut state = self.lock();
        if let Some(step) = state.steps.get_mut(step) {
            step.asks = Some(StoredQuestion {
                prompt: question.prompt.clone(),
                password: question.password,
                header: header.clone(),
                asked_at: Some(asked_at),
            });
        }
        question.number = state.asked;
        state.asked += 1;
        state.status = ExecutionStatus::InputRequired;
        state.question = Some(question);
        drop(state);
        self.changed();
    }

    /// The question was answered, or will not be.
    pub(super) fn goes_on(&self) {
        let mut state = self.lock();
        if state.status == ExecutionStatus::InputRequired {
            state.status = ExecutionStatus::Running;
        }
        state.question = None;
        for step in &mut state.steps {
            step.asks = None;
        }
        drop(state);
        self.changed();
    }

    pub(super) fn end_step(&self, step: usize, status: ExecutionStatus, reason: Option<String>) {
        let mut state = self.lock();
        state.question = None;
        if state.status == ExecutionStatus::InputRequired {
            state.status = ExecutionStatus::Running;
        }
        if let Some(step) = state.steps.get_mut(step) {
            (step.status, step.asks, step.code) = (status, None, None);
        }
        if state.reason.is_none() {
            state.reason = reason;
        }
    }

    /// Passes over a step whose cell is not there any more, or is no code.
    pub(super) fn pass_over(&self, step: usize, reason: &str) {
        self.end_step(step, ExecutionStatus::Cancelled, Some(reason.to_owned()));
        if let Some(step) = self.lock().steps.get_mut(step) {
            step.passed_over = true;
        }
    }

    /// Ends the steps that are still to run, if there are any.
    pub(super) fn end_rest(&self, status: ExecutionStatus, reason: Option<String>) {
        let mut state = self.lock();
        let mut any = false;
        for step in state
            .steps
            .iter_mut()
            .filter(|step| step.status == ExecutionStatus::Queued)
        {
            // Its code is not needed any more, and may be large.
            (step.status, step.code) = (status, None);
            any = true;
        }
        if any && state.reason.is_none() {
            state.reason = reason;
        }
    }

    /// Notes that nothing more of it is wanted.
    pub(super) fn is_unwanted_from_now_on(&self) {
        self.lock().unwanted = true;
    }

    pub(super) fn is_unwanted(&self) -> bool {
        self.lock().unwanted
    }

    /// Ends the execution as its steps ended: by the first that did not complete.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        let all_passed_over = state.steps.iter().all(|step| step.passed_over);
        let counts = |step: &&Step| all_passed_over || !step.passed_over;
        let mut statuses = state.steps.iter().filter(counts).map(|step| step.status);
        let status = statuses.find(|status| *status != ExecutionStatus::Completed);
        state.status = status.unwrap_or(ExecutionStatus::Completed);
        state.ended_at = Some(SystemTime::now());
        if state.has_gaps && state.status != ExecutionStatus::Lost {
            state.remarks.push(GAPS.to_owned());
        }
        let reasons: Vec<String> = state.reason.take().into_iter().chain(state.remarks.drain(..)).collect();
        state.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    }

    /// Adds something to be told of it when it has ended, once.
    pub(super) fn add_remark(&self, remark: String) {
        let mut state = self.lock();
        if !state.remarks.contains(&remark) {
            state.remarks.push(remark);
        }
    }

    /// Something that it put out may not have been heard.
    pub(super) fn may_miss_output(&self) {
        self.lock().has_gaps = true;
    }

    /// What is needed to return to a run of an earlier process: the step, its message, the kernel and the session.
    pub(super) fn resumable(&self) -> Option<(usize, String, String, String)> {
        let state = self.lock();
        let running = |step: &Step| !step.status.is_finished() && step.msg_id.is_some();
        let step = state.steps.iter().position(running)?;
        Some((
            step,
            state.steps[step].msg_id.clone()?,
            state.kernel_id.clone()?,
            state.kernel_session.clone()?,
        ))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// The record of the present state, with outputs once it has ended, or if no notebook has them.
    pub(super) fn record(&self) -> ExecutionRecord {
        let state = self.lock();
        self.record_of(&state, state.status.is_finished() || self.kind == ExecutionKind::Code)
    }

    pub(super) fn record_with_outputs(&self) -> ExecutionRecord {
        self.record_of(&self.lock(), true)
    }

    fn record_of(&self, state: &State, with_outputs: bool) -> ExecutionRecord {
        let (outputs, missing) = match with_outputs {
            true => {
                let (outputs, missing) = state.stored_outputs();
                (Some(outputs), missing)
            }
            false => (None, Vec::new()),
        };
        let cell = |(position, step): (usize, &Step)| CellRecord {
            cell_id: step.cell_id.clone(),
            index: step.index,
            msg_id: step.msg_id.clone(),
            status: step.status,
            execution_count: step.execution_count,
            replaces: step.replaces,
            queued: step.queued,
            asks: step.asks.clone(),
            missing: missing.get(position).copied().unwrap_or_default(),
        };
        ExecutionRecord {
            execution_id: self.id.clone(),
            tenant: self.owner.tenant.to_string(),
            principal: self.owner.principal.to_string(),
            server: self.server.name().to_owned(),
            path: state.path.as_ref().map(ToString::to_string),
            file_id: None,
            kernel_id: state.kernel_id.clone(),
            kernel_session: state.kernel_session.clone(),
            kind: self.kind,
            status: state.status,
            cells: state.steps.iter().enumerate().map(cell).collect(),
            reason: state.reason.clone(),
            outputs,
            created_at: self.created_at,
            started_at: state.started_at,
            ended_at: state.ended_at,
            terms: Terms {
                name: Some(self.owner.name.clone()),
                max_open_rooms: Some(self.owner.max_open_rooms),
                max_output_bytes: Some(self.max_output_bytes),
                ignores_errors: !self.stop_on_error,
            },
        }
    }
}

impl State {
    /// The outputs of each step, and how many characters of them are missing; where they are too large for the store, what
    /// is missing says so.
    fn stored_outputs(&self) -> (Value, Vec<usize>) {
        let mut left = MAX_STORED_OUTPUT_BYTES;
        let of_step = |step: &Step| {
            let (mut kept, mut lost) = (Vec::new(), 0);
            for outputs in [&step.outputs, &step.captured] {
                let (within, missing) = outputs.to_json_within(left);
                kept.extend(within);
                lost += missing.characters();
                left = left.saturating_sub(outputs.bytes());
            }
            (Value::Array(kept), lost)
        };
        let (outputs, missing): (Vec<_>, _) = self.steps.iter().map(of_step).unzip();
        (Value::Array(outputs), missing)
    }
}

impl Step {
    pub(super) fn cell(cell_id: String, index: usize, limit: usize) -> Self {
        Self {
            cell_id,
            index,
            code: None,
            msg_id: None,
            status: ExecutionStatus::Queued,
            execution_count: None,
            replaces: None,
            queued: false,
            outputs: Outputs::new(limit),
            captured: Outputs::new(limit),
            asks: None,
            dropped: 0,
            passed_over: false,
        }
    }

    pub(super) fn code(code: String, limit: usize) -> Self {
        Self {
            code: Some(code),
            ..Self::cell(String::new(), 0, limit)
        }
    }
}
