//! Executions that outlive their callers: the gateway owns them, not the call that asked for them. One queue per
//! notebook, one worker behind it; whoever is interested waits for as long as they like.

mod actor;
mod deserted;
mod error;
mod job;
mod kept;
mod kernel;
mod kernel_history;
mod outputs;
mod piece;
mod ran;
mod run;
mod terminal;
mod turns;
mod waiting;
mod widgets;
mod worker;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use dashmap::DashMap;
use futures::{StreamExt, future::join_all, stream::FuturesUnordered};
use tokio::{
    sync::{broadcast, mpsc, oneshot, watch},
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use actor::Actor;
pub use error::ExecutionError;
pub use job::{CellSnapshot, Execution, Owner, Question, Snapshot};
pub use store::{Activities, Activity};

use self::{
    actor::Reason,
    job::Step,
    kept::KeptBytes,
    kernel_history::KernelHistory,
    ran::RanLog,
    worker::{Command, Place, Worker},
};
use jupyter_client::{DocPath, JupyterError, JupyterServer, Servers};
use live_document::{
    RoomKind,
    pool::{Lease, Pool, PoolEvent, Renamed},
};
use store::{ExecutionFilter, ExecutionKind, ExecutionRecord, ExecutionStatus, LeftBehind, OtherGateway, Store};

/// Commands that wait for a worker; more wait with their callers.
const MAX_COMMANDS: usize = 64;
/// How long a call that comes right after the start waits for what earlier processes left behind.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// How long a call waits before it answers that the execution goes on.
    pub default_wait: Duration,
    /// Kept per cell.
    pub max_output_bytes: usize,
    /// How long a question of running code may stay unanswered before it is interrupted.
    pub input_timeout: Duration,
    /// How long a connection to a kernel that nobody uses is kept.
    pub idle_timeout: Duration,
    /// Whether kernels that the gateway started for a notebook end with its connection to them.
    pub shutdown_started_kernels: bool,
}

pub struct Engine {
    shared: Arc<Shared>,
    workers: DashMap<Key, mpsc::Sender<Command>>,
    tasks: TaskTracker,
    /// Held while executions are counted and admitted.
    admission: Mutex<()>,
    /// Whether what earlier processes left behind has been taken up.
    settled: watch::Sender<bool>,
}

/// What workers share.
struct Shared {
    settings: EngineSettings,
    pool: Arc<Pool>,
    store: Store,
    history: KernelHistory,
    /// Executions that have not ended.
    live: DashMap<String, Arc<Execution>>,
    ran: RanLog,
    /// What is kept of runs that have ended.
    kept: KeptBytes,
    /// The gateway leaves; what runs is left to the next process.
    stopping: CancellationToken,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: Arc<str>,
    queue: Queue,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Queue {
    Notebook(DocPath),
    /// A kernel of a principal's own.
    Scratch {
        principal: Arc<str>,
        kernel_name: Option<String>,
    },
    /// The same, of an earlier process of the gateway.
    Earlier {
        execution_id: String,
    },
}

/// Whose execution is wanted, and how many of the tenant's may go on at the same time.
#[derive(Debug, Clone)]
pub struct Claim {
    pub owner: Owner,
    pub max_concurrent: usize,
}

impl Shared {
    fn note(&self, execution: &Execution) {
        self.store.note_execution(execution.record());
    }

    /// Also keeps what has been put out so far, for a process that comes after this one.
    fn note_outputs(&self, execution: &Execution) {
        self.store.note_execution(execution.record_with_outputs());
    }

    /// Notes that code of somebody runs, and may write files from now on.
    fn note_run(&self, execution: &Execution, path: Option<&DocPath>) {
        self.ran.note(&execution.owner.principal, execution.server.name(), path);
    }

