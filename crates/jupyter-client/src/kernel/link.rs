//! Handle of a kernel: requests to it, the stream of its messages, and behind both the task that owns the connection
//! and restores it when it is cut.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    sync::{Notify, mpsc, oneshot, watch},
    time::{Instant, sleep},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    Channel, ExecuteRequest, Framing, Message,
    answers::Answers,
    connection::{Connection, End, Kernel, Request},
    message::Outgoing,
    queue::Queue,
};
use crate::{JupyterError, JupyterServer};

const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_millis(2500);
/// A connection that held for so long was a good one; what ended it is a new mishap.
const GOOD: Duration = Duration::from_secs(10);
/// Time limit for restoring a cut connection.
const GIVE_UP: Duration = Duration::from_secs(120);
/// Jupyter drops the connection of a client that sends more than 10 MiB at once.
const MAX_REQUEST_BYTES: usize = 9 * 1024 * 1024;
/// Requests that wait to be written; more wait with their callers.
const MAX_REQUESTS: usize = 16;

/// Event of a connection to a kernel.
#[derive(Debug, Clone, PartialEq)]
pub enum KernelEvent {
    Message(Message),
    /// The connection is down; the link is trying to restore it.
    Disconnected,
    /// The connection is back under the same session id; what Jupyter buffered follows as messages.
    Reconnected,
    /// The link has given up or the kernel does not exist any more; nothing follows.
    Gone(JupyterError),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    #[error(transparent)]
    Jupyter(#[from] JupyterError),
    #[error(
        "the code is too large to send to a kernel ({bytes} bytes, limit {MAX_REQUEST_BYTES}); put the data into a file and have the code read it"
    )]
    TooLarge { bytes: usize },
    #[error(
        "the connection to kernel `{kernel}` on Jupyter server `{server}` is down and being restored; try again in a moment"
    )]
    Reconnecting { server: String, kernel: String },
    #[error("the connection to kernel `{kernel}` was closed; try again to reconnect")]
    Closed { kernel: String },
}

/// One kept-open connection to a kernel. Clones are the same link; it closes with the last of them.
#[derive(Clone)]
pub struct KernelLink(Arc<Handle>);

struct Handle {
    shared: Arc<Shared>,
    outbox: mpsc::Sender<Request>,
    _closes: DropGuard,
}

struct Shared {
    server: Arc<JupyterServer>,
    kernel_id: String,
    session_id: String,
    status: watch::Sender<Status>,
    /// Requests of callers who wait for the reply themselves.
    answers: Answers,
    /// Rung when the connection is to be opened anew.
    renewal: Notify,
    closing: CancellationToken,
}

#[derive(Debug, Clone)]
enum Status {
    Connected,
    Reconnecting,
    Over(KernelError),
}

impl KernelLink {
    /// Connects to a kernel. `session_id` names this client to Jupyter: a return under the same id receives
    /// what the kernel said meanwhile, and a second connection under it ends the first.
    pub async fn connect(
        server: Arc<JupyterServer>,
        kernel_id: &str,
        session_id: &str,
    ) -> Result<(Self, mpsc::Receiver<KernelEvent>), JupyterError> {
        let closing = server.closing.child_token();
        let shared = Arc::new(Shared {
            server,
            kernel_id: kernel_id.to_owned(),
            session_id: session_id.to_owned(),
            status: watch::Sender::new(Status::Connected),
            answers: Answers::default(),
            renewal: Notify::new(),
            closing: closing.clone(),
        });
        let connection = Connection::open(shared.kernel(), Framing::V1).await?;
        let (events, listener) = Queue::new();
        let (outbox, requests) = mpsc::channel(MAX_REQUESTS);
        let keeping = keep(Arc::clone(&shared), connection, requests, events);
        shared.server.tasks.spawn(keeping);
        let handle = Handle {
            shared,
            outbox,
            _closes: closing.drop_guard(),
        };
        Ok((Self(Arc::new(handle)), listener))
    }

