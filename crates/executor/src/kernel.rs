//! The kernel that a worker runs its code in: the one that the notebook has, or one that is started for it.

use std::{sync::Arc, time::Duration};

use jupyter_client::{
    Content, DocPath, JupyterServer, NotebookSession, SESSIONS_FRESH,
    kernel::{Channel, KernelEvent, KernelLink, Message},
};
use live_document::{Room, pool::Lease};
use tokio::{sync::mpsc, time::Instant};

use super::{ExecutionError, turns::Turns, widgets::OutputWidgets};

/// How long a notebook is trusted to have the kernel that it had. One that is shut down says so itself.
const TRUSTED: Duration = Duration::from_secs(10);
/// How long after a kernel was started, whoever did so, a notebook may come to have it.
const UNSETTLED: Duration = Duration::from_secs(15);
/// Begins the ids of what is asked only to be answered.
const PROBE: &str = "probe-";
/// How often a new process is asked whether it is heard.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// A process that has not been heard after such a pause may be behind a line that leads nowhere any more.
const RENEWING_PAUSE: Duration = Duration::from_secs(2);

pub(super) struct Kernel {
    pub(super) link: KernelLink,
    pub(super) events: mpsc::Receiver<KernelEvent>,
    /// The gateway started it.
    pub(super) started: bool,
    pub(super) turns: Turns,
    pub(super) widgets: OutputWidgets,
    checked: Instant,
    /// When to ask the process behind the line once more whether it is heard, if that is not known yet.
    probe: Option<Probe>,
}

struct Probe {
    at: Instant,
    pause: Duration,
}

/// What looking for a kernel found.
pub(super) enum Found {
    /// The one that is connected is still the notebook's.
    Same,
    Other(Kernel),
    /// The one that an earlier process ran something in, and the room of its notebook, if that could be opened.
    Earlier(Kernel, Option<Lease>),
}

/// Where to look for a kernel, and which one to start.
pub(super) enum Wanted {
    /// The notebook's own; its kernelspec is in the room, if that is open, or in the file.
    Notebook { path: DocPath, room: Option<Room> },
    /// One of its own, in no notebook's name.
    Scratch {
        kernel_name: Option<String>,
        /// Under whose name people see it.
        owner: String,
    },
}

impl Kernel {
    /// Whether it should be looked up again before it is used.
    pub(super) fn is_doubtful(&self) -> bool {
        let age = self.checked.elapsed();
        let changed = self.link.server().kernels_changed();
        // JupyterLab says which notebook a kernel is for only some time after it was started.
        let is_unsettled = changed.is_some_and(|since| since < UNSETTLED && (since < age || age > SESSIONS_FRESH));
        age > TRUSTED || is_unsettled
    }

    pub(super) fn was_checked(&mut self) {
        self.checked = Instant::now();
    }

    /// Jupyter put another process in the place of one that died, perhaps where this line does not lead.
    pub(super) fn was_replaced(&mut self) {
        self.link.renew();
        self.is_new_process();
    }

    /// Another process is behind the line now. What it says first is missed until Jupyter has found its way to it, so
    /// nothing must be run there before it was heard.
    pub(super) fn is_new_process(&mut self) {
        self.turns = Turns::default();
        self.widgets = OutputWidgets::default();
        self.probe = Some(Probe {
            at: Instant::now() + FIRST_PAUSE,
            pause: FIRST_PAUSE,
        });
    }

    /// Notes that the process behind the line is heard, if this is its answer (the one before may still say things),
    /// what it is at, and what becomes of its widgets.
    pub(super) async fn hears(&mut self, message: &Message) {
        let is_answer = message.parent_id.as_ref().is_some_and(|id| id.starts_with(PROBE));
        if !is_answer {
            self.turns.hear(message);
        } else if message.channel == Channel::Iopub {
            self.probe = None;
        }
        if let Some(update) = self.widgets.hear(message, self.link.session_id()) {
            // What a widget captured is in the record in any case.
            let _ = self.link.comm_msg(update).await;
        }
    }

