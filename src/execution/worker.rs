//! The task behind one notebook's queue, or behind one kernel of its own: it runs one piece of code at a time,
//! hears what the kernel says, and sees to it that every execution ends in a true state.

mod endings;
mod silence;
mod writing;

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until, timeout},
};

use self::endings::Ending;
use super::{
    ExecutionError, Shared,
    job::{Execution, Question},
    kernel::{Found, Kernel, Wanted},
    piece::Piece,
    run::{Said, fate},
};
use crate::{
    jupyter::{
        JupyterError, JupyterServer, RunningKernel,
        kernel::{Channel, ExecuteRequest, KernelError, KernelEvent, Message},
        room::Room,
    },
    pool::Lease,
    store::StoredQuestion,
    types::{DocPath, ExecutionKind, ExecutionStatus},
};

/// How long a kernel may take to shut down when the gateway leaves it.
const SHUTS_DOWN_WITHIN: Duration = Duration::from_secs(10);
/// How often an agent whose cell runs in silence is shown to people.
const PRESENCE: Duration = Duration::from_secs(10);

/// What a worker is asked to do.
pub(super) enum Command {
    Submit(Arc<Execution>, Option<Lease>),
    /// Takes up an execution that an earlier process began.
    Resume(Arc<Execution>, Option<Lease>),
    Cancel(Arc<Execution>),
    Answer {
        execution: Arc<Execution>,
        value: String,
        /// Which of its questions is answered, if that is known.
        number: Option<usize>,
        done: oneshot::Sender<Result<(), ExecutionError>>,
    },
    /// Somebody interrupts the kernel, so that the run that ends now did not fail by itself. One that the kernel has
    /// not begun with is interrupted when it does.
    Interrupted,
    /// The notebook's kernel is to be replaced or restarted.
    Leave {
        why: &'static str,
        done: oneshot::Sender<()>,
    },
    Renamed(DocPath),
}

/// What a worker works for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Notebook(DocPath),
    Scratch { kernel_name: Option<String> },
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
}

/// A question to the kernel whose answer comes after all that it had to say of the run before.
struct Barrier {
    msg_id: String,
    behind: String,
    /// Why it may be that nothing more comes of that run.
    doubt: &'static str,
    replied: bool,
    idle: bool,
}