    pub fn kernel_id(&self) -> &str {
        &self.0.shared.kernel_id
    }

    pub fn session_id(&self) -> &str {
        &self.0.shared.session_id
    }

    pub fn server(&self) -> &Arc<JupyterServer> {
        &self.0.shared.server
    }

    pub fn is_connected(&self) -> bool {
        matches!(*self.0.shared.status.borrow(), Status::Connected)
    }

    /// Asks the kernel to run code, under an id that the caller chose and could note down before. Returns
    /// when the request is on the wire. One that fails because the connection was cut meanwhile may have arrived
    /// all the same; what the kernel says after the reconnection tells.
    pub async fn execute(&self, msg_id: &str, request: &ExecuteRequest) -> Result<(), KernelError> {
        self.send(Outgoing::execute(self.session_id(), msg_id, request)).await
    }

    /// Asks the kernel something and waits for the content of its reply, which no listener of the link gets. It never comes if
    /// the kernel ends or the connection is cut meanwhile: the caller sets a limit.
    pub async fn ask(&self, channel: Channel, msg_type: &str, content: Value) -> Result<Value, KernelError> {
        let (question, reply) = self.0.shared.answers.expect();
        let message = Outgoing::new(channel, self.session_id(), question.msg_id(), msg_type, content);
        self.send(message).await?;
        reply.await.map_err(|_| self.0.shared.refusal())
    }

    /// Asks for the kernel's info on the shell channel: its reply is a barrier behind everything sent before.
    pub async fn kernel_info(&self, msg_id: &str) -> Result<(), KernelError> {
        self.send(Outgoing::kernel_info(self.session_id(), msg_id)).await
    }

    /// Tells the kernel's side of a widget something.
    pub async fn comm_msg(&self, content: Value) -> Result<(), KernelError> {
        let msg_id = uuid::Uuid::new_v4().to_string();
        self.send(Outgoing::comm_msg(self.session_id(), &msg_id, content)).await
    }

    /// Answers an `input_request` by its header. The value may be a password.
    pub async fn reply_input(&self, request: &Value, value: &str) -> Result<(), KernelError> {
        let msg_id = uuid::Uuid::new_v4().to_string();
        let reply = Outgoing::input_reply(self.session_id(), &msg_id, request, value);
        self.send(reply).await
    }

    /// Opens the connection anew, as if it had been cut. Jupyter may have given a kernel that it started again other
    /// ports, and turns to them only for a connection that is new.
    pub fn renew(&self) {
        self.0.shared.renewal.notify_one();
    }

    /// Closes the connection for every clone. The kernel runs on.
    pub fn close(&self) {
        self.0.shared.closing.cancel();
    }

    async fn send(&self, message: Outgoing) -> Result<(), KernelError> {
        let bytes = message.size();
        if bytes > MAX_REQUEST_BYTES {
            return Err(KernelError::TooLarge { bytes });
        }
        if !self.is_connected() {
            return Err(self.0.shared.refusal());
        }
        let (written, on_the_wire) = oneshot::channel();
        let request = Request { message, written };
        if self.0.outbox.send(request).await.is_err() || on_the_wire.await.is_err() {
            return Err(self.0.shared.refusal());
        }
        Ok(())
    }
}

/// Speaks to a kernel that was just started until it answers. Jupyter takes one that nobody has spoken to for starting,
/// however long ago that was.
pub async fn greet(server: Arc<JupyterServer>, kernel_id: &str) -> Result<(), KernelError> {
    let session = uuid::Uuid::new_v4().to_string();
    let (link, mut events) = KernelLink::connect(server, kernel_id, &session).await?;
    link.kernel_info(&session).await?;
    while let Some(event) = events.recv().await {
        match event {
            KernelEvent::Message(message) if message.msg_type == "kernel_info_reply" => break,
            KernelEvent::Gone(error) => return Err(error.into()),
            _ => {}
        }
    }
    link.close();
    Ok(())
}

