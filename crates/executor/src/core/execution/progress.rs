//! Progress of an execution, from its queue to its end.

use std::{collections::HashMap, time::SystemTime};

use live_document::QueuedCell;
use store::ExecutionStatus;
use tracing::Span;

use super::{CellRun, EarlierRun, Execution, Question, RunState};

/// Remark on an execution whose outputs may have gaps.
const GAPS: &str = "output may be missing: the connection to the kernel was lost for a while";
/// Remark on cells of which an earlier process did not record whether it had sent them.
const UNKNOWN: &str = "the gateway restarted, so it is unknown whether some cells ran";

impl Execution {
    /// The first cell that is still to run.
    pub(crate) fn next_cell(&self) -> Option<usize> {
        let state = &mut *self.lock();
        let waiting = state.cells.iter().skip(state.next).position(CellRun::is_queued);
        state.next = waiting.map_or(state.cells.len(), |ahead| state.next + ahead);
        waiting.map(|_| state.next)
    }

    /// Cells that wait to run and are not shown so.
    pub(crate) fn unmarked(&self) -> Vec<String> {
        let state = self.lock();
        let waits = |cell: &&CellRun| cell.is_queued() && cell.code.is_none() && !cell.is_shown_queued;
        state
            .cells
            .iter()
            .filter(waits)
            .map(|cell| cell.cell_id.clone())
            .collect()
    }

    /// Records that cells are shown as queued.
    pub(crate) fn mark_queued(&self, shown: &[QueuedCell]) {
        let counts: HashMap<&str, Option<i64>> = shown
            .iter()
            .map(|shown| (shown.id.as_str(), shown.execution_count))
            .collect();
        let mut state = self.lock();
        for cell in state.cells.iter_mut().filter(|cell| cell.is_queued()) {
            if let Some(count) = counts.get(cell.cell_id.as_str()) {
                (cell.is_shown_queued, cell.replaces) = (true, *count);
            }
        }
    }

    /// Takes the cells that are shown as queued and will not run, or all of them.
    pub(crate) fn take_queued(&self, all: bool) -> Vec<QueuedCell> {
        let mut state = self.lock();
        let is_wanted = |cell: &&mut CellRun| cell.is_shown_queued && (all || cell.state.status().is_finished());
        let cells = state.cells.iter_mut().filter(is_wanted);
        cells
            .map(|cell| {
                cell.is_shown_queued = false;
                QueuedCell {
                    id: cell.cell_id.clone(),
                    execution_count: cell.replaces,
                }
            })
            .collect()
    }

    /// Adds a notice for the owner.
    pub(crate) fn notify(&self, notice: String) {
        self.lock().notices.push(notice);
    }

    /// Marks it as running, although its kernel may have to be started first; returns whether it was not before.
    pub(crate) fn mark_started(&self, time: SystemTime) -> bool {
        let mut state = self.lock();
        let is_new = state.status == ExecutionStatus::Queued;
        if is_new {
            state.status = ExecutionStatus::Running;
            state.started_at.get_or_insert(time);
        }
        is_new
    }

    /// Marks it as waiting for a kernel that is busy with what somebody else sent to it.
    pub(crate) fn mark_awaiting_kernel(&self) {
        let mut state = self.lock();
        let is_new = !std::mem::replace(&mut state.awaits_kernel, true);
        if state.cells.iter().all(|cell| cell.msg_id.is_none()) {
            (state.status, state.started_at) = (ExecutionStatus::Queued, None);
        }
        drop(state);
        if is_new {
            self.changed();
        }
    }

    /// Marks a cell as sent to a kernel.
    pub(crate) fn mark_sent(&self, position: usize, msg_id: &str, kernel_id: &str, session: &str) {
        let mut state = self.lock();
        state.awaits_kernel = false;
        state.kernel_id = Some(kernel_id.to_owned());
        state.kernel_session = Some(session.to_owned());
        if let Some(cell) = state.cells.get_mut(position) {
            cell.state = RunState::Sent;
            cell.msg_id = Some(msg_id.to_owned());
            cell.is_shown_queued = false;
        }
    }

    /// Gives the run of a request its span.
    pub(crate) fn set_run_span(&self, msg_id: &str, span: &Span) {
        let mut state = self.lock();
        let mut cells = state.cells.iter_mut();
        if let Some(cell) = cells.find(|cell| cell.msg_id.as_deref() == Some(msg_id)) {
            cell.span = span.clone();
        }
    }

    /// Queues a cell again that the kernel dropped; tells how often that has happened. It may be shown as running already.
    pub(crate) fn requeue(&self, position: usize, is_written: bool) -> u32 {
        let mut state = self.lock();
        state.next = state.next.min(position);
        let Some(cell) = state.cells.get_mut(position) else {
            return u32::MAX;
        };
        cell.state = RunState::Queued;
        if is_written {
            (cell.is_shown_queued, cell.replaces) = (true, None);
        }
        cell.drops += 1;
        cell.drops
    }

