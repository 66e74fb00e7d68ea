//! Owns the open `subscriptions/listen` streams, so that a call made on one connection can notify
//! clients that listen on others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use rmcp::service::SubscriptionSink;

#[derive(Clone, Default)]
pub(super) struct Subscriptions {
    registry: Arc<Registry>,
}

#[derive(Default)]
struct Registry {
    next_key: AtomicU64,
    sinks: Mutex<BTreeMap<u64, SubscriptionSink>>,
}

impl Subscriptions {
    /// Keeps `sink` in the registry until what is returned is dropped.
    ///
    /// It is a guard because rmcp ends a subscription by dropping its future as well as by
    /// cancelling it, and a sink left behind would be a leak.
    pub(super) fn register(&self, sink: SubscriptionSink) -> Registration {
        let key = self.registry.next_key.fetch_add(1, Ordering::Relaxed);
        self.registry.lock().insert(key, sink);
        Registration {
            registry: Arc::clone(&self.registry),
            key,
        }
    }

    /// Tells everyone who asked to hear of changed tools. The sinks themselves refuse what their
    /// client did not ask for, and a client that has gone needs no telling, so errors are dropped.
    pub(super) async fn tools_changed(&self) {
        for sink in self.open_sinks() {
            let _ = sink.notify_tool_list_changed().await;
        }
    }

    /// Tells everyone who asked to hear of changed prompts.
    pub(super) async fn prompts_changed(&self) {
        for sink in self.open_sinks() {
            let _ = sink.notify_prompt_list_changed().await;
        }
    }

    /// A copy, so that the lock is not held while notices are sent.
    fn open_sinks(&self) -> Vec<SubscriptionSink> {
        self.registry.lock().values().cloned().collect()
    }
}

impl Registry {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, SubscriptionSink>> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One entry of the registry. Dropping it removes the entry.
pub(super) struct Registration {
    registry: Arc<Registry>,
    key: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.lock().remove(&self.key);
    }
}
