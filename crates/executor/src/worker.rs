//! The task behind one notebook's queue, or behind one kernel of its own: it runs one piece of code at a time,
//! hears what the kernel says, and sees to it that every execution ends in a true state.

mod disk;
mod endings;
mod hearing;
mod passing;
mod queued;
mod retiring;
mod silence;
mod wishes;
mod writing;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jupyter_client::{
    DocPath, JupyterError, JupyterServer, RunningKernel,
    kernel::{ExecuteRequest, KernelError, KernelEvent},
};
use live_document::{Room, pool::Lease};
use store::{ExecutionKind, ExecutionStatus};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

use self::{disk::Flush, endings::Ending, hearing::Barrier};
use super::{
    ExecutionError, Shared,
    actor::{Actor, Reason},
    job::Execution,
    kernel::{Found, Kernel, Wanted},
    piece::Piece,
};

/// How often an agent whose cell runs in silence is shown to people.
const PRESENCE: Duration = Duration::from_secs(10);

/// How long it may take to end a kernel that the notebook does not have any more, for which what comes next waits.
const RETIRES_WITHIN: Duration = Duration::from_secs(5);
/// How long cells may wait before people see it. Each change of a notebook costs Jupyter about as much as running a small
/// cell, and most are over by then.
const QUEUE_UNNOTICED: Duration = Duration::from_millis(250);

/// What a worker is asked to do.
pub(super) enum Command {
    Submit(Arc<Execution>, Option<Lease>),
    /// Takes up an execution that an earlier process began.
    Resume(Arc<Execution>),
    Cancel(Arc<Execution>),
    Answer {
        execution: Arc<Execution>,
        value: String,
        /// Which of its questions is answered, if that is known.
        number: Option<usize>,
        done: oneshot::Sender<Result<(), ExecutionError>>,
    },
    /// Somebody interrupts the kernel, so that the run that ends now did not fail by itself. One that the kernel has
    /// not begun with is interrupted when it does, and one that waits for the kernel does not run.
    Interrupted(Actor),
    /// The notebook's kernel is to be replaced or restarted.
    Leave {
        why: Reason,
        done: oneshot::Sender<()>,
    },
    Renamed(DocPath),
    /// Another worker of the same notebook takes over what waits.
    Retire(mpsc::Sender<Command>),
}

/// What a worker works for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Notebook(DocPath),
    Scratch { kernel_name: Option<String> },
}

impl Place {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Notebook(path) => format!("'{path}'"),
            Self::Scratch { .. } => "your own kernel".to_owned(),
        }
    }
}

pub(super) struct Worker {
    shared: Arc<Shared>,
    server: Arc<JupyterServer>,
    place: Place,
    inbox: mpsc::Receiver<Command>,
    queue: VecDeque<Arc<Execution>>,
    kernel: Option<Kernel>,
    finding: Option<BoxFuture<'static, Result<Found, ExecutionError>>>,
    asking: Option<BoxFuture<'static, Result<Option<RunningKernel>, JupyterError>>>,
    /// Takes over what is asked of this one, which leaves when what it runs has ended.
    successor: Option<mpsc::Sender<Command>>,
    /// What is brought to disk before the next step runs.
    flush: Option<Flush>,
    /// When the kernel last said something, or was sent something.
    heard_at: Instant,
    active: Option<Piece>,
    recent: VecDeque<Piece>,
    /// Held while something is to be written, so that the room stays open.
    lease: Option<Lease>,
    /// Ends of runs on their way to the server, by the run's message id.
    settling: FuturesUnordered<BoxFuture<'static, (String, bool)>>,
    barrier: Option<Barrier>,
    idle_since: Instant,
    /// When people were last shown that the agent is there.
    shown_at: Instant,
    /// When cells that still wait then are shown as queued.
    queue_shown_at: Option<Instant>,
    /// Who last interrupted the kernel through the gateway, which may hit a run that began only then.
    last_interrupt: Option<(Instant, Actor)>,
}

/// One thing that happened.
enum Event {
    Stopping,
    Command(Option<Command>),
    Kernel(Option<KernelEvent>),
    Found(Result<Found, ExecutionError>),
    /// What the owner of the next step edited is on disk, but for these paths.
    OnDisk(Vec<String>),
    Settled(String, bool),
    FlushDue,
    Silence,
    /// People should see that the agent is still there.
    PresenceDue,
    /// People should see what waits.
    QueueDue,
    /// Nobody has answered what the code asks.
    AnswerOverdue,
    ProbeDue,
    Told(Result<Option<RunningKernel>, JupyterError>),
    Idle,
}

