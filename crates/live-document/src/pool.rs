//! Open documents: each is opened once however many ask, leased to those who use it, and closed when nobody did for a
//! while. Knows nothing of MCP or of what documents are used for.
//!
//! A document is known by its [`DocumentId`]; an index leads from its path there. However a rename is noticed, the
//! index follows at once and there is one [`PoolEvent::Renamed`].

mod counts;
mod error;
mod events;
mod files;
mod following;
mod forks;
mod index;
mod places;
mod presence;
mod recent;
mod renames;
mod slot;

use std::{
    sync::{Arc, OnceLock, Weak},
    time::{Duration, Instant, SystemTime},
};

use dashmap::{DashMap, DashSet};
use jupyter_client::{DocPath, JupyterServer};
use parking_lot::RwLock;
use tokio::sync::broadcast;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, Span};

pub use self::{
    counts::RoomCounts,
    error::PoolError,
    events::{Moved, PoolEvent, Renamed},
    forks::{ForkKeeper, PreparedFork},
    slot::Lease,
};
use self::{
    events::{MAX_CHANGES, MAX_EVENTS},
    following::follow,
    index::{Index, Place},
    recent::Recent,
    renames::Renames,
    slot::Slot,
};
pub use crate::core::DocumentId;
pub use crate::driver::global_awareness::Online;
use crate::{
    DocumentChange, HistorySink, Host, PresenceChange, Room, RoomError, RoomInfo, RoomKind,
    core::policy::{MAX_SWEEP_INTERVAL, MIN_SWEEP_INTERVAL},
};

#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    pub idle_timeout: Duration,
    pub max_open_rooms: usize,
    /// Time for which an agent stays visible in a room after its last activity there.
    pub presence_timeout: Duration,
}

/// Account on which a room is opened.
#[derive(Debug, Clone)]
pub struct Account {
    /// Principal that uses it now; `None` if only something that they left running does.
    pub principal: Option<Arc<str>>,
    pub tenant: Arc<str>,
    pub max_open_rooms: usize,
}

pub struct Pool {
    limits: PoolLimits,
    started: (Instant, SystemTime),
    /// Written while places are counted and taken, so that a limit holds whoever comes at the same time.
    index: RwLock<Index>,
    /// Servers whose file events are being followed.
    watched: DashSet<Arc<str>>,
    /// State that the rooms of a server share, also while none of them is open.
    hosts: DashMap<Arc<str>, Arc<Host>>,
    recent: Recent,
    renames: Renames,
    events: broadcast::Sender<PoolEvent>,
    changes: broadcast::Sender<DocumentChange>,
    presences: broadcast::Sender<PresenceChange>,
    /// The keeper of forks, if there is one.
    fork_keeper: OnceLock<Weak<dyn ForkKeeper>>,
    /// Takes the versions of all documents, if they are kept.
    history: Option<Arc<dyn HistorySink>>,
    tasks: TaskTracker,
    /// Ends its tasks.
    closing: CancellationToken,
}

/// A room as the session tools show it.
pub struct OpenRoom {
    pub server: Arc<str>,
    pub room: Room,
    pub info: RoomInfo,
    /// Creation time of the document itself, if Jupyter told it.
    pub created: Option<String>,
    pub last_activity: SystemTime,
}

/// The span of somebody's getting a document, which may have to be opened.
fn room_span(place: &Place) -> Span {
    tracing::debug_span!(
        "room",
        otel.name = "open document",
        jmg.document.path = place.path.as_str(),
    )
}

/// Result of opening a document.
enum Opened {
    Here(Lease),
    /// It is open under an earlier name, which the index now knows to be this one.
    Elsewhere,
}

impl Pool {
    pub fn new(limits: PoolLimits) -> Self {
        Self {
            limits,
            started: (Instant::now(), SystemTime::now()),
            index: RwLock::default(),
            watched: DashSet::new(),
            hosts: DashMap::new(),
            recent: Recent::default(),
            renames: Renames::default(),
            events: broadcast::Sender::new(MAX_EVENTS),
            changes: broadcast::Sender::new(MAX_CHANGES),
            presences: broadcast::Sender::new(MAX_EVENTS),
            fork_keeper: OnceLock::new(),
            history: None,
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
        }
    }

    /// The same with somebody who keeps the history of all documents that are opened from now on.
    pub fn with_history(mut self, history: Arc<dyn HistorySink>) -> Self {
        self.history = Some(history);
        self
    }

    /// The document at a path, opened if it is not. Whoever asks at the same time waits for the same opening.
    pub async fn lease(
        self: &Arc<Self>,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
        account: &Account,
    ) -> Result<Lease, PoolError> {
        let place = Place::new(server.name(), path, kind);
        if let Some(lease) = self.lease_at(&place) {
            lease.check_file().await;
            self.refresh(&place);
        }
        let opening = async {
            loop {
                if let Opened::Here(lease) = self.open(server, &place, account).await? {
                    return Ok::<_, PoolError>(lease);
                }
            }
        };
        let lease = opening.instrument(room_span(&place)).await?;
        self.watch(server);
        if let Some(principal) = account.principal.as_ref().filter(|_| kind == RoomKind::Notebook)
            && self.recent.used(principal, lease.session_id())
        {
            let principal = Arc::clone(principal);
            self.tell(PoolEvent::Current { principal });
        }
        Ok(lease)
    }

