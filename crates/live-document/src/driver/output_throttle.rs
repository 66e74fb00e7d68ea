//! Which document of a server sends what its runs put out: one at a time, and the next when the server has had the time to
//! note it down. The same holds for one document alone: runs that are over in some milliseconds would each cost the server as
//! much again as running them. What callers wait for, their edits, is never held back.
//!
//! Jupyter notes every change of every document down in one database. Where many documents change at the same moment,
//! these notes wait for each other; if its garbage collector comes upon one that waits, the whole server stands still
//! for everybody until the database gives up after five seconds. While a document waits its outputs are gathered, so
//! that a server with much to do has fewer changes to note.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, sleep_until},
};

use crate::core::policy::{LONGEST_OUTPUT_SLOT, output_rest};

/// The one right to send outputs to a server.
pub(crate) struct OutputThrottle(Arc<Semaphore>);

impl Default for OutputThrottle {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
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

/// What was done with the right to send.
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

    /// Takes note of what was sent.
    pub(crate) fn record_sent(&mut self, latest: u64) {
        self.sent_up_to = latest;
    }

    /// Takes the right to send outputs now. If another document has it, this one waits from now on.
    pub(crate) fn try_take(&mut self) -> bool {
        self.release_if_over();
        if matches!(self.state, SlotState::Idle) {
            self.state = match Arc::clone(&self.throttle.0).try_acquire_owned() {
                Ok(permit) => SlotState::Active(ActiveSlot::new(permit)),
                Err(_) => SlotState::Waiting(wait(Arc::clone(&self.throttle.0)).boxed()),
            };
        }
        match &mut self.state {
            SlotState::Active(active) if active.used == Used::NotYet => {
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

    /// The server has confirmed what was sent. It is left alone for a moment before more is sent.
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

/// Nothing if there is no right to be had any more.
async fn wait(semaphore: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    semaphore.acquire_owned().await.ok()
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
    async fn one_alone_gathers_until_what_it_sent_is_confirmed() {
        let (mut one, _) = two();
        assert!(one.try_take() && !one.try_take());
        one.on_confirmed();
        assert!(changes_within(&mut one, SOON).await && one.try_take());
    }

    #[tokio::test]
    async fn the_next_sends_when_what_was_sent_is_confirmed() {
        let (mut one, mut other) = two();
        assert!(one.try_take());
        assert!(!other.try_take());
        assert!(!changes_within(&mut other, SOON).await);
        assert!(!one.try_take(), "it has sent already, and the other waits");
        one.on_confirmed();
        assert!(
            changes_within(&mut one, SOON).await,
            "it rests, and then has it no more"
        );
        assert!(changes_within(&mut other, SOON).await && other.try_take());
        assert!(!one.try_take(), "now it waits itself");
    }

    #[tokio::test]
    async fn nobody_waits_for_ever() {
        let (mut one, mut other) = two();
        assert!(one.try_take());
        assert!(!other.try_take());
        let stuck = timeout(
            2 * LONGEST_OUTPUT_SLOT,
            one.release_in_time(std::future::pending::<()>()),
        );
        let (stuck, other_has_it) = tokio::join!(stuck, changes_within(&mut other, 2 * LONGEST_OUTPUT_SLOT));
        assert!(stuck.is_err() && other_has_it && other.try_take());
        assert!(!one.try_take());
        drop(other);
        assert!(
            changes_within(&mut one, SOON).await && one.try_take(),
            "who leaves keeps nobody"
        );
    }
}
