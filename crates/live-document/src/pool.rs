//! Open rooms by (server, path): each is opened once however many ask, leased to those who use it, and
//! closed when nobody did for a while. Knows nothing of MCP or of what rooms are used for.

mod error;
mod following;
mod recent;
mod renames;

use std::{
    ops::Deref,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use dashmap::{DashMap, DashSet};
use jupyter_client::{DocPath, JupyterServer};
use tokio::sync::{OnceCell, broadcast};
use tokio_util::sync::CancellationToken;

pub use self::error::PoolError;
use self::{following::follow, recent::Recent, renames::Renames};
use crate::Host;
use crate::{Room, RoomError, RoomInfo, RoomKind};

const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(10);
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(100);
/// Events that a slow follower may be behind; it learns that it missed some.
const MAX_EVENTS: usize = 256;

#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    pub idle_timeout: Duration,
    pub max_open_rooms: usize,
    /// How long agents are shown in a room after the last time they did something there.
    pub presence_timeout: Duration,
}

/// On whose account a room is opened.
#[derive(Debug, Clone)]
pub struct Account {
    /// Who uses it now, as far as somebody does and not only what they left running.
    pub principal: Option<Arc<str>>,
    pub tenant: Arc<str>,
    pub max_open_rooms: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    server: Arc<str>,
    path: DocPath,
    kind: RoomKind,
}

/// What happens to rooms, for those who follow it.
#[derive(Debug, Clone)]
pub enum PoolEvent {
    /// The room of a document was opened, ended or renamed.
    Room {
        server: Arc<str>,
        path: DocPath,
        /// Where it was before, if it was renamed: who saw it there may not see it any more.
        from: Option<DocPath>,
        kind: RoomKind,
    },
    /// A principal uses another room than before.
    Current { principal: Arc<str> },
    /// A file or directory has another name now.
    Renamed(Renamed),
}

struct Slot {
    room: OnceCell<Room>,
    tenant: Arc<str>,
    leases: AtomicUsize,
    /// Milliseconds after the pool's start.
    last_used: AtomicU64,
}

pub struct Pool {
    limits: PoolLimits,
    started: (Instant, SystemTime),
    slots: DashMap<Key, Arc<Slot>>,
    /// Servers whose file events are being followed.
    watched: DashSet<Arc<str>>,
    /// What the rooms of a server share, also while none of them is open.
    hosts: DashMap<Arc<str>, Arc<Host>>,
    recent: Recent,
    renames: Renames,
    events: broadcast::Sender<PoolEvent>,
    /// Held while places are counted and taken, so that a limit holds whoever comes at the same time.
    admission: Mutex<()>,
}

/// A file or directory of a server that has another name now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed {
    pub server: Arc<str>,
    pub from: DocPath,
    pub to: DocPath,
}

/// The right to use a room; as long as it lives the room is not closed for being idle.
pub struct Lease {
    room: Room,
    _hold: Hold,
}

/// Counts a user of a slot, however its work ends.
struct Hold {
    slot: Arc<Slot>,
    started: Instant,
}

impl Hold {
    fn new(slot: &Arc<Slot>, started: Instant) -> Self {
        slot.leases.fetch_add(1, Ordering::AcqRel);
        slot.touch(started);
        Self {
            slot: Arc::clone(slot),
            started,
        }
    }
}

/// A room as the session tools show it.
pub struct OpenRoom {
    pub server: Arc<str>,
    pub room: Room,
    pub info: RoomInfo,
    /// When the document itself was made, if Jupyter told it.
    pub created: Option<String>,
    pub last_activity: SystemTime,
}

