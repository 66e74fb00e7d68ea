//! The latest activities in memory, a stream of them, and the older ones in the store.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
    time::SystemTime,
};

use jupyter_client::DocPath;
use parking_lot::Mutex;
use store::{ActivityFilter, Store, StoreError};
use tokio::sync::broadcast;

use super::{
    Activity, Actor,
    agents::{AgentNames, KnownAgent, KnownAgents},
    stored,
};

/// Activities that are kept in memory.
const MAX_ACTIVITIES: usize = 2_000;
/// Activities that are read from the store at once,
const PAGE: usize = 200;
/// and how often, if a reader may see few of them.
const MAX_PAGES: usize = 10;
/// Activities that a slow follower may be behind; it learns that it missed some.
const MAX_NEWS: usize = 256;

/// The activities of agents and people, the latest in memory.
pub struct ActivityLog {
    latest: Mutex<VecDeque<Arc<Activity>>>,
    news: broadcast::Sender<Arc<Activity>>,
    agents: Mutex<KnownAgents>,
    store: Store,
}

/// Activities that were asked for.
pub struct Found {
    pub activities: Vec<Arc<Activity>>,
    /// Older ones could be read too.
    pub is_complete: bool,
}

/// Filter of activities.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Of one server only.
    pub server: Option<String>,
    pub path: Option<DocPath>,
    /// The file's id, by which a document is found also under names that it had before.
    pub file_id: Option<Arc<str>>,
}

impl Selection {
    /// Questions to the store that together find all of them.
    fn filters(&self) -> Vec<ActivityFilter> {
        let all = ActivityFilter {
            server: self.server.clone(),
            limit: PAGE,
            ..ActivityFilter::default()
        };
        let Some(path) = &self.path else {
            return vec![all];
        };
        let by_path = ActivityFilter {
            paths: vec![path.to_string()],
            ..all.clone()
        };
        let by_file = self.file_id.as_ref().map(|file_id| ActivityFilter {
            file_id: Some(file_id.to_string()),
            ..all
        });
        std::iter::once(by_path).chain(by_file).collect()
    }

    fn has(&self, activity: &Activity) -> bool {
        let is_document = match &self.path {
            Some(path) => {
                activity.path.as_ref() == Some(path) || self.file_id.is_some() && activity.file_id == self.file_id
            }
            None => true,
        };
        is_document && self.server.as_deref().is_none_or(|server| *activity.server == *server)
    }
}

impl ActivityLog {
    /// A log without activities that knows the agents of the config.
    pub fn new(agents: Vec<KnownAgent>, store: Store) -> Self {
        Self {
            latest: Mutex::default(),
            news: broadcast::Sender::new(MAX_NEWS),
            agents: Mutex::new(KnownAgents::new(agents)),
            store,
        }
    }

    /// Follows what is done from now on. What is told again has more in it than before.
    pub fn follow(&self) -> broadcast::Receiver<Arc<Activity>> {
        self.news.subscribe()
    }

    /// Records something that was done, and tells who follows.
    pub fn record(&self, activity: Activity) {
        self.store.note_activity(stored::record(&activity));
        self.tell(&self.keep(activity));
    }

    /// Records something that goes on, which is told and replaced by more of it later.
    pub(super) fn open(&self, activity: &Activity) {
        self.tell(&self.keep(activity.clone()));
    }

    /// Puts more in the place of something that was recorded.
    pub(super) fn replace(&self, activity: &Activity) {
        let mut latest = self.latest.lock();
        let place = latest.iter_mut().rev().find(|known| known.id == activity.id);
        if let Some(place) = place {
            *place = Arc::new(activity.clone());
        }
    }

    /// Records the whole of something that went on. Readers are told if there is more in it than before.
    pub(super) fn close(&self, activity: Activity, has_news: bool) {
        self.replace(&activity);
        self.store.note_activity(stored::record(&activity));
        if has_news {
            self.tell(&Arc::new(activity));
        }
    }