/// One thing that happened.
enum Event {
    Stopping,
    Command(Option<Command>),
    Kernel(Option<KernelEvent>),
    Found(Result<Found, ExecutionError>),
    Settled(String, bool),
    FlushDue,
    Silence,
    /// People should see that the agent is still there.
    PresenceDue,
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
            heard_at: Instant::now(),
            active: None,
            recent: VecDeque::new(),
            lease: None,
            settling: FuturesUnordered::new(),
            barrier: None,
            idle_since: Instant::now(),
            shown_at: Instant::now(),
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
                Event::Settled(msg_id, arrived) => self.settled(&msg_id, arrived).await,
                Event::FlushDue => self.flush(),
                Event::Silence => self.ask(),
                Event::PresenceDue => self.stay_present(),
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
        let asks_at = self.asks_at();
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
        let asking = self.asking.as_mut();
        let told = async {
            match asking {
                Some(asking) => asking.await,
                None => std::future::pending().await,
            }
        };
        let is_left = self.inbox.is_closed() && self.inbox.is_empty();
        let gives_up = match is_left {
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
            state = told => Event::Told(state),
            () = sleep_until(probes_at.unwrap_or(gives_up)), if probes_at.is_some() => Event::ProbeDue,
            () = sleep_until(asks_at.unwrap_or(gives_up)), if asks_at.is_some() => Event::Silence,
            () = sleep_until(self.shown_at + PRESENCE), if self.active.is_some() => Event::PresenceDue,
            Some((msg_id, arrived)) = self.settling.next(), if !self.settling.is_empty() => Event::Settled(msg_id, arrived),
            () = sleep_until(gives_up), if is_idle => Event::Idle,
        }
    }

    async fn obey(&mut self, command: Command) {
        self.idle_since = Instant::now();
        match command {
            Command::Submit(execution, lease) => {
                self.lease = lease.or(self.lease.take());
                self.queue.push_back(execution);
            }
            Command::Resume(execution, lease) => {
                self.lease = lease.or(self.lease.take());
                self.resume(execution);
            }
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
            Command::Interrupted => {
                if let Some(active) = &mut self.active {
                    active.interrupted = true;
                }
            }
            Command::Leave { why, done } => {
                self.end_all(Ending::cancelled(why));
                self.kernel = None;
                self.finding = None;
                let _ = done.send(());
            }
            Command::Renamed(path) => self.place = Place::Notebook(path),
        }
    }

    /// Begins with what is next, if a kernel is there for it.
    async fn start_next(&mut self) {
        while self.active.is_none() && self.finding.is_none() {
            let Some(execution) = self.queue.front().cloned() else {
                // A room that nothing will be written to may be closed.
                if self.settling.is_empty() {
                    self.lease = None;
                }
                return;
            };
            let Some(step) = execution.next_step() else {
                self.queue.pop_front();
                self.shared.finish(&execution);
                continue;
            };
            if execution.takes_its_turn() {
                execution.changed();
            }
            match &self.kernel {
                Some(kernel) if !kernel.link.is_connected() || !kernel.is_heard() => return,
                Some(kernel) if !kernel.is_doubtful() => self.begin(execution, step).await,
                _ => self.find_kernel(),
            }
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
                self.kernel = Some(kernel);
                self.forget_recent();
                // A run that an earlier process began may have ended meanwhile.
                self.raise_barrier("the gateway was restarted and the end of the run was not seen")
                    .await;
            }
            Err(error) => {
                self.kernel = None;
                self.end_all(match &self.active {
                    Some(_) => Ending::lost(format!(
                        "the gateway was restarted and could not return to the kernel: {error}"
                    )),
                    None => Ending::failed(
                        "NoKernel",
                        format!("no kernel could be had for it, so nothing ran: {error}"),
                    ),
                });
            }
        }
    }

    async fn begin(&mut self, execution: Arc<Execution>, step: usize) {
        let msg_id = uuid::Uuid::new_v4().to_string();
        let (code, piece) = match self.piece(&execution, step, &msg_id) {
            Ok(begun) => begun,
            Err(reason) => return self.skip(&execution, step, reason),
        };
        if code.trim().is_empty() {
            // As in JupyterLab: a kernel is not bothered with nothing, and would count it under another's number.
            return self.end(piece, Ending::completed());
        }
        let Some(kernel) = &self.kernel else { return };
        let request = ExecuteRequest {
            code,
            silent: false,
            store_history: execution.kind == ExecutionKind::Cells,
            allow_stdin: true,
            // Requests of other clients are theirs to stop; the rest of this batch waits here.
            stop_on_error: false,
        };
        execution.began(step, &msg_id, &kernel.link, self.path());
        self.shared.note(&execution);
        self.heard_at = Instant::now();
        match kernel.link.execute(&msg_id, &request).await {
            // One that was cut off may have arrived; what the kernel says after the reconnection tells.
            Ok(()) | Err(KernelError::Reconnecting { .. }) => self.active = Some(piece),
            Err(error) => self.end(piece, Ending::failed("NotSent", error.to_string())),
        }
    }

    /// The code of a step, and its cell already marked as running.
    fn piece(&self, execution: &Arc<Execution>, step: usize, msg_id: &str) -> Result<(String, Piece), &'static str> {
        let (cell, code) = execution.code_of(step);
        let (execution, msg_id) = (Arc::clone(execution), msg_id.to_owned());
        if let Some(code) = code {
            return Ok((code, Piece::unseen(execution, step, msg_id)));
        }
        let room = self.room().ok_or("its notebook was closed before it ran")?;
        let code = room.source_of(&cell).ok_or("the cell was deleted before it ran")?;
        Ok((code, Piece::begin(execution, step, msg_id, &cell, &room)))
    }

    /// Leaves out a step that can no longer run.
    fn skip(&mut self, execution: &Arc<Execution>, step: usize, reason: &str) {
        execution.pass_over(step, reason);
        self.close_batch(execution, false);
    }

    async fn kernel_event(&mut self, event: KernelEvent) {
        self.heard_at = Instant::now();
        match event {
            KernelEvent::Message(message) => self.hear(message).await,
            KernelEvent::Disconnected => {}
            KernelEvent::Reconnected => {
                // The interrupt may have been lost with the line.
                if self
                    .active
                    .as_ref()
                    .is_some_and(|active| active.execution.is_unwanted())
                {
                    self.interrupt();
                }
                self.raise_barrier("the connection to the kernel was cut and the end of the run was not seen")
                    .await;
            }
            KernelEvent::Gone(error) => self.kernel_is_gone(&error.to_string()),
        }
    }

    /// What ran there is lost; what only waited for it can run in another.
    fn kernel_is_gone(&mut self, why: &str) {
        self.kernel = None;
        if self.active.is_some() {
            self.end_all(Ending::lost(format!("the kernel is gone: {why}")));
        }
    }

    /// Asks something that the kernel answers only when it is done with the run before, of which it is doubtful
    /// that more will be heard.
    async fn raise_barrier(&mut self, doubt: &'static str) {
        let (Some(kernel), Some(active)) = (&self.kernel, &self.active) else {
            return;
        };
        let barrier = Barrier {
            msg_id: uuid::Uuid::new_v4().to_string(),
            behind: active.run.msg_id.clone(),
            doubt,
            replied: false,
            idle: false,
        };
        // If the line is cut again this comes again.
        if kernel.link.kernel_info(&barrier.msg_id).await.is_ok() {
            self.barrier = Some(barrier);
        }
    }

    async fn hear(&mut self, message: Message) {
        if let Some(fate) = fate(&message) {
            return self.befell(fate).await;
        }
        if let Some(kernel) = &mut self.kernel {
            kernel.hears(&message);
        }
        if message.msg_type == "update_display_data" {
            for piece in self.active.iter_mut().chain(&mut self.recent) {
                piece.update_display(&message);
            }
            return;
        }
        let Some(parent) = &message.parent_id else { return };
        if let Some(active) = self.active.as_mut().filter(|active| active.run.msg_id == *parent) {
            let had_begun = active.run.begun;
            let said = active.run.take(&message);
            let is_unwanted = active.interrupted && active.run.begun && !had_begun;
            let is_silent = active.interrupted && active.run.is_unanswered();
            match said {
                Said::Output => active.fold(&message),
                Said::Counted(count) => {
                    active.with_step(|step| step.execution_count = Some(count));
                }
                Said::Asks(question) => {
                    active.execution.asks(active.step, question, &message.header);
                    active.question = Some(message.header);
                    self.shared.note(&active.execution);
                }
                Said::Ended(outcome) => self.ended(outcome),
                Said::Nothing => {}
            }
            if is_unwanted {
                self.interrupt();
            }
            if is_silent {
                // An interrupt at the very beginning can make a kernel forget to reply.
                self.raise_barrier("it was interrupted and the kernel did not reply")
                    .await;
            }
        } else if let Some(late) = self.recent.iter_mut().find(|piece| piece.run.msg_id == *parent) {
            if message.channel == Channel::Iopub && message.msg_type != "status" {
                late.fold(&message);
            }
        } else {
            self.pass_barrier(&message);
        }
    }

    /// When the kernel has answered and is idle, all that it said of the run before has come, if it ever will.
    fn pass_barrier(&mut self, message: &Message) {
        let Some(barrier) = self
            .barrier
            .as_mut()
            .filter(|barrier| message.parent_id.as_ref() == Some(&barrier.msg_id))
        else {
            return;
        };
        let is = |state: &str| message.content.get("execution_state").is_some_and(|said| said == state);
        barrier.replied |= message.channel == Channel::Shell;
        barrier.idle |= message.channel == Channel::Iopub && is("idle");
        if !(barrier.replied && barrier.idle) {
            return;
        }
        let (behind, doubt) = (std::mem::take(&mut barrier.behind), barrier.doubt);
        self.barrier = None;
        if let Some(active) = self.active.take_if(|active| active.run.msg_id == behind) {
            match active.run.reply() {
                Some(outcome) => {
                    self.active = Some(active);
                    self.ended(outcome);
                }
                None if active.interrupted && active.run.is_unanswered() => {
                    self.end(active, Ending::cancelled("it was interrupted"));
                }
                None => self.end(active, Ending::lost(doubt.to_owned())),
            }
        }
    }

    fn cancel(&mut self, execution: &Arc<Execution>) {
        match &mut self.active {
            Some(active) if Arc::ptr_eq(&active.execution, execution) => {
                active.interrupted = true;
                // Code may swallow the interrupt, or end just before it comes; what follows must not run all the same.
                execution.is_unwanted_from_now_on();
                // A kernel that is at something else would drop that, or ignore it, and begin with this all the same.
                if active.run.begun {
                    self.interrupt();
                }
            }
            _ => {
                execution.end_rest(
                    ExecutionStatus::Cancelled,
                    Some("it was cancelled before it ran".to_owned()),
                );
                self.close_batch(execution, true);
            }
        }
    }

    /// Interrupts the kernel without waiting for it; the run that ends tells.
    fn interrupt(&self) {
        let Some(kernel) = &self.kernel else { return };
        let (server, id) = (Arc::clone(&self.server), kernel.link.kernel_id().to_owned());
        tokio::spawn(async move {
            if let Err(error) = server.interrupt_kernel(&id).await {
                tracing::warn!(%error, kernel = id, "a kernel could not be interrupted");
            }
        });
    }

    async fn answer(
        &mut self,
        execution: &Arc<Execution>,
        value: &str,
        number: Option<usize>,
    ) -> Result<(), ExecutionError> {
        // The answer to an earlier question, sent once more, must not be taken for that to this one.
        let current = execution.question().map(|question| question.number);
        if number.is_some() && current.is_some() && number != current {
            return Ok(());
        }
        let asking = self
            .active
            .as_mut()
            .filter(|active| Arc::ptr_eq(&active.execution, execution));
        let (Some(active), Some(kernel)) = (asking, &self.kernel) else {
            return Err(ExecutionError::NoQuestion {
                id: execution.id.clone(),
            });
        };
        let Some(question) = active.question.clone() else {
            return Err(ExecutionError::NoQuestion {
                id: execution.id.clone(),
            });
        };
        kernel.link.reply_input(&question, value).await?;
        active.question = None;
        execution.goes_on();
        Ok(())
    }

    /// Returns to the kernel of an earlier process and to the piece that ran there.
    fn resume(&mut self, execution: Arc<Execution>) {
        let Some((step, msg_id, kernel_id, session)) = execution.resumable() else {
            execution.end_rest(
                ExecutionStatus::Cancelled,
                Some("the gateway was restarted before it was seen to run".to_owned()),
            );
            self.shared.finish(&execution);
            return;
        };
        let room = self.room().filter(|_| execution.kind == ExecutionKind::Cells);
        let mut piece = Piece::resume(Arc::clone(&execution), step, msg_id, room.as_ref());
        if let Some(open) = execution.open_question() {
            let StoredQuestion {
                prompt,
                password,
                header,
            } = open;
            let number = 0;
            let question = Question {
                prompt,
                password,
                number,
            };
            execution.asks(step, question, &header);
            piece.question = Some(header);
        }
        self.queue.push_front(execution);
        self.active = Some(piece);
        self.finding = Some(Kernel::return_to(Arc::clone(&self.server), kernel_id, session).boxed());
    }

    /// Closes what the worker had open. A kernel that served only the gateway is shut down, unless something runs in
    /// it that the next process is to take up.
    async fn leave(mut self) {
        let Some(mut kernel) = self.kernel.take() else { return };
        kernel.link.close();
        // What the kernel said before it heard of the closing will not be said again.
        while let Some(event) = kernel.events.recv().await {
            if let KernelEvent::Message(message) = event {
                self.hear(message).await;
            }
        }
        let room = self.room();
        for piece in self.active.iter_mut().chain(&mut self.recent) {
            if piece.flush_at().is_some() {
                piece.flush(room.as_ref());
            }
        }
        if let Some(active) = &self.active {
            self.shared.note_outputs(&active.execution);
            return;
        }
        let ours = matches!(self.place, Place::Scratch { .. })
            || kernel.started && self.shared.settings.shutdown_started_kernels;
        if ours {
            let shut_down = self.server.shutdown_kernel(kernel.link.kernel_id());
            let _ = timeout(SHUTS_DOWN_WITHIN, shut_down).await;
        }
    }
}
