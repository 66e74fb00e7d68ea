//! Order in which the documents of a server send outputs: one at a time, and the next when the server has had the time to
//! note it down. A document alone waits only with runs that are over already: each of these would cost the server as much
//! again as running it. What callers wait for, their edits, is never held back.
//!
//! Jupyter notes every change of every document down in one database. Where many documents change at the same moment,
//! these notes wait for each other; if its garbage collector comes upon one that waits, the whole server stands still
//! for everybody until the database gives up after five seconds. While a document waits its outputs are gathered, so
//! that a server with much to do has fewer changes to note.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

use crate::core::policy::{LONGEST_OUTPUT_SLOT, output_rest};

/// The one right to send outputs to a server.
pub(crate) struct OutputThrottle {
    semaphore: Arc<Semaphore>,
    /// Number of documents that wait for it.
    waiting: AtomicUsize,
}

impl Default for OutputThrottle {
    fn default() -> Self {
        Self {
            semaphore: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
        }
    }
}

/// One document's part in it.
pub(crate) struct OutputSlot {
    throttle: Arc<OutputThrottle>,
    state: SlotState,
    /// The last edit that was sent, outputs included.
    sent_up_to: u64,
}

enum SlotState {
    Idle,
    Waiting(BoxFuture<'static, Option<OwnedSemaphorePermit>>),
    Active(ActiveSlot),
}

/// The right to send, for as long as it lasts.
struct ActiveSlot {
    _permit: OwnedSemaphorePermit,
    until: Instant,
    used: Used,
}

/// Use of the right to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Used {
    NotYet,
    Sent(Instant),
    Confirmed,
}

impl OutputSlot {
    pub(crate) fn new(throttle: &Arc<OutputThrottle>) -> Self {
        Self {
            throttle: Arc::clone(throttle),
            state: SlotState::Idle,
            sent_up_to: 0,
        }
    }

    pub(crate) fn sent_up_to(&self) -> u64 {
        self.sent_up_to
    }

    /// Records what was sent.
    pub(crate) fn record_sent(&mut self, latest: u64) {
        self.sent_up_to = latest;
    }

    /// Takes the right to send outputs now. If another document has it, this one waits from now on; who has it sends
    /// again before a confirmation only while nobody waits, and only what cannot wait itself.
    pub(crate) fn try_take(&mut self, can_wait: bool) -> bool {
        self.release_if_over();
        if matches!(self.state, SlotState::Idle) {
            self.state = match Arc::clone(&self.throttle.semaphore).try_acquire_owned() {
                Ok(permit) => SlotState::Active(ActiveSlot::new(permit)),
                Err(_) => SlotState::Waiting(wait(Arc::clone(&self.throttle)).boxed()),
            };
        }
        let is_gathering = can_wait || self.is_wanted();
        match &mut self.state {
            SlotState::Active(active) if active.used == Used::NotYet || !is_gathering => {
                let now = Instant::now();
                (active.used, active.until) = (Used::Sent(now), now + LONGEST_OUTPUT_SLOT);
                true
            }
            SlotState::Active(_) | SlotState::Waiting(_) | SlotState::Idle => false,
        }
    }

    /// Returns when the document has the right to send, or has it no more.
    pub(crate) async fn wait_for_change(&mut self) {
        match &mut self.state {
            SlotState::Waiting(waiting) => {
                let permit = waiting.await;
                self.state = permit.map_or(SlotState::Idle, |permit| SlotState::Active(ActiveSlot::new(permit)));
            }
            SlotState::Active(active) => {
                sleep_until(active.until).await;
                self.state = SlotState::Idle;
            }
            SlotState::Idle => std::future::pending().await,
        }
    }

    /// The server has confirmed what was sent. It is left alone for a moment before another document sends.
    pub(crate) fn on_confirmed(&mut self) {
        if let SlotState::Active(active) = &mut self.state
            && let Used::Sent(sent) = active.used
        {
            active.used = Used::Confirmed;
            active.until = active.until.min(Instant::now() + output_rest(sent.elapsed()));
        }
        self.release_if_over();
    }

