//! Whether the document of an open room is still where it was. Jupyter tells of what is renamed or deleted through it;
//! what happens to files on disk has to be asked for, which must not cost a busy server more than it is worth.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use jupyter_client::JupyterError;
use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::Semaphore, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Room, RoomStatus,
    core::policy::{FILE_CHECK_PATIENCE, MAX_TRUST, MIN_TRUST, STEADY_CALLS, file_trust},
};

/// How the rooms of one server ask it for their documents: one at a time, and more rarely the longer it takes.
pub(crate) struct FileChecks {
    permit: Arc<Semaphore>,
    /// How long the last two answers took. One that came late by chance says nothing.
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
    fn answers(&self) -> MutexGuard<'_, [Duration; 2]> {
        self.answers.lock()
    }

    fn record_answer(&self, took: Duration) {
        let mut answers = self.answers();
        *answers = [answers[1], took];
    }

    fn trust(&self) -> Duration {
        file_trust(*self.answers())
    }
}

/// When a room was used, and its document last known to be in its place.
pub(crate) struct FileCheck {
    located: Instant,
    used: Instant,
    /// How many calls came in a row.
    streak: u32,
    /// Ends when the server has answered a question that calls wait for.
    asked: Option<CancellationToken>,
}

impl Default for FileCheck {
    fn default() -> Self {
        let now = Instant::now();
        Self {
            located: now,
            used: now,
            streak: 0,
            asked: None,
        }
    }
}

impl FileCheck {
    /// Notes a call; whether the room is in steady use. A busy server is slow to answer calls too.
    fn record_use(&mut self, trust: Duration) -> bool {
        let is_in_a_row = self.used.elapsed() < (trust / 3).max(MIN_TRUST);
        self.used = Instant::now();
        self.streak = if is_in_a_row { self.streak.saturating_add(1) } else { 0 };
        self.streak > STEADY_CALLS
    }

    /// Takes note of a look at the file, if it is time for one.
    fn take_due(&mut self, trust: Duration) -> bool {
        let is_due = self.located.elapsed() >= trust;
        if is_due {
            self.located = Instant::now();
        }
        is_due
    }
}

impl Room {
    /// Sees to it, once in a while, that the document is still where it was. Jupyter keeps the room of a
    /// deleted file open, and acknowledges edits that it can never save.
    ///
    /// A room that was not used for a while looks before it is used; one in steady use looks beside its calls. While
    /// another room asks, both leave it for later: the server has enough to do, and no call waits for those of others.
    pub async fn check_file(&self) {
        if *self.0.status.borrow() != RoomStatus::Connected {
            return;
        }
        let file_checks = &self.0.server.file_checks;
        let trust = file_checks.trust();
        let is_steady = self.file_check().record_use(trust);
        let age = self.file_check().located.elapsed();
        if age < if is_steady { trust } else { MIN_TRUST } {
            return;
        }
        let permit = match Arc::clone(&file_checks.permit).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if age < MAX_TRUST => return,
            Err(_) => match timeout(FILE_CHECK_PATIENCE, Arc::clone(&file_checks.permit).acquire_owned()).await {
                Ok(Ok(permit)) => permit,
                _ => return,
            },
        };
        let (room, trust) = (self.clone(), if is_steady { trust } else { MIN_TRUST });
        let answered = CancellationToken::new();
        if !is_steady {
            self.file_check().asked = Some(answered.clone());
        }
        let asking = answered.clone().drop_guard();
        self.0.server.tasks.spawn(async move {
            room.locate(trust).await;
            drop((permit, asking));
        });
        if !is_steady {
            let _ = timeout(FILE_CHECK_PATIENCE, answered.cancelled()).await;
        }
    }

    /// Waits until it is known where the document is, if a call has asked for it: what is written into one that is gone
    /// would be lost.
    pub(crate) async fn wait_for_file_check(&self) {
        let asked = self.file_check().asked.clone();
        if let Some(answered) = asked {
            answered.cancelled().await;
        }
    }

    fn file_check(&self) -> MutexGuard<'_, FileCheck> {
        self.0.file_check.lock()
    }

    async fn locate(&self, trust: Duration) {
        // Somebody else may have looked meanwhile.
        let is_due = self.file_check().take_due(trust);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn earlier(instant: Instant, by: Duration) -> Instant {
        instant.checked_sub(by).expect("a clock")
    }

    #[test]
    fn steady_use_is_many_calls_in_a_row() {
        let mut room = FileCheck::default();
        assert!((0..STEADY_CALLS).all(|_| !room.record_use(MIN_TRUST)));
        assert!(room.record_use(MIN_TRUST) && room.record_use(MIN_TRUST));
        room.used = earlier(room.used, MIN_TRUST);
        assert!(!room.record_use(2 * MIN_TRUST), "it was idle");
        assert!((0..=STEADY_CALLS).any(|_| room.record_use(MIN_TRUST)));
        room.used = earlier(room.used, MIN_TRUST);
        assert!(room.record_use(MAX_TRUST), "so is everybody on a busy server");
        assert!(!room.take_due(MIN_TRUST));
        room.located = earlier(room.located, MIN_TRUST);
        assert!(room.take_due(MIN_TRUST));
        assert!(!room.take_due(MIN_TRUST), "taken as done");
    }
}
