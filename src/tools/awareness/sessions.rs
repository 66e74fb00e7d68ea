//! `get_active_sessions`, `join_session`, `leave_session`: open documents as places where people and agents meet.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jupyter_client::{DocPath, counted};
use live_document::{Participant, RoomKind, RoomStatus, Status, pool::OpenRoom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    known_users::{KnownUsers, is_same_name},
    some_names, timestamp,
};
use crate::{
    tools::{
        Call, ToolError,
        text::{Describe, Page, described_by},
    },
    types::Permission,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsArguments {
    document_path: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ActiveSessions {
    sessions: Vec<ActiveSession>,
    total: usize,
    /// Documents that people have open and this gateway has not
    elsewhere: Vec<OpenElsewhere>,
}

#[derive(Serialize, JsonSchema)]
struct ActiveSession {
    session_id: String,
    document_path: String,
    server: String,
    file_id: String,
    /// notebook or file
    document_type: &'static str,
    status: &'static str,
    participants: Vec<SessionParticipant>,
    participant_count: usize,
    last_activity: String,
}

#[derive(Serialize, JsonSchema)]
struct SessionParticipant {
    user_id: String,
    name: String,
    is_agent: bool,
    is_you: bool,
    status: &'static str,
    activity: Option<&'static str>,
    cell_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct OpenElsewhere {
    document_path: String,
    users: Vec<String>,
}

impl SessionParticipant {
    fn new(call: &Call, participant: &Participant) -> Self {
        let user = &participant.user;
        let availability = user.availability.as_ref();
        let main = participant.cursors.iter().find(|range| range.is_primary);
        let main = main.or(participant.cursors.first());
        Self {
            user_id: user.id.clone(),
            name: user.name.clone(),
            is_agent: user.is_agent,
            is_you: *user.id == *call.principal().id,
            status: availability.map_or(Status::Online, |said| said.status).as_str(),
            activity: user.activity.and_then(live_document::Activity::words),
            cell_id: main.and_then(|range| range.head.cell.clone()).map(|(_, id)| id),
        }
    }
}

impl fmt::Display for ActiveSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, session {}",
            self.document_path, self.status, self.session_id
        )?;
        let describe = |participant: &SessionParticipant| {
            let kind = if participant.is_agent { "agent " } else { "" };
            let activity = participant
                .activity
                .map(|activity| format!(" ({activity})"))
                .unwrap_or_default();
            format!("{kind}{}{activity}", participant.name)
        };
        let names: Vec<String> = self.participants.iter().map(describe).collect();
        match names.is_empty() {
            true => write!(f, "; nobody is in it"),
            false => write!(f, "; in it: {}", names.join(", ")),
        }
    }
}

impl fmt::Display for OpenElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: open in the browser of {}",
            self.document_path,
            self.users.join(", ")
        )
    }
}

impl Describe for ActiveSessions {
    fn describe(&self, page: &mut Page) {
        match self.total {
            0 => page.line("No sessions are open in this gateway"),
            count => page.line(counted(count, "open session")),
        };
        page.items(&self.sessions);
        if !self.elsewhere.is_empty() {
            page.line("Not open in this gateway; reading one opens a session that you can join:");
            page.items(&self.elsewhere);
        }
    }
}

pub(super) async fn get_active_sessions(call: Call, arguments: SessionsArguments) -> Result<ActiveSessions, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = arguments
        .document_path
        .as_deref()
        .map(|path| call.file(path))
        .transpose()?;
    let is_wanted = |other: &DocPath| path.as_ref().is_none_or(|path| path == other);
    let known = KnownUsers::of(&call, &server).await;
    let mut rooms = visible_rooms(&call);
    rooms.retain(|open| *open.server == *server.name() && is_wanted(&open.info.path));
    let mut elsewhere: BTreeMap<&DocPath, Vec<String>> = BTreeMap::new();
    for user in &known.users {
        for document in user.documents.iter().filter(|document| is_wanted(document)) {
            if !rooms.iter().any(|open| open.info.path == *document) {
                elsewhere.entry(document).or_default().push(user.user.name.clone());
            }
        }
    }
    let elsewhere = elsewhere.into_iter().map(|(path, users)| OpenElsewhere {
        document_path: path.to_string(),
        users,
    });
    let elsewhere = elsewhere.collect();
    let sessions: Vec<ActiveSession> = rooms.iter().map(|open| session(&call, open)).collect();
    Ok(ActiveSessions {
        total: sessions.len(),
        sessions,
        elsewhere,
    })
}

/// The open rooms that the caller may know of, in a stable order.
fn visible_rooms(call: &Call) -> Vec<OpenRoom> {
    let mut rooms = call.pool().open_rooms();
    rooms.retain(|open| {
        let is_ours = call.servers().iter().any(|server| *server.name() == *open.server);
        is_ours && open.room.is_open() && call.principal().may_touch(&open.info.path)
    });
    rooms.sort_by(|one, other| (&one.server, &one.info.path).cmp(&(&other.server, &other.info.path)));
    rooms
}

fn session(call: &Call, open: &OpenRoom) -> ActiveSession {
    let participants = participants(call, open);
    ActiveSession {
        session_id: open.info.session_id.clone(),
        document_path: open.info.path.to_string(),
        server: open.server.to_string(),
        file_id: open.info.file_id.clone(),
        document_type: match open.info.kind {
            RoomKind::Notebook => "notebook",
            RoomKind::Text => "file",
        },
        status: match open.info.status {
            RoomStatus::Connected => "connected",
            RoomStatus::Reconnecting => "reconnecting",
            RoomStatus::Disconnected(_) => "disconnected",
        },
        participant_count: participants.len(),
        participants,
        last_activity: timestamp(open.last_activity),
    }
}