impl Deref for Lease {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.slot.touch(self.started);
        self.slot.leases.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Slot {
    fn touch(&self, started: Instant) {
        let now = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(now, Ordering::Relaxed);
    }

    fn is_session(&self, session_id: &str) -> bool {
        let room = self.room.get();
        room.is_some_and(|room| room.session_id() == session_id && room.is_open())
    }

    fn is_idle(&self) -> bool {
        self.leases.load(Ordering::Acquire) == 0
    }

    fn idle_for(&self, started: Instant) -> Duration {
        started
            .elapsed()
            .saturating_sub(Duration::from_millis(self.last_used.load(Ordering::Relaxed)))
    }
}

impl Pool {
    pub fn new(limits: PoolLimits) -> Self {
        Self {
            limits,
            started: (Instant::now(), SystemTime::now()),
            slots: DashMap::new(),
            watched: DashSet::new(),
            hosts: DashMap::new(),
            recent: Recent::default(),
            renames: Renames::default(),
            events: broadcast::Sender::new(MAX_EVENTS),
            admission: Mutex::new(()),
        }
    }

    /// The room of a document, opened if it is not. Whoever asks at the same time waits for the same opening.
    pub async fn lease(
        self: &Arc<Self>,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
        account: &Account,
    ) -> Result<Lease, PoolError> {
        let key = Key {
            server: server.name().into(),
            path: path.clone(),
            kind,
        };
        if let Some(lease) = self.lease_at(&key) {
            lease.look_after_whereabouts().await;
            self.settle(&key);
        }
        // Held before the room is opened, so that its place cannot be taken for an idle one.
        let hold = self.hold(&key, account).await?;
        let opened = hold
            .slot
            .room
            .get_or_try_init(|| self.open(server, &key))
            .await
            .cloned();
        match opened {
            Ok(room) => {
                self.watch(server);
                if let Some(principal) = account.principal.as_ref().filter(|_| kind == RoomKind::Notebook)
                    && self.recent.used(principal, room.session_id())
                {
                    let principal = Arc::clone(principal);
                    self.tell(PoolEvent::Current { principal });
                }
                Ok(Lease { room, _hold: hold })
            }
            Err(error) => {
                drop(hold);
                self.slots
                    .remove_if(&key, |_, slot| slot.room.get().is_none() && slot.is_idle());
                Err(error.into())
            }
        }
    }

    async fn open(self: &Arc<Self>, server: &Arc<JupyterServer>, key: &Key) -> Result<Room, RoomError> {
        let room = Box::pin(Room::open(
            self.host(server, &key.server),
            &key.path,
            key.kind,
            self.limits.presence_timeout,
        ))
        .await?;
        self.tell_of(&key.server, &room, None);
        // Rooms end in many ways; whoever follows them hears of all.
        let (pool, server, ending) = (Arc::downgrade(self), Arc::clone(&key.server), room.clone());
        tokio::spawn(async move {
            ending.ended().await;
            if let Some(pool) = pool.upgrade() {
                pool.tell_of(&server, &ending, None);
            }
        });
        Ok(room)
    }

    /// What the rooms of a server share. Servers that nobody else knows any more are forgotten.
    fn host(&self, server: &Arc<JupyterServer>, name: &Arc<str>) -> Arc<Host> {
        self.hosts
            .retain(|_, host| Arc::strong_count(host) > 1 || Arc::strong_count(host.server()) > 1);
        let known = self.hosts.entry(Arc::clone(name));
        Arc::clone(&known.or_insert_with(|| Arc::new(Host::new(Arc::clone(server)))))
    }

    /// Follows what happens to rooms from now on.
    pub fn events(&self) -> broadcast::Receiver<PoolEvent> {
        self.events.subscribe()
    }

    fn tell_of(&self, server: &Arc<str>, room: &Room, from: Option<&DocPath>) {
        let info = room.info();
        self.tell(PoolEvent::Room {
            server: Arc::clone(server),
            path: info.path,
            from: from.cloned(),
            kind: info.kind,
        });
    }

    fn tell(&self, event: PoolEvent) {
        // Nobody may be following.
        let _ = self.events.send(event);
    }

    /// The session id of the notebook's room that a principal used last.
    pub fn last_used(&self, principal: &str) -> Option<String> {
        self.recent.of(principal)
    }

