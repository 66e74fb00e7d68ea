//! Forks of documents: who made them, what they began as and what they hold, so that they survive a restart of Jupyter,
//! whose fork rooms are in memory only, and of the gateway. Knows nothing of MCP or of who may do what.
//!
//! | question | where |
//! | --- | --- |
//! | contents in the store | `record` |
//! | the room of a fork, and its content when the room was made anew | `keeper` |
//! | changes of the document that flow into a fork | `follow` |
//! | merging a fork, or giving it up | `merge` |
//! | work that must not happen at the same time | `locks` |

mod error;
mod follow;
mod keeper;
mod locks;
mod merge;
mod record;

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::{Duration, SystemTime},
};

use jupyter_client::{DocPath, ForkInfo, JupyterServer, NewFork};
use live_document::{
    Room, RoomKind,
    pool::{Account, ForkKeeper, Lease, Pool},
};
use store::{ForkRecord, Store};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

pub use self::record::contents;
pub use self::{
    error::ForkError,
    merge::{ForkContent, MergeForm, Merged},
};
use self::{
    locks::Locks,
    record::{base_of, content_of, encode},
};

/// Forks of one document, and those among them of one principal.
const MAX_OF_DOCUMENT: usize = 32;
const MAX_OF_PRINCIPAL: usize = 8;
/// Bytes of the content of a fork.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Time after which an unused fork is given up.
const KEPT_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The document that a fork is a copy of.
#[derive(Clone, Copy)]
pub struct Root<'a> {
    pub server: &'a Arc<JupyterServer>,
    pub path: &'a DocPath,
    pub kind: RoomKind,
    pub account: &'a Account,
}

impl<'a> Root<'a> {
    /// The document at a path.
    pub fn of(server: &'a Arc<JupyterServer>, path: &'a DocPath, account: &'a Account) -> Self {
        Self {
            server,
            path,
            kind: RoomKind::of(path),
            account,
        }
    }
}

/// Options of a new fork.
pub struct NewForkOf<'a> {
    pub title: String,
    pub description: String,
    pub synchronize: bool,
    pub principal: &'a str,
    pub author_name: &'a str,
    pub is_review: bool,
}

pub struct Forks {
    pool: Arc<Pool>,
    store: Store,
    /// Orders the writes of one fork's record.
    writing: Locks,
    /// Orders the merges of one fork, in either direction.
    merging: Locks,
    /// Keeps two calls of one principal from making a review fork each.
    making: Semaphore,
    tasks: TaskTracker,
    own: Weak<Self>,
}

impl Forks {
    /// The forks of a pool's documents. What goes on in open forks is kept by `tasks`.
    pub fn new(pool: &Arc<Pool>, store: Store, tasks: TaskTracker) -> Arc<Self> {
        let forks = Arc::new_cyclic(|own| Self {
            pool: Arc::clone(pool),
            store,
            writing: Locks::default(),
            merging: Locks::default(),
            making: Semaphore::new(1),
            tasks,
            own: Weak::clone(own),
        });
        let keeper: Weak<dyn ForkKeeper> = forks.own.clone();
        pool.set_fork_keeper(keeper);
        forks
    }

    /// The forks of a document, the oldest first. Those that nobody used for long are given up.
    pub async fn list(&self, root: Root<'_>) -> Result<Vec<ForkRecord>, ForkError> {
        let file_id = self.file_id(root).await?;
        let mut forks = self.store.forks_of(root.server.name(), &file_id).await?;
        let is_old = |fork: &ForkRecord| fork.updated_at.elapsed().is_ok_and(|age| age > KEPT_FOR);
        for old in forks.extract_if(.., |fork| is_old(fork)) {
            self.discard(root, &old).await?;
        }
        forks.sort_by_key(|fork| fork.created_at);
        Ok(forks)
    }

    /// The forks of a document that people made in JupyterLab, by the ids of their rooms; none if the server knows no forks.
    pub async fn of_people(&self, root: Root<'_>) -> Result<BTreeMap<String, ForkInfo>, ForkError> {
        let file_id = self.file_id(root).await?;
        let mut forks = root
            .server
            .forks(&root.kind.room_id(&file_id))
            .await?
            .unwrap_or_default();
        for known in self.store.forks_of(root.server.name(), &file_id).await? {
            if let Some(room_id) = known.room_id {
                forks.remove(&room_id);
            }
        }
        Ok(forks)
    }

    /// A fork of a document; one of another document is not known.
    pub async fn find(&self, root: Root<'_>, fork_id: &str) -> Result<ForkRecord, ForkError> {
        let (server, file_id) = (root.server.name(), self.file_id(root).await?);
        let is_its = |fork: &ForkRecord| fork.server == server && fork.file_id == file_id;
        match self.store.fork(fork_id).await?.filter(is_its) {
            Some(fork) => Ok(fork),
            None if self.of_people(root).await?.contains_key(fork_id) => Err(ForkError::OfPeople {
                fork_id: fork_id.to_owned(),
                path: root.path.to_string(),
            }),
            None => Err(ForkError::unknown(fork_id, root.path, &self.list(root).await?)),
        }
    }