    async fn open(
        self: &Arc<Self>,
        server: &Arc<JupyterServer>,
        place: &Place,
        account: &Account,
    ) -> Result<Opened, PoolError> {
        // Held before the room is opened, so that its place cannot be taken for an idle one.
        let hold = self.hold(place, account).await?;
        let opening = || Box::pin(self.open_room(server, place, account));
        let room = match hold.slot.room.get_or_try_init(opening).await {
            Ok(room) => room.clone(),
            Err(error) => {
                self.give_up(place, hold);
                return Err(error);
            }
        };
        if hold.slot.id.get().is_none() {
            let id = DocumentId {
                server: Arc::clone(&place.server),
                file_id: room.info().file_id.into(),
                kind: place.kind,
            };
            let other = self.index.write().identify(place, &hold.slot, id.clone());
            if let Some(other) = other {
                self.index.write().remove(place, &hold.slot);
                room.begin_closing();
                if other != *place {
                    self.renamed(&place.server, &other.path, &place.path);
                }
                return Ok(Opened::Elsewhere);
            }
            self.follow_room(&hold.slot, &room, id);
        }
        // Not earlier, since the document may be open under another name.
        if let (Some(history), Some(id)) = (&self.history, hold.slot.id.get()) {
            room.start_history(id, history);
        }
        Ok(Opened::Here(Lease { room, hold }))
    }

    async fn open_room(
        self: &Arc<Self>,
        server: &Arc<JupyterServer>,
        place: &Place,
        account: &Account,
    ) -> Result<Room, PoolError> {
        let host = self.host(server, &place.server);
        match &place.fork {
            Some(fork_id) => self.open_fork(host, place, fork_id, account).await,
            None => Ok(Room::open(host, &place.path, place.kind, self.limits.presence_timeout).await?),
        }
    }

    /// Tells of a room that was opened, follows it to other paths, and tells of its end.
    fn follow_room(self: &Arc<Self>, slot: &Arc<Slot>, room: &Room, document: DocumentId) {
        self.tell_of(&document, room);
        let (pool, slot, room) = (Arc::downgrade(self), Arc::downgrade(slot), room.clone());
        self.tasks.spawn(async move {
            let mut paths = room.paths();
            loop {
                tokio::select! {
                    () = room.ended() => break,
                    changed = paths.changed() => if changed.is_err() { break },
                }
                let Some(pool) = pool.upgrade() else { return };
                pool.refresh_document(&document);
            }
            if let Some(pool) = pool.upgrade() {
                if let Some(slot) = slot.upgrade() {
                    let mut index = pool.index.write();
                    if let Some(place) = index.place_of(&document).cloned() {
                        index.remove(&place, &slot);
                    }
                }
                pool.tell_of(&document, &room);
            }
        });
    }

    /// State that the rooms of a server share. Drops that of servers that nobody else knows any more.
    fn host(&self, server: &Arc<JupyterServer>, name: &Arc<str>) -> Arc<Host> {
        self.hosts
            .retain(|_, host| Arc::strong_count(host) > 1 || Arc::strong_count(host.server()) > 1);
        let known = self.hosts.entry(Arc::clone(name));
        Arc::clone(&known.or_insert_with(|| {
            let (changes, presences) = (self.changes.clone(), self.presences.clone());
            Arc::new(Host::followed(Arc::clone(server), changes, presences))
        }))
    }

    /// The session id of the notebook's room that a principal used last.
    pub fn last_used(&self, principal: &str) -> Option<String> {
        self.recent.of(principal)
    }

    /// Names the document at a path. The server is asked only if it is not open; a file that does not exist gets a name
    /// too.
    pub async fn identify(
        &self,
        server: &JupyterServer,
        path: &DocPath,
        kind: RoomKind,
    ) -> Result<DocumentId, PoolError> {
        let place = Place::new(server.name(), path, kind);
        self.refresh(&place);
        let known = self.index.read().get(&place).and_then(|slot| slot.id.get().cloned());
        if let Some(id) = known {
            return Ok(id);
        }
        let session = server.document_session(path, kind).await.map_err(RoomError::from)?;
        Ok(DocumentId {
            server: place.server,
            file_id: session.file_id.into(),
            kind,
        })
    }

    /// Current path of an open document.
    pub fn path_of(&self, document: &DocumentId) -> Option<DocPath> {
        self.refresh_document(document);
        let index = self.index.read();
        index.place_of(document).map(|place| place.path.clone())
    }

    /// The room of an open document; asking for it is no use of it.
    pub fn room_of(&self, document: &DocumentId) -> Option<Room> {
        let index = self.index.read();
        index.get(index.place_of(document)?)?.open_room().cloned()
    }

    /// A lease of an open document, wherever it is now.
    pub fn lease_document(&self, document: &DocumentId) -> Option<Lease> {
        let index = self.index.read();
        index.get(index.place_of(document)?)?.lease(self.started.0)
    }