impl Worker {
    pub(super) fn new(
        shared: Arc<Shared>,
        server: Arc<JupyterServer>,
        place: Place,
        inbox: mpsc::Receiver<Command>,
    ) -> Self {
        Self {
            shared,
            server,
            place,
            inbox,
            queue: VecDeque::new(),
            kernel: None,
            finding: None,
            asking: None,
            successor: None,
            flush: None,
            heard_at: Instant::now(),
            active: None,
            recent: VecDeque::new(),
            lease: None,
            settling: FuturesUnordered::new(),
            barrier: None,
            idle_since: Instant::now(),
            shown_at: Instant::now(),
            queue_shown_at: None,
            last_interrupt: None,
        }
    }

    /// Works until nothing was asked for a while, or the gateway stops.
    pub(super) async fn work(mut self) {
        loop {
            self.start_next().await;
            match self.next_event().await {
                Event::Command(Some(command)) => self.obey(command).await,
                Event::Kernel(Some(event)) => self.kernel_event(event).await,
                Event::Found(found) => self.found(found).await,
                Event::OnDisk(unsaved) => self.flushed(&unsaved).await,
                Event::Settled(msg_id, arrived) => self.settled(&msg_id, arrived).await,
                Event::FlushDue => self.flush(),
                Event::Silence => self.ask(),
                Event::PresenceDue => self.stay_present(),
                Event::QueueDue => self.show_queue(),
                Event::AnswerOverdue => self.give_question_up(),
                Event::ProbeDue => {
                    if let Some(kernel) = &mut self.kernel {
                        kernel.probe().await;
                    }
                }
                Event::Told(state) => self.told(state).await,
                Event::Idle => {
                    // Closed first, so that nothing can be put in while the worker leaves. What was asked just
                    // before is still done.
                    self.inbox.close();
                    while let Some(command) = self.inbox.recv().await {
                        self.obey(command).await;
                    }
                    if self.is_idle() {
                        break;
                    }
                }
                Event::Command(None) => {}
                Event::Kernel(None) => self.kernel_is_gone("its connection was closed"),
                Event::Stopping => break,
            }
        }
        self.leave().await;
    }

    fn is_idle(&self) -> bool {
        self.active.is_none() && self.queue.is_empty() && self.settling.is_empty()
    }

    async fn next_event(&mut self) -> Event {
        let is_idle = self.is_idle();
        let (asks_at, answer_by) = (self.asks_at(), self.answer_by());
        let probes_at = self.kernel.as_ref().and_then(Kernel::probes_at);
        let kernel = self.kernel.as_mut();
        let heard = async {
            match kernel {
                Some(kernel) => kernel.events.recv().await,
                None => std::future::pending().await,
            }
        };
        let finding = self.finding.as_mut();
        let found = async {
            match finding {
                Some(finding) => finding.await,
                None => std::future::pending().await,
            }
        };
        let flush = self.flush.as_mut();
        let on_disk = async {
            match flush {
                Some(flush) => flush.done().await,
                None => std::future::pending().await,
            }
        };
        let asking = self.asking.as_mut();
        let told = async {
            match asking {
                Some(asking) => asking.await,
                None => std::future::pending().await,
            }
        };
        let is_left = self.inbox.is_closed() && self.inbox.is_empty();
        let gives_up = match is_left || self.successor.is_some() {
            true => self.idle_since,
            false => self.idle_since + self.shared.settings.idle_timeout,
        };
        let due = self.active.iter().chain(&self.recent).filter_map(Piece::flush_at).min();
        tokio::select! {
            // In this order: what people do comes before what a chatty kernel says.
            biased;
            () = self.shared.stopping.cancelled() => Event::Stopping,
            command = self.inbox.recv(), if !is_left => Event::Command(command),
            () = sleep_until(due.unwrap_or(gives_up)), if due.is_some() => Event::FlushDue,
            event = heard => Event::Kernel(event),
            found = found => Event::Found(found),
            unsaved = on_disk => Event::OnDisk(unsaved),
            state = told => Event::Told(state),
            () = sleep_until(probes_at.unwrap_or(gives_up)), if probes_at.is_some() => Event::ProbeDue,
            () = sleep_until(asks_at.unwrap_or(gives_up)), if asks_at.is_some() => Event::Silence,
            () = sleep_until(self.shown_at + PRESENCE), if !is_idle => Event::PresenceDue,
            () = sleep_until(self.queue_shown_at.unwrap_or(gives_up)), if self.queue_shown_at.is_some() => Event::QueueDue,
            () = sleep_until(answer_by.unwrap_or(gives_up)), if answer_by.is_some() => Event::AnswerOverdue,
            Some((msg_id, arrived)) = self.settling.next(), if !self.settling.is_empty() => Event::Settled(msg_id, arrived),
            () = sleep_until(gives_up), if is_idle => Event::Idle,
        }
    }

