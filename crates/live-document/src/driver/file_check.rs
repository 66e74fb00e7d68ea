//! Checks whether the file of an open room is still in its place. Jupyter reports renames and deletions that go
//! through it; changes on disk must be asked for, which must not cost a busy server more than it is worth.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::JupyterError;
use parking_lot::Mutex;
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Room, RoomStatus,
    core::policy::{FILE_CHECK_TIMEOUT, MAX_TRUST, file_trust},
};

/// File checks of the rooms of one server: one at a time, and more rarely the longer they take.
pub(crate) struct FileChecks {
    permit: Arc<Semaphore>,
    /// Durations of the last two answers. One that came late by chance says nothing.
    answers: Mutex<[Duration; 2]>,
}

impl Default for FileChecks {
    fn default() -> Self {
        Self {
            permit: Arc::new(Semaphore::new(1)),
            answers: Mutex::default(),
        }
    }
}

impl FileChecks {
    fn record_answer(&self, took: Duration) {
        let mut answers = self.answers.lock();
        *answers = [answers[1], took];
    }

    fn trust(&self) -> Duration {
        file_trust(*self.answers.lock())
    }
}

impl Room {
    /// Sees to it, once in a while, that the document is still where it was. Jupyter keeps the room of a
    /// deleted file open, and acknowledges edits that it can never save.
    ///
    /// A room that was not used for a while looks before it is used; one in steady use looks beside its calls. While
    /// another room asks, both leave it for later: the server has enough to do, and no call waits for those of others.
    pub async fn check_file(&self) {
        if self.is_fork() || *self.0.status.borrow() != RoomStatus::Connected {
            return;
        }
        let file_checks = &self.0.server.file_checks;
        let trust = file_checks.trust();
        let call = self.0.file_check.lock().record_call(trust, Instant::now());
        if !call.is_due() {
            return;
        }
        let permit = match Arc::clone(&file_checks.permit).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if call.age < MAX_TRUST => return,
            Err(_) => match timeout(FILE_CHECK_TIMEOUT, Arc::clone(&file_checks.permit).acquire_owned()).await {
                Ok(Ok(permit)) => permit,
                _ => return,
            },
        };
        let room = self.clone();
        let answered = CancellationToken::new();
        if !call.is_steady {
            *self.0.file_answer.lock() = Some(answered.clone());
        }
        let asking = answered.clone().drop_guard();
        let closing = self.0.server.closing.clone();
        self.0.server.tasks.spawn(async move {
            closing.run_until_cancelled(room.locate(call.trust)).await;
            drop((permit, asking));
        });
        if !call.is_steady {
            let _ = timeout(FILE_CHECK_TIMEOUT, answered.cancelled()).await;
        }
    }

    /// Waits until it is known where the document is, if a call has asked for it: what is written into one that is gone
    /// would be lost.
    pub(crate) async fn wait_for_file_check(&self) {
        let asked = self.0.file_answer.lock().clone();
        if let Some(answered) = asked {
            answered.cancelled().await;
        }
    }

    async fn locate(&self, trust: Duration) {
        // Somebody else may have looked meanwhile.
        let is_due = self.0.file_check.lock().take_due(trust, Instant::now());
        if !is_due {
            return;
        }
        let server = &self.0.server;
        let path = self.0.read().path.clone();
        let asked = Instant::now();
        let found = server.document(&path).await;
        server.file_checks.record_answer(asked.elapsed());
        match found {
            Ok(file) => return self.0.write().writable = file.writable,
            Err(JupyterError::NotFound { .. }) => {}
            Err(_) => return,
        }
        let file_id = self.0.read().file_id.clone();
        match server.path_of_file(&file_id, path.as_str()).await {
            // The server tells a renamed room of its new path too, but takes its time.
            Ok(now) if now != path => self.0.write().set_path(now),
            Ok(_) | Err(JupyterError::NotFound { .. }) => {
                tracing::info!(%path, "an open document was deleted");
                self.abandon().await;
            }
            Err(_) => {}
        }
    }
}