/// Everybody in a room, each once.
fn participants(call: &Call, open: &OpenRoom) -> Vec<SessionParticipant> {
    let of = |participant: &Participant| SessionParticipant::new(call, participant);
    let mut participants: Vec<SessionParticipant> = open.room.participants().iter().map(of).collect();
    let key = |participant: &SessionParticipant| {
        (
            participant.is_agent,
            participant.name.clone(),
            participant.user_id.clone(),
        )
    };
    participants.sort_by_key(|participant| (key(participant), participant.cell_id.is_none()));
    participants.dedup_by(|one, other| one.user_id == other.user_id);
    participants
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct JoinArguments {
    /// From get_active_sessions
    session_id: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Joined {
    success: bool,
    session_id: String,
    document_path: String,
    server: String,
    status: &'static str,
    participants: Vec<SessionParticipant>,
    message: String,
}

described_by!(message: Joined);

pub(super) async fn join_session(call: Call, arguments: JoinArguments) -> Result<Joined, ToolError> {
    let open = find(&call, &arguments.session_id)?;
    let Some((open, lease)) = call.pool().lease_session(&open.info.session_id) else {
        return Err(unknown(&call, &arguments.session_id));
    };
    lease.connected().await?;
    let principal = call.principal();
    let (agent, path) = (Arc::clone(&principal.id), lease.info().path);
    if !lease.join(&agent, &principal.name)? {
        let why = "you are offline, so you cannot be seen in a session; set_user_presence(status=\"online\") shows you";
        return Err(ToolError::argument("session_id", why));
    }
    let others = participants(&call, &open);
    let holding = call.clone();
    // The room stays open for whoever joined it, and not longer.
    call.background().spawn(async move {
        tokio::select! {
            () = lease.left(&agent) => {}
            () = holding.last_call() => {}
        }
        drop(lease);
    });
    let message = match others.iter().filter(|participant| !participant.is_you).count() {
        0 => format!("You are in {path}; nobody else is known to be there"),
        count => format!("You are in {path} with {}", counted(count, "other")),
    };
    Ok(Joined {
        success: true,
        session_id: open.info.session_id.clone(),
        document_path: path.to_string(),
        server: open.server.to_string(),
        status: "joined",
        participants: others,
        message,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaveArguments {
    session_id: String,
    /// Another agent of this gateway (default: you)
    user_id: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Left {
    success: bool,
    session_id: String,
    document_path: String,
    user_id: String,
    status: &'static str,
    message: String,
}

described_by!(message: Left);

pub(super) async fn leave_session(call: Call, arguments: LeaveArguments) -> Result<Left, ToolError> {
    let open = find(&call, &arguments.session_id)?;
    let principal = call.principal();
    let named = arguments
        .user_id
        .as_deref()
        .map(str::trim)
        .filter(|named| !named.is_empty());
    let is_self = named.is_none_or(|named| *principal.id == *named || is_same_name(&principal.name, named));
    let (agent, name) = match named.filter(|_| !is_self) {
        None => (principal.id.to_string(), principal.name.clone()),
        Some(named) => {
            principal.require(Permission::Admin)?;
            agent_in(&open, named)?
        }
    };
    let path = &open.info.path;
    let was_there = open.room.leave(&agent);
    let (status, message) = match (was_there, is_self) {
        (true, true) => ("left", format!("You left {path}")),
        (true, false) => ("left", format!("{name} was taken out of {path}")),
        (false, _) => (
            "not_joined",
            format!("You were not shown in {path}, so nothing changed"),
        ),
    };
    Ok(Left {
        success: was_there,
        session_id: open.info.session_id.clone(),
        document_path: path.to_string(),
        user_id: agent,
        status,
        message,
    })
}

/// An agent of this gateway in a session. People and agents of others cannot be taken out.
fn agent_in(open: &OpenRoom, named: &str) -> Result<(String, String), ToolError> {
    let users = open.room.users();
    let of_ours = || users.iter().filter(|user| user.activity.is_some());
    let found = of_ours().find(|user| user.id == named || is_same_name(&user.name, named));
    match found {
        Some(user) => Ok((user.id.clone(), user.name.clone())),
        None => {
            let names = some_names(of_ours().map(|user| user.id.clone()).collect());
            let named: String = named.chars().take(100).collect();
            let why = format!(
                "no agent of this gateway called {named:?} is in {}; there: {names}",
                open.info.path
            );
            Err(ToolError::argument("user_id", why))
        }
    }
}

/// An open session that the caller may know of.
fn find(call: &Call, session_id: &str) -> Result<OpenRoom, ToolError> {
    let mut rooms = visible_rooms(call).into_iter();
    let found = rooms.find(|open| open.info.session_id == session_id.trim());
    found.ok_or_else(|| unknown(call, session_id))
}

fn unknown(call: &Call, session_id: &str) -> ToolError {
    let known = visible_rooms(call);
    let known: Vec<String> = known
        .iter()
        .map(|open| format!("{} ({})", open.info.session_id, open.info.path))
        .collect();
    let open = match known.is_empty() {
        true => "none; reading a document opens one".to_owned(),
        false => some_names(known),
    };
    let named: String = session_id.chars().take(100).collect();
    ToolError::argument("session_id", format!("no session {named:?} is open; open: {open}"))
}
