//! One piece of code in a kernel and the cell that shows it: the meeting of the kernel's messages, the outputs
//! they fold into, and the shared document that people look at.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use jupyter_client::kernel::Message;
use live_document::{Acknowledgement, CellWrite, Room, RunEnd};
use serde_json::{Value, json};
use store::ExecutionKind;
use tokio::time::Instant;

use super::{
    actor::Actor,
    job::{Execution, Question, Step},
    kept::Kept,
    run::Run,
};

/// A chatty cell is written to the shared document at most this often.
const FLUSH_INTERVAL: Duration = Duration::from_millis(50);
/// How often it is looked whether what was written before has been sent to a server with much to do.
const LINE_INTERVAL: Duration = Duration::from_millis(25);
/// Runs that are over before a person could notice are shown once, with their end: each change of a notebook costs Jupyter
/// about as much as running a small cell.
const UNNOTICED: Duration = Duration::from_millis(50);
/// How long the kernel may take to take up a cell before people see that it is to run.
const TAKEN_UP_WITHIN: Duration = Duration::from_millis(250);
/// How long the end of a cell may take to follow its result.
const RESULT_PAUSE: Duration = Duration::from_millis(5);
/// Outputs that no notebook shows are stored as often as they change while they are small, and then less often.
const STORE_INTERVAL: Duration = Duration::from_secs(1);
const SMALL: usize = 64 * 1024;
/// A server that loses the end of a run this often will not keep it.
const MAX_REWRITES: u32 = 5;
/// A server that cannot be written to is tried for some minutes.
const MAX_ATTEMPTS: u32 = 20;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// No document has this; the next write must bring everything.
const NOTHING_WRITTEN: u64 = u64::MAX;

pub(super) struct Piece {
    pub(super) execution: Arc<Execution>,
    pub(super) step: usize,
    pub(super) run: Run,
    /// Who asked for the kernel to be interrupted...
    pub(super) interrupted: Option<Actor>,
    /// ...and why, where that is told instead.
    pub(super) interrupted_because: Option<String>,
    /// An earlier process of the gateway began it.
    pub(super) resumed: bool,
    /// Its cell says that output may be lost.
    pub(super) is_gap_marked: bool,
    /// Its end is with the server, or will never be.
    pub(super) settled: bool,
    /// The header of the request by which the code asks something at this moment.
    pub(super) question: Option<Value>,
    asked: Instant,
    cell: Option<Shown>,
    /// When the outputs that changed are to be written.
    flush_at: Option<Instant>,
    flushed: Option<Instant>,
    /// When what no notebook shows was last stored.
    stored: Option<Instant>,
    /// The count that is in the record.
    noted: Option<i64>,
    end: Option<RunEnd>,
    /// Counts what is kept of it after its end.
    pub(super) kept: Option<Kept>,
    /// How often it was tried to write the end again...
    attempts: u32,
    /// ...and how often that was done.
    rewritten: u32,
}

/// The cell of the shared document that shows the run.
struct Shown {
    id: String,
    /// The document that has what was written so far.
    incarnation: u64,
    /// Which of the cells with this id it was.
    made: Option<(u64, u32)>,
    /// What an earlier process wrote there is still to be seen.
    adopts: bool,
}

impl Piece {
    /// Code that no notebook shows.
    pub(super) fn unseen(execution: Arc<Execution>, step: usize, msg_id: String) -> Self {
        Self {
            execution,
            step,
            run: Run::new(msg_id),
            interrupted: None,
            interrupted_because: None,
            resumed: false,
            is_gap_marked: false,
            settled: true,
            question: None,
            asked: Instant::now(),
            cell: None,
            flush_at: None,
            flushed: None,
            stored: None,
            noted: None,
            end: None,
            kept: None,
            attempts: 0,
            rewritten: 0,
        }
    }

    /// A cell whose run begins, which people see with its first output, or soon.
    pub(super) fn begin(execution: Arc<Execution>, step: usize, msg_id: String, cell: &str, room: &Room) -> Self {
        let mut piece = Self::unseen(execution, step, msg_id);
        let replaces = room.execution_count_of(cell);
        piece.with_step(|step| step.replaces = replaces);
        piece.cell = Some(Shown {
            id: cell.to_owned(),
            incarnation: NOTHING_WRITTEN,
            made: None,
            adopts: false,
        });
        piece.flush_at = Some(Instant::now() + TAKEN_UP_WITHIN);
        piece
    }

    /// A run that an earlier process of the gateway began.
    pub(super) fn resume(execution: Arc<Execution>, step: usize, msg_id: String) -> Self {
        let mut piece = Self::unseen(execution, step, msg_id);
        (piece.resumed, piece.run.busy, piece.run.begun) = (true, true, true);
        if piece.execution.kind == ExecutionKind::Cells {
            piece.cell = Some(Shown {
                id: piece.execution.code_of(step).0,
                incarnation: NOTHING_WRITTEN,
                made: None,
                adopts: true,
            });
        }
        piece
    }

