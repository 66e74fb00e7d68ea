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

use crate::{Room, RoomStatus};

/// A document is trusted to be where it was for so many times as long as it takes to ask, within these bounds.
const WORTH: u32 = 50;
const MIN_TRUST: Duration = Duration::from_secs(1);
const MAX_TRUST: Duration = Duration::from_secs(15);
/// A room is in steady use after so many calls in a row, none of which came long after the one before.
const STEADY: u32 = 3;
/// How long a call waits while others ask the same server, if nothing was heard of its document for too long, and how
/// long one that reads waits for the answer: what is in memory is good enough while a server is too busy to say more.
const PATIENCE: Duration = Duration::from_secs(2);

/// How the rooms of one server ask it for their documents: one at a time, and more rarely the longer it takes.
pub(crate) struct FileChecks {
    turn: Arc<Semaphore>,
    /// How long the last two answers took. One that came late by chance says nothing.
    answers: Mutex<[Duration; 2]>,
}

impl Default for FileChecks {
    fn default() -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
            answers: Mutex::default(),
        }
    }
}

impl FileChecks {
    fn answers(&self) -> MutexGuard<'_, [Duration; 2]> {
        self.answers.lock()
    }

    fn answered(&self, took: Duration) {
        let mut answers = self.answers();
        *answers = [answers[1], took];
    }

    fn trust(&self) -> Duration {
        let [one, other] = *self.answers();
        one.min(other).saturating_mul(WORTH).clamp(MIN_TRUST, MAX_TRUST)
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
    fn used(&mut self, trust: Duration) -> bool {
        let is_in_a_row = self.used.elapsed() < (trust / 3).max(MIN_TRUST);
        self.used = Instant::now();
        self.streak = if is_in_a_row { self.streak.saturating_add(1) } else { 0 };
        self.streak > STEADY
    }

    /// Whether it is time to look, in which case it is taken as done.
    fn is_due(&mut self, trust: Duration) -> bool {
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
        let is_steady = self.file_check().used(trust);
        let age = self.file_check().located.elapsed();
        if age < if is_steady { trust } else { MIN_TRUST } {
            return;
        }
        let turn = match Arc::clone(&file_checks.turn).try_acquire_owned() {
            Ok(turn) => turn,
            Err(_) if age < MAX_TRUST => return,
            Err(_) => match timeout(PATIENCE, Arc::clone(&file_checks.turn).acquire_owned()).await {
                Ok(Ok(turn)) => turn,
                _ => return,
            },
        };
        let (room, trust) = (self.clone(), if is_steady { trust } else { MIN_TRUST });
        let answered = CancellationToken::new();
        if !is_steady {
            self.file_check().asked = Some(answered.clone());
        }
        let asking = answered.clone().drop_guard();
        tokio::spawn(async move {
            room.locate(trust).await;
            drop((turn, asking));
        });
        if !is_steady {
            let _ = timeout(PATIENCE, answered.cancelled()).await;
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
        let is_due = self.file_check().is_due(trust);
        if !is_due {
            return;
        }
        let server = &self.0.server;
        let path = self.0.read().path.clone();
        let asked = Instant::now();
        let found = server.document(&path).await;
        server.file_checks.answered(asked.elapsed());
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
    fn a_slow_server_is_asked_more_rarely() {
        let file_checks = FileChecks::default();
        assert_eq!(file_checks.trust(), MIN_TRUST);
        file_checks.answered(Duration::from_millis(100));
        assert_eq!(file_checks.trust(), MIN_TRUST, "once is chance");
        file_checks.answered(Duration::from_millis(200));
        assert_eq!(file_checks.trust(), Duration::from_secs(5));
        for _ in 0..2 {
            file_checks.answered(Duration::from_secs(10));
        }
        assert_eq!(file_checks.trust(), MAX_TRUST);
        file_checks.answered(Duration::from_millis(1));
        assert_eq!(file_checks.trust(), MIN_TRUST);
    }

    #[test]
    fn steady_use_is_many_calls_in_a_row() {
        let mut room = FileCheck::default();
        assert!((0..STEADY).all(|_| !room.used(MIN_TRUST)));
        assert!(room.used(MIN_TRUST) && room.used(MIN_TRUST));
        room.used = earlier(room.used, MIN_TRUST);
        assert!(!room.used(2 * MIN_TRUST), "it was idle");
        assert!((0..=STEADY).any(|_| room.used(MIN_TRUST)));
        room.used = earlier(room.used, MIN_TRUST);
        assert!(room.used(MAX_TRUST), "so is everybody on a busy server");
        assert!(!room.is_due(MIN_TRUST));
        room.located = earlier(room.located, MIN_TRUST);
        assert!(room.is_due(MIN_TRUST));
        assert!(!room.is_due(MIN_TRUST), "taken as done");
    }
}