    async fn obey(&mut self, command: Command) {
        self.idle_since = Instant::now();
        let Some(command) = self.pass_on(command).await else {
            return;
        };
        match command {
            Command::Submit(execution, lease) => {
                self.lease = lease.or(self.lease.take());
                self.queue.push_back(execution);
                self.queue_shown_at
                    .get_or_insert_with(|| Instant::now() + QUEUE_UNNOTICED);
            }
            Command::Resume(execution) => self.resume(execution),
            Command::Cancel(execution) => self.cancel(&execution),
            Command::Answer {
                execution,
                value,
                number,
                done,
            } => {
                // Whoever asked may be gone; the answer counts all the same.
                let _ = done.send(self.answer(&execution, &value, number).await);
            }
            Command::Interrupted(actor) => self.was_interrupted(actor),
            Command::Leave { why, done } => {
                self.note_ended(&why);
                self.end_all(Ending::cancelled(why));
                self.kernel = None;
                self.finding = None;
                let _ = done.send(());
            }
            Command::Renamed(path) => self.place = Place::Notebook(path),
            Command::Retire(successor) => self.retire(successor).await,
        }
    }

    /// Begins with what is next, if a kernel is there for it.
    async fn start_next(&mut self) {
        self.forget_flush_of_other();
        while self.active.is_none() && self.finding.is_none() && self.flush.is_none() {
            let Some(execution) = self.queue.front().cloned() else {
                // A room that nothing will be written to may be closed.
                if self.settling.is_empty() {
                    self.lease = None;
                }
                return;
            };
            let Some(step) = execution.next_step() else {
                self.queue.pop_front();
                self.finish(&execution);
                continue;
            };
            if self.is_kernel_taken() {
                execution.set_awaiting_kernel();
                return self.wait_for_turn().await;
            }
            if execution.takes_its_turn() {
                execution.changed();
            }
            match &self.kernel {
                Some(kernel) if !kernel.link.is_connected() || !kernel.is_heard() => return,
                Some(kernel) if kernel.is_doubtful() => self.find_kernel(),
                Some(_) => self.begin_after_flush(execution, step).await,
                None => self.find_kernel(),
            }
        }
    }