    /// Once the notebook can be seen: what an earlier process wrote there stays and comes before what is new, but what
    /// was there before the run does not. Whether that was still to be done.
    pub(super) fn adopt(&mut self, room: &Room) -> bool {
        let Some(shown) = self.cell.as_mut().filter(|shown| shown.adopts) else {
            return false;
        };
        shown.adopts = false;
        let count = room.execution_count_of(&shown.id);
        let replaces = self
            .execution
            .lock()
            .steps
            .get(self.step)
            .and_then(|step| step.replaces);
        let is_shown = count.is_none() || replaces != count;
        self.execution.adopt_outputs(room, (!is_shown).then_some(self.step));
        if is_shown {
            shown.incarnation = room.incarnation();
        } else {
            self.flush_at = Some(Instant::now());
        }
        true
    }

    /// How much it has put out.
    pub(super) fn bytes(&self) -> usize {
        self.with_step(|step| step.outputs.bytes() + step.captured.bytes())
            .unwrap_or_default()
    }

    pub(super) fn is_shown(&self) -> bool {
        self.cell.is_some()
    }

    /// Whether its cell shows something of it.
    pub(super) fn is_written(&self) -> bool {
        self.is_shown() && self.flushed.is_some()
    }

    /// Shows people what the code asks.
    pub(super) fn ask(&mut self, prompt: &str) {
        if self.is_shown() && self.with_step(|step| step.outputs.ask(prompt)) == Some(true) {
            self.is_due_after(Duration::ZERO);
        }
    }

    /// Shows people the answer behind the question, unless it is a password.
    pub(super) fn answer(&mut self, question: &Question, answer: &str) {
        if self.is_shown() {
            let answer = (!question.password).then_some(answer);
            self.with_step(|step| step.outputs.answer(&question.prompt, answer));
            self.is_due_after(Duration::ZERO);
        }
    }

    /// The kernel has taken it up, so that it is over in a moment or runs for a while.
    pub(super) fn is_taken_up(&mut self) {
        if self.is_shown() && self.flushed.is_none() {
            self.is_due_at(Instant::now() + UNNOTICED);
        }
    }

    pub(super) fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Changes this piece's step, under the execution's lock.
    pub(super) fn with_step<T>(&self, change: impl FnOnce(&mut Step) -> T) -> Option<T> {
        self.execution.lock().steps.get_mut(self.step).map(change)
    }

    /// Folds an output. The first is due for writing at once, those that follow closely are gathered. What a widget has
    /// captured is told but not written.
    pub(super) fn fold(&mut self, message: &Message, captured: bool) {
        let changed = self.with_step(|step| {
            let outputs = if captured {
                &mut step.captured
            } else {
                &mut step.outputs
            };
            outputs.apply(&message.msg_type, &message.content)
        });
        if changed == Some(true) {
            // The result of a cell is the last that it says; its end follows at once and is written with it.
            let pause = if message.msg_type == "execute_result" {
                RESULT_PAUSE
            } else {
                Duration::ZERO
            };
            self.is_due_after(pause);
        }
    }

    /// The code asks something, or has asked it while an earlier process listened.
    pub(super) fn set_question(&mut self, header: Value, asked_at: SystemTime) {
        let (now, ago) = (Instant::now(), asked_at.elapsed().unwrap_or_default());
        (self.question, self.asked) = (Some(header), now.checked_sub(ago).unwrap_or(now));
    }

    /// When it asked what it asks at this moment.
    pub(super) fn asked_at(&self) -> Option<Instant> {
        self.question.as_ref().map(|_| self.asked)
    }

    /// Adds a line of the gateway's own to the outputs.
    pub(super) fn say(&mut self, line: &str) {
        let stream = json!({ "name": "stderr", "text": line });
        self.with_step(|step| step.outputs.apply("stream", &stream));
        self.is_due_after(Duration::ZERO);
    }

    /// Shows something that the kernel did not put out by itself.
    pub(super) fn show(&mut self, content: &Value) {
        self.with_step(|step| step.outputs.apply("display_data", content));
        self.is_due_after(RESULT_PAUSE);
    }

    /// Replaces what an earlier run displayed.
    pub(super) fn update_display(&mut self, message: &Message) {
        let update = |step: &mut Step| {
            let captured = step.captured.update_display(&message.content);
            step.outputs.update_display(&message.content) || captured
        };
        if self.with_step(update) == Some(true) {
            self.is_due_after(Duration::ZERO);
        }
    }

    fn is_due_after(&mut self, pause: Duration) {
        let now = Instant::now() + pause;
        let interval = if self.end.is_some() {
            self.store_interval()
        } else {
            FLUSH_INTERVAL
        };
        let due = self.flushed.map_or(now, |last| (last + interval).max(now));
        self.is_due_at(due);
    }

    fn is_due_at(&mut self, due: Instant) {
        self.flush_at = Some(self.flush_at.map_or(due, |at| at.min(due)));
    }