    /// Ends an execution: its record is there before it is forgotten here.
    fn finish(&self, execution: &Arc<Execution>) {
        if execution.lock().steps.iter().any(|step| step.msg_id.is_some()) {
            self.note_run(execution, execution.path().as_ref());
        }
        execution.end();
        self.note(execution);
        self.live.remove(&execution.id);
        execution.changed();
    }
}

impl Engine {
    pub fn new(settings: EngineSettings, pool: Arc<Pool>, store: Store) -> Self {
        Self {
            shared: Arc::new(Shared {
                settings,
                pool,
                store,
                history: KernelHistory::default(),
                live: DashMap::new(),
                ran: RanLog::default(),
                kept: KeptBytes::default(),
                stopping: CancellationToken::new(),
            }),
            workers: DashMap::new(),
            tasks: TaskTracker::new(),
            admission: Mutex::new(()),
            settled: watch::Sender::new(false),
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
        let steps = cells
            .into_iter()
            .map(|(index, id)| Step::cell(id, index, limit))
            .collect();
        let path = room.info().path;
        let execution = Execution::new(
            claim.owner.clone(),
            Arc::clone(server),
            Some(path),
            ExecutionKind::Cells,
            steps,
            stop_on_error,
        );
        let execution = self.admit(claim, execution)?;
        self.hand_over(Key::of(&execution), &execution, Command::Submit, Some(room))
            .await;
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
        let steps = vec![Step::code(code, self.shared.settings.max_output_bytes)];
        let mut execution = Execution::new(
            claim.owner.clone(),
            Arc::clone(server),
            path.cloned(),
            ExecutionKind::Code,
            steps,
            true,
        );
        execution.kernel_name = kernel_name.filter(|_| path.is_none()).map(str::to_owned);
        let execution = self.admit(claim, execution)?;
        self.hand_over(Key::of(&execution), &execution, Command::Submit, None)
            .await;
        Ok(execution)
    }

    /// Waits until what earlier processes left behind is known.
    pub async fn settled_in(&self) {
        let mut settled = self.settled.subscribe();
        let _ = timeout(SETTLES_WITHIN, settled.wait_for(|settled| *settled)).await;
    }

    /// An execution that has not ended, if it is the owner's.
    pub fn live(&self, owner: &Owner, id: &str) -> Option<Arc<Execution>> {
        let execution = Arc::clone(&*self.shared.live.get(id)?);
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
        Ok(records.into_iter().map(Snapshot::from).collect())
    }

    /// When code of a principal last ran on a server, and may have written a document. A notebook's own code is not
    /// expected to write its file.
    pub fn last_ran(&self, principal: &str, server: &str, document: &DocPath) -> Option<Instant> {
        self.shared.ran.last(principal, server, document)
    }

    /// How much was run in each notebook, whoever did it.
    pub async fn activities(&self) -> Result<Activities, ExecutionError> {
        Ok(self.shared.store.activities().await?)
    }

    /// Asks for an execution to end: the kernel is interrupted if it runs, and it leaves the queue if it waits.
    pub async fn cancel(&self, execution: &Arc<Execution>) {
        self.tell(execution, Command::Cancel(Arc::clone(execution))).await;
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
        let (done, answered) = oneshot::channel();
        let command = Command::Answer {
            execution: Arc::clone(execution),
            value,
            number,
            done,
        };
        self.tell(execution, command).await;
        let gone = ExecutionError::NoQuestion {
            id: execution.id.clone(),
        };
        answered.await.unwrap_or(Err(gone))
    }

    /// The person does not want to answer what running code asks, so that it cannot go on.
    pub async fn decline(&self, execution: &Arc<Execution>) {
        // Nobody is to be asked the same again while the kernel stops.
        execution.goes_on();
        self.cancel(execution).await;
    }

    /// What runs or waits in a notebook, whoever asked for it.
    pub fn busy_with(&self, server: &str, path: &DocPath) -> usize {
        self.shared
            .live
            .iter()
            .filter(|execution| execution.server.name() == server && execution.path().as_ref() == Some(path))
            .count()
    }

    /// Says that somebody interrupts a notebook's kernel, so that what ends by it is cancelled and has not failed.
    pub async fn interrupted(&self, server: &JupyterServer, path: &DocPath, actor: Actor) {
        self.tell_notebook(server, path, Command::Interrupted(actor)).await;
    }

    /// Leaves the kernel of a notebook, which is to be replaced or restarted. What runs there is cancelled. Everybody who
    /// ran something there is told what was done, which begins with the verb.
    pub async fn leave_kernel(&self, server: &JupyterServer, path: &DocPath, actor: Actor, did: &str) {
        let (done, left) = oneshot::channel();
        let why = Reason::by(actor, did);
        // Who ran something there is told also if nobody works there now.
        self.shared.history.on_left(server.name(), path, &why);
        self.tell_notebook(server, path, Command::Leave { why, done }).await;
        // A worker that is gone has left.
        let _ = left.await;
    }

    /// Follows notebooks to their new names, for as long as it is polled. Their kernels go with them, also where no
    /// JupyterLab is open that would see to it.
    pub async fn follow_renames(&self, servers: &Servers) {
        let mut events = self.shared.pool.events();
        loop {
            let renamed = match events.recv().await {
                Ok(PoolEvent::Renamed(renamed)) => renamed,
                // One that its document told, because the server's events did not come.
                Ok(PoolEvent::Room {
                    server,
                    path: to,
                    from: Some(from),
                    kind: RoomKind::Notebook,
                }) if self.has_worker(&server, &from) => Renamed { server, from, to },
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            if let Some(server) = servers.find(&renamed.server) {
                self.renamed(&server, &renamed.from, &renamed.to).await;
            }
        }
    }

    /// Follows a notebook, or all in a directory, to another name. Returns when the kernels are there too.
    pub async fn renamed(&self, server: &JupyterServer, from: &DocPath, to: &DocPath) {
        self.shared.store.note_rename(server.name(), from.as_str(), to.as_str());
        self.move_workers(server.name(), from, to).await;
        if let Err(error) = rename_sessions(server, from, to).await {
            tracing::warn!(%error, "the kernel of a renamed notebook could not be told");
        }
    }

    fn has_worker(&self, server: &Arc<str>, path: &DocPath) -> bool {
        self.workers.contains_key(&Key {
            server: Arc::clone(server),
            queue: Queue::Notebook(path.clone()),
        })
    }

    async fn move_workers(&self, server: &str, from: &DocPath, to: &DocPath) {
        let new_key = |key: &Key| match &key.queue {
            Queue::Notebook(path) if &*key.server == server => path.moved(from, to),
            _ => None,
        };
        let moved: Vec<(Key, DocPath)> = self
            .workers
            .iter()
            .filter_map(|entry| Some((entry.key().clone(), new_key(entry.key())?)))
            .collect();
        for (old, path) in moved {
            if let Some((_, inbox)) = self.workers.remove(&old) {
                let queue = Queue::Notebook(path.clone());
                // A worker that has left needs no name.
                if inbox.send(Command::Renamed(path)).await.is_err() {
                    continue;
                }
                // Somebody may have asked for something under the new name already, and has a worker there.
                let second = self.workers.insert(Key { queue, ..old }, inbox.clone());
                if let Some(second) = second.filter(|second| !second.same_channel(&inbox)) {
                    let _ = second.send(Command::Retire(inbox)).await;
                }
            }
        }
        for execution in &self.shared.live {
            let mut state = execution.lock();
            let moved = state.path.as_ref().and_then(|path| path.moved(from, to));
            if let Some(path) = moved.filter(|_| execution.server.name() == server) {
                state.path = Some(path);
                drop(state);
                self.shared.note(&execution);
            }
        }
    }

    /// Takes up what earlier processes of the gateway did not see the end of, and those that leave from now on.
    pub async fn recover(&self, servers: &Servers) {
        let others = self.shared.store.other_gateways().await.unwrap_or_else(|error| {
            tracing::error!(%error, "other gateways cannot be looked for");
            Vec::new()
        });
        self.take_over(servers).await;
        let mut leaving: FuturesUnordered<_> = others.into_iter().map(OtherGateway::wait_until_left).collect();
        let mut cleaning_up = Box::pin(self.shut_down_deserted(servers));
        let mut is_clean = false;
        loop {
            tokio::select! {
                Some(()) = leaving.next() => {
                    self.take_over(servers).await;
                    (cleaning_up, is_clean) = (Box::pin(self.shut_down_deserted(servers)), false);
                }
                () = &mut cleaning_up, if !is_clean => is_clean = true,
                else => return,
            }
        }
    }

    async fn take_over(&self, servers: &Servers) {
        let unfinished = match self.shared.store.take_over().await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                tracing::error!(%error, "executions of an earlier run cannot be taken up");
                self.settled.send_replace(true);
                return;
            }
        };
        let known = unfinished
            .into_iter()
            .filter_map(|left| match servers.get(&left.record.server) {
                Some(server) => Some(self.know(left, server)),
                None => {
                    self.shared.store.note_execution(lost(left.record));
                    None
                }
            });
        let known: Vec<Arc<Execution>> = known.collect();
        self.settled.send_replace(true);
        join_all(known.into_iter().map(|execution| self.resume(execution))).await;
    }