    /// Whether the kernel is there and busy with what somebody else sent to it.
    fn is_kernel_taken(&self) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| {
            let is_ready = kernel.link.is_connected() && kernel.is_heard() && !kernel.is_doubtful();
            is_ready && !kernel.turns.is_free()
        })
    }

    /// Whether something waits for its turn in the kernel.
    fn is_kernel_awaited(&self) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.turns.is_awaited())
    }

    /// What the kernel is at was sent by somebody else, so that what is sent now could not be taken back.
    async fn wait_for_turn(&mut self) {
        let Some(kernel) = &mut self.kernel else { return };
        if let Some(question) = kernel.turns.ask() {
            self.heard_at = Instant::now();
            // If the line is cut it is put again.
            let _ = kernel.link.kernel_info(&question).await;
        }
    }

    fn find_kernel(&mut self) {
        let wanted = match &self.place {
            Place::Notebook(path) => Wanted::Notebook {
                path: self
                    .lease
                    .as_ref()
                    .map_or_else(|| path.clone(), |room| room.info().path),
                room: self.lease.as_ref().map(|lease| Room::clone(lease)),
            },
            Place::Scratch { kernel_name } => Wanted::Scratch {
                kernel_name: kernel_name.clone(),
                owner: self
                    .queue
                    .front()
                    .map(|execution| execution.owner.name.clone())
                    .unwrap_or_default(),
            },
        };
        let connected = self.kernel.as_ref().map(|kernel| kernel.link.kernel_id().to_owned());
        self.finding = Some(Kernel::find(Arc::clone(&self.server), wanted, connected).boxed());
    }

    async fn found(&mut self, found: Result<Found, ExecutionError>) {
        self.finding = None;
        match found {
            Ok(Found::Same) => {
                if let Some(kernel) = &mut self.kernel {
                    kernel.was_checked();
                }
            }
            Ok(Found::Other(kernel)) => {
                self.note_ended(&Reason::by(Actor::Person, "gave the notebook another kernel"));
                let earlier = self.kernel.replace(kernel);
                self.forget_recent();
                self.retire_kernel(earlier).await;
            }
            Ok(Found::Earlier(kernel, lease)) => self.returned(kernel, lease).await,
            Err(error) => {
                self.kernel = None;
                self.end_all(match &self.active {
                    Some(_) if matches!(error, ExecutionError::Document(_)) => Ending::lost(format!(
                        "the gateway restarted and cannot open the notebook again: {error}"
                    )),
                    Some(_) => Ending::lost(format!(
                        "the gateway restarted and could not reconnect to the kernel: {error}"
                    )),
                    None => Ending::failed("NoKernel", format!("nothing ran, because there is no kernel: {error}")),
                });
            }
        }
    }

    async fn begin(&mut self, execution: Arc<Execution>, step: usize) {
        let msg_id = uuid::Uuid::new_v4().to_string();
        let (code, piece) = match self.piece(&execution, step, &msg_id) {
            Ok(begun) => begun,
            Err(obstacle) => return self.skip(&execution, step, obstacle),
        };
        if code.trim().is_empty() {
            // As in JupyterLab: a kernel is not bothered with nothing, and would count it under another's number.
            return self.end(piece, Ending::completed());
        }
        let path = self.path();
        let Some(kernel) = &mut self.kernel else { return };
        kernel.turns.is_over();
        let request = ExecuteRequest {
            code,
            silent: false,
            store_history: execution.kind == ExecutionKind::Cells,
            allow_stdin: true,
            // Requests of other clients are theirs to stop; the rest of this batch waits here.
            stop_on_error: false,
        };
        self.shared.note_run(&execution, path.as_ref());
        execution.began(step, &msg_id, &kernel.link, path);
        let kernel_id = kernel.link.kernel_id();
        let history = &self.shared.history;
        if let Some(notice) = history.on_run(self.server.name(), &self.place, &execution.owner, kernel_id) {
            execution.notify(notice);
        }
        self.shared.note(&execution);
        self.heard_at = Instant::now();
        match kernel.link.execute(&msg_id, &request).await {
            // One that was cut off may have arrived; what the kernel says after the reconnection tells.
            Ok(()) | Err(KernelError::Reconnecting { .. }) => self.active = Some(piece),
            Err(error) => self.end(piece, Ending::failed("NotSent", error.to_string())),
        }
    }

    /// Ends the kernel that the notebook had before, if the gateway started it and nobody else uses it.
    async fn retire_kernel(&mut self, earlier: Option<Kernel>) {
        let (Some(earlier), Some(path)) = (earlier, self.path()) else {
            return;
        };
        let kernel_id = earlier.link.kernel_id().to_owned();
        // What the gateway does to it must not be taken for a person's doing.
        drop(earlier);
        let _ = timeout(RETIRES_WITHIN, self.server.retire_kernel(&kernel_id, &path)).await;
    }

    /// Notes that the kernel, or its process, has ended, for those who ran something there.
    fn note_ended(&self, reason: &Reason) {
        if let Some(kernel) = &self.kernel {
            self.shared.history.on_ended(kernel.link.kernel_id(), reason);
        }
    }

    /// The code of a step, and its cell already marked as running.
    fn piece(&self, execution: &Arc<Execution>, step: usize, msg_id: &str) -> Result<(String, Piece), Obstacle> {
        let (cell, code) = execution.code_of(step);
        let (execution, msg_id) = (Arc::clone(execution), msg_id.to_owned());
        if let Some(code) = code {
            return Ok((code, Piece::unseen(execution, step, msg_id)));
        }
        let room = self.room().ok_or(Obstacle::NotebookGone)?;
        let code = room.source_of(&cell).ok_or(Obstacle::CellGone)?;
        if !room.is_code(&cell) {
            return Err(Obstacle::NotCode);
        }
        Ok((code, Piece::begin(execution, step, msg_id, &cell, &room)))
    }

    /// Leaves out a step that can no longer run, and with its notebook all that follow.
    fn skip(&mut self, execution: &Arc<Execution>, step: usize, obstacle: Obstacle) {
        let is_closed = matches!(obstacle, Obstacle::NotebookGone);
        match obstacle {
            Obstacle::NotebookGone => execution.end_rest(
                ExecutionStatus::Cancelled,
                Some("the notebook was deleted or closed before this ran".to_owned()),
            ),
            Obstacle::CellGone => execution.pass_over(step, "the cell was deleted before it ran"),
            Obstacle::NotCode => execution.pass_over(step, "the cell was changed from code to text before it ran"),
        }
        self.close_batch(execution, is_closed);
    }
}

/// Why a step cannot run.
enum Obstacle {
    NotebookGone,
    CellGone,
    NotCode,
}
