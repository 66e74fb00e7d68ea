//! The context of one tool call: who calls, which servers they reach, and the checked ways to both.

mod approving;
mod asking;
mod explaining;
mod forking;
mod notices;
mod scope;

pub(super) use approving::PATHS;
pub use asking::Unanswered;
pub use scope::Scope;

use std::{borrow::Cow, sync::Arc};

use executor::{Actor, Claim, Engine, Owner};
use history::Delta;
use jupyter_client::{DocPath, JupyterServer, Secret, Servers, Starter};
use live_document::{
    Activity, DeltaOptions, DeltaOutcome, DocumentId, Edit, EditOptions, Edited, Room, RoomKind,
    pool::{Account, Lease, Pool},
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use self::{
    approving::Approvals,
    explaining::{shorten_ids, with_short_ids},
};
use crate::{
    activity::{Activity as UserActivity, ActivityLog, KnownAgent},
    approvals::WaitingCalls,
    audit::{AuditSink, AuditedCall, Origin},
    auth::Principal,
    forks::Forks,
    history::{History, HistoryError},
    tools::{
        AnswerLimits, ChoiceReply, Client, Connections, Effect, ImageLimits, Input, Resumption, Scaling, ToolError,
        images::Illustrator, output::Faces, text::Page,
    },
    types::Toolset,
};

/// Services that tools work with, whoever calls.
#[derive(Clone)]
pub struct Services {
    pub servers: Arc<Servers>,
    pub pool: Arc<Pool>,
    pub engine: Arc<Engine>,
    pub forks: Arc<Forks>,
    /// None if versions of documents are not kept.
    pub history: Option<Arc<History>>,
    pub images: ImageLimits,
    pub answers: AnswerLimits,
    pub scaling: Arc<Scaling>,
    pub connections: Arc<Connections>,
    pub activity: Arc<ActivityLog>,
    pub audit: Arc<dyn AuditSink>,
    /// Calls that wait until a person allows them on the page.
    pub waiting: Arc<WaitingCalls>,
    /// Cancelled when the gateway is about to leave, and a call that only waits must answer.
    pub last_call: CancellationToken,
    /// Tasks that outlive their calls.
    pub background: TaskTracker,
}

#[derive(Clone)]
pub struct Call {
    principal: Arc<Principal>,
    scope: Scope,
    services: Services,
    client: Arc<dyn Client>,
    toolsets: Arc<[Toolset]>,
    origin: Origin,
    /// The name of the tool that is called, once it is known.
    tool: Option<&'static str>,
    session: Option<Arc<str>>,
    resumption: Option<Resumption>,
    /// True if the answer has structured content beside its text.
    wants_structured: bool,
    /// Rooms in which work of the caller was lost, which the answer reports.
    discarding: Arc<Mutex<Vec<Room>>>,
    /// Documents that the call uses, which may have notices.
    used: Arc<Mutex<Vec<DocumentId>>>,
    /// Other notices for the answer.
    notices: Arc<Mutex<Vec<String>>>,
    /// The effect of the tool that is called, once it is known.
    effect: Option<Effect>,
    /// The fork that the call names and works in.
    fork: Option<Arc<str>>,
    /// True if the caller's edits have to be accepted by somebody else.
    is_reviewed: bool,
    /// Choice of the person whom an earlier call asked, and the version of the form.
    choice: Option<(ChoiceReply, String)>,
    /// Forks in which the call did something.
    forked: Arc<Mutex<Vec<Room>>>,
    /// Approvals that a person gave to the call.
    approvals: Arc<Mutex<Approvals>>,
    reader: Reader,
}

/// Reader of the answer of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Agent,
    /// A person with the token of an agent.
    Person,
    /// A person, as a part of a page that is recorded as a whole.
    PersonOnPage,
}

