//! The page for people at `/` and `/console`: what this is and how to connect, and for those who log in with their token
//! what goes on: servers, open documents, runs, activity, history, forks, limits, audit. HTML made here, with one small script
//! that keeps it up to date; without that it works too.
//!
//! Whatever a page shows or does it gets by calling tools as agents do, so that permissions, path rules, tenants, reviews and
//! records are theirs. Notebook content is always escaped, and outputs are text. Knows nothing of axum or of MCP.

mod approvals;
mod assets;
mod audit;
mod connect;
mod cookie;
mod desk;
mod document;
mod fork;
mod layout;
mod live;
mod login;
mod markup;
mod overview;
mod reply;
mod run;
mod session;
mod visit;

use std::{collections::HashMap, sync::Arc, time::Duration};

use http::StatusCode;
use jupyter_client::UnknownServer;
use store::Store;

use self::{
    cookie::Cookie,
    desk::{Desk, Failure},
    login::LoginForms,
    overview::ServerLooks,
    session::{Sessions, Told},
};
use crate::{
    audit::{Decision, Outcome},
    auth::{Authenticator, oauth::OAuth},
    error::ErrorKind,
    limits::Limits,
    tools::{Scope, Services, ToolDefinition, catalogue},
};

pub use reply::{Content, Reply};
pub use session::Visitor;
pub use visit::{Fields, Site, Visit};

pub struct Console {
    services: Services,
    sessions: Sessions,
    limits: Arc<Limits>,
    store: Store,
    login_forms: LoginForms,
    /// Where people can log in without a token, if they can.
    logins: Option<Arc<OAuth>>,
    /// The tools by which pages read and forms act.
    tools: HashMap<&'static str, ToolDefinition>,
    looks: ServerLooks,
}

/// A page that a visitor asks for, with what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Overview,
    Connect,
    /// With the version that is chosen, if one is.
    Document(Place, Option<String>),
    Fork(Place, String),
    Run(String),
    Audit,
}

/// A document on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    server: String,
    path: String,
}

impl Place {
    fn of(fields: &Fields) -> Self {
        Self {
            server: fields.get("server").to_owned(),
            path: fields.get("path").to_owned(),
        }
    }
}

impl Page {
    fn of(name: &str, fields: &Fields) -> Option<Self> {
        let own = |name: &str| fields.get(name).to_owned();
        Some(match name {
            "" | "console" | "overview" => Self::Overview,
            "connect" => Self::Connect,
            "document" => Self::Document(Place::of(fields), fields.given("version").map(str::to_owned)),
            "fork" => Self::Fork(Place::of(fields), own("fork")),
            "run" => Self::Run(own("id")),
            "audit" => Self::Audit,
            _ => return None,
        })
    }

    fn place(&self) -> Option<&Place> {
        match self {
            Self::Document(place, _) | Self::Fork(place, _) => Some(place),
            Self::Overview | Self::Connect | Self::Run(_) | Self::Audit => None,
        }
    }
}

impl Console {
    pub fn new(
        services: Services,
        authenticator: Arc<Authenticator>,
        limits: Arc<Limits>,
        store: Store,
        idle_timeout: Duration,
    ) -> Self {
        let mut tools = HashMap::new();
        // Of several with one name the first is meant, which is the gateway's own.
        for tool in catalogue() {
            tools.entry(tool.name).or_insert(tool);
        }
        Self {
            sessions: Sessions::new(authenticator, idle_timeout),
            services,
            limits,
            store,
            login_forms: LoginForms::new(),
            logins: None,
            tools,
            looks: ServerLooks::default(),
        }
    }

    /// The same, where people can log in at another service.
    #[must_use]
    pub fn with_logins(self, logins: Option<Arc<OAuth>>) -> Self {
        Self { logins, ..self }
    }

    /// Returns whether clients can log in with a browser, as people can here.
    fn has_browser_login(&self) -> bool {
        self.logins.is_some()
    }

