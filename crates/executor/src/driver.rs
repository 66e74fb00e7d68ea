//! The task behind one notebook's queue, or behind one kernel of its own: it owns the connection to the kernel, the lease of
//! the room and the timers, gives the core what happens, and carries out what the core wants.

mod cell_writer;
mod copies;
mod documents;
mod effects;
mod kernel_finder;

use std::{
    collections::{HashMap, VecDeque},
    future::pending,
    sync::Arc,
};

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jupyter_client::{
    DocPath, JupyterError, JupyterServer, RunningKernel,
    kernel::{KernelEvent, KernelLink},
};
use live_document::pool::Lease;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep_until},
};

use self::{
    cell_writer::CellWriter,
    documents::Saving,
    kernel_finder::{Connection, Found},
};
use crate::{
    ExecutionError,
    core::{
        Core, CoreSettings,
        actor::Reason,
        execution::Execution,
        input::{Effect, Input, Moment, RunId},
        notebook::Notebook,
    },
    engine::Shared,
    policy::KERNEL_START_RESOLUTION,
};

/// Request to a driver.
pub(crate) enum Command {
    Submit(Arc<Execution>, Option<Lease>),
    /// Takes up an execution that an earlier process began.
    Resume(Arc<Execution>),
    /// Something for the core.
    Tell(Input),
    /// The kernel is to be replaced, restarted or shut down; only if it is this one, where one is named.
    Leave {
        kernel_id: Option<String>,
        why: Reason,
        done: oneshot::Sender<()>,
    },
    /// Asks for the connection to a kernel, if there is one.
    Link {
        kernel_id: String,
        reply: oneshot::Sender<KernelLink>,
    },
}

/// Notebook or private kernel that a driver works for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Notebook(Arc<Notebook>),
    Scratch {
        kernel_name: Option<String>,
    },
    /// A kernel for one copy of a notebook, which ends with it.
    Copy {
        original: Arc<Notebook>,
        kernel_name: Option<String>,
    },
}

impl Place {
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Notebook(notebook) => format!("'{}'", notebook.path()),
            Self::Scratch { .. } => "your own kernel".to_owned(),
            Self::Copy { original, .. } => format!("a copy of '{}'", original.path()),
        }
    }
}

pub(crate) struct Driver {
    shared: Arc<Shared>,
    server: Arc<JupyterServer>,
    place: Place,
    inbox: mpsc::Receiver<Command>,
    core: Core,
    connection: Option<Connection>,
    finding: Option<BoxFuture<'static, Result<Found, ExecutionError>>>,
    asking: Option<BoxFuture<'static, Result<Option<RunningKernel>, JupyterError>>>,
    /// Save of the edited documents before the next cell runs.
    saving: Option<Saving>,
    /// Lease that is kept while something is to be written, so that the room stays open.
    lease: Option<Lease>,
    /// The cells of the runs that may still be written.
    writers: HashMap<RunId, CellWriter>,
    /// Ends of runs on their way to the server.
    arrivals: FuturesUnordered<BoxFuture<'static, (RunId, bool)>>,
    /// Time of the last start of a kernel on the server, as the core knows it.
    kernels_changed: Option<Instant>,
    /// True once it was given its only execution.
    is_used_up: bool,
    /// True for the kernel of a copy, which is shut down when the copy has run.
    copys_kernel: Option<String>,
}

