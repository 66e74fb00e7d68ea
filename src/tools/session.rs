//! Tools about open rooms: which there are, and ending them.

use std::time::SystemTime;

use jupyter_client::DocPath;
use live_document::{RoomKind, RoomStatus, User, pool::OpenRoom};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Effect, ToolDefinition, ToolError, output::JsonObject};
use crate::tools::text::described_by;
use crate::tools::text::{Describe, Page};
use crate::types::{Permission, Toolset};
use jupyter_client::counted;
use std::fmt;

pub(super) fn tools() -> Vec<ToolDefinition> {
    let session = Toolset::Session;
    vec![
        ToolDefinition::new(
            session,
            "query_nb_sessions",
            "Lists the notebooks that are open in this gateway, and their state.",
            Effect::Read,
            query_nb_sessions,
        ),
        ToolDefinition::new(
            session,
            "end_nb_session",
            "Closes a notebook in this gateway; its file and kernel stay.",
            Effect::Set,
            end_nb_session,
        ),
        ToolDefinition::new(
            session,
            "query_document_session",
            "Tells whether a text document is open in this gateway.",
            Effect::Read,
            query_document_session,
        ),
        ToolDefinition::new(
            session,
            "end_document_session",
            "Closes a text document in this gateway.",
            Effect::Set,
            end_document_session,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryArguments {
    /// Directory (default: root)
    root_path: Option<String>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PathArguments {
    path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Sessions {
    root_path: String,
    #[schemars(with = "Vec<JsonObject>")]
    sessions: Vec<Session>,
    total_sessions: usize,
    active_sessions: usize,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Session {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<String>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cell_count: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_activity: Option<String>,
    message: &'static str,
}

impl Describe for Sessions {
    fn describe(&self, page: &mut Page) {
        if self.sessions.is_empty() {
            page.line("No notebooks are open in this gateway");
        }
        page.items(&self.sessions);
    }
}

impl Describe for Session {
    fn describe(&self, page: &mut Page) {
        page.line(self);
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.status)?;
        if let Some(id) = &self.session_id {
            write!(f, ", session {id}")?;
        }
        if let Some(count) = self.cell_count {
            write!(f, ", {}", counted(count, "cell"))?;
        }
        match &self.last_activity {
            Some(time) => write!(f, ", last used {}", time.get(..19).unwrap_or(time)),
            None => Ok(()),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Ended {
    path: String,
    status: &'static str,
    message: &'static str,
}

described_by!(message: Ended);

async fn query_nb_sessions(call: Call, arguments: QueryArguments) -> Result<Sessions, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let root = call.directory(arguments.root_path.as_deref())?;
    let rooms = call.pool().open_rooms();
    let mut sessions: Vec<Session> = rooms
        .into_iter()
        .filter(|room| &*room.server == server.name() && room.info.kind == RoomKind::Notebook)
        .filter(|room| is_below(&room.info.path, &root) && call.principal().may_touch(&room.info.path))
        .map(session)
        .collect();
    sessions.sort_by(|a, b| a.path.cmp(&b.path));
    let active_sessions = sessions.iter().filter(|session| session.status == "connected").count();
    Ok(Sessions {
        root_path: root.to_string(),
        total_sessions: sessions.len(),
        active_sessions,
        sessions,
    })
}

async fn query_document_session(call: Call, arguments: PathArguments) -> Result<Session, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    Ok(call
        .pool()
        .find(server.name(), &path, RoomKind::of(&path))
        .map_or_else(|| not_open(&path), session))
}

async fn end_nb_session(call: Call, arguments: PathArguments) -> Result<Ended, ToolError> {
    end(&call, &arguments, RoomKind::Notebook).await
}

async fn end_document_session(call: Call, arguments: PathArguments) -> Result<Ended, ToolError> {
    let kind = RoomKind::of(&call.file(&arguments.path)?);
    end(&call, &arguments, kind).await
}

async fn end(call: &Call, arguments: &PathArguments, kind: RoomKind) -> Result<Ended, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    let count = call.engine().busy_with(server.name(), &path);
    if count > 0 {
        let path = path.to_string();
        return Err(ToolError::Executing { path, count });
    }
    if let Some(open) = call.pool().find(server.name(), &path, kind) {
        require_alone(call, &open)?;
    }
    let (status, message) = match call.pool().end(server.name(), &path, kind).await {
        true => ("disconnected", "RTC session ended successfully"),
        false => ("not_found", "No RTC session is open for this document"),
    };
    Ok(Ended {
        path: path.to_string(),
        status,
        message,
    })
}

/// Refuses to end what other agents work in, unless the caller may do so.
fn require_alone(call: &Call, open: &OpenRoom) -> Result<(), ToolError> {
    let principal = call.principal();
    let is_other = |user: &User| user.activity.is_some() && *user.id != *principal.id;
    match open.room.users().iter().any(is_other) {
        true => Ok(principal.require(Permission::Admin)?),
        false => Ok(()),
    }
}

pub(super) fn session(room: OpenRoom) -> Session {
    let (status, message) = match room.info.status {
        RoomStatus::Connected => ("connected", "RTC session is active"),
        RoomStatus::Reconnecting => ("disconnected", "RTC session is reconnecting"),
        RoomStatus::Disconnected(_) => ("disconnected", "RTC session ended"),
    };
    Session {
        path: room.info.path.to_string(),
        session_id: Some(room.info.session_id),
        file_id: Some(room.info.file_id),
        status,
        cell_count: (room.info.kind == RoomKind::Notebook).then_some(room.info.cell_count),
        last_activity: Some(timestamp(room.last_activity)),
        message,
    }
}

fn not_open(path: &DocPath) -> Session {
    Session {
        path: path.to_string(),
        session_id: None,
        file_id: None,
        status: "not_found",
        cell_count: None,
        last_activity: None,
        message: "No RTC session is open for this document",
    }
}

fn is_below(path: &DocPath, root: &DocPath) -> bool {
    root.is_root()
        || path
            .as_str()
            .strip_prefix(root.as_str())
            .is_some_and(|rest| rest.starts_with('/'))
}

fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}