    /// An open room by its session id, described; asking for it is no use of it.
    pub fn session(&self, session_id: &str) -> Option<OpenRoom> {
        let entry = self.slots.iter().find(|entry| entry.is_session(session_id))?;
        self.describe(entry.key(), entry.value())
    }

    /// An open room by its session id, described, and a lease of it.
    pub fn lease_session(&self, session_id: &str) -> Option<(OpenRoom, Lease)> {
        let entry = self.slots.iter().find(|entry| entry.is_session(session_id))?;
        let room = entry.room.get()?.clone();
        let described = self.describe(entry.key(), entry.value())?;
        let hold = Hold::new(entry.value(), self.started.0);
        Some((described, Lease { room, _hold: hold }))
    }

    /// The room of a document if it is open; never opens one.
    pub fn find(&self, server: &str, path: &DocPath, kind: RoomKind) -> Option<OpenRoom> {
        let key = Key {
            server: server.into(),
            path: path.clone(),
            kind,
        };
        self.settle(&key);
        let slot = Arc::clone(&*self.slots.get(&key)?);
        self.describe(&key, &slot)
    }

    /// A lease of a room that is open already.
    pub fn lease_open(&self, server: &str, path: &DocPath, kind: RoomKind) -> Option<Lease> {
        self.lease_at(&Key {
            server: server.into(),
            path: path.clone(),
            kind,
        })
    }

    fn lease_at(&self, key: &Key) -> Option<Lease> {
        self.settle(key);
        let slot = self.slots.get(key)?;
        let room = slot.room.get().filter(|room| room.is_open())?.clone();
        Some(Lease {
            room,
            _hold: Hold::new(&slot, self.started.0),
        })
    }

    pub fn open_rooms(&self) -> Vec<OpenRoom> {
        self.slots
            .iter()
            .filter_map(|entry| self.describe(entry.key(), entry.value()))
            .collect()
    }

    /// The open rooms of a server, but for one document's, in which an author has edits that are not on disk yet.
    pub fn unsaved_of(&self, server: &str, author: &str, except: Option<&DocPath>) -> Vec<Lease> {
        let lease = |slot: &Arc<Slot>| {
            let room = slot.room.get().filter(|room| room.has_unsaved_of(author))?.clone();
            let hold = Hold::new(slot, self.started.0);
            Some(Lease { room, _hold: hold })
        };
        self.slots
            .iter()
            .filter(|entry| &*entry.key().server == server && Some(&entry.key().path) != except)
            .filter_map(|entry| lease(entry.value()))
            .collect()
    }

    /// Follows the file events of a server for as long as it has open rooms.
    fn watch(self: &Arc<Self>, server: &Arc<JupyterServer>) {
        let name: Arc<str> = server.name().into();
        if self.watched.insert(Arc::clone(&name)) {
            tokio::spawn(follow(Arc::downgrade(self), Arc::clone(server), name));
        }
    }

    /// The name that a document has now, as far as a renaming of it was noticed.
    pub fn new_name_of(&self, server: &str, path: &DocPath) -> Option<DocPath> {
        self.renames.follow(server, path)
    }

    /// Gives rooms their new names after a file or directory was renamed.
    pub fn renamed(&self, server: &str, from: &DocPath, to: &DocPath) {
        self.renames.note(&server.into(), from, to);
        // Nobody need listen.
        let _ = self.events.send(PoolEvent::Renamed(Renamed {
            server: server.into(),
            from: from.clone(),
            to: to.clone(),
        }));
        for key in self.keys_at(server, from) {
            let Some(path) = key.path.moved(from, to) else {
                continue;
            };
            let Some((_, slot)) = self.slots.remove(&key) else {
                continue;
            };
            match slot.room.get() {
                Some(room) if key.path == *from => room.set_path(&path),
                Some(room) => room.rejoin_at(&path),
                None => {}
            }
            if let Some(room) = slot.room.get() {
                self.tell_of(&key.server, room, Some(&key.path));
            }
            self.slots.insert(Key { path, ..key }, slot);
        }
    }