    /// An open room by its session id, described; asking for it is no use of it.
    pub fn session(&self, session_id: &str) -> Option<OpenRoom> {
        let index = self.index.read();
        let (place, slot) = index.iter().find(|(_, slot)| slot.is_session(session_id))?;
        self.describe(place, slot)
    }

    /// An open room by its session id, described, and a lease of it.
    pub fn lease_session(&self, session_id: &str) -> Option<(OpenRoom, Lease)> {
        let index = self.index.read();
        let (place, slot) = index.iter().find(|(_, slot)| slot.is_session(session_id))?;
        Some((self.describe(place, slot)?, slot.lease(self.started.0)?))
    }

    /// The room of a document if it is open; never opens one.
    pub fn find(&self, server: &str, path: &DocPath, kind: RoomKind) -> Option<OpenRoom> {
        let place = Place::new(server, path, kind);
        self.refresh(&place);
        let index = self.index.read();
        self.describe(&place, index.get(&place)?)
    }

    /// A lease of a room that is open already.
    pub fn lease_open(&self, server: &str, path: &DocPath, kind: RoomKind) -> Option<Lease> {
        self.lease_at(&Place::new(server, path, kind))
    }

    fn lease_at(&self, place: &Place) -> Option<Lease> {
        self.refresh(place);
        self.index.read().get(place)?.lease(self.started.0)
    }

    /// Number of open documents of a tenant, as its limit counts them.
    pub fn count_of(&self, tenant: &str) -> usize {
        self.index.read().count_of(tenant)
    }

    /// The open documents of files; forks are told by those who keep them.
    pub fn open_rooms(&self) -> Vec<OpenRoom> {
        let index = self.index.read();
        index
            .iter()
            .filter(|(place, _)| place.fork.is_none())
            .filter_map(|(place, slot)| self.describe(place, slot))
            .collect()
    }

    /// The open rooms of a server, but for one document's, in which an author has edits that are not on disk yet.
    pub fn unsaved_of(&self, server: &str, author: &str, except: Option<&DocPath>) -> Vec<Lease> {
        let is_unsaved = |slot: &Slot| slot.room.get().is_some_and(|room| room.has_unsaved_of(author));
        self.index
            .read()
            .iter()
            .filter(|(place, slot)| *place.server == *server && Some(&place.path) != except && is_unsaved(slot))
            .filter_map(|(_, slot)| slot.lease(self.started.0))
            .collect()
    }

    /// Follows the file events of a server for as long as it has open rooms.
    fn watch(self: &Arc<Self>, server: &Arc<JupyterServer>) {
        let name: Arc<str> = server.name().into();
        if self.watched.insert(Arc::clone(&name)) {
            let following = follow(Arc::downgrade(self), Arc::clone(server), name);
            let closing = self.closing.clone();
            self.tasks
                .spawn(async move { closing.run_until_cancelled(following).await });
        }
    }

    fn has_rooms_of(&self, server: &str) -> bool {
        self.index.read().iter().any(|(place, _)| *place.server == *server)
    }

    /// Closes a document's room; returns whether there was one.
    pub async fn end(&self, server: &str, path: &DocPath, kind: RoomKind) -> bool {
        let place = Place::new(server, path, kind);
        self.refresh(&place);
        let slot = self.index.write().take(&place);
        match slot {
            Some(slot) => {
                slot.close().await;
                true
            }
            None => false,
        }
    }

    /// Closes idle rooms until `stop` is cancelled, and then all of them. From when `overdue` is cancelled on, rooms are closed
    /// without waiting for their edits to be saved.
    pub async fn sweep(&self, stop: CancellationToken, overdue: CancellationToken) {
        let every = (self.limits.idle_timeout / 4).clamp(MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL);
        let mut interval = tokio::time::interval(every);
        while stop.run_until_cancelled(interval.tick()).await.is_some() {
            let timeout = self.limits.idle_timeout;
            self.close_where(|slot| slot.is_idle() && slot.idle_for(self.started.0) > timeout)
                .await;
        }
        let closing = self.index.write().take_where(|_, _| true);
        let closed = futures::future::join_all(closing.iter().map(|slot| slot.close()));
        let giving_up = async {
            overdue.cancelled().await;
            for slot in &closing {
                slot.give_up();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            _ = closed => {}
            () = giving_up => {}
        }
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        let hosts: Vec<Arc<Host>> = self.hosts.iter().map(|host| Arc::clone(&host)).collect();
        futures::future::join_all(hosts.iter().map(|host| host.close())).await;
    }

    async fn close_where(&self, condition: impl Fn(&Slot) -> bool) {
        let closing = self.index.write().take_where(|_, slot| condition(slot));
        futures::future::join_all(closing.iter().map(|slot| slot.close())).await;
    }

    fn describe(&self, place: &Place, slot: &Slot) -> Option<OpenRoom> {
        let room = slot.room.get()?.clone();
        Some(OpenRoom {
            server: Arc::clone(&place.server),
            info: room.info(),
            created: room.created().map(str::to_owned),
            room,
            last_activity: self.started.1 + slot.last_used(),
        })
    }
}