/// Event that a driver waits for.
enum Event {
    Command(Option<Command>),
    Input(Input),
    Kernel(Option<KernelEvent>),
    Found(Result<Found, ExecutionError>),
    /// The documents are saved, except for these paths.
    Saved(Vec<String>),
    Arrived(RunId, bool),
    Idle,
    Stopping,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        server: Arc<JupyterServer>,
        place: Place,
        inbox: mpsc::Receiver<Command>,
    ) -> Self {
        let settings = CoreSettings {
            input_timeout: shared.settings.input_timeout,
            shuts_down_started: shared.settings.shutdown_started_kernels,
            is_kernel_private: matches!(place, Place::Scratch { .. }),
            id: uuid::Uuid::new_v4().to_string(),
        };
        let core = Core::new(settings, shared.retained.clone(), Moment::now());
        Self {
            shared,
            server,
            place,
            inbox,
            core,
            connection: None,
            finding: None,
            asking: None,
            saving: None,
            lease: None,
            writers: HashMap::new(),
            arrivals: FuturesUnordered::new(),
            kernels_changed: None,
            is_used_up: false,
            copys_kernel: None,
        }
    }

    /// Runs until nothing was requested for a while, or the gateway stops.
    pub(crate) async fn work(mut self) {
        loop {
            match self.next_event().await {
                Event::Command(Some(command)) => self.on_command(command).await,
                Event::Command(None) => {}
                Event::Input(input) => self.feed(input).await,
                Event::Kernel(Some(event)) => self.on_kernel_event(event).await,
                Event::Kernel(None) => {
                    let why = "its connection was closed".to_owned();
                    self.feed(Input::KernelGone(why)).await;
                }
                Event::Found(found) => self.on_found(found).await,
                Event::Saved(unsaved) => self.on_saved(unsaved).await,
                Event::Arrived(run, arrived) => self.on_arrived(run, arrived).await,
                Event::Idle => {
                    // Closed first, so that nothing can be put in while the driver leaves. What was asked just before is
                    // still done.
                    self.inbox.close();
                    while let Some(command) = self.inbox.recv().await {
                        self.on_command(command).await;
                    }
                    if self.core.is_idle() {
                        break;
                    }
                }
                Event::Stopping => break,
            }
        }
        self.leave().await;
    }

    async fn next_event(&mut self) -> Event {
        let timer = self.core.timer();
        let is_left = self.inbox.is_closed() && self.inbox.is_empty();
        let idle_since = self.core.idle_since();
        let leaves_at = match is_left || self.is_used_up {
            true => idle_since,
            false => idle_since + self.shared.settings.idle_timeout,
        };
        let connection = self.connection.as_mut();
        let kernel_event = async {
            match connection {
                Some(connection) => connection.events.recv().await,
                None => pending().await,
            }
        };
        let saving = self.saving.as_mut().map(|saving| &mut saving.saved);
        tokio::select! {
            // In this order, so that commands come before the messages of a chatty kernel.
            biased;
            () = self.shared.stopping.cancelled() => Event::Stopping,
            command = self.inbox.recv(), if !is_left => Event::Command(command),
            () = sleep_until(timer.unwrap_or(leaves_at)), if timer.is_some() => Event::Input(Input::Tick),
            event = kernel_event => Event::Kernel(event),
            found = wait(&mut self.finding) => Event::Found(found),
            unsaved = async { match saving { Some(saving) => saving.await, None => pending().await } } => Event::Saved(unsaved),
            answer = wait(&mut self.asking) => {
                self.asking = None;
                Event::Input(Input::ServerAnswered(answer))
            }
            Some((run, arrived)) = self.arrivals.next(), if !self.arrivals.is_empty() => Event::Arrived(run, arrived),
            () = sleep_until(leaves_at), if self.core.is_idle() => Event::Idle,
        }
    }

    /// Gives the core an input, and carries out its effects, with all that follow at once.
    async fn feed(&mut self, input: Input) {
        let mut inputs = self.poll_connection(input);
        while let Some(input) = inputs.pop_front() {
            for effect in self.core.on(input, Moment::now()) {
                inputs.extend(self.carry_out(effect).await);
            }
        }
        // A room that nothing will be written to may be closed.
        if self.core.is_idle() {
            self.lease = None;
        }
    }

    /// Puts before an input what can be seen without waiting: a connection that is down, a kernel that somebody started.
    fn poll_connection(&mut self, input: Input) -> VecDeque<Input> {
        let mut inputs = VecDeque::from([input]);
        let connection = self.connection.as_ref();
        if connection.is_some_and(|connection| !connection.link.is_connected()) {
            // One that is down again will be restored again.
            inputs.retain(|input| !matches!(input, Input::ConnectionRestored));
            inputs.push_front(Input::ConnectionLost);
        }
        let now = Instant::now();
        let changed = self.server.kernels_changed().and_then(|ago| now.checked_sub(ago));
        // Each measurement of the same moment differs a little.
        let told = self.kernels_changed.map(|told| told + KERNEL_START_RESOLUTION);
        if let Some(at) = changed.filter(|_| changed > told) {
            self.kernels_changed = changed;
            inputs.push_front(Input::KernelsChanged(at));
        }
        inputs
    }

    async fn on_command(&mut self, command: Command) {
        self.is_used_up |= matches!(self.place, Place::Copy { .. });
        let input = match command {
            Command::Submit(execution, lease) => {
                self.lease = lease.or(self.lease.take());
                self.feed(Input::Execute(Arc::clone(&execution))).await;
                // What was sent at once is on record as such; a record before that would only hold it up.
                if !execution.is_recorded() {
                    self.shared.note(&execution);
                }
                return;
            }
            Command::Resume(execution) => Input::Resume(execution),
            Command::Tell(input) => input,
            Command::Leave { kernel_id, why, done } => {
                if kernel_id.is_none_or(|id| self.is_connected_to(&id)) {
                    self.feed(Input::LeaveKernel(why)).await;
                }
                let _ = done.send(());
                return;
            }
            Command::Link { kernel_id, reply } => {
                let connection = self.connection.as_ref();
                let links = connection.map(|connection| &connection.link);
                let usable = links.filter(|link| link.kernel_id() == kernel_id && link.is_connected());
                if let Some(link) = usable {
                    // Whoever asked may be gone.
                    let _ = reply.send(link.clone());
                }
                return;
            }
        };
        self.feed(input).await;
    }

    async fn on_kernel_event(&mut self, event: KernelEvent) {
        let input = match event {
            KernelEvent::Message(message) => Input::Message(message),
            KernelEvent::Disconnected => Input::ConnectionLost,
            KernelEvent::Reconnected => Input::ConnectionRestored,
            KernelEvent::Gone(error) => Input::KernelGone(error.to_string()),
        };
        self.feed(input).await;
    }

    async fn on_found(&mut self, found: Result<Found, ExecutionError>) {
        self.finding = None;
        let found = match found {
            Ok(Found { kernel, lease, what }) => {
                if kernel.is_some() {
                    (self.connection, self.asking) = (kernel, None);
                }
                if let (Place::Copy { .. }, Some(connection)) = (&self.place, &self.connection) {
                    self.copys_kernel = Some(connection.link.kernel_id().to_owned());
                }
                self.lease = lease.or(self.lease.take());
                Ok(what)
            }
            Err(error) => Err(error),
        };
        self.feed(Input::KernelFound(found)).await;
    }

    /// Closes what the driver had open.
    async fn leave(mut self) {
        self.inbox.close();
        // What was submitted while the gateway stops is left to the next process.
        while let Ok(command) = self.inbox.try_recv() {
            if let Command::Submit(execution, _) = command {
                self.shared.note(&execution);
            }
        }
        self.feed(Input::Stop).await;
        if let Some(mut connection) = self.connection.take() {
            connection.link.close();
            // What the kernel said before it heard of the closing will not be said again.
            while let Some(event) = connection.events.recv().await {
                if let KernelEvent::Message(message) = event {
                    self.feed(Input::Message(message)).await;
                }
            }
            self.feed(Input::Drained).await;
        }
        // What still runs is taken up by the next process.
        if let Some(kernel_id) = self.copys_kernel.take().filter(|_| self.core.is_idle()) {
            self.end_kernel(Effect::ShutDownKernel { kernel_id }).await;
        }
    }

    fn is_connected_to(&self, kernel_id: &str) -> bool {
        let connection = self.connection.as_ref();
        connection.is_some_and(|connection| connection.link.kernel_id() == kernel_id)
    }

    /// The notebook that it works for.
    fn notebook(&self) -> Option<&Arc<Notebook>> {
        match &self.place {
            Place::Notebook(notebook) => Some(notebook),
            Place::Scratch { .. } | Place::Copy { .. } => None,
        }
    }

    /// Path of the notebook now. Its open document may know of a rename that the engine has not heard of yet.
    fn path(&self) -> Option<DocPath> {
        let notebook = self.notebook()?;
        let pool = &self.shared.pool;
        let of_room = self.lease.as_ref().map(|room| room.info().path);
        let of_document = || pool.path_of(&notebook.document()?);
        Some(of_room.or_else(of_document).unwrap_or_else(|| notebook.path()))
    }
}

/// Waits for a future that may not be there.
async fn wait<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => pending().await,
    }
}
