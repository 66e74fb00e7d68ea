//! Queue of messages for the listener of a kernel: bounded by number and by size, so that a cell that prints faster
//! than its output is read makes Jupyter wait instead of filling the gateway's memory.

use std::collections::VecDeque;

use tokio::sync::mpsc;

use super::KernelEvent;

const MAX_EVENTS: usize = 256;
const MAX_BYTES: usize = 8 * 1024 * 1024;

pub(super) struct Queue {
    events: mpsc::Sender<KernelEvent>,
    /// The sizes of the newest events; those the listener has taken are forgotten at the next offer.
    sizes: VecDeque<usize>,
}

/// Error of a queue to which nobody listens any more.
#[derive(Debug)]
pub(super) struct NoListener;

impl Queue {
    pub(super) fn new() -> (Self, mpsc::Receiver<KernelEvent>) {
        let (events, listener) = mpsc::channel(MAX_EVENTS);
        let sizes = VecDeque::new();
        (Self { events, sizes }, listener)
    }

    /// Waits until there is room. What alone is larger than all the room there is waits for an empty queue.
    pub(super) async fn offer(&mut self, event: KernelEvent, size: usize) -> Result<(), NoListener> {
        let waiting = MAX_EVENTS - self.events.capacity();
        self.sizes.drain(..self.sizes.len().saturating_sub(waiting));
        let mut total = size;
        let fitting = self.sizes.iter().rev().take_while(|earlier| {
            total += **earlier;
            total <= MAX_BYTES
        });
        let may_stay = fitting.count().min(MAX_EVENTS - 1);
        let mut places = self
            .events
            .reserve_many(MAX_EVENTS - may_stay)
            .await
            .map_err(|_| NoListener)?;
        if let Some(place) = places.next() {
            place.send(event);
            self.sizes.push_back(size);
        }
        Ok(())
    }

    /// Returns when nobody listens any more.
    pub(super) async fn wait_until_gone(&self) {
        self.events.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn offer(queue: &mut Queue, size: usize) -> bool {
        queue.offer(KernelEvent::Disconnected, size).now_or_never().is_some()
    }

    #[test]
    fn large_events_wait_until_enough_was_taken() {
        let (mut queue, mut listener) = Queue::new();
        assert!(offer(&mut queue, MAX_BYTES / 2) && offer(&mut queue, MAX_BYTES / 2));
        assert!(!offer(&mut queue, 1), "there is no room for a byte");
        listener.try_recv().expect("an event");
        assert!(offer(&mut queue, MAX_BYTES / 2));
        assert!(!offer(&mut queue, 20 * MAX_BYTES));
        while listener.try_recv().is_ok() {}
        assert!(offer(&mut queue, 20 * MAX_BYTES), "an empty queue takes anything");
        assert!(!offer(&mut queue, 0));
    }

    #[test]
    fn small_events_are_counted() {
        let (mut queue, mut listener) = Queue::new();
        assert!((0..MAX_EVENTS).all(|_| offer(&mut queue, 1)));
        assert!(!offer(&mut queue, 1));
        listener.try_recv().expect("an event");
        assert!(offer(&mut queue, 1));
        drop(listener);
        let refused = queue.offer(KernelEvent::Disconnected, 1).now_or_never();
        assert!(matches!(refused, Some(Err(NoListener))));
    }
}
