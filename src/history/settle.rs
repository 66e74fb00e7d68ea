//! Changes that another gateway may be about to write. An agent's edit belongs to the gateway of that agent, which knows who
//! made it; others hear of it through Jupyter, as of a change by nobody known. So where several gateways use the database,
//! only edits of agents are written at once. Everything else waits until the log says the same, or until both were quiet for a
//! while and it still does not.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use history::{Author, Blob, Content};
use store::StoreError;

use super::{
    History,
    append::{Next, missing, stored},
    listing::FLUSH_TIMEOUT,
    track::{Entry, State, Stored, Track},
    version::{Kind, names},
};

/// Time for which the log and the document must be quiet before what the log lacks is taken for nobody's edit.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same when somebody waits for the log to be complete, or when it was never quiet for [`LONGEST`].
const HURRIED: Duration = Duration::from_millis(300);
const LONGEST: Duration = Duration::from_secs(30);
/// Time between two looks at the log.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of outputs that are kept for one document meanwhile.
const MAX_BLOB_BYTES: usize = 8 * 1024 * 1024;

/// Changes of a document that its log may lack, since others may be about to write them.
pub(super) struct Unsettled {
    /// The latest change; it stands for all.
    latest: Arc<Entry>,
    /// People who made some of the changes.
    people: Vec<Arc<str>>,
    has_people: bool,
    /// The document was opened with other content than the log ended with.
    is_opening: bool,
    blobs: Vec<Blob>,
    since: Instant,
    /// Time of the last change of the document or its log.
    changed: Instant,
}

impl Unsettled {
    fn new(entry: &Arc<Entry>, now: Instant) -> Self {
        Self {
            latest: Arc::clone(entry),
            people: Vec::new(),
            has_people: false,
            is_opening: entry.is_opening(),
            blobs: Vec::new(),
            since: now,
            changed: now,
        }
    }

    fn add(&mut self, entry: &Arc<Entry>, now: Instant) {
        if let Author::People { names } = &entry.author {
            self.has_people = true;
            let new = names.iter().filter(|name| !self.people.contains(name));
            let new: Vec<Arc<str>> = new.cloned().collect();
            self.people.extend(new);
        }
        let held: usize = self.blobs.iter().map(|blob| blob.json.len()).sum();
        let added: usize = entry.blobs.iter().map(|blob| blob.json.len()).sum();
        if held + added <= MAX_BLOB_BYTES {
            self.blobs.extend(entry.blobs.iter().cloned());
        }
        (self.latest, self.changed) = (Arc::clone(entry), now);
    }

    fn is_due(&self, now: Instant, is_waited_for: bool) -> bool {
        let is_hurried = is_waited_for || now.duration_since(self.since) > LONGEST;
        now.duration_since(self.changed) >= if is_hurried { HURRIED } else { PATIENCE }
    }

    fn author(&self) -> Author {
        match self.has_people {
            true => Author::People {
                names: self.people.clone(),
            },
            false => Author::Outside,
        }
    }
}

impl State {
    /// Records that somebody waits for the log to be complete.
    pub(super) fn hurry(&mut self) {
        self.hurried_until = Some(Instant::now() + FLUSH_TIMEOUT);
    }
}

impl History {
    /// Returns whether a version may be of somebody whose own gateway writes it.
    pub(super) async fn may_be_of_others(&self, entry: &Entry) -> Result<bool, StoreError> {
        let is_own = matches!(entry.author, Author::Agent { .. });
        Ok(!is_own && !entry.is_loss && !self.store.other_gateways().await?.is_empty())
    }

    /// Leaves a version to others, as far as they write it. Returns the end of the log.
    pub(super) async fn defer(&self, track: &Arc<Track>, entry: &Arc<Entry>) -> Result<Stored, StoreError> {
        let known = track.lock().stored.clone();
        let end = match known {
            Some(end) => end,
            None => {
                let row = self.store.document(&track.key()).await?;
                match self.loaded(&row).await? {
                    Some(loaded) if !missing(&loaded.content, &entry.after).is_only_runs() => {
                        stored(&row, loaded, &entry.after)
                    }
                    // Forgets what others could still write.
                    _ => return self.begin(track, &entry.version, &entry.after, &entry.blobs).await,
                }
            }
        };
        let now = Instant::now();
        let mut state = track.lock();
        state.is_shared = true;
        let unsettled = state.unsettled.get_or_insert_with(|| Unsettled::new(entry, now));
        let before = unsettled.latest.version.id.clone();
        unsettled.add(entry, now);
        drop(state);
        self.notices.rename_version(&track.document, &before, &entry.version.id);
        self.queue.add_unsettled(track);
        Ok(end)
    }