    pub(super) fn is_heard(&self) -> bool {
        self.probe.is_none()
    }

    pub(super) fn probes_at(&self) -> Option<Instant> {
        self.probe.as_ref().map(|probe| probe.at)
    }

    /// Asks something that is answered where outputs are.
    pub(super) async fn probe(&mut self) {
        let Some(probe) = &mut self.probe else { return };
        if probe.pause >= RENEWING_PAUSE && self.link.is_connected() {
            self.link.renew();
        }
        probe.pause = (probe.pause * 2).min(MAX_PAUSE);
        probe.at = Instant::now() + probe.pause;
        // A line that is down asks again later.
        let _ = self.link.kernel_info(&format!("{PROBE}{}", uuid::Uuid::new_v4())).await;
    }

    async fn connect(
        server: &Arc<JupyterServer>,
        kernel_id: &str,
        session: &str,
        started: bool,
        turns: Turns,
    ) -> Result<Self, ExecutionError> {
        let (link, events) = KernelLink::connect(Arc::clone(server), kernel_id, session).await?;
        Ok(Self {
            link,
            events,
            started,
            turns,
            widgets: OutputWidgets::default(),
            checked: Instant::now(),
            probe: None,
        })
    }

    /// Returns to a kernel under the session id of an earlier process, and so to what it said meanwhile.
    pub(super) async fn return_to(
        server: &Arc<JupyterServer>,
        kernel_id: &str,
        session: &str,
    ) -> Result<Self, ExecutionError> {
        Self::connect(server, kernel_id, session, false, Turns::default()).await
    }

    pub(super) async fn find(
        server: Arc<JupyterServer>,
        wanted: Wanted,
        connected: Option<String>,
    ) -> Result<Found, ExecutionError> {
        let (kernel, started) = match wanted {
            Wanted::Notebook { path, room } => match known_session(&server, &path, connected.is_some()).await? {
                Some(session) => (session.kernel, false),
                None => {
                    let name = kernelspec(&server, &path, room.as_ref()).await?;
                    (server.start_session(&path, name.as_deref()).await?.kernel, true)
                }
            },
            Wanted::Scratch { kernel_name, owner } => {
                if connected.is_some() {
                    return Ok(Found::Same);
                }
                let session = server.start_private_session(&owner, kernel_name.as_deref()).await?;
                (session.kernel, true)
            }
        };
        if connected.as_ref() == Some(&kernel.id) {
            return Ok(Found::Same);
        }
        let session = uuid::Uuid::new_v4().to_string();
        let turns = Turns::new(kernel.execution_state == "busy");
        Self::connect(&server, &kernel.id, &session, started, turns)
            .await
            .map(Found::Other)
    }
}

/// The session of a notebook. Who is connected to a kernel already only makes sure that it is still the one.
async fn known_session(
    server: &JupyterServer,
    path: &DocPath,
    is_connected: bool,
) -> Result<Option<NotebookSession>, ExecutionError> {
    Ok(match is_connected {
        true => server.recent_session_of(path).await?,
        false => server.session_of(path).await?,
    })
}

/// The kernel that a notebook says it is written for.
async fn kernelspec(
    server: &JupyterServer,
    path: &DocPath,
    room: Option<&Room>,
) -> Result<Option<String>, ExecutionError> {
    let metadata = match room {
        Some(room) => room.metadata(),
        None => match server.document_with_content(path).await?.into_content() {
            Content::Notebook(notebook) => notebook.get("metadata").cloned().unwrap_or_default(),
            Content::Text(_) | Content::Binary(_) | Content::Directory(_) => serde_json::Value::Null,
        },
    };
    let name = metadata.pointer("/kernelspec/name").and_then(serde_json::Value::as_str);
    Ok(name.filter(|name| !name.is_empty()).map(str::to_owned))
}
