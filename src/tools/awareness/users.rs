//! `get_online_users` and `get_user_presence`.

use std::{fmt, sync::Arc, time::SystemTime};

use jupyter_client::{DocPath, JupyterServer, counted};
use live_document::Status;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    known_users::{KnownUser, KnownUsers, is_same_name},
    some_names, timestamp,
};
use crate::{
    activity::{Activity, Selection},
    tools::{
        Call, ToolError,
        text::{Describe, Page},
    },
};

/// Number of activities that are searched for somebody who is not online.
const MAX_LOOKED_AT: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OnlineArguments {
    /// Only users in this document
    document_path: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct OnlineUsers {
    users: Vec<OnlineUserLine>,
    total: usize,
    /// Since when the gateway hears who is online; null if the server does not tell
    listening_since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct OnlineUserLine {
    user_id: String,
    name: String,
    display_name: String,
    initials: String,
    color: String,
    is_agent: bool,
    status: &'static str,
    message: Option<String>,
    documents: Vec<String>,
    current: Option<String>,
    last_activity: String,
}

impl OnlineUserLine {
    fn new(known: &KnownUser) -> Self {
        let user = &known.user;
        Self {
            user_id: user.id.clone(),
            name: user.name.clone(),
            display_name: user.display_name.clone(),
            initials: user.initials.clone(),
            color: user.color.clone(),
            is_agent: user.is_agent,
            status: known.status().as_str(),
            message: known.message().map(str::to_owned),
            documents: known.documents.iter().map(ToString::to_string).collect(),
            current: known.current.as_ref().map(ToString::to_string),
            last_activity: timestamp(user.last_activity),
        }
    }
}

impl fmt::Display for OnlineUserLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_agent { "agent" } else { "person" };
        write!(
            f,
            "{} ({kind}, id {}): {}",
            self.display_name, self.user_id, self.status
        )?;
        match (&self.current, self.documents.as_slice()) {
            (Some(current), _) => write!(f, ", in {current}")?,
            (None, []) => {}
            (None, documents) => write!(f, ", has {} open", documents.join(", "))?,
        }
        Ok(())
    }
}

impl Describe for OnlineUsers {
    fn describe(&self, page: &mut Page) {
        match self.total {
            0 => page.line("Nobody is known to be online"),
            count => page.line(format!("{} online", counted(count, "user"))),
        };
        let shown = page.items(&self.users);
        if shown < self.users.len() {
            page.line(format!(
                "({} more left out; name a document_path)",
                self.users.len() - shown
            ));
        }
        if let Some(note) = &self.note {
            page.line(note);
        }
    }
}

pub(super) async fn get_online_users(call: Call, arguments: OnlineArguments) -> Result<OnlineUsers, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = arguments
        .document_path
        .as_deref()
        .map(|path| call.file(path))
        .transpose()?;
    let known = KnownUsers::of(&call, server).await;
    let is_wanted = |user: &&KnownUser| path.as_ref().is_none_or(|path| user.is_in(path));
    let users: Vec<OnlineUserLine> = known.users.iter().filter(is_wanted).map(OnlineUserLine::new).collect();
    Ok(OnlineUsers {
        total: users.len(),
        users,
        listening_since: known.since.map(timestamp),
        note: note(&known, server),
    })
}