impl Shared {
    fn kernel(&self) -> Kernel<'_> {
        Kernel {
            server: &self.server,
            id: &self.kernel_id,
            session_id: &self.session_id,
        }
    }

    /// Reason why a request could not be sent.
    fn refusal(&self) -> KernelError {
        let kernel = self.kernel_id.clone();
        match &*self.status.borrow() {
            _ if self.closing.is_cancelled() => KernelError::Closed { kernel },
            Status::Over(why) => why.clone(),
            Status::Connected | Status::Reconnecting => KernelError::Reconnecting {
                server: self.server.name().to_owned(),
                kernel,
            },
        }
    }
}

/// Keeps the connection until it is closed or lost for good.
async fn keep(shared: Arc<Shared>, connection: Connection, mut requests: mpsc::Receiver<Request>, mut events: Queue) {
    let kept = keep_connected(&shared, connection, &mut requests, &mut events).await;
    let why = match &kept {
        Some(error) => error.clone().into(),
        None => KernelError::Closed {
            kernel: shared.kernel_id.clone(),
        },
    };
    shared.status.send_replace(Status::Over(why));
    // Who still waits learns of it at once, however long the listener takes to.
    drop(requests);
    if let Some(error) = kept {
        let told = events.offer(KernelEvent::Gone(error), 0);
        let _ = shared.closing.run_until_cancelled(told).await;
    }
}

/// Returns why the kernel is lost, or nothing if the link was closed.
async fn keep_connected(
    shared: &Shared,
    mut connection: Connection,
    requests: &mut mpsc::Receiver<Request>,
    events: &mut Queue,
) -> Option<JupyterError> {
    let mut backoff = FIRST_BACKOFF;
    let mut greeting = None;
    loop {
        let (framing, since) = (connection.framing, Instant::now());
        let serving = connection.serve(
            shared.kernel(),
            greeting.take(),
            requests,
            (events, &shared.answers),
            &shared.closing,
        );
        let end = tokio::select! {
            end = serving => end,
            () = shared.renewal.notified() => End::Cut("it is opened anew".to_owned()),
        };
        match end {
            End::Left => return None,
            End::Gone(error) => return Some(error),
            End::Cut(why) => tracing::debug!(kernel = %shared.kernel_id, why, "the connection to a kernel is down"),
        }
        shared.status.send_replace(Status::Reconnecting);
        if since.elapsed() > GOOD {
            backoff = FIRST_BACKOFF;
        }
        let mending = async {
            events.offer(KernelEvent::Disconnected, 0).await.ok()?;
            Some(come_back(shared, framing, &mut backoff).await)
        };
        let mended = tokio::select! {
            mended = mending => mended?,
            () = refuse(requests) => return None,
            () = shared.closing.cancelled() => return None,
        };
        match mended {
            Ok(restored) => connection = restored,
            Err(error) => return Some(error),
        }
        // Who is told of the return may speak at once; who speaks before being told is heard all the same.
        shared.status.send_replace(Status::Connected);
        greeting = Some(KernelEvent::Reconnected);
    }
}

/// Drops requests, which tells their callers; ends when there can be no more.
async fn refuse(requests: &mut mpsc::Receiver<Request>) {
    while requests.recv().await.is_some() {}
}

/// Connects again under the same session id. The framing is kept: a connection that is opened only to
/// find out would already receive what Jupyter buffered, and lose it.
async fn come_back(shared: &Shared, framing: Framing, backoff: &mut Duration) -> Result<Connection, JupyterError> {
    let deadline = Instant::now() + GIVE_UP;
    loop {
        sleep(*backoff).await;
        *backoff = (*backoff * 2).min(MAX_BACKOFF);
        match Connection::open(shared.kernel(), framing).await {
            Ok(connection) => return Ok(connection),
            // A server that was stopped has ended its kernels.
            Err(gone @ (JupyterError::NoKernel { .. } | JupyterError::Stopped { .. })) => return Err(gone),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(error) => tracing::debug!(%error, kernel = %shared.kernel_id, "a kernel cannot be reached again yet"),
        }
    }
}
