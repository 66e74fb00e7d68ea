//! The engine: admits executions, and keeps one driver per queue.

mod admission;
mod copies;
mod identity;
pub(crate) mod kernel_history;
mod orphan_kernels;
mod queue_key;
mod recovery;
mod run_log;

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use dashmap::DashMap;
use futures::future::join_all;
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Span;

use self::{
    kernel_history::{KernelHistory, ProcessEnds},
    queue_key::QueueKey,
    run_log::RunLog,
};
use crate::{
    Actor, CodeGate, Execution, ExecutionError, ExecutionObserver, Owner, RunsByNotebook, Snapshot,
    core::{
        actor::Reason,
        execution::CellRun,
        input::Input,
        notebook::{Notebook, Notebooks},
        retained::RetainedBytes,
    },
    driver::{Command, Driver},
    observer::AdmittedExecution,
    policy::{MAX_COMMANDS, RECOVERY_TIMEOUT},
};
use jupyter_client::{DocPath, JupyterServer, kernel::KernelLink};
use live_document::pool::{Lease, Pool};
use store::{ExecutionFilter, ExecutionKind, ExecutionStatus, Store};

/// Settings of the engine.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Longest wait of a call before it answers that the execution goes on.
    pub default_wait: Duration,
    /// The same where the client can take up the execution as a task.
    pub task_after: Duration,
    /// Kept per cell.
    pub max_output_bytes: usize,
    /// Time limit for the answer to a question of running code, which is interrupted then.
    pub input_timeout: Duration,
    /// Idle time after which the connection to a kernel is closed.
    pub idle_timeout: Duration,
    /// True if kernels that the gateway started for a notebook are shut down with its connection to them.
    pub shutdown_started_kernels: bool,
}

/// Runs code, and knows all executions that have not ended.
pub struct Engine {
    shared: Arc<Shared>,
    drivers: DashMap<QueueKey, mpsc::Sender<Command>>,
    /// Locked while executions are counted and admitted.
    admission: Mutex<()>,
    /// Once executions of earlier processes have been resumed: those on the first so many servers that users brought, and on
    /// all configured ones.
    settled: watch::Sender<Option<u64>>,
    /// Number of servers that users have brought.
    brought: OnceLock<watch::Receiver<u64>>,
}

/// State that all drivers share.
pub(crate) struct Shared {
    pub(crate) settings: EngineSettings,
    pub(crate) pool: Arc<Pool>,
    pub(crate) store: Store,
    pub(crate) history: KernelHistory,
    pub(crate) process_ends: ProcessEnds,
    notebooks: Notebooks,
    /// Executions that have not ended.
    live: DashMap<String, Live>,
    runs: RunLog,
    observer: Arc<dyn ExecutionObserver>,
    pub(crate) retained: RetainedBytes,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the gateway stops; running executions are left to the next process.
    pub(crate) stopping: CancellationToken,
}

/// An execution that has not ended.
struct Live {
    execution: Arc<Execution>,
    /// Inbox of its driver.
    inbox: Option<mpsc::Sender<Command>>,
}

/// Owner of an execution to be admitted, and how many of the tenant's may run at the same time.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: Owner,
    pub max_concurrent: usize,
    /// Final check of the code.
    pub gate: Option<CodeGate>,
}

impl Shared {
    pub(crate) fn note(&self, execution: &Execution) {
        self.store.note_execution(execution.record());
    }

    /// Records an execution with the outputs so far, for the next process.
    pub(crate) fn note_outputs(&self, execution: &Execution) {
        self.store.note_execution(execution.record_with_outputs());
    }

    /// Records that code of a principal runs, and may write files from now on.
    pub(crate) fn note_run(&self, execution: &Execution) {
        let path = execution.path();
        self.runs
            .note(&execution.owner.principal, &execution.server, path.as_ref());
    }

