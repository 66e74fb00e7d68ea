//! Identity of a request as the edge knows it before the protocol starts: the caller, and what they selected.

use std::sync::Arc;

use crate::{
    audit::Origin,
    auth::Principal,
    resources::View,
    skills::skills,
    tools::{Call, Client, Scope, Services},
    types::{Permission, Toolset},
};

/// The tools that a client wants to see. A selection narrows what its token allows; it never widens it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// None: what the tenant has, else the default set. An empty selection is one of no tools.
    pub toolsets: Option<Vec<Toolset>>,
    pub readonly: bool,
    /// Empty: all of the tenant's.
    pub servers: Vec<String>,
    /// True if answers have structured content. `None`: unless the client is one that hides text beside it.
    pub structured: Option<bool>,
    /// True if edits go to a fork that somebody else merges, even where the tenant does not demand it.
    pub review: bool,
}

/// The caller of one request; the edge puts it into the request's extensions.
#[derive(Debug, Clone)]
pub struct Caller {
    pub principal: Arc<Principal>,
    pub scope: Scope,
    toolsets: Arc<[Toolset]>,
    readonly: bool,
    structured: Option<bool>,
    review: bool,
    /// True if the client shows a model only structured content where there is some.
    is_content_only: bool,
    origin: Origin,
    /// The MCP session that the request names, up to 2025-11-25.
    session: Option<Arc<str>>,
}

tokio::task_local! {
    static CURRENT: Caller;
}

impl Caller {
    /// Makes something for a request of this caller, whom it can learn by [`Caller::current`]: rmcp tells handlers who
    /// asks, but not in all they are asked.
    pub(super) fn while_current<T>(self, make: impl FnOnce() -> T) -> T {
        CURRENT.sync_scope(self, make)
    }

    pub(super) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    pub fn new(principal: Arc<Principal>, scope: Scope, selection: &Selection) -> Self {
        let bound = &principal.tenant.toolsets;
        let toolsets: Vec<Toolset> = match (&selection.toolsets, bound.is_empty()) {
            (None, true) => Toolset::defaults().collect(),
            (None, false) => bound.clone(),
            (Some(selected), true) => selected.clone(),
            (Some(selected), false) => {
                let within = |toolset: &Toolset| bound.contains(toolset);
                selected.iter().copied().filter(within).collect()
            }
        };
        Self {
            principal,
            scope,
            toolsets: toolsets.into(),
            readonly: selection.readonly,
            structured: selection.structured,
            review: selection.review,
            is_content_only: false,
            origin: Origin::default(),
            session: None,
        }
    }

    /// The same, whose request came from there.
    pub fn coming_from(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Origin of the request.
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The same, whose request names this MCP session.
    pub fn in_session(mut self, session: Option<&str>) -> Self {
        self.session = session.map(Arc::from);
        self
    }

    /// The toolsets that are selected, in the client's order.
    pub(super) fn toolsets(&self) -> &Arc<[Toolset]> {
        &self.toolsets
    }

    /// Sets whether the client would hide text and images from a model beside structured content.
    pub(super) fn set_content_only(&mut self, is_content_only: bool) {
        self.is_content_only = is_content_only;
    }

    /// Returns whether answers have structured content, and tools a schema for it.
    pub(super) fn wants_structured(&self) -> bool {
        self.structured.unwrap_or(!self.is_content_only)
    }

    pub(super) fn has_toolset(&self, toolset: Toolset) -> bool {
        self.toolsets.contains(&toolset)
    }

    pub(super) fn toolset_names(&self) -> String {
        names(&self.toolsets)
    }

    /// The toolsets that the tenant offers, if an operator has bounded them.
    pub(super) fn bound(&self) -> Option<&[Toolset]> {
        let bound = &self.principal.tenant.toolsets;
        (!bound.is_empty()).then_some(bound)
    }

    pub(super) fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// Returns whether tools with this permission may be used in this request.
    pub(super) fn may(&self, permission: Permission) -> bool {
        let narrowed = self.readonly && permission != Permission::Read;
        !narrowed && self.principal.permissions().contains(permission)
    }

    pub(super) fn view(&self, services: &Services) -> View {
        let mut own = match self.scope.is_narrowed() {
            true => Vec::new(),
            false => services.connections.own_servers(&self.principal.id),
        };
        own.retain(|server| server.is_allowed_by(&self.principal.tenant.connect_urls));
        let view = View::new(
            Arc::clone(&self.principal),
            self.scope.servers(),
            &own,
            Arc::clone(&services.pool),
            Arc::clone(&services.engine),
            Arc::clone(&services.activity),
        )
        .with_history(services.history.clone())
        // They speak of the tools of this toolset.
        .with_skills(match self.has_toolset(Toolset::Notebook) {
            true => skills(),
            false => &[],
        });
        match self.has_toolset(Toolset::Datalayer) {
            true => view.with_names(services.connections.rooms(&self.principal.id)),
            false => view,
        }
    }

    pub(super) fn call(&self, services: &Services, client: Arc<dyn Client>) -> Call {
        // A tool that does more for those who may must not do so on a connection that only reads.
        let principal = match self.readonly {
            true => Arc::new(self.principal.only_reading()),
            false => Arc::clone(&self.principal),
        };
        Call::new(principal, self.scope.clone(), services.clone(), client)
            .offering(Arc::clone(&self.toolsets))
            .answering_structured(self.wants_structured())
            .reviewed(self.review)
            .coming_from(self.origin.clone())
            .in_session(self.session.clone())
    }
}

pub(super) fn names(toolsets: &[Toolset]) -> String {
    if toolsets.is_empty() {
        return "none".to_owned();
    }
    let names: Vec<&str> = toolsets.iter().map(|toolset| toolset.as_str()).collect();
    names.join(", ")
}