/// A note on how complete a list of users is.
fn note(known: &KnownUsers, server: &JupyterServer) -> Option<String> {
    match (known.since, known.is_partial) {
        (None, _) => Some(format!(
            "Jupyter server `{}` does not tell who is online; only those in open documents are listed.",
            server.name()
        )),
        (Some(_), true) => Some(
            "Listening began just now: who was online before is heard within about 15 seconds; ask again then."
                .to_owned(),
        ),
        (Some(_), false) => None,
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PresenceArguments {
    /// From get_online_users; a name works too
    user_id: String,
    /// Tell whether they are in this document
    document_path: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct UserPresence {
    user_id: String,
    name: String,
    is_agent: bool,
    /// online, away, busy or offline
    status: &'static str,
    message: Option<String>,
    last_activity: Option<String>,
    current_document: Option<String>,
    documents: Vec<String>,
    /// Of an agent of this gateway
    activity: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_document: Option<bool>,
}

impl Describe for UserPresence {
    fn describe(&self, page: &mut Page) {
        let kind = if self.is_agent { "agent" } else { "person" };
        let message = self
            .message
            .as_ref()
            .map(|message| format!(" ({message})"))
            .unwrap_or_default();
        page.line(format!(
            "{} ({kind}, id {}): {}{message}",
            self.name, self.user_id, self.status
        ));
        if let Some(document) = &self.current_document {
            let activity = self
                .activity
                .map(|activity| format!(", {activity}"))
                .unwrap_or_default();
            page.line(format!("In {document}{activity}"));
        }
        if let Some(at) = &self.last_activity {
            page.line(format!("Last active {at}"));
        }
        match self.in_document {
            Some(true) => drop(page.line("Is in that document")),
            Some(false) => drop(page.line("Is not in that document")),
            None => {}
        }
    }
}

pub(super) async fn get_user_presence(call: Call, arguments: PresenceArguments) -> Result<UserPresence, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = arguments
        .document_path
        .as_deref()
        .map(|path| call.file(path))
        .transpose()?;
    let named = arguments.user_id.trim();
    if named.is_empty() {
        return Err(ToolError::argument(
            "user_id",
            "name somebody; get_online_users lists who is online",
        ));
    }
    let known = KnownUsers::of(&call, &server).await;
    if let Some(user) = known.find(named) {
        return Ok(online_presence(user, path.as_ref()));
    }
    let past = past_activities(&call, &server).await;
    let of_them = past.iter().find(|activity| {
        *activity.actor.id == *named
            || activity.actor.id.as_ref() != "unknown" && is_same_name(&activity.actor.name, named)
    });
    if let Some(activity) = of_them {
        let actor = &activity.actor;
        return Ok(offline(
            &actor.id,
            &actor.name,
            actor.is_agent,
            Some(activity.time),
            path.as_ref(),
        ));
    }
    let agents = call.known_agents();
    let agent = agents
        .iter()
        .find(|agent| *agent.id == *named || is_same_name(&agent.name, named));
    if let Some(agent) = agent {
        return Ok(offline(&agent.id, &agent.name, true, None, path.as_ref()));
    }
    let online = known.users.iter().map(|user| user.user.id.clone());
    let seen = past
        .iter()
        .map(|activity| activity.actor.id.to_string())
        .filter(|id| id != "unknown");
    let agents = agents.iter().map(|agent| agent.id.to_string());
    let names = some_names(online.chain(seen).chain(agents).collect());
    let named: String = named.chars().take(100).collect();
    let why = format!("nobody is known as {named:?} on `{}`; known: {names}", server.name());
    Err(ToolError::argument("user_id", why))
}

fn online_presence(known: &KnownUser, path: Option<&DocPath>) -> UserPresence {
    let user = &known.user;
    UserPresence {
        user_id: user.id.clone(),
        name: user.name.clone(),
        is_agent: user.is_agent,
        status: known.status().as_str(),
        message: known.message().map(str::to_owned),
        last_activity: Some(timestamp(user.last_activity)),
        current_document: known.current.as_ref().map(ToString::to_string),
        documents: known.documents.iter().map(ToString::to_string).collect(),
        activity: user.activity.and_then(live_document::Activity::words),
        in_document: path.map(|path| known.is_in(path)),
    }
}

fn offline(id: &str, name: &str, is_agent: bool, last: Option<SystemTime>, path: Option<&DocPath>) -> UserPresence {
    UserPresence {
        user_id: id.to_owned(),
        name: name.to_owned(),
        is_agent,
        status: Status::Offline.as_str(),
        message: None,
        last_activity: last.map(timestamp),
        current_document: None,
        documents: Vec::new(),
        activity: None,
        in_document: path.map(|_| false),
    }
}

/// Recent activities on a server, as far as the caller may know of them.
async fn past_activities(call: &Call, server: &JupyterServer) -> Vec<Arc<Activity>> {
    let wanted = Selection {
        server: Some(server.name().to_owned()),
        ..Selection::default()
    };
    let seen = |activity: &Activity| call.sees_activity(activity);
    call.activity().latest(&wanted, MAX_LOOKED_AT, seen).await.activities
}
