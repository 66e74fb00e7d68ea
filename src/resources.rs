//! Open notebooks as things that any client can browse, read and watch: `notebook://` addresses and the
//! files of a virtual `file:///notebooks/`; and files as they are, under `file:///documents/`. Reading changes nothing and runs nothing. Everything is seen
//! through a [`View`], which shows a principal only what it may read. Knows nothing of MCP's wire types.

mod activity;
mod address;
mod cells;
mod complete;
mod documents;
mod error;
mod execution;
mod history;
mod list;
mod metadata;
mod outputs;
mod read;
mod sanitize;
mod watch;

use std::{collections::HashMap, sync::Arc};

pub use address::notebook_name;
pub use complete::{Completions, Known};
pub use error::ResourceError;
pub use list::{Entry, Page, UriTemplate, uri_templates};
pub use read::{Body, Contents};
pub use watch::{ListWatch, Watch};

use self::address::{Address, named};
use executor::Engine;
use jupyter_client::{DocPath, JupyterServer};
use live_document::{
    RoomKind,
    pool::{Lease, OpenRoom, Pool},
};

use crate::{activity::ActivityLog, auth::Principal, history::History, skills::Skill, types::Permission};

/// View of one principal: the open notebooks of its servers, under its path rules.
#[derive(Clone)]
pub struct View {
    principal: Arc<Principal>,
    servers: Vec<Arc<JupyterServer>>,
    /// The names of those that only this principal is connected to.
    own: Vec<String>,
    /// The names that the principal gave notebooks, with their rooms, if its client addresses them so.
    names: Option<HashMap<String, String>>,
    pool: Arc<Pool>,
    engine: Arc<Engine>,
    activity: Arc<ActivityLog>,
    history: Option<Arc<History>>,
    skills: &'static [Skill],
}

/// A notebook that the principal may read, kept open while it is looked at.
struct Opened {
    open: OpenRoom,
    room: Lease,
}

impl View {
    pub fn new(
        principal: Arc<Principal>,
        servers: &[Arc<JupyterServer>],
        own: &[Arc<JupyterServer>],
        pool: Arc<Pool>,
        engine: Arc<Engine>,
        activity: Arc<ActivityLog>,
    ) -> Self {
        Self {
            principal,
            servers: servers.to_vec(),
            own: own.iter().map(|server| server.name().to_owned()).collect(),
            names: None,
            pool,
            engine,
            activity,
            history: None,
            skills: &[],
        }
    }

    /// The same with the versions of notebooks.
    pub fn with_history(mut self, history: Option<Arc<History>>) -> Self {
        self.history = history;
        self
    }

    /// The same with skills.
    pub fn with_skills(mut self, skills: &'static [Skill]) -> Self {
        self.skills = skills;
        self
    }

    /// The skills that the principal may read.
    pub fn skills(&self) -> &'static [Skill] {
        match self.may_read() {
            true => self.skills,
            false => &[],
        }
    }

    fn skill(&self, name: &str) -> Result<&'static Skill, ResourceError> {
        let found = self.skills().iter().find(|skill| skill.name == name);
        found.ok_or(ResourceError::SKILL)
    }

    /// The same for a client that addresses notebooks by the names that it gave them.
    pub fn with_names(mut self, rooms: impl IntoIterator<Item = (String, String)>) -> Self {
        self.names = Some(rooms.into_iter().collect());
        self
    }

    /// Returns whether notebooks are also addressed by name.
    pub fn has_names(&self) -> bool {
        self.names.is_some()
    }

    /// Resolves a URI to an address.
    fn address(&self, uri: &str) -> Result<Address, ResourceError> {
        let named = named(uri).and_then(|(name, part)| Some((self.names.as_ref()?.get(&name)?, part)));
        match named {
            Some((session, part)) => Ok(Address::Notebook {
                session: session.clone(),
                notebook: None,
                part,
            }),
            None => Address::parse(uri),
        }
    }

    fn require_read(&self) -> Result<(), ResourceError> {
        Ok(self.principal.require(Permission::Read)?)
    }

    /// Returns whether the principal may read at all.
    pub fn may_read(&self) -> bool {
        self.principal.permissions().contains(Permission::Read)
    }

    fn sees(&self, server: &str, path: &DocPath) -> bool {
        self.may_read() && self.has_server(server) && self.principal.may_touch(path)
    }

    /// The rule that keeps a resource from the principal, for the audit: whoever asks is told that it does not exist.
    pub fn denial_of(&self, uri: Option<&str>) -> Option<&'static str> {
        if !self.may_read() {
            return Some(Permission::Read.as_str());
        }
        let hidden_by = |server: &str, path: Option<&DocPath>| match path {
            _ if !self.has_server(server) => Some("server"),
            Some(path) if !self.principal.may_touch(path) => Some("paths"),
            _ => None,
        };
        match self.address(uri?).ok()? {
            Address::Document { server, path } => hidden_by(&server, DocPath::parse_file(&path).ok().as_ref()),
            Address::Notebook { session, .. } => {
                let open = self.pool.session(&session)?;
                hidden_by(&open.server, Some(&open.info.path))
            }
            Address::List | Address::Current | Address::Activity | Address::Template(_) | Address::Skill(_) => None,
        }
    }

    fn has_server(&self, server: &str) -> bool {
        self.servers.iter().any(|known| known.name() == server) || self.own.iter().any(|own| own == server)
    }

    fn sees_room(&self, open: &OpenRoom) -> bool {
        open.info.kind == RoomKind::Notebook && open.room.is_open() && self.sees(&open.server, &open.info.path)
    }

    /// The open notebooks, in a stable order.
    fn notebooks(&self) -> Vec<OpenRoom> {
        let mut rooms = self.pool.open_rooms();
        rooms.retain(|open| self.sees_room(open));
        rooms.sort_by(|a, b| (&a.server, &a.info.path).cmp(&(&b.server, &b.info.path)));
        rooms
    }

    /// An open notebook by its session, and its file's id if that is named too. What must not be seen does not
    /// exist, and is not kept open by who asks for it.
    fn notebook(&self, session: &str, notebook: Option<&str>) -> Option<Opened> {
        let is_it = |open: &OpenRoom| notebook.is_none_or(|id| id == open.info.file_id) && self.sees_room(open);
        self.pool.session(session).filter(is_it)?;
        // It may have been renamed since.
        let (open, room) = self.pool.lease_session(session).filter(|(open, _)| is_it(open))?;
        Some(Opened { open, room })
    }

    /// The notebook that the principal used last, if it is still open.
    fn current(&self) -> Option<Opened> {
        self.notebook(&self.pool.last_used(&self.principal.id)?, None)
    }

    /// The current room for those who only tell of it, which must not keep it open.
    fn current_room(&self) -> Option<OpenRoom> {
        let open = self.pool.session(&self.pool.last_used(&self.principal.id)?)?;
        self.sees_room(&open).then_some(open)
    }
}
