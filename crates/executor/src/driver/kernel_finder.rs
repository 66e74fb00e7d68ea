//! Finds the kernel that code is run in, and connects to it: the one that the notebook has, one that is started for it, or
//! the one that an earlier process used.

use std::{fmt::Display, sync::Arc};

use jupyter_client::{
    Content, DocPath, JupyterServer, NotebookSession, Starter,
    kernel::{KernelEvent, KernelLink},
};
use live_document::{
    Room,
    pool::{Account, Lease, PoolError},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    ExecutionError,
    core::{
        input::{FoundKernel, KernelInfo},
        notebook::Notebook,
    },
    engine::Shared,
    policy::{RETURN_FIRST_BACKOFF, RETURN_MAX_BACKOFF, SERVER_RETURN_TIMEOUT},
};

/// A connection to a kernel and the channel of its events.
pub(super) struct Connection {
    pub(super) link: KernelLink,
    pub(super) events: mpsc::Receiver<KernelEvent>,
}

/// A kernel, unless it is the one that is connected, and the room of its notebook if that had to be opened.
pub(super) struct Found {
    pub(super) kernel: Option<Connection>,
    pub(super) lease: Option<Lease>,
    pub(super) what: FoundKernel,
}

/// The kernel to look for, and to start if there is none.
pub(super) enum Wanted {
    /// The notebook's own; its kernelspec is in the room, if that is open, or in the file.
    Notebook { path: DocPath, room: Option<Room> },
    /// A kernel of its own, for no notebook.
    Scratch {
        kernel_name: Option<String>,
        directory: DocPath,
    },
}

/// Finds or starts the kernel that is wanted, and connects to it.
pub(super) async fn find(
    server: Arc<JupyterServer>,
    wanted: Wanted,
    starter: Starter,
    connected: Option<String>,
) -> Result<Found, ExecutionError> {
    let same = || Found {
        kernel: None,
        lease: None,
        what: FoundKernel::Same,
    };
    let (kernel, started) = match wanted {
        Wanted::Notebook { path, room } => match known_session(&server, &path, connected.is_some()).await? {
            Some(session) => (session.kernel, false),
            None => {
                let name = kernelspec(&server, &path, room.as_ref()).await?;
                (server.start_session(&path, name.as_deref()).await?.kernel, true)
            }
        },
        Wanted::Scratch { .. } if connected.is_some() => return Ok(same()),
        // People see it under the name of its owner.
        Wanted::Scratch { kernel_name, directory } => {
            let session = server
                .start_private_session(&starter.name, &directory, kernel_name.as_deref())
                .await?;
            (session.kernel, true)
        }
    };
    if started {
        server.record_starter(&kernel.id, &starter);
    }
    if connected.as_ref() == Some(&kernel.id) {
        return Ok(same());
    }
    let info = KernelInfo {
        session: uuid::Uuid::new_v4().to_string(),
        started,
        busy: kernel.execution_state == "busy",
        id: kernel.id,
    };
    Ok(Found {
        kernel: Some(connect(&server, &info).await?),
        lease: None,
        what: FoundKernel::Other(info),
    })
}

/// Returns to a kernel under the session id of an earlier process, and so to what it said meanwhile. The room of the
/// notebook, which may have been renamed since, comes first, so that what the kernel says follows what the notebook shows
/// already.
pub(super) async fn return_to(
    shared: Arc<Shared>,
    server: Arc<JupyterServer>,
    notebook: Option<(Arc<Notebook>, Account)>,
    kernel_id: String,
    session: String,
) -> Result<Found, ExecutionError> {
    let until = Instant::now() + SERVER_RETURN_TIMEOUT;
    let lease = match &notebook {
        Some((notebook, account)) => {
            let lease = || shared.lease(&server, notebook, account);
            match persist(until, lease, PoolError::is_transient).await {
                // What it puts out could be shown nowhere, now or after the next start.
                Err(error) if error.is_excess() => return Err(ExecutionError::Document(error)),
                lease => lease.ok(),
            }
        }
        None => None,
    };
    let info = KernelInfo {
        id: kernel_id,
        session,
        started: false,
        busy: false,
    };
    let kernel = persist(until, || connect(&server, &info), ExecutionError::is_transient).await?;
    Ok(Found {
        kernel: Some(kernel),
        lease,
        what: FoundKernel::Earlier(info),
    })
}

async fn connect(server: &Arc<JupyterServer>, info: &KernelInfo) -> Result<Connection, ExecutionError> {
    let (link, events) = KernelLink::connect(Arc::clone(server), &info.id, &info.session).await?;
    Ok(Connection { link, events })
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

/// Retries a request that failed for a reason that may pass, until a deadline.
pub(super) async fn persist<T, E, F>(
    until: Instant,
    mut attempt: impl FnMut() -> F,
    is_transient: impl Fn(&E) -> bool,
) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let mut backoff = RETURN_FIRST_BACKOFF;
    loop {
        match attempt().await {
            Err(error) if is_transient(&error) && Instant::now() < until => {
                tracing::debug!(%error, "a request to Jupyter is tried again");
            }
            result => return result,
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(RETURN_MAX_BACKOFF);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn what_may_pass_is_tried_until_it_does_but_not_for_ever() {
        let until = Instant::now() + RETURN_FIRST_BACKOFF;
        let mut failures = 2;
        let attempt = || {
            failures -= 1;
            std::future::ready(if failures > 0 { Err("down") } else { Ok(()) })
        };
        assert_eq!(persist(until, attempt, |_| true).await, Ok(()));
        let always = |error: &'static str| move || std::future::ready(Err::<(), _>(error));
        assert_eq!(persist(until, always("down"), |_| true).await, Err("down"));
        let until = Instant::now() + SERVER_RETURN_TIMEOUT;
        let refused = persist(until, always("gone"), |_| false);
        assert_eq!(timeout(RETURN_FIRST_BACKOFF, refused).await, Ok(Err("gone")), "at once");
    }
}