impl Call {
    pub fn new(principal: Arc<Principal>, scope: Scope, services: Services, client: Arc<dyn Client>) -> Self {
        Self {
            principal,
            scope,
            services,
            client,
            toolsets: Arc::default(),
            origin: Origin::default(),
            tool: None,
            session: None,
            resumption: None,
            wants_structured: true,
            discarding: Arc::default(),
            used: Arc::default(),
            notices: Arc::default(),
            effect: None,
            fork: None,
            is_reviewed: false,
            choice: None,
            forked: Arc::default(),
            approvals: Arc::default(),
            reader: Reader::Agent,
        }
    }

    /// Marks the call as a person's, who has the token of an agent. Notices are left for the agent, and
    /// no images are prepared.
    pub fn of_person(mut self) -> Self {
        self.reader = Reader::Person;
        self
    }

    /// The same as part of a page that is recorded as a whole, so that it has no record of its own.
    pub fn of_page(mut self) -> Self {
        self.reader = Reader::PersonOnPage;
        self
    }

    /// Sets the toolsets among which the caller found the tool.
    pub fn offering(mut self, toolsets: Arc<[Toolset]>) -> Self {
        self.toolsets = toolsets;
        self
    }

    /// Sets whether the answer has structured content.
    pub fn answering_structured(mut self, wanted: bool) -> Self {
        self.wants_structured = wanted;
        self
    }

    /// The faces that the answer is to have.
    pub(super) fn faces(&self) -> Faces {
        Faces {
            structured: self.wants_structured,
            max_text_bytes: self.services.answers.max_text_bytes,
        }
    }

    /// An empty text with the budget of an answer.
    pub(super) fn page(&self) -> Page {
        Page::new(self.services.answers.max_text_bytes)
    }

    /// Sets the origin of the call's request.
    pub fn coming_from(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Sets the MCP session of the call's request.
    pub fn in_session(mut self, session: Option<Arc<str>>) -> Self {
        self.session = session;
        self
    }

    /// The MCP session of the call, which there is up to 2025-11-25.
    pub(super) fn session(&self) -> Option<&Arc<str>> {
        self.session.as_ref()
    }

    /// Begins the record of the call, if anybody wants one.
    pub fn audited(&self, tool: impl Into<Cow<'static, str>>, arguments: &Map<String, Value>) -> Option<AuditedCall> {
        if self.reader == Reader::PersonOnPage {
            return None;
        }
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = PATHS.into_iter().find_map(text);
        let target = (text("server"), path);
        AuditedCall::begin(&self.services.audit, &self.principal, &self.origin, tool, target)
    }

    /// Refuses a call that cannot be recorded, where that is demanded.
    pub(super) fn require_audit(&self) -> Result<(), ToolError> {
        Ok(self.services.audit.check()?)
    }

    pub(super) fn offers(&self, toolset: Toolset) -> bool {
        self.toolsets.contains(&toolset)
    }

    /// Names the tool that is called, which those who follow changes of documents are told.
    pub(super) fn of_tool(mut self, name: &'static str, effect: Effect) -> Self {
        (self.tool, self.effect) = (Some(name), Some(effect));
        self
    }

    pub(super) fn tool(&self) -> Option<&'static str> {
        self.tool
    }

    /// Marks the call as a repetition of an earlier one, whose execution it resumes.
    pub fn resuming(mut self, resumption: Resumption) -> Self {
        self.resumption = Some(resumption);
        self
    }

    /// Returns whether the call only shows an execution.
    pub(super) fn only_shows_execution(&self) -> bool {
        matches!(
            &self.resumption,
            Some(Resumption {
                input: Input::Nothing,
                ..
            })
        )
    }

    pub(super) fn resumption(&self) -> Option<&Resumption> {
        self.resumption.as_ref()
    }

    pub(super) fn client(&self) -> &Arc<dyn Client> {
        &self.client
    }

    pub(super) fn pool(&self) -> &Arc<Pool> {
        &self.services.pool
    }

    /// The way that images become part of the answer, if they are wanted.
    pub(super) fn illustrator(&self, wanted: bool) -> Illustrator {
        Illustrator {
            limits: self.services.images,
            wanted: wanted && self.reader == Reader::Agent,
            places: self.services.answers.max_images.into(),
            scaling: Arc::clone(&self.services.scaling),
            tenant: self.principal.tenant.name.as_str().into(),
            client: Arc::clone(&self.client),
        }
    }