    /// Forgets an execution that has ended: its record is there before.
    pub(crate) fn finish(&self, execution: &Execution) {
        if execution.lock().cells.iter().any(|cell| cell.msg_id.is_some()) {
            self.note_run(execution);
        }
        self.note(execution);
        if self.live.remove(&execution.id).is_some() {
            let status = execution.status();
            self.observer
                .on_ended(measured_name(&execution.server), status, execution.age());
            execution.trace.end(status);
        }
        execution.changed();
    }

    /// Records that a cell of an execution is sent. Returns the span of its run.
    pub(crate) fn on_sending(&self, execution: &Execution, kernel_id: &str) -> Span {
        if execution.trace.is_first_run() && !execution.is_resumed {
            self.observer
                .on_first_sent(measured_name(&execution.server), execution.age());
        }
        execution.trace.run(kernel_id)
    }

    /// Sets where the driver of an execution is told of it.
    fn set_inbox(&self, execution: &Execution, inbox: mpsc::Sender<Command>) {
        if let Some(mut live) = self.live.get_mut(&execution.id) {
            live.inbox = Some(inbox);
        }
    }

    fn add(&self, execution: &Arc<Execution>) {
        let span = self.observer.on_admitted(&AdmittedExecution {
            id: &execution.id,
            server: measured_name(&execution.server),
            kind: execution.kind,
            cells: execution.progress().1,
            is_resumed: execution.is_resumed,
        });
        execution.trace.begin(span);
        let live = Live {
            execution: Arc::clone(execution),
            inbox: None,
        };
        self.live.insert(execution.id.clone(), live);
    }
}

impl Engine {
    pub fn new(settings: EngineSettings, pool: Arc<Pool>, store: Store) -> Self {
        Self::observed(settings, pool, store, Arc::new(()))
    }