    /// The latest activities that are wanted and fulfil a condition, the newest first, and whether the store was asked
    /// in vain for older ones.
    pub async fn latest(
        &self,
        wanted: &Selection,
        limit: usize,
        is_seen: impl Fn(&Activity) -> bool + Send + Sync,
    ) -> Found {
        let (stored, is_complete) = match self.stored(wanted, limit, &is_seen).await {
            Ok(stored) => (stored, true),
            Err(error) => {
                tracing::warn!(%error, "older activities cannot be read");
                (Vec::new(), false)
            }
        };
        // What is in memory may have more in it than what was stored of it.
        let mut activities: Vec<Arc<Activity>> = {
            let latest = self.latest.lock();
            let seen = latest
                .iter()
                .filter(|activity| wanted.has(activity) && is_seen(activity));
            seen.cloned().collect()
        };
        let known: HashSet<String> = activities.iter().map(|activity| activity.id.clone()).collect();
        let older = stored.into_iter().filter(|activity| !known.contains(&activity.id));
        activities.extend(older.map(Arc::new));
        activities.sort_by_key(|activity| std::cmp::Reverse(activity.time));
        activities.truncate(limit);
        Found {
            activities,
            is_complete,
        }
    }

    /// The same from the store, where who may see what is not known.
    async fn stored(
        &self,
        wanted: &Selection,
        limit: usize,
        is_seen: &(impl Fn(&Activity) -> bool + Send + Sync),
    ) -> Result<Vec<Activity>, StoreError> {
        let mut found: Vec<Activity> = Vec::new();
        for mut filter in wanted.filters() {
            let mut of_filter = 0;
            for _ in 0..MAX_PAGES {
                let page = self.store.activity_log(&filter).await?;
                let is_last = page.len() < filter.limit;
                filter.before = page.last().map(|record| record.time);
                let read = page.into_iter().filter_map(stored::activity);
                let seen: Vec<Activity> = read
                    .filter(|activity| wanted.has(activity) && is_seen(activity))
                    .collect();
                of_filter += seen.len();
                found.extend(seen);
                if is_last || of_filter >= limit {
                    break;
                }
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found.dedup_by(|one, other| one.id == other.id);
        Ok(found)
    }

    /// Returns whether something of the kind was done since.
    pub(super) fn has_since(&self, since: SystemTime, is_it: impl Fn(&Activity) -> bool) -> bool {
        let latest = self.latest.lock();
        latest
            .iter()
            .rev()
            .any(|activity| activity.time >= since && is_it(activity))
    }

    /// Puts other agents of the config in the place of those that are known.
    pub fn set_agents(&self, configured: Vec<KnownAgent>) {
        self.agents.lock().set_configured(configured);
    }

    /// Records an agent that uses the gateway.
    pub fn note_agent(&self, id: &Arc<str>, name: &str, tenant: &str) {
        self.agents.lock().note(id, name, tenant);
    }

    /// The agents that can be called by their names.
    pub fn agents(&self) -> Vec<KnownAgent> {
        self.agents.lock().all().cloned().collect()
    }

    /// An agent by its id, as far as it is known.
    pub(super) fn agent(&self, id: &Arc<str>) -> Actor {
        let agents = self.agents.lock();
        let known = agents.all().find(|agent| agent.id == *id);
        let name = known.map_or(&**id, |agent| &agent.name);
        Actor::agent(id, name)
    }

    pub(super) fn names(&self) -> Arc<AgentNames> {
        self.agents.lock().names()
    }

    fn keep(&self, activity: Activity) -> Arc<Activity> {
        let activity = Arc::new(activity);
        let mut latest = self.latest.lock();
        if latest.len() >= MAX_ACTIVITIES {
            latest.pop_front();
        }
        latest.push_back(Arc::clone(&activity));
        activity
    }

    fn tell(&self, activity: &Arc<Activity>) {
        // Nobody may be following.
        let _ = self.news.send(Arc::clone(activity));
    }
}