    fn tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.tools.get(name)
    }

    /// Returns whether a path is that of a live page, whose answer has no end.
    pub fn is_live(path: &str) -> bool {
        path == "console/live"
    }

    /// The visitor who is logged in by the cookie of a request.
    pub async fn visitor(&self, visit: &Visit) -> Option<Visitor> {
        let id = Cookie::Session.find(&visit.cookies, &visit.site)?;
        self.sessions.visitor(id).await
    }

    /// Answers a request.
    pub async fn answer(self: &Arc<Self>, visit: &Visit, visitor: Option<Visitor>) -> Reply {
        let name = visit.path.strip_prefix("console/").unwrap_or(&visit.path);
        if let Some(file) = assets::find(name, visit.known_tag.as_ref()).filter(|_| visit.form.is_none()) {
            return file;
        }
        if name.is_empty() && !visit.path.is_empty() {
            return reply::see_other("../console");
        }
        match (&visit.form, visitor) {
            (Some(_), _) if !visit.is_same_origin() => {
                let message = "This form was sent by a page of another site. Nothing was done.";
                Self::refusal(visit, StatusCode::FORBIDDEN, message)
            }
            (Some(form), None) if name == "login" => self.login(visit, form).await,
            (None, None) if visit.path == "console/live" => layout::over(),
            (None, None) if Page::of(name, &visit.query).is_some() => self.front(visit, StatusCode::OK, None),
            (Some(_), None) => self.front(visit, StatusCode::FORBIDDEN, Some("Log in first; nothing was done.")),
            (None, None) => layout::lost(visit.root()),
            (form, Some(visitor)) => {
                let desk = match self.desk(visit, visitor) {
                    Ok(desk) => desk,
                    Err(error) => return Self::refusal(visit, StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
                };
                match form {
                    Some(form) => Box::pin(self.act(&desk, visit, name, form)).await,
                    None => Box::pin(desk.show(name, visit)).await,
                }
            }
        }
    }

    /// A plain page that says why a request was refused.
    pub fn refusal(visit: &Visit, status: StatusCode, message: &str) -> Reply {
        layout::refusal(visit.root(), status, message)
    }

    fn desk(self: &Arc<Self>, visit: &Visit, visitor: Visitor) -> Result<Desk, UnknownServer> {
        let scope = Scope::new(&visitor.principal, &self.services.servers, &[])?;
        Ok(Desk {
            console: Arc::clone(self),
            visitor,
            scope,
            origin: visit.origin.clone(),
            root: visit.root(),
        })
    }

    /// Does what a form asks for, and leads to the page that shows what came of it.
    async fn act(&self, desk: &Desk, visit: &Visit, name: &str, form: &Fields) -> Reply {
        if !desk.visitor.session.has_sent(form.get("csrf")) {
            let message = "This form is not from a page of your session, or from one that is over. Nothing was done.";
            return Self::refusal(visit, StatusCode::FORBIDDEN, message);
        }
        let place = Place::of(form);
        let (told, next) = match name {
            "logout" => return self.logout(visit).await,
            "login" => return reply::see_other("../console"),
            "cancel" => (run::cancel(desk, form.get("id")).await, run::after(form)),
            "decide" => (approvals::decide(desk, form), "../console".to_owned()),
            "answer" => (run::answer(desk, form).await, run::after(form)),
            "undo" => (document::undo(desk, &place, form).await, document::link("../", &place)),
            "restore" => (
                document::restore(desk, &place, form).await,
                document::link("../", &place),
            ),
            "merge" => fork::merge(desk, &place, form).await,
            "discard" => (
                fork::discard(desk, &place, form.get("fork")).await,
                document::link("../", &place),
            ),
            _ => return layout::lost(visit.root()),
        };
        desk.visitor.session.tell(match told {
            Ok(message) => Told::Done(message),
            Err(failure) => Told::Failed(failure.to_string()),
        });
        reply::see_other(&next)
    }
}

impl Desk {
    async fn show(&self, name: &str, visit: &Visit) -> Reply {
        if name == "live" {
            let page = Page::of(visit.query.get("page"), &visit.query);
            return page.map_or_else(|| layout::lost(self.root), |page| live::follow(self, page));
        }
        let Some(page) = Page::of(name, &visit.query) else {
            return layout::lost(self.root);
        };
        let nowhere = Place {
            server: String::new(),
            path: String::new(),
        };
        let Place { server, path } = page.place().unwrap_or(&nowhere);
        let record = self.recorded(server, path);
        let shown = match &page {
            Page::Overview => Box::pin(overview::page(self)).await,
            Page::Connect => Ok(connect::page(self, &visit.site)),
            Page::Document(place, _) => document::page(self, place, &visit.query).await,
            Page::Fork(place, fork) => fork::page(self, place, fork).await,
            Page::Run(id) => run::page(self, id).await,
            Page::Audit => audit::page(self, &visit.query).await,
        };
        if let Some(record) = record {
            let (decision, outcome) = judged(&shown);
            record.end(decision, outcome);
        }
        shown.unwrap_or_else(|failure| layout::failure(self, &failure))
    }
}

/// Decision and outcome of a look at a page, for its record.
fn judged(shown: &Result<Reply, Failure>) -> (Decision, Outcome) {
    match shown {
        Ok(_) => (Decision::Allowed, Outcome::Completed),
        Err(failure) => match (failure.rule, failure.kind) {
            (Some(rule), _) => (Decision::Denied { rule }, Outcome::Failed),
            (None, ErrorKind::Forbidden) => (Decision::Denied { rule: "toolset" }, Outcome::Failed),
            (None, _) => (Decision::Allowed, Outcome::Failed),
        },
    }
}
