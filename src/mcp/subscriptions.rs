//! Change notices in both eras: `resources/subscribe` and a session's own stream up to 2025-11-25, a
//! stream per `subscriptions/listen` since. Whatever ends the session or the stream ends its watches.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use dashmap::DashMap;
use futures::{StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use rmcp::{
    ErrorData, Peer, RoleServer,
    model::{ResourceUpdatedNotificationParam, SubscriptionFilter},
    service::{SubscriptionContext, SubscriptionSink},
};
use tokio_util::{
    sync::CancellationToken,
    task::{AbortOnDropHandle, TaskTracker},
};

use super::resources::failure;
use crate::resources::{View, Watch};

/// Resources that one principal may watch at a time, in all its sessions and streams.
const MAX_PER_PRINCIPAL: usize = 256;

/// State that all sessions share: how much each principal watches, and when to leave.
pub(super) struct Notices {
    counts: Arc<DashMap<Arc<str>, usize>>,
    leaving: CancellationToken,
    tasks: TaskTracker,
}

/// Places among the watches of a principal, given back when dropped.
struct Places {
    counts: Arc<DashMap<Arc<str>, usize>>,
    principal: Arc<str>,
    number: usize,
}

impl Drop for Places {
    fn drop(&mut self) {
        if let Some(mut count) = self.counts.get_mut(&self.principal) {
            *count = count.saturating_sub(self.number);
        }
        self.counts.remove_if(&self.principal, |_, count| *count == 0);
    }
}

impl Notices {
    pub(super) fn new(leaving: CancellationToken) -> Self {
        Self {
            counts: Arc::default(),
            leaving,
            tasks: TaskTracker::new(),
        }
    }

    /// Runs a watch as long as its handle lives.
    fn watch(&self, watch: impl Future<Output = ()> + Send + 'static) -> AbortOnDropHandle<()> {
        AbortOnDropHandle::new(self.tasks.spawn(watch))
    }

    fn reserve(&self, principal: &Arc<str>, number: usize) -> Result<Places, ErrorData> {
        let mut count = self.counts.entry(Arc::clone(principal)).or_insert(0);
        if *count + number > MAX_PER_PRINCIPAL {
            let message = format!(
                "you already watch {} of at most {MAX_PER_PRINCIPAL} resources; end a subscription first",
                *count
            );
            return Err(ErrorData::invalid_request(message, None));
        }
        *count += number;
        Ok(Places {
            counts: Arc::clone(&self.counts),
            principal: Arc::clone(principal),
            number,
        })
    }

    /// The part of a filter that a principal has places left for, in the order it asks.
    pub(super) fn fitting(&self, principal: &str, mut wanted: SubscriptionFilter) -> SubscriptionFilter {
        let taken = self.counts.get(principal).map_or(0, |count| *count);
        let mut free = MAX_PER_PRINCIPAL.saturating_sub(taken);
        if wanted.resources_list_changed == Some(true) {
            match free.checked_sub(1) {
                Some(rest) => free = rest,
                None => wanted.resources_list_changed = None,
            }
        }
        if let Some(uris) = &mut wanted.resource_subscriptions {
            let mut seen = HashSet::new();
            uris.retain(|uri| seen.insert(uri.clone()));
            uris.truncate(free);
        }
        wanted
    }

    /// Serves one `subscriptions/listen` until its stream is closed or the gateway leaves.
    pub(super) async fn listen(
        &self,
        view: View,
        principal: &Arc<str>,
        context: &SubscriptionContext,
    ) -> Result<(), ErrorData> {
        let accepted = context.accepted();
        // Asking twice is as asking once.
        let uris: BTreeSet<&String> = accepted.resource_subscriptions.iter().flatten().collect();
        let follows_list = accepted.resources_list_changed == Some(true);
        let _places = self.reserve(principal, uris.len() + usize::from(follows_list))?;
        let sink = context.sink();
        // What the principal may not read is as silent as what does not exist.
        let watches = uris.iter().filter_map(|uri| Some((uri, view.watch(uri).ok()?)));
        let mut following: FuturesUnordered<_> = watches.map(|(uri, watch)| follow(watch, sink, uri)).collect();
        let lists = async {
            let mut list = view.watch_list();
            while follows_list && list.changed().await.is_some() {
                if sink.notify_resource_list_changed().await.is_err() {
                    break;
                }
            }
        };
        let resources = async { while following.next().await.is_some() {} };
        let ended = async {
            tokio::select! {
                () = context.cancelled() => {}
                () = self.leaving.cancelled() => {}
            }
        };
        // The stream stays when there is nothing left to tell: ending it is the client's business.
        let told = async { tokio::join!(lists, resources) };
        tokio::pin!(ended);
        tokio::select! {
            () = &mut ended => {}
            _ = told => ended.await,
        }
        Ok(())
    }
}

async fn follow(mut watch: Watch, sink: &SubscriptionSink, uri: &str) {
    while watch.changed().await.is_some() {
        if sink.notify_resource_updated(uri).await.is_err() {
            break;
        }
    }
}

/// Watches of one session of the older versions. Dropping it ends all of them.
#[derive(Default)]
pub(super) struct SessionWatches(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    resources: HashMap<String, AbortOnDropHandle<()>>,
    list: Option<AbortOnDropHandle<()>>,
}

impl SessionWatches {
    /// Starts to watch a resource; doing it twice is as doing it once.
    pub(super) fn subscribe(
        &self,
        uri: String,
        view: &View,
        principal: &Arc<str>,
        peer: Peer<RoleServer>,
        notices: &Notices,
    ) -> Result<(), ErrorData> {
        let mut watch = view.watch(&uri).map_err(|error| failure(&error, &uri))?;
        let mut inner = self.0.lock();
        // One that has told the last there was to tell is as good as none.
        inner.resources.retain(|_, task| !task.is_finished());
        if inner.resources.contains_key(&uri) {
            return Ok(());
        }
        let places = notices.reserve(principal, 1)?;
        let name = uri.clone();
        let task = notices.watch(async move {
            // Given back with the end of the watch, whatever ends it.
            let _places = places;
            while watch.changed().await.is_some() {
                let notice = ResourceUpdatedNotificationParam::new(name.clone());
                if peer.notify_resource_updated(notice).await.is_err() {
                    break;
                }
            }
        });
        inner.resources.insert(uri, task);
        Ok(())
    }

    /// Forgetting what was never subscribed to is no error.
    pub(super) fn unsubscribe(&self, uri: &str) {
        self.0.lock().resources.remove(uri);
    }

    /// Starts to tell the session when its list of resources changes, which nobody has to ask for.
    pub(super) fn follow_list(&self, view: &View, peer: Peer<RoleServer>, notices: &Notices) {
        let mut list = view.watch_list();
        let task = notices.watch(async move {
            while list.changed().await.is_some() {
                if peer.notify_resource_list_changed().await.is_err() {
                    break;
                }
            }
        });
        self.0.lock().list = Some(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(uris: &[&str], list: bool) -> SubscriptionFilter {
        let mut filter = SubscriptionFilter::default();
        filter.resource_subscriptions = Some(uris.iter().map(|uri| (*uri).to_owned()).collect());
        filter.resources_list_changed = list.then_some(true);
        filter
    }

    #[test]
    fn no_more_is_promised_than_there_are_places() {
        let notices = Notices::new(CancellationToken::new());
        let principal: Arc<str> = "ana".into();
        let fitting = |uris: &[&str]| {
            let fitting = notices.fitting(&principal, wanted(uris, true));
            let uris = fitting.resource_subscriptions.unwrap_or_default();
            (uris, fitting.resources_list_changed == Some(true))
        };
        assert_eq!(
            fitting(&["a", "b", "a"]).0,
            ["a", "b"],
            "asking twice is as asking once"
        );
        let most = notices.reserve(&principal, MAX_PER_PRINCIPAL - 2).expect("places");
        assert_eq!(fitting(&["a", "b"]), (vec!["a".to_owned()], true));
        let rest = notices.reserve(&principal, 2).expect("places");
        assert_eq!(fitting(&["a"]), (Vec::new(), false));
        drop((most, rest));
        assert_eq!(fitting(&["a"]), (vec!["a".to_owned()], true));
    }
}
