//! Readers of a stream: a client whose connection is lost may come back for the rest, or may not.

use std::time::Duration;

use tokio::{sync::watch, time::timeout};

/// Follows how many read a stream.
#[derive(Debug, Clone)]
pub struct Audience(watch::Receiver<usize>);

/// Counts as a reader while it lives.
pub(super) struct Reading(watch::Sender<usize>);

impl Audience {
    pub(super) fn of(readers: &watch::Sender<usize>) -> Self {
        Self(readers.subscribe())
    }

    /// Returns when nobody has read the stream for as long as this; never if the stream goes before.
    pub async fn wait_until_left(&self, patience: Duration) {
        let mut readers = self.0.clone();
        while readers.wait_for(|readers| *readers == 0).await.is_ok() {
            match timeout(patience, readers.wait_for(|readers| *readers > 0)).await {
                Ok(Ok(_)) => {}
                Ok(Err(_)) => break,
                Err(_) => return,
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Reading {
    pub(super) fn of(readers: &watch::Sender<usize>) -> Self {
        readers.send_modify(|readers| *readers += 1);
        Self(readers.clone())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.send_modify(|readers| *readers -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_comes_back_in_time_has_not_left() {
        let readers = watch::Sender::new(0);
        let (first, audience) = (Reading::of(&readers), Audience::of(&readers));
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        let leaves = |patience: Duration| {
            let audience = audience.clone();
            async move { timeout(short * 5, audience.wait_until_left(patience)).await.is_ok() }
        };
        assert!(!leaves(short).await, "somebody reads");
        drop(first);
        assert!(!leaves(long).await, "it is not long ago");
        assert!(leaves(short).await);
        let _second = Reading::of(&readers);
        assert!(!leaves(short).await, "somebody came back");
    }

    #[tokio::test]
    async fn nobody_leaves_a_stream_that_is_gone() {
        let readers = watch::Sender::new(0);
        let audience = Audience::of(&readers);
        drop(readers);
        let left = timeout(
            Duration::from_millis(100),
            audience.wait_until_left(Duration::from_millis(20)),
        );
        assert!(left.await.is_err());
    }
}
