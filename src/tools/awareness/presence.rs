//! `set_user_presence`: the availability that the caller declares.

use live_document::{Availability, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp;
use crate::tools::{Call, ToolError, text::described_by};

/// Characters of a status message.
const MAX_MESSAGE: usize = 200;

// The status of an agent. Not a doc comment, which would be in the schema.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum StatusWord {
    #[default]
    Online,
    Away,
    Busy,
    Offline,
}

impl From<StatusWord> for Status {
    fn from(word: StatusWord) -> Self {
        match word {
            StatusWord::Online => Self::Online,
            StatusWord::Away => Self::Away,
            StatusWord::Busy => Self::Busy,
            StatusWord::Offline => Self::Offline,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default)]
    #[schemars(extend("default" = "online"))]
    status: StatusWord,
    /// Shown beside your name
    message: Option<String>,
    /// Default: all of your servers
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct PresenceSet {
    success: bool,
    user_id: String,
    status: &'static str,
    message: Option<String>,
    servers: Vec<String>,
    expires_at: String,
    #[serde(skip)]
    told: String,
}

described_by!(told: PresenceSet);

pub(super) async fn set_user_presence(call: Call, arguments: Arguments) -> Result<PresenceSet, ToolError> {
    let servers = match arguments.server.as_deref() {
        Some(name) => std::slice::from_ref(call.server(Some(name))?),
        None => call.servers(),
    };
    let message = arguments.message.map(|message| message.trim().to_owned());
    let message = message.filter(|message| !message.is_empty());
    if let Some(length) = message
        .as_ref()
        .map(|message| message.chars().count())
        .filter(|count| *count > MAX_MESSAGE)
    {
        let why = format!("it has {length} characters; at most {MAX_MESSAGE} are shown beside a name");
        return Err(ToolError::argument("message", why));
    }
    let availability = Availability {
        status: arguments.status.into(),
        message,
    };
    let principal = call.principal();
    let until = servers
        .iter()
        .map(|server| {
            call.pool()
                .set_availability(server, &principal.id, &principal.name, &availability)
        })
        .max();
    let Some(until) = until else {
        return Err(ToolError::argument(
            "server",
            "you have no Jupyter server on which you could be seen",
        ));
    };
    let status = availability.status.as_str();
    let told = match (availability.status, &availability.message) {
        (Status::Offline, _) => {
            "You are not shown to anybody until you set another status; it ends in an hour".to_owned()
        }
        (_, Some(message)) => format!("You are shown as {status}: {message}"),
        (_, None) => format!("You are shown as {status}"),
    };
    Ok(PresenceSet {
        success: true,
        user_id: principal.id.to_string(),
        status,
        message: availability.message,
        servers: servers.iter().map(|server| server.name().to_owned()).collect(),
        expires_at: timestamp(until),
        told,
    })
}