    /// The notebooks that principals have given names.
    pub(super) fn connections(&self) -> &Connections {
        &self.services.connections
    }

    /// Activities of agents and people.
    pub(super) fn activity(&self) -> &Arc<ActivityLog> {
        &self.services.activity
    }

    /// Returns whether the caller may see an activity.
    pub(super) fn sees_activity(&self, activity: &UserActivity) -> bool {
        let has_server = |name: &str| self.servers().iter().any(|server| server.name() == name);
        activity.is_visible_to(&self.principal, has_server)
    }

    /// The agents that the caller may know of although they are not here: those of its circle.
    pub(super) fn known_agents(&self) -> Vec<KnownAgent> {
        let mut agents = self.services.activity.agents();
        agents.retain(|agent| *agent.tenant == *self.principal.circle());
        agents
    }

    /// Records who calls, so that others can call them by their name.
    pub(super) fn note_caller(&self) {
        if self.reader != Reader::Agent {
            return;
        }
        let Principal { id, name, .. } = &*self.principal;
        self.services.activity.note_agent(id, name, self.principal.circle());
    }

    /// Returns when the gateway is about to leave.
    pub(super) async fn last_call(&self) {
        self.services.last_call.cancelled().await;
    }

    /// Tasks that outlive the call.
    pub(super) fn background(&self) -> &TaskTracker {
        &self.services.background
    }

    /// The versions of documents.
    pub(super) fn history(&self) -> Result<&Arc<History>, ToolError> {
        Ok(self.services.history.as_ref().ok_or(HistoryError::Off)?)
    }

    /// Applies a delta to a document in the name of the caller, with the smallest edit.
    pub(super) async fn apply_delta(
        &self,
        room: &Room,
        delta: &Delta,
        options: DeltaOptions<'_>,
    ) -> Result<DeltaOutcome, ToolError> {
        let options = DeltaOptions {
            tool: self.tool,
            ..options
        };
        Ok(room
            .apply_delta(&self.principal.id, &self.principal.name, delta, options)
            .await?)
    }

    pub(super) fn engine(&self) -> &Arc<Engine> {
        &self.services.engine
    }

    /// The owner of an execution of this call.
    pub(super) fn owner(&self) -> Owner {
        self.principal.owner()
    }

    /// The actor of what this call does to a kernel.
    pub(super) fn actor(&self) -> Actor {
        self.principal.owner().actor()
    }

    /// The one for whom this call starts a kernel.
    pub(super) fn starter(&self) -> Starter {
        Starter {
            id: Arc::clone(&self.principal.id),
            name: self.principal.name.clone(),
        }
    }

    pub(super) fn claim(&self) -> Claim {
        Claim {
            owner: self.owner(),
            max_concurrent: self.principal.tenant.max_concurrent_executions,
            gate: self.code_gate(),
        }
    }

    /// Edits a document in the name of the caller, who is told if that was merged with the work of others.
    pub(super) async fn edit(
        &self,
        room: &Room,
        edits: &[Edit],
        options: EditOptions<'_>,
    ) -> Result<Edited, ToolError> {
        let options = EditOptions {
            tool: self.tool,
            ..options
        };
        if self.must_approve_edits() {
            Box::pin(self.approve_edits(room, edits)).await?;
        }
        let edited = room
            .edit(&self.principal.id, &self.principal.name, edits, options)
            .await;
        let mut edited = edited.map_err(|error| with_short_ids(room, error))?;
        self.note_edited();
        shorten_ids(room, edited.merged.iter_mut().map(|merged| &mut merged.cell));
        let notices = edited.merged.iter().map(ToString::to_string);
        self.notices.lock().extend(notices);
        Ok(edited)
    }

    /// The room of a document, or of the fork that the call works in, on this principal's account.
    pub(super) async fn room(
        &self,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
    ) -> Result<Lease, ToolError> {
        let room = match self.fork_room(server, path, kind).await? {
            Some(fork) => fork,
            None => self.original_room(server, path, kind).await?,
        };
        if self.has_rules() {
            Box::pin(self.approve_document(path, &room)).await?;
        }
        Ok(room)
    }

