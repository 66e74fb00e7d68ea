//! `notebook://activity`: what people and agents did lately, as far as the reader may know of it, and watching it.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, json};
use tokio::{
    sync::broadcast,
    time::{Instant, sleep_until},
};

use super::{
    View,
    read::{Read, named, pretty},
};
use crate::activity::{Activity, Selection, ShownActivity};

/// Activities that are shown.
const MAX_SHOWN: usize = 100;
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

/// Follows what others do.
pub(super) struct ActivityWatch {
    view: View,
    news: broadcast::Receiver<Arc<Activity>>,
}

impl ActivityWatch {
    pub(super) fn new(view: View) -> Self {
        let news = view.activity.follow();
        Self { view, news }
    }

    /// Waits until somebody else did something that the reader may know of.
    pub(super) async fn changed(&mut self, next: &mut Instant) -> Option<()> {
        loop {
            match self.news.recv().await {
                Ok(activity) if self.concerns(&activity) => break,
                Ok(_) => {}
                Err(broadcast::error::RecvError::Lagged(_)) => break,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
        sleep_until(*next).await;
        // Whatever came meanwhile is in what is read from now on.
        use broadcast::error::TryRecvError::{Closed, Empty};
        while !matches!(self.news.try_recv(), Err(Empty | Closed)) {}
        *next = Instant::now() + PACE;
        Some(())
    }

    /// What the reader did itself is no news to it.
    fn concerns(&self, activity: &Activity) -> bool {
        activity.actor.id != self.view.principal.id && self.view.sees_activity(activity)
    }
}