    /// Makes an execution of an earlier process one of this.
    fn know(&self, left: LeftBehind, server: &Arc<JupyterServer>) -> Arc<Execution> {
        let limit = self.shared.settings.max_output_bytes;
        let execution = Arc::new(Execution::resumed(left, Arc::clone(server), limit));
        tracing::info!(
            execution_id = execution.id,
            "an execution of an earlier run is taken up"
        );
        self.shared.live.insert(execution.id.clone(), Arc::clone(&execution));
        execution
    }

    async fn resume(&self, execution: Arc<Execution>) {
        if execution.resumable().is_none() {
            self.unshow_queue(&execution).await;
        }
        let key = Key::of(&execution);
        self.hand_over(key, &execution, |execution, _| Command::Resume(execution), None)
            .await;
    }

    /// Shows cells that an earlier process queued, and that will not run, as they were before.
    async fn unshow_queue(&self, execution: &Execution) {
        let (cells, Some(path)) = (execution.take_queued(true), execution.path()) else {
            return;
        };
        if cells.is_empty() {
            return;
        }
        let (server, account) = (&execution.server, execution.owner.account());
        let opened = self
            .shared
            .pool
            .lease(server, &path, RoomKind::Notebook, &account)
            .await;
        let shown = opened.map(|room| room.unmark_queued(&execution.owner.principal, &cells));
        // A server that cannot be reached has lost its rooms, and the file does not say what is queued.
        if let Err(error) = shown {
            tracing::debug!(%error, "cells that did not run may still look as if they were to");
        }
    }