    /// The fork to which the edits of a principal go that somebody has to review, if there is one.
    pub async fn review_of(&self, root: Root<'_>, principal: &str) -> Result<Option<ForkRecord>, ForkError> {
        let forks = self.list(root).await?;
        let is_it = |fork: &ForkRecord| fork.is_review && fork.principal == principal;
        Ok(forks.into_iter().find(is_it))
    }

    /// The same, made if there is none.
    pub async fn ensure_review(&self, root: Root<'_>, new: NewForkOf<'_>) -> Result<ForkRecord, ForkError> {
        let _making = self.making.acquire().await;
        match self.review_of(root, new.principal).await? {
            Some(fork) => Ok(fork),
            None => self.create(root, new).await,
        }
    }

    /// Makes a fork of a document, in a fork room of the server if it has such.
    pub async fn create(&self, root: Root<'_>, new: NewForkOf<'_>) -> Result<ForkRecord, ForkError> {
        let known = self.list(root).await?;
        // Documents that are gone have forks that nobody lists any more.
        self.store.delete_forks_before(SystemTime::now() - KEPT_FOR).await?;
        let own = known.iter().filter(|fork| fork.principal == new.principal).count();
        if known.len() >= MAX_OF_DOCUMENT || own >= MAX_OF_PRINCIPAL {
            return Err(ForkError::too_many(root.path, &known, own));
        }
        let original = self.lease_root(root).await?;
        let file_id = original.info().file_id;
        let content = encode(&original.whole_content(), root.path)?;
        let room_id = self.create_room(root, &file_id, &new).await?;
        let now = SystemTime::now();
        let record = ForkRecord {
            fork_id: room_id
                .clone()
                .unwrap_or_else(|| uuid::Uuid::new_v4().simple().to_string()),
            server: root.server.name().to_owned(),
            file_id,
            path: root.path.to_string(),
            kind: root.kind.file_type().to_owned(),
            title: Some(new.title),
            description: Some(new.description),
            synchronize: new.synchronize,
            principal: new.principal.to_owned(),
            author_name: new.author_name.to_owned(),
            created_at: now,
            room_id,
            is_review: new.is_review,
            base: content.clone(),
            content,
            updated_at: now,
        };
        self.store.put_fork(&record).await?;
        // What was typed while the server made the copy is in the copy, and so no difference.
        let fork = self.lease(root, &record).await?;
        let content = encode(&fork.whole_content(), root.path)?;
        self.update(&record.fork_id, |fork| {
            fork.base.clone_from(&content);
            fork.content = content;
        })
        .await
    }

    /// An open fork.
    pub async fn lease(&self, root: Root<'_>, fork: &ForkRecord) -> Result<Lease, ForkError> {
        let lease = self
            .pool
            .lease_fork(root.server, root.path, root.kind, &fork.fork_id, root.account)
            .await?;
        lease.connected().await?;
        Ok(lease)
    }

    /// The document itself, open.
    pub async fn lease_root(&self, root: Root<'_>) -> Result<Lease, ForkError> {
        let lease = self.pool.lease(root.server, root.path, root.kind, root.account).await?;
        lease.connected().await?;
        Ok(lease)
    }

    /// Stores the present content of a fork.
    pub async fn save(&self, fork: &Room) -> Result<(), ForkError> {
        let Some(fork_id) = fork.fork_id() else { return Ok(()) };
        let path = fork.info().path;
        let content = encode(&fork.whole_content(), &path)?;
        self.update(fork_id, |record| {
            if record.content != content {
                record.content = content;
                record.updated_at = SystemTime::now();
            }
            record.path = path.to_string();
        })
        .await?;
        Ok(())
    }

    /// Changes the record of a fork, and returns it.
    async fn update(&self, fork_id: &str, change: impl FnOnce(&mut ForkRecord)) -> Result<ForkRecord, ForkError> {
        let _locked = self.writing.lock(fork_id).await;
        let before = self.kept(fork_id).await?;
        let mut record = before.clone();
        change(&mut record);
        if record != before {
            self.store.put_fork(&record).await?;
        }
        Ok(record)
    }

    /// The record of a fork.
    async fn kept(&self, fork_id: &str) -> Result<ForkRecord, ForkError> {
        let record = self.store.fork(fork_id).await?;
        record.ok_or_else(|| ForkError::Gone {
            fork_id: fork_id.to_owned(),
        })
    }

    async fn file_id(&self, root: Root<'_>) -> Result<String, ForkError> {
        let id = self.pool.identify(root.server, root.path, root.kind).await?;
        Ok(id.file_id.to_string())
    }

    /// A fork room of the server, if it has such.
    async fn create_room(
        &self,
        root: Root<'_>,
        file_id: &str,
        new: &NewForkOf<'_>,
    ) -> Result<Option<String>, ForkError> {
        let root_room = root.kind.room_id(file_id);
        if root.server.forks(&root_room).await?.is_none() {
            return Ok(None);
        }
        let fork = NewFork {
            title: &new.title,
            description: &new.description,
            synchronize: false,
        };
        Ok(Some(root.server.create_fork(&root_room, fork).await?))
    }
}