    /// Checks whether the logs of documents have the changes that were left to others.
    pub(super) async fn settle_all(&self) -> Result<(), StoreError> {
        for track in self.queue.unsettled() {
            let live = {
                let state = track.lock();
                // What waits to be written is in the content too.
                state.pending.is_empty().then(|| state.live.clone())
            };
            match live {
                Some(Some(live)) => {
                    let settled = self.settle(&track, &live, false).await;
                    if let Err(StoreError::UnknownDocument { .. }) = &settled {
                        // Its history was removed; the next attempt begins another.
                        track.lock().stored = None;
                    }
                    settled?;
                }
                // It will be made up for when it is known again.
                Some(None) => track.lock().unsettled = None,
                None => {}
            }
            if track.lock().unsettled.is_none() {
                self.queue.remove_unsettled(&track);
                self.on_progress();
                // A document that is closed may be forgotten now.
                self.queue.add(&track);
            }
        }
        Ok(())
    }

    /// Ends the wait if the log has the document's content, or if it is time to record the difference.
    pub(super) async fn settle(&self, track: &Arc<Track>, live: &Content, is_now: bool) -> Result<(), StoreError> {
        let end = self.followed_end(track, live).await?;
        let delta = missing(&end.content, live);
        let now = Instant::now();
        let (entry, author, blobs, is_opening, is_due) = {
            let state = track.lock();
            let Some(unsettled) = &state.unsettled else {
                return Ok(());
            };
            (
                Arc::clone(&unsettled.latest),
                unsettled.author(),
                unsettled.blobs.clone(),
                unsettled.is_opening,
                is_now || unsettled.is_due(now, state.hurried_until.is_some_and(|until| now < until)),
            )
        };
        if delta.is_only_runs() {
            if let Some(latest) = self.latest_version(end.document).await? {
                self.on_same(track, &entry.version.id, latest);
            }
            track.lock().unsettled = None;
            return Ok(());
        }
        if !is_due {
            return Ok(());
        }
        let mut version = entry.version.clone();
        (version.principal, version.authors) = names(&author);
        (version.kind, version.summary) = (Kind::of(&author), delta.summary());
        let before = self.latest_version(end.document).await?;
        let next = Next {
            version: &version,
            delta: &delta,
            after: live.clone(),
            blobs: &blobs,
            is_beginning: false,
        };
        match self.append(&end, next).await? {
            Ok(appended) => {
                {
                    let mut state = track.lock();
                    (state.stored, state.unsettled) = (Some(appended), None);
                }
                if let Some(before) = before.filter(|_| is_opening) {
                    let row = self.store.document(&track.key()).await?;
                    self.notice_outside(track, &row, (&end.content, live), before).await?;
                }
            }
            Err(latest) => {
                let end = self.after_conflict(track, end.document, latest, live).await?;
                track.on_log_changed(end);
            }
        }
        Ok(())
    }

    /// The end of the log as it is now.
    async fn followed_end(&self, track: &Arc<Track>, live: &Content) -> Result<Stored, StoreError> {
        let known = self.end_of_log(track, live).await?;
        let row = self.store.document(&track.key()).await?;
        if (row.document, row.latest_seq) == (known.document, known.seq) {
            return Ok(known);
        }
        let end = self.after_conflict(track, row.document, row.latest_seq, live).await?;
        track.on_log_changed(end.clone());
        Ok(end)
    }
}

impl Track {
    /// Others have written to the log.
    fn on_log_changed(&self, end: Stored) {
        let mut state = self.lock();
        state.stored = Some(end);
        if let Some(unsettled) = &mut state.unsettled {
            unsettled.changed = Instant::now();
        }
    }
}
