//! Which room of a server shows what its runs put out: one at a time, and the next when the server has had the time to
//! note it down. What callers wait for, their edits, is in no line.
//!
//! Jupyter notes every change of every document down in one database. Where many documents change at the same moment,
//! these notes wait for each other; if its garbage collector comes upon one that waits, the whole server stands still
//! for everybody until the database gives up after five seconds. While a room is in line its outputs are gathered, so
//! that a server with much to do has fewer changes to note.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep, sleep_until, timeout_at},
};

/// A turn is over then at the latest, whatever became of what was sent.
const LONGEST: Duration = Duration::from_millis(500);
/// To note a change down takes the server several times as long as to confirm it, but it is not waited for longer than
/// this.
const TIMES: u32 = 4;
const LONGEST_REST: Duration = Duration::from_millis(60);

/// The turns of all rooms of one server.
pub(crate) struct Turns {
    place: Arc<Semaphore>,
    /// How many are in line.
    waiting: AtomicUsize,
    /// Rung when somebody gets in line.
    wanted: Notify,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            place: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            wanted: Notify::new(),
        }
    }
}

impl Turns {
    fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

/// One room's part in it.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    phase: Phase,
}

enum Phase {
    Over,
    Waiting(BoxFuture<'static, Held>),
    Held(Held),
}

struct Held {
    permit: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    begun: Instant,
    /// When something was last sent, if something was.
    sent: Option<Instant>,
    /// When that was confirmed.
    confirmed: Option<Instant>,
}

impl Turn {
    pub(crate) fn new(turns: &Arc<Turns>) -> Self {
        Self {
            turns: Arc::clone(turns),
            phase: Phase::Over,
        }
    }

    /// Whether changes may be sent now, which counts as done. If not, the room is in line for it, or will be when what
    /// it sent is confirmed. Who has the turn keeps it while nobody else wants it.
    pub(crate) fn take(&mut self) -> bool {
        self.give_way();
        if matches!(&self.phase, Phase::Held(held) if !held.is_valid()) {
            self.phase = Phase::Over;
        }
        if matches!(self.phase, Phase::Over) {
            self.phase = match Arc::clone(&self.turns.place).try_acquire_owned() {
                Ok(permit) => Phase::Held(Held::new(permit)),
                Err(_) => Phase::Waiting(wait(Arc::clone(&self.turns)).boxed()),
            };
        }
        let Phase::Held(held) = &mut self.phase else {
            return false;
        };
        let is_under_way = held.sent.is_some() && held.confirmed.is_none();
        let may_send = !is_under_way || !self.turns.is_wanted();
        if may_send {
            (held.sent, held.confirmed) = (Some(Instant::now()), None);
        }
        may_send
    }

    /// Returns when something about the turn has changed: the room has come to it, somebody else wants it, or it has
    /// ended by itself.
    pub(crate) async fn changes(&mut self) {
        match &mut self.phase {
            Phase::Waiting(waiting) => self.phase = Phase::Held(waiting.await),
            Phase::Held(held) if held.is_valid() => {
                let wanted = async {
                    match held.confirmed {
                        Some(_) => self.turns.wanted.notified().await,
                        None => std::future::pending().await,
                    }
                };
                let _ = timeout_at(held.begun + LONGEST, wanted).await;
            }
            Phase::Held(_) | Phase::Over => std::future::pending().await,
        }
    }

    /// The server has confirmed what was sent.
    pub(crate) fn is_confirmed(&mut self) {
        if let Phase::Held(held) = &mut self.phase
            && held.sent.is_some()
        {
            held.confirmed.get_or_insert_with(Instant::now);
        }
        self.give_way();
    }

    /// There is nothing to send, so that the next one can have it.
    pub(crate) fn is_unneeded(&mut self) {
        if matches!(&self.phase, Phase::Held(held) if held.sent.is_none()) {
            self.end();
        }
    }

    /// Lets the next one have it, if somebody is in line and what was sent is confirmed.
    fn give_way(&mut self) {
        let is_wanted = self.turns.is_wanted();
        if let Phase::Held(held) = &self.phase
            && let (Some(sent), Some(confirmed)) = (held.sent, held.confirmed)
            && is_wanted
        {
            held.release_at(confirmed + ((confirmed - sent) * TIMES).min(LONGEST_REST));
            self.phase = Phase::Over;
        }
    }

    fn end(&mut self) {
        if let Phase::Held(held) = &self.phase {
            held.permit().take();
        }
        self.phase = Phase::Over;
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.end();
    }
}

impl Held {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        let held = Self {
            permit: Arc::new(Mutex::new(Some(permit))),
            begun: Instant::now(),
            sent: None,
            confirmed: None,
        };
        // Even if this room's own line is stuck.
        held.release_at(held.begun + LONGEST);
        held
    }

    fn permit(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.permit.lock()
    }

    fn is_valid(&self) -> bool {
        self.permit().is_some()
    }

    fn release_at(&self, at: Instant) {
        if at <= Instant::now() {
            self.permit().take();
            return;
        }
        let permit = Arc::clone(&self.permit);
        tokio::spawn(async move {
            sleep_until(at).await;
            permit.lock().take();
        });
    }
}

/// Counts who is in line, however that ends.
struct InLine(Arc<Turns>);

impl Drop for InLine {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

async fn wait(turns: Arc<Turns>) -> Held {
    turns.waiting.fetch_add(1, Ordering::AcqRel);
    let in_line = InLine(turns);
    let turns = &in_line.0;
    turns.wanted.notify_one();
    loop {
        match Arc::clone(&turns.place).acquire_owned().await {
            Ok(permit) => return Held::new(permit),
            // It is never closed.
            Err(_) => sleep(LONGEST).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    fn two() -> (Turn, Turn) {
        let turns = Arc::default();
        (Turn::new(&turns), Turn::new(&turns))
    }

    async fn changes_within(turn: &mut Turn, time: Duration) -> bool {
        timeout(time, turn.changes()).await.is_ok()
    }

    const SOON: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn one_alone_sends_whenever_it_likes() {
        let (mut one, _) = two();
        assert!(one.take() && one.take(), "confirmed or not");
        one.is_confirmed();
        assert!(one.take());
    }

    #[tokio::test]
    async fn the_next_sends_when_what_was_sent_is_confirmed() {
        let (mut one, mut other) = two();
        assert!(one.take());
        assert!(!other.take());
        assert!(!changes_within(&mut other, SOON).await);
        assert!(!one.take(), "it has sent already, and the other waits");
        one.is_confirmed();
        assert!(changes_within(&mut other, SOON).await && other.take());
        assert!(!one.take(), "now it is in line itself");
        assert!(!changes_within(&mut one, SOON).await);
        other.is_confirmed();
        assert!(changes_within(&mut one, SOON).await && one.take());
    }

    #[tokio::test]
    async fn one_that_has_nothing_more_to_send_is_told_that_it_is_waited_for() {
        let (mut one, mut other) = two();
        assert!(one.take());
        one.is_confirmed();
        assert!(!other.take());
        let (told, comes) = tokio::join!(changes_within(&mut one, SOON), async {
            assert!(!changes_within(&mut other, SOON / 10).await);
            true
        });
        assert!(told && comes);
        one.is_confirmed();
        assert!(changes_within(&mut other, SOON).await && other.take());
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let (mut one, mut other) = two();
        assert!(one.take());
        assert!(!other.take());
        assert!(changes_within(&mut other, 2 * LONGEST).await && other.take());
        assert!(!one.take());
        drop(other);
        assert!(
            changes_within(&mut one, SOON).await && one.take(),
            "who leaves keeps nobody"
        );
    }
}