    /// Ends the rooms of what was deleted, so that the next call says so instead of showing what is gone.
    pub async fn deleted(&self, server: &str, path: &DocPath) {
        for key in self.keys_at(server, path) {
            let removed = self.slots.remove(&key);
            if let Some(room) = removed.as_ref().and_then(|(_, slot)| slot.room.get()) {
                room.forsake().await;
            }
        }
    }

    /// A file was written from outside, so that Jupyter overwrites its open document.
    fn overwritten(&self, server: &str, path: &DocPath) {
        for key in self.keys_at(server, path) {
            let slot = self.slots.get(&key).map(|slot| Arc::clone(&slot));
            if let Some(room) = slot.as_ref().and_then(|slot| slot.room.get()) {
                room.is_overwritten();
            }
        }
    }

    /// The rooms of a file, or of everything in a directory.
    fn keys_at(&self, server: &str, path: &DocPath) -> Vec<Key> {
        let at = |key: &Key| &*key.server == server && key.path.moved(path, path).is_some();
        self.slots.iter().map(|entry| entry.key().clone()).filter(at).collect()
    }

    fn has_rooms_of(&self, server: &str) -> bool {
        self.slots.iter().any(|entry| &*entry.key().server == server)
    }

    /// Closes a document's room; whether there was one.
    pub async fn end(&self, server: &str, path: &DocPath, kind: RoomKind) -> bool {
        let key = Key {
            server: server.into(),
            path: path.clone(),
            kind,
        };
        self.settle(&key);
        match self.slots.remove(&key) {
            Some((_, slot)) => {
                close(&slot).await;
                true
            }
            None => false,
        }
    }

    /// Closes idle rooms until `stop` is cancelled, and then all of them.
    pub async fn sweep(&self, stop: CancellationToken) {
        let every = (self.limits.idle_timeout / 4).clamp(MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL);
        let mut interval = tokio::time::interval(every);
        while stop.run_until_cancelled(interval.tick()).await.is_some() {
            let timeout = self.limits.idle_timeout;
            self.close_where(|slot| slot.is_idle() && slot.idle_for(self.started.0) > timeout)
                .await;
        }
        self.close_where(|_| true).await;
    }

    async fn close_where(&self, condition: impl Fn(&Slot) -> bool) {
        let keys: Vec<Key> = self
            .slots
            .iter()
            .filter(|entry| condition(entry.value()))
            .map(|entry| entry.key().clone())
            .collect();
        let closing = keys
            .iter()
            .filter_map(|key| self.slots.remove_if(key, |_, slot| condition(slot)));
        futures::future::join_all(closing.map(|(_, slot)| async move { close(&slot).await })).await;
    }

    /// Holds the slot of a document, which is made if there is room for it.
    async fn hold(&self, key: &Key, account: &Account) -> Result<Hold, PoolError> {
        let (hold, victim) = self.take_place(key, account)?;
        if let Some(slot) = victim {
            close(&slot).await;
        }
        Ok(hold)
    }

    fn take_place(&self, key: &Key, account: &Account) -> Result<(Hold, Option<Arc<Slot>>), PoolError> {
        if let Some(slot) = self.slots.get(key) {
            return Ok((Hold::new(&slot, self.started.0), None));
        }
        let _admission = self.admission.lock().unwrap_or_else(PoisonError::into_inner);
        self.settle_renamed(key);
        if let Some(slot) = self.slots.get(key) {
            return Ok((Hold::new(&slot, self.started.0), None));
        }
        let victim = self.make_room(account)?;
        let slot = Arc::new(Slot {
            room: OnceCell::new(),
            tenant: Arc::clone(&account.tenant),
            leases: AtomicUsize::new(0),
            last_used: AtomicU64::new(0),
        });
        let hold = Hold::new(&slot, self.started.0);
        self.slots.insert(key.clone(), slot);
        Ok((hold, victim))
    }