    /// Stops the workers. What runs goes on in its kernel, and is taken up by the next process.
    pub async fn stop(&self) {
        self.shared.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.shared.store.flush().await;
    }

    fn admit(&self, claim: &Claim, execution: Execution) -> Result<Arc<Execution>, ExecutionError> {
        let _admission = self.admission.lock().unwrap_or_else(PoisonError::into_inner);
        self.check_room(claim, &Key::of(&execution), execution.code_bytes())?;
        let execution = Arc::new(execution);
        self.shared.note(&execution);
        self.shared.live.insert(execution.id.clone(), Arc::clone(&execution));
        Ok(execution)
    }

    /// Tells the worker of an execution.
    async fn tell(&self, execution: &Execution, command: Command) {
        let worker = execution.lock().worker.clone();
        if let Some(worker) = worker {
            // A worker that has left has seen the end of it.
            let _ = worker.send(command).await;
        }
    }

    async fn tell_notebook(&self, server: &JupyterServer, path: &DocPath, command: Command) {
        let key = Key {
            server: server.name().into(),
            queue: Queue::Notebook(path.clone()),
        };
        let inbox = self.workers.get(&key).map(|inbox| inbox.clone());
        if let Some(inbox) = inbox {
            // A worker that has left has nothing to be told of.
            let _ = inbox.send(command).await;
        }
    }

    /// Hands an execution to a queue's worker, which is started if there is none.
    async fn hand_over(
        &self,
        key: Key,
        execution: &Arc<Execution>,
        command: impl FnOnce(Arc<Execution>, Option<Lease>) -> Command,
        room: Option<Lease>,
    ) {
        let mut command = command(Arc::clone(execution), room);
        loop {
            let inbox = self.inbox(&key, &execution.server);
            execution.lock().worker = Some(inbox.clone());
            match inbox.send(command).await {
                Ok(()) => return,
                Err(mpsc::error::SendError(unsent)) => {
                    self.workers.remove_if(&key, |_, current| current.same_channel(&inbox));
                    command = unsent;
                }
            }
        }
    }

    fn inbox(&self, key: &Key, server: &Arc<JupyterServer>) -> mpsc::Sender<Command> {
        self.workers
            .entry(key.clone())
            .or_insert_with(|| {
                let (inbox, commands) = mpsc::channel(MAX_COMMANDS);
                let place = match &key.queue {
                    Queue::Notebook(path) => Place::Notebook(path.clone()),
                    Queue::Scratch { kernel_name, .. } => Place::Scratch {
                        kernel_name: kernel_name.clone(),
                    },
                    Queue::Earlier { .. } => Place::Scratch { kernel_name: None },
                };
                let worker = Worker::new(Arc::clone(&self.shared), Arc::clone(server), place, commands);
                self.tasks.spawn(worker.work());
                inbox
            })
            .clone()
    }
}

impl Key {
    /// The queue that an execution is in.
    fn of(execution: &Execution) -> Self {
        match execution.path() {
            Some(path) => Self::notebook(&execution.server, path),
            None if execution.is_resumed => Self {
                server: execution.server.name().into(),
                queue: Queue::Earlier {
                    execution_id: execution.id.clone(),
                },
            },
            None => Self {
                server: execution.server.name().into(),
                queue: Queue::Scratch {
                    principal: Arc::clone(&execution.owner.principal),
                    kernel_name: execution.kernel_name.clone(),
                },
            },
        }
    }

    fn notebook(server: &JupyterServer, path: DocPath) -> Self {
        Self {
            server: server.name().into(),
            queue: Queue::Notebook(path),
        }
    }
}

/// Tells Jupyter where the notebooks of its sessions are now.
async fn rename_sessions(server: &JupyterServer, from: &DocPath, to: &DocPath) -> Result<(), JupyterError> {
    for session in server.sessions().await? {
        let moved = session.doc_path().and_then(|path| path.moved(from, to));
        if let Some(path) = moved {
            server.rename_session(&session.id, &path).await?;
        }
    }
    Ok(())
}

/// The record of an execution that nothing more can be learned of.
fn lost(mut record: ExecutionRecord) -> ExecutionRecord {
    record.status = ExecutionStatus::Lost;
    record.reason = Some(format!(
        "the gateway restarted without Jupyter server `{}`, so it is unknown how this ended",
        record.server
    ));
    for cell in record.cells.iter_mut().filter(|cell| !cell.status.is_finished()) {
        cell.status = ExecutionStatus::Lost;
    }
    record.ended_at = Some(SystemTime::now());
    record
}

/// An id as it was given, at a length that can be shown.
fn shortened(id: &str) -> String {
    id.chars().take(100).collect()
}