    /// How often outputs may be stored.
    fn store_interval(&self) -> Duration {
        if self.bytes() < SMALL {
            FLUSH_INTERVAL
        } else {
            STORE_INTERVAL
        }
    }

    /// Whether its outputs are to be stored now: those that no notebook has would be lost with this process, and those
    /// that come after the end are missing in the record that was stored then.
    pub(super) fn must_be_stored(&mut self) -> bool {
        if self.end.is_some() {
            return true;
        }
        let due = !self.is_shown() && self.stored.is_none_or(|last| last.elapsed() >= self.store_interval());
        if due {
            self.stored = Some(Instant::now());
        }
        due
    }

    /// Whether its count is to be noted for a process that comes after this one, which may not be told of it again.
    pub(super) fn must_be_noted(&mut self) -> bool {
        self.end.is_none() && std::mem::replace(&mut self.noted, self.run.count) != self.run.count
    }

    /// Whether what was written before has not even been sent, so that what is new is gathered for a while.
    pub(super) fn waits_in_line(&mut self, room: Option<&Room>) -> bool {
        let waits = self.is_shown() && room.is_some_and(Room::is_in_line);
        if waits {
            self.flush_at = Some(Instant::now() + LINE_INTERVAL);
            self.execution.changed();
        }
        waits
    }

    /// Writes what is due, and tells those who wait.
    pub(super) fn flush(&mut self, room: Option<&Room>) -> Option<Acknowledgement> {
        self.flush_at = None;
        self.flushed = Some(Instant::now());
        let acknowledgement = room.and_then(|room| self.write(room));
        self.execution.changed();
        acknowledgement
    }

    /// Writes all that is left and that the run has ended.
    pub(super) fn finish(&mut self, room: Option<&Room>) -> Option<Acknowledgement> {
        let execution_count = self.with_step(|step| step.execution_count).flatten();
        self.end = Some(RunEnd { execution_count });
        self.settled = !self.is_shown();
        self.flush_at = None;
        room.and_then(|room| self.write(room))
    }

    /// Writes everything again, after the server came back without it.
    pub(super) fn write_again(&mut self, room: &Room) -> Option<Acknowledgement> {
        self.adopt(room);
        self.cell.as_mut()?.incarnation = NOTHING_WRITTEN;
        self.write(room)
    }

    /// Whether the document is another one than that which was written to.
    pub(super) fn is_behind(&self, room: &Room) -> bool {
        self.cell
            .as_ref()
            .is_some_and(|shown| shown.incarnation != room.incarnation())
    }

    /// Counts an attempt to write the end again, and tells whether there may be another one.
    pub(super) fn may_try_again(&mut self, written: bool) -> bool {
        self.attempts += 1;
        self.rewritten += u32::from(written);
        self.is_shown() && self.rewritten < MAX_REWRITES && self.attempts < MAX_ATTEMPTS
    }

    /// How long to wait before the end is written again, where it could not be.
    pub(super) fn pause(&self) -> Duration {
        FIRST_PAUSE.saturating_mul(1 << self.attempts.min(8)).min(MAX_PAUSE)
    }

    /// Brings the document up to the outputs. A document that does not have what was written before gets all.
    fn write(&mut self, room: &Room) -> Option<Acknowledgement> {
        self.adopt(room);
        let shown = self.cell.as_mut()?;
        let execution = Arc::clone(&self.execution);
        let mut state = execution.lock();
        let outputs = &mut state.steps.get_mut(self.step)?.outputs;
        let incarnation = room.incarnation();
        // JupyterLab moves a cell by making another one of what it shows, which may lack what was just written, and does
        // not say that it runs.
        let made = room.made(&shown.id);
        let is_under_way = self.end.is_none() || !self.settled;
        let was_moved = is_under_way && shown.made.is_some() && made.is_some() && shown.made != made;
        let begin = incarnation != shown.incarnation || was_moved;
        if begin {
            outputs.forget_written();
        }
        let write = CellWrite {
            begin,
            outputs: outputs.take_change(),
            end: self.end,
        };
        if write == CellWrite::default() {
            return None;
        }
        let owner = &execution.owner;
        match room.write_cell(&owner.principal, &owner.name, &shown.id, &write) {
            Ok(Some(written)) => {
                (shown.incarnation, shown.made) = (incarnation, made);
                if let (Some(change), Some(done)) = (&write.outputs, written.outputs)
                    && done.detached
                {
                    outputs.detached(change, done.length);
                }
                Some(written.acknowledgement)
            }
            Ok(None) => {
                // The cell was deleted: the outputs are still told to whoever asks for the execution. Somebody may
                // undo it while the code runs, and then it gets them all.
                shown.incarnation = NOTHING_WRITTEN;
                if self.end.is_some() {
                    self.cell = None;
                }
                None
            }
            Err(error) => {
                tracing::debug!(%error, "outputs could not be written yet");
                shown.incarnation = NOTHING_WRITTEN;
                None
            }
        }
    }
}