    /// At a limit the least used idle room gives up its place; if all are in use the request is refused.
    fn make_room(&self, account: &Account) -> Result<Option<Arc<Slot>>, PoolError> {
        let of_tenant = |slot: &Slot| slot.tenant == account.tenant;
        let tenant_rooms = self.slots.iter().filter(|entry| of_tenant(entry.value())).count();
        let full = match (
            tenant_rooms >= account.max_open_rooms,
            self.slots.len() >= self.limits.max_open_rooms,
        ) {
            (true, _) => PoolError::Full {
                limit: account.max_open_rooms,
                whose: "for your tenant",
            },
            (false, true) => PoolError::Full {
                limit: self.limits.max_open_rooms,
                whose: "in this gateway",
            },
            (false, false) => return Ok(None),
        };
        let only_tenant = tenant_rooms >= account.max_open_rooms;
        let mut idle: Vec<(u64, Key)> = self
            .slots
            .iter()
            .filter(|entry| entry.is_idle() && (!only_tenant || of_tenant(entry.value())))
            .map(|entry| (entry.last_used.load(Ordering::Relaxed), entry.key().clone()))
            .collect();
        idle.sort_unstable_by_key(|(last_used, _)| *last_used);
        // One that is taken up at this moment is passed over for the next.
        let removed = idle
            .iter()
            .find_map(|(_, key)| self.slots.remove_if(key, |_, slot| slot.is_idle()));
        removed.map(|(_, slot)| Some(slot)).ok_or(full)
    }

    /// Forgets a room that is over, and moves one whose document was renamed to its new name.
    fn settle(&self, key: &Key) {
        let Some(slot) = self.slots.get(key).map(|slot| Arc::clone(&slot)) else {
            return;
        };
        let Some(room) = slot.room.get() else { return };
        if !room.is_open() {
            self.slots.remove_if(key, |_, current| Arc::ptr_eq(current, &slot));
            return;
        }
        if room.is_at(&key.path) {
            return;
        }
        let path = room.info().path;
        self.renames.note(&key.server, &key.path, &path);
        if self
            .slots
            .remove_if(key, |_, current| Arc::ptr_eq(current, &slot))
            .is_some()
        {
            self.tell_of(&key.server, room, Some(&key.path));
            let kept = Arc::clone(
                &*self
                    .slots
                    .entry(Key { path, ..key.clone() })
                    .or_insert(Arc::clone(&slot)),
            );
            if !Arc::ptr_eq(&kept, &slot) {
                // Somebody opened it under its new name already; two rooms on one document are one too many.
                room.begin_closing();
            }
        }
    }

    /// Moves a room that is open under an earlier name of this document.
    fn settle_renamed(&self, key: &Key) {
        let same_document = |old: &Key, slot: &Slot| {
            old.server == key.server
                && old.kind == key.kind
                && old.path != key.path
                && slot
                    .room
                    .get()
                    .is_some_and(|room| room.is_open() && room.is_at(&key.path))
        };
        let found = self
            .slots
            .iter()
            .find(|entry| same_document(entry.key(), entry.value()))
            .map(|entry| entry.key().clone());
        if let Some(old) = found {
            self.settle(&old);
        }
    }

    fn describe(&self, key: &Key, slot: &Slot) -> Option<OpenRoom> {
        let room = slot.room.get()?.clone();
        let last_activity = self.started.1 + Duration::from_millis(slot.last_used.load(Ordering::Relaxed));
        Some(OpenRoom {
            server: Arc::clone(&key.server),
            info: room.info(),
            created: room.created().map(str::to_owned),
            room,
            last_activity,
        })
    }
}

async fn close(slot: &Slot) {
    if let Some(room) = slot.room.get() {
        room.close().await;
    }
}