    /// The same, with an observer for metrics.
    pub fn observed(
        settings: EngineSettings,
        pool: Arc<Pool>,
        store: Store,
        observer: Arc<dyn ExecutionObserver>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                pool,
                store,
                history: KernelHistory::default(),
                process_ends: ProcessEnds::default(),
                notebooks: Notebooks::default(),
                live: DashMap::new(),
                runs: RunLog::default(),
                observer,
                retained: RetainedBytes::default(),
                tasks: TaskTracker::new(),
                stopping: CancellationToken::new(),
            }),
            drivers: DashMap::new(),
            admission: Mutex::new(()),
            settled: watch::Sender::new(None),
            brought: OnceLock::new(),
        }
    }

    pub fn settings(&self) -> &EngineSettings {
        &self.shared.settings
    }

    /// Queues cells of a notebook, by id, with the positions they have now.
    pub async fn run_cells(
        &self,
        claim: &Claim,
        server: &Arc<JupyterServer>,
        room: Lease,
        cells: Vec<(usize, String)>,
        stop_on_error: bool,
    ) -> Result<Arc<Execution>, ExecutionError> {
        let limit = self.shared.settings.max_output_bytes;
        let cells = cells.into_iter().map(|(index, id)| CellRun::cell(id, index, limit));
        let file_id = room.document_id().map(|document| &document.file_id);
        let notebook = self.notebook_at(server, &room.info().path, file_id).await;
        let mut execution = Execution::new(claim.owner.clone(), server.name(), Some(notebook), cells.collect());
        execution.stop_on_error = stop_on_error;
        execution.gate.clone_from(&claim.gate);
        // What an earlier process left running there comes before it.
        self.settled_in().await;
        let execution = self.admit(claim, execution)?;
        let command = Command::Submit(Arc::clone(&execution), Some(room));
        self.submit(server, &execution, command).await;
        Ok(execution)
    }

    /// Queues code in the kernel of a notebook, which stays as it is, or in a kernel of the principal's own.
    pub async fn run_code(
        &self,
        claim: &Claim,
        server: &Arc<JupyterServer>,
        path: Option<&DocPath>,
        kernel_name: Option<&str>,
        code: String,
    ) -> Result<Arc<Execution>, ExecutionError> {
        let cell = CellRun::code(code, self.shared.settings.max_output_bytes);
        let notebook = match path {
            Some(path) => Some(self.identify(server, path).await),
            None => None,
        };
        let mut execution = Execution::new(claim.owner.clone(), server.name(), notebook, vec![cell]);
        execution.kernel_name = kernel_name.filter(|_| path.is_none()).map(str::to_owned);
        execution.gate.clone_from(&claim.gate);
        self.settled_in().await;
        let execution = self.admit(claim, execution)?;
        let command = Command::Submit(Arc::clone(&execution), None);
        self.submit(server, &execution, command).await;
        Ok(execution)
    }

    /// Waits until what earlier processes left behind on servers that can be reached is known.
    pub async fn settled_in(&self) {
        let brought = self.brought.get().map_or(0, |brought| *brought.borrow());
        let mut settled = self.settled.subscribe();
        let is_settled = |until: &Option<u64>| until.is_some_and(|until| until >= brought);
        let _ = timeout(RECOVERY_TIMEOUT, settled.wait_for(is_settled)).await;
    }

    /// An execution that has not ended, if it is the owner's.
    pub fn live(&self, owner: &Owner, id: &str) -> Option<Arc<Execution>> {
        let execution = Arc::clone(&self.shared.live.get(id)?.execution);
        owner.owns(&execution).then_some(execution)
    }

    /// An execution that has ended, from the store.
    pub async fn ended(&self, owner: &Owner, id: &str) -> Result<Snapshot, ExecutionError> {
        let record = self.shared.store.execution(&owner.tenant, &owner.principal, id).await?;
        record
            .map(Snapshot::from)
            .ok_or_else(|| ExecutionError::Unknown { id: shortened(id) })
    }

    /// The owner's executions, the newest first.
    pub async fn list(
        &self,
        owner: &Owner,
        server: Option<&str>,
        path: Option<&DocPath>,
        status: Option<ExecutionStatus>,
        limit: usize,
    ) -> Result<Vec<Snapshot>, ExecutionError> {
        let filter = ExecutionFilter {
            tenant: owner.tenant.to_string(),
            principal: owner.principal.to_string(),
            server: server.map(str::to_owned),
            path: path.map(ToString::to_string),
            status,
            limit,
        };
        let records = self.shared.store.executions(filter).await?;
        let told = |record| {
            let mut snapshot = Snapshot::from(record);
            self.add_wait(owner, &mut snapshot);
            snapshot
        };
        Ok(records.into_iter().map(told).collect())
    }

    /// The time at which code of a principal last ran on a server and may have written a document. A notebook's own code
    /// is not expected to write its file.
    pub fn last_ran(&self, principal: &str, server: &str, document: &DocPath) -> Option<Instant> {
        self.shared.runs.last(principal, server, document)
    }

    /// Counts of what was run in each notebook, whoever did it.
    pub async fn runs_by_notebook(&self) -> Result<RunsByNotebook, ExecutionError> {
        Ok(self.shared.store.runs_by_notebook().await?)
    }

    /// Asks for an execution to end: the kernel is interrupted if it runs, and it leaves the queue if it waits.
    pub async fn cancel(&self, execution: &Arc<Execution>) {
        self.tell(execution, Command::Tell(Input::Cancel(Arc::clone(execution))))
            .await;
    }

    /// Answers what running code asked.
    ///
    /// `number` is that of the question, if it is known; an answer to another one than is open changes nothing.
    pub async fn answer(
        &self,
        execution: &Arc<Execution>,
        value: String,
        number: Option<usize>,
    ) -> Result<(), ExecutionError> {
        let (reply, answered) = oneshot::channel();
        let answer = Input::Answer {
            execution: Arc::clone(execution),
            value,
            number,
            reply,
        };
        self.tell(execution, Command::Tell(answer)).await;
        let gone = ExecutionError::NoQuestion {
            id: execution.id.clone(),
        };
        answered.await.unwrap_or(Err(gone))
    }

    /// Ends code whose question the person does not want to answer.
    pub async fn decline(&self, execution: &Arc<Execution>) {
        // Nobody is to be asked the same again while the kernel stops.
        execution.on_answered();
        self.cancel(execution).await;
    }

    /// Number of executions that run or wait in a notebook, of all callers.
    pub fn busy_with(&self, server: &str, path: &DocPath) -> usize {
        self.shared
            .live
            .iter()
            .filter(|live| {
                let execution = &live.execution;
                let is_there = *execution.server == *server && execution.path().as_ref() == Some(path);
                is_there && execution.kind != ExecutionKind::Copy
            })
            .count()
    }

    /// The cells of a notebook that run or wait, of all callers, and whether each has begun.
    pub fn cells_under_way(&self, server: &str, path: &DocPath) -> Vec<(String, bool)> {
        let is_there = |execution: &Execution| {
            *execution.server == *server && execution.path().as_ref() == Some(path) && !execution.is_in_fork()
        };
        let mut cells = Vec::new();
        for live in self.shared.live.iter().filter(|live| is_there(&live.execution)) {
            let state = live.execution.lock();
            let open = state.cells.iter().filter(|cell| !cell.state.status().is_finished());
            cells.extend(open.map(|cell| (cell.cell_id.clone(), cell.state.status() != ExecutionStatus::Queued)));
        }
        cells.retain(|(id, _)| !id.is_empty());
        cells
    }

    /// Time when the kernel process of a notebook was last seen to end; earlier runs ran in another process.
    pub fn process_ended(&self, server: &str, path: &DocPath) -> Option<std::time::SystemTime> {
        let notebook = self.shared.notebooks.at(server, path)?;
        self.shared.process_ends.last(&notebook)
    }

    /// The connection to a notebook's kernel, if one is open to this kernel.
    pub async fn link_to(&self, server: &JupyterServer, path: &DocPath, kernel_id: &str) -> Option<KernelLink> {
        let notebook = self.shared.notebooks.at(server.name(), path)?;
        let (reply, link) = oneshot::channel();
        let kernel_id = kernel_id.to_owned();
        self.tell_queue(&QueueKey::Notebook(notebook), Command::Link { kernel_id, reply })
            .await;
        link.await.ok()
    }

    /// Says that somebody interrupts a notebook's kernel, so that what ends by it is cancelled and has not failed.
    pub async fn interrupted(&self, server: &JupyterServer, path: &DocPath, actor: Actor) {
        for notebook in self.shared.notebooks.all_at(server.name(), path) {
            let interrupted = Command::Tell(Input::Interrupted(actor.clone()));
            self.tell_queue(&QueueKey::Notebook(notebook), interrupted).await;
        }
    }

    /// Leaves the kernel of a notebook, which is to be replaced or restarted. What runs there is cancelled. Everybody who
    /// ran something there is told what was done, which begins with the verb.
    pub async fn leave_kernel(&self, server: &JupyterServer, path: &DocPath, actor: Actor, did: &str) {
        let why = Reason::by(actor, did);
        for notebook in self.shared.notebooks.all_at(server.name(), path) {
            self.leave_kernel_of(notebook, why.clone()).await;
        }
    }

    async fn leave_kernel_of(&self, notebook: Arc<Notebook>, why: Reason) {
        let (done, left) = oneshot::channel();
        // Everybody who ran something there is told, even if no driver is there now.
        self.shared.history.on_left(&notebook, &why);
        self.shared.process_ends.record(&notebook);
        let key = QueueKey::Notebook(notebook);
        let kernel_id = None;
        self.tell_queue(&key, Command::Leave { kernel_id, why, done }).await;
        // A driver that is gone has left.
        let _ = left.await;
    }

    /// Leaves a kernel wherever it is used, in a notebook or in none. The same otherwise.
    pub async fn leave_kernel_by_id(&self, server: &JupyterServer, kernel_id: &str, actor: Actor, did: &str) {
        let why = Reason::by(actor, did);
        self.shared.history.on_ended(kernel_id, &why);
        let of_server = self
            .drivers
            .iter()
            .filter(|driver| driver.key().may_be_on(server.name()));
        let inboxes: Vec<_> = of_server.map(|driver| driver.value().clone()).collect();
        let leaving = inboxes.into_iter().map(|inbox| {
            let (why, kernel_id) = (why.clone(), Some(kernel_id.to_owned()));
            async move {
                let (done, left) = oneshot::channel();
                // A driver that is gone has left.
                let _ = inbox.send(Command::Leave { kernel_id, why, done }).await;
                let _ = left.await;
            }
        });
        join_all(leaving).await;
    }

    /// Stops the drivers. What runs goes on in its kernel, and is taken up by the next process.
    pub async fn stop(&self) {
        self.shared.stopping.cancel();
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
        self.shared.store.flush().await;
    }

    fn admit(&self, claim: &Claim, execution: Execution) -> Result<Arc<Execution>, ExecutionError> {
        let _admission = self.admission.lock();
        self.check_room(claim, Some(&QueueKey::of(&execution)), execution.code_bytes())?;
        let execution = Arc::new(execution);
        self.shared.add(&execution);
        Ok(execution)
    }

    /// Tells the driver of an execution.
    async fn tell(&self, execution: &Execution, command: Command) {
        let live = self.shared.live.get(&execution.id);
        let inbox = live.and_then(|live| live.inbox.clone());
        if let Some(inbox) = inbox {
            // A driver that has left has seen the end of it.
            let _ = inbox.send(command).await;
        }
    }

    async fn tell_queue(&self, key: &QueueKey, command: Command) {
        let inbox = self.drivers.get(key).map(|inbox| inbox.clone());
        if let Some(inbox) = inbox {
            // A driver that has left has nothing to be told of.
            let _ = inbox.send(command).await;
        }
    }

    /// Gives an execution to its queue's driver, which is started if there is none.
    async fn submit(&self, server: &Arc<JupyterServer>, execution: &Execution, mut command: Command) {
        let key = QueueKey::of(execution);
        loop {
            let inbox = self.inbox(&key, server);
            self.shared.set_inbox(execution, inbox.clone());
            match inbox.send(command).await {
                Ok(()) => return,
                Err(mpsc::error::SendError(unsent)) => {
                    self.drivers.remove_if(&key, |_, current| current.same_channel(&inbox));
                    command = unsent;
                }
            }
        }
    }

    fn inbox(&self, key: &QueueKey, server: &Arc<JupyterServer>) -> mpsc::Sender<Command> {
        if !self.drivers.contains_key(key) {
            self.drivers.retain(|_, inbox| !inbox.is_closed());
        }
        self.drivers
            .entry(key.clone())
            .or_insert_with(|| {
                let (inbox, commands) = mpsc::channel(MAX_COMMANDS);
                let driver = Driver::new(Arc::clone(&self.shared), Arc::clone(server), key.place(), commands);
                self.shared.tasks.spawn(driver.work());
                inbox
            })
            .clone()
    }
}

/// The name by which a server is measured. That of one that an agent gave the URL of begins with the URL.
fn measured_name(server: &str) -> &str {
    if is_by_url(server) { "(by url)" } else { server }
}

/// Returns whether a server has the name of one that an agent gave the URL of, which no other process knows.
fn is_by_url(server: &str) -> bool {
    server.contains("://")
}

/// An id as it was given, at a length that can be shown.
fn shortened(id: &str) -> String {
    id.chars().take(100).collect()
}