    /// There is nothing to send, so that the next one can have it.
    pub(crate) fn on_nothing_to_send(&mut self) {
        if matches!(&self.state, SlotState::Active(active) if active.used == Used::NotYet) {
            self.state = SlotState::Idle;
        }
    }

    /// Waits for something to be sent, and releases the right when its time is over, even if the connection is stuck.
    pub(crate) async fn release_in_time<T>(&mut self, sending: impl Future<Output = T>) -> T {
        tokio::pin!(sending);
        if let SlotState::Active(active) = &self.state {
            tokio::select! {
                sent = &mut sending => return sent,
                () = sleep_until(active.until) => self.state = SlotState::Idle,
            }
        }
        sending.await
    }

    fn is_wanted(&self) -> bool {
        self.throttle.waiting.load(Ordering::Acquire) > 0
    }

    fn release_if_over(&mut self) {
        if matches!(&self.state, SlotState::Active(active) if active.until <= Instant::now()) {
            self.state = SlotState::Idle;
        }
    }
}

impl ActiveSlot {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: permit,
            until: Instant::now() + LONGEST_OUTPUT_SLOT,
            used: Used::NotYet,
        }
    }
}

/// Counts a document that waits, however that ends.
struct Counted(Arc<OutputThrottle>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// None if there is no right to be had any more.
async fn wait(throttle: Arc<OutputThrottle>) -> Option<OwnedSemaphorePermit> {
    throttle.waiting.fetch_add(1, Ordering::AcqRel);
    let counted = Counted(throttle);
    Arc::clone(&counted.0.semaphore).acquire_owned().await.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    fn two() -> (OutputSlot, OutputSlot) {
        let throttle = Arc::default();
        (OutputSlot::new(&throttle), OutputSlot::new(&throttle))
    }

    async fn changes_within(slot: &mut OutputSlot, time: Duration) -> bool {
        timeout(time, slot.wait_for_change()).await.is_ok()
    }

    const SOON: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn one_alone_sends_whenever_it_likes_what_cannot_wait() {
        let (mut one, _) = two();
        assert!(one.try_take(false) && one.try_take(false), "confirmed or not");
        one.on_confirmed();
        assert!(one.try_take(false) && !one.try_take(true));
        one.on_confirmed();
        assert!(!one.try_take(true), "the server notes down what it confirmed");
        assert!(changes_within(&mut one, SOON).await && one.try_take(true));
    }

    #[tokio::test]
    async fn the_next_sends_when_what_was_sent_is_confirmed() {
        let (mut one, mut other) = two();
        assert!(one.try_take(false));
        assert!(!other.try_take(false));
        assert!(!changes_within(&mut other, SOON).await);
        assert!(!one.try_take(false), "it has sent already, and the other waits");
        one.on_confirmed();
        assert!(
            changes_within(&mut one, SOON).await,
            "it rests, and then has it no more"
        );
        assert!(changes_within(&mut other, SOON).await && other.try_take(false));
        assert!(!one.try_take(false), "now it waits itself");
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let (mut one, mut other) = two();
        assert!(one.try_take(false));
        assert!(!other.try_take(false));
        let stuck = timeout(
            2 * LONGEST_OUTPUT_SLOT,
            one.release_in_time(std::future::pending::<()>()),
        );
        let (stuck, other_has_it) = tokio::join!(stuck, changes_within(&mut other, 2 * LONGEST_OUTPUT_SLOT));
        assert!(stuck.is_err() && other_has_it && other.try_take(false));
        assert!(!one.try_take(false));
        drop(other);
        assert!(
            changes_within(&mut one, SOON).await && one.try_take(false),
            "who leaves keeps nobody"
        );
    }
}
