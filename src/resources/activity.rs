//! `notebook://activity`: what people and agents did lately, as far as the reader may know of it, and watching it.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use live_document::pool::PoolEvent;
use serde_json::{Map, json};
use tokio::{
    sync::broadcast,
    time::{Instant, sleep_until},
};

use super::{
    Opened, View,
    read::{Read, named, pretty},
};
use crate::activity::{Activity, Selection, ShownActivity};

/// Activities that are shown.
const MAX_SHOWN: usize = 100;
/// Notebooks that are kept open for a watcher.
const MAX_KEPT: usize = 8;
/// Between two notices; what is done meanwhile is one change. Whoever is called by name wants to know soon.
const PACE: Duration = Duration::from_millis(100);

impl View {
    pub(super) async fn read_activity(&self) -> Read {
        let seen = |activity: &Activity| self.sees_activity(activity);
        let found = self.activity.latest(&Selection::default(), MAX_SHOWN, seen).await;
        let reader = &self.principal.id;
        let shown: Vec<ShownActivity> = found
            .activities
            .iter()
            .map(|activity| activity.shown_to(reader))
            .collect();
        let metadata = named(
            "Activity",
            "What people and agents did lately, the newest first",
            Map::new(),
        );
        let body = json!({ "activities": shown, "complete": found.is_complete });
        ("application/json", pretty(&body), metadata)
    }

    fn sees_activity(&self, activity: &Activity) -> bool {
        self.may_read() && activity.is_visible_to(&self.principal, |server| self.has_server(server))
    }
}

/// Follows what others do. The notebooks that the reader used last stay open meanwhile, so that it can be called there.
pub(super) struct ActivityWatch {
    view: View,
    news: broadcast::Receiver<Arc<Activity>>,
    events: broadcast::Receiver<PoolEvent>,
    kept: VecDeque<Opened>,
}

impl ActivityWatch {
    pub(super) fn new(view: View) -> Self {
        let (news, events) = (view.activity.follow(), view.pool.events());
        let kept = view.current().into_iter().collect();
        Self {
            view,
            news,
            events,
            kept,
        }
    }

    /// Waits until somebody else did something that the reader may know of.
    pub(super) async fn changed(&mut self, next: &mut Instant) -> Option<()> {
        use broadcast::error::{
            RecvError,
            TryRecvError::{Closed, Empty},
        };
        loop {
            tokio::select! {
                done = self.news.recv() => match done {
                    Ok(activity) if self.concerns(&activity) => break,
                    Ok(_) => {}
                    Err(RecvError::Lagged(_)) => break,
                    Err(RecvError::Closed) => return None,
                },
                event = self.events.recv() => match event {
                    Err(RecvError::Closed) => return None,
                    event => self.on_event(event.ok()),
                },
            }
        }
        sleep_until(*next).await;
        // Whatever came meanwhile is in what is read from now on.
        while !matches!(self.news.try_recv(), Err(Empty | Closed)) {}
        *next = Instant::now() + PACE;
        Some(())
    }

    /// Keeps the notebook that the reader uses now, and none that is closed or out of its reach.
    fn on_event(&mut self, event: Option<PoolEvent>) {
        let view = &self.view;
        self.kept
            .retain(|kept| kept.room.is_open() && view.sees(&kept.open.server, &kept.room.info().path));
        let is_own = match event {
            Some(PoolEvent::Current { principal }) => principal == view.principal.id,
            Some(PoolEvent::Room { .. } | PoolEvent::Renamed(_)) => false,
            // What was missed may have been of this reader.
            None => true,
        };
        let Some(current) = view.current().filter(|_| is_own) else {
            return;
        };
        self.kept
            .retain(|kept| kept.room.session_id() != current.room.session_id());
        self.kept.push_front(current);
        self.kept.truncate(MAX_KEPT);
    }

    /// Returns whether an activity is news to the reader: visible, and not its own.
    fn concerns(&self, activity: &Activity) -> bool {
        activity.actor.id != self.view.principal.id && self.view.sees_activity(activity)
    }
}