    /// Shows callers the question that a cell asks.
    pub(crate) fn show_question(&self, position: usize) -> Option<Question> {
        let mut state = self.lock();
        let mut question = Question::from(state.cells.get(position)?.question()?);
        question.number = state.asked;
        state.asked += 1;
        state.status = ExecutionStatus::InputRequired;
        state.question = Some(question.clone());
        drop(state);
        self.changed();
        Some(question)
    }

    /// Takes the question away, which was answered or will not be.
    pub(crate) fn on_answered(&self) {
        let mut state = self.lock();
        state.hide_question();
        state.cells.iter_mut().for_each(CellRun::on_answered);
        drop(state);
        self.changed();
    }

    pub(crate) fn end_cell(&self, position: usize, status: ExecutionStatus, reason: Option<String>) {
        self.end_one(position, status, false, reason);
    }

    /// Skips a cell that is gone or not code.
    pub(crate) fn skip_cell(&self, position: usize, reason: &str) {
        self.end_one(position, ExecutionStatus::Cancelled, true, Some(reason.to_owned()));
    }

    fn end_one(&self, position: usize, status: ExecutionStatus, skipped: bool, reason: Option<String>) {
        let mut state = self.lock();
        state.hide_question();
        if let Some(cell) = state.cells.get_mut(position) {
            cell.end(status, skipped);
        }
        state.reason = state.reason.take().or(reason);
    }

    /// Ends the cells that are still to run, if there are any.
    pub(crate) fn end_rest(&self, status: ExecutionStatus, reason: Option<String>) {
        let mut state = self.lock();
        let mut any = false;
        for cell in state.cells.iter_mut().filter(|cell| cell.is_queued()) {
            cell.end(status, false);
            any = true;
        }
        if any && state.reason.is_none() {
            state.reason = reason;
        }
    }

    /// Ends the cells that an earlier process had not begun, for a reason, and those of which it is not known whether it had.
    pub(crate) fn end_left_behind(&self, reason: &str) {
        let mut state = self.lock();
        let sent_before = state.sent_before;
        let (mut unknown, mut waited) = (false, false);
        for (position, cell) in state.cells.iter_mut().enumerate().filter(|(_, cell)| cell.is_queued()) {
            let may_have_run = position < sent_before;
            (unknown, waited) = (unknown || may_have_run, waited || !may_have_run);
            let status = match may_have_run {
                true => ExecutionStatus::Lost,
                false => ExecutionStatus::Cancelled,
            };
            cell.end(status, false);
        }
        let reasons = [(unknown, UNKNOWN), (waited, reason)];
        let why: Vec<&str> = reasons
            .into_iter()
            .filter_map(|(is_it, why)| is_it.then_some(why))
            .collect();
        if !why.is_empty() && state.reason.is_none() {
            state.reason = Some(why.join("; "));
        }
    }

    /// Marks it as cancelled.
    pub(crate) fn mark_cancelled(&self) {
        self.lock().is_cancelled = true;
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Ends the execution as its cells ended: by the first that did not complete.
    pub(crate) fn end(&self, time: SystemTime) {
        let mut state = self.lock();
        let skipped = |cell: &CellRun| matches!(cell.state, RunState::Ended { skipped: true, .. });
        let all_skipped = state.cells.iter().all(skipped);
        let counts = |cell: &&CellRun| all_skipped || !skipped(cell);
        let mut statuses = state.cells.iter().filter(counts).map(|cell| cell.state.status());
        let status = statuses.find(|status| *status != ExecutionStatus::Completed);
        state.status = status.unwrap_or(ExecutionStatus::Completed);
        state.ended_at = Some(time);
        if state.has_gaps && state.status != ExecutionStatus::Lost {
            state.remarks.push(GAPS.to_owned());
        }
        let reasons: Vec<String> = state.reason.take().into_iter().chain(state.remarks.drain(..)).collect();
        state.reason = (!reasons.is_empty()).then(|| reasons.join("; "));
    }

    /// Adds a remark, once, that is reported with its end.
    pub(crate) fn add_remark(&self, remark: String) {
        let mut state = self.lock();
        if !state.remarks.contains(&remark) {
            state.remarks.push(remark);
        }
    }

    /// Records that some of its output may not have been received.
    pub(crate) fn mark_gaps(&self) {
        self.lock().has_gaps = true;
    }

    /// The run of an earlier process to return to.
    pub(crate) fn earlier_run(&self) -> Option<EarlierRun> {
        let state = self.lock();
        let running = |cell: &CellRun| !cell.state.status().is_finished() && cell.msg_id.is_some();
        let position = state.cells.iter().position(running)?;
        Some(EarlierRun {
            position,
            msg_id: state.cells[position].msg_id.clone()?,
            kernel_id: state.kernel_id.clone()?,
            session: state.kernel_session.clone()?,
        })
    }
}