    /// The account on which documents are opened.
    pub(super) fn account(&self) -> Account {
        let tenant = &self.principal.tenant;
        Account {
            principal: Some(Arc::clone(&self.principal.id)),
            tenant: tenant.name.as_str().into(),
            max_open_rooms: tenant.max_open_rooms,
        }
    }

    /// The same, also if the call works in a fork.
    pub(super) async fn original_room(
        &self,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
    ) -> Result<Lease, ToolError> {
        let room = self.services.pool.lease(server, path, kind, &self.account()).await?;
        if server.hub().is_some() && !room.is_connected() {
            // The Hub knows whether the server was stopped or the connection comes back soon.
            Box::pin(server.status()).await?;
        }
        room.connected().await?;
        room.show_activity(&self.principal.id, &self.principal.name, Activity::Reading);
        // A read must see what code of the caller has written to the file.
        let ran = self.engine().last_ran(&self.principal.id, server.name(), path);
        if let Some(ran) = ran
            && !room.follows_file(ran).await
        {
            self.notices.lock().push(format!(
                "Your code has written {path}, and Jupyter has not loaded that into the open document yet: this answer may \
                 be older than the file."
            ));
        }
        if let Some(document) = room.document_id() {
            self.used.lock().push(document.clone());
        }
        if room.has_discarded(&self.principal.id) {
            self.discarding.lock().push(Room::clone(&room));
        }
        Ok(room)
    }

    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(super) fn servers(&self) -> &[Arc<JupyterServer>] {
        self.scope.servers()
    }

    /// The servers that the call may use, with those that have become the caller's since it began.
    pub(super) fn latest_servers(&self) -> Vec<Arc<JupyterServer>> {
        let mut servers = self.servers().to_vec();
        if let Some(account) = self.principal.hub().filter(|_| !self.scope.is_narrowed()) {
            let is_new = |server: &Arc<JupyterServer>| self.servers().iter().all(|known| known.name() != server.name());
            servers.extend(account.servers().into_iter().filter(is_new));
        }
        servers
    }

    /// Returns whether the client's URL selects servers.
    pub(super) fn selects_servers(&self) -> bool {
        self.scope.is_narrowed()
    }

    /// URLs that a call may connect to beyond its servers.
    pub(super) fn connect_urls(&self) -> &[Url] {
        match self.scope.is_narrowed() {
            true => &[],
            false => &self.principal.tenant.connect_urls,
        }
    }

    /// The server at a URL that the call may connect to, with a token of the caller's own.
    pub(super) fn connect(&self, url: &Url, token: &Secret) -> Result<Arc<JupyterServer>, ToolError> {
        Ok(self.services.servers.connect(url, token)?)
    }

    /// The server a call names, or the default.
    pub(super) fn server(&self, name: Option<&str>) -> Result<&Arc<JupyterServer>, ToolError> {
        match name.map(str::trim).filter(|name| !name.is_empty()) {
            Some(name) => Ok(self.scope.find(name)?),
            None => Ok(self
                .scope
                .servers()
                .first()
                .ok_or_else(|| self.scope.unknown("default"))?),
        }
    }

    /// A file that the principal may touch.
    pub(super) fn file(&self, raw: &str) -> Result<DocPath, ToolError> {
        let path = DocPath::parse_file(raw)?;
        self.principal.require_path(&path)?;
        Ok(path)
    }

    /// A directory that the principal may list; left out means the root.
    pub(super) fn directory(&self, raw: Option<&str>) -> Result<DocPath, ToolError> {
        let path = DocPath::parse(raw.unwrap_or_default())?;
        self.principal.require_directory(&path)?;
        Ok(path)
    }

    /// Returns whether an entry of a listing may be shown.
    pub(super) fn sees(&self, path: &str, is_directory: bool) -> bool {
        match DocPath::parse(path) {
            Ok(path) if is_directory => self.principal.may_enter(&path),
            Ok(path) => self.principal.may_touch(&path),
            Err(_) => false,
        }
    }
}
