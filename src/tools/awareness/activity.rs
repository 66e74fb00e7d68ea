//! `get_user_activity` and `broadcast_user_activity`.

use std::fmt;

use live_document::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    activity::{Activity, Actor, Selection, ShownActivity},
    tools::{
        Call, ToolError,
        output::JsonObject,
        text::{Describe, Page, described_by},
    },
};

const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 200;
/// Characters of a broadcast's type,
const MAX_TYPE: usize = 64;
/// of its description,
const MAX_DESCRIPTION: usize = 1_000;
/// and bytes of its metadata.
const MAX_METADATA: usize = 8_192;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivityArguments {
    document_path: Option<String>,
    #[schemars(extend("default" = 20))]
    limit: Option<usize>,
    /// Default: all of your servers; with document_path the first
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct UserActivities {
    #[schemars(with = "Vec<JsonObject>")]
    activities: Vec<ShownActivity>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

struct Line<'a>(&'a ShownActivity);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(activity) = self;
        let time = activity.timestamp.get(..19).unwrap_or(&activity.timestamp);
        let kind = if activity.is_agent { "agent " } else { "" };
        write!(
            f,
            "{time} {kind}{} [{}] {}",
            activity.user_name, activity.activity_type, activity.description
        )?;
        match activity.cell_id() {
            Some(cell) => write!(f, " (cell {cell})"),
            None => Ok(()),
        }
    }
}

impl Describe for UserActivities {
    fn describe(&self, page: &mut Page) {
        if self.activities.is_empty() {
            page.line("Nothing is known to have been done");
        }
        let shown = page.items(self.activities.iter().map(Line));
        if shown < self.activities.len() {
            page.line(format!("({} older left out)", self.activities.len() - shown));
        }
        if let Some(note) = self.note {
            page.line(note);
        }
    }
}

pub(super) async fn get_user_activity(call: Call, arguments: ActivityArguments) -> Result<UserActivities, ToolError> {
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let why = format!("{limit} is out of range; allowed: 1 to {MAX_LIMIT}");
        return Err(ToolError::argument("limit", why));
    }
    let path = arguments
        .document_path
        .as_deref()
        .map(|path| call.file(path))
        .transpose()?;
    let server = match (arguments.server.as_deref(), &path) {
        (None, None) => None,
        (named, _) => Some(call.server(named)?.name().to_owned()),
    };
    let open = path.as_ref().zip(server.as_deref());
    let open = open.and_then(|(path, server)| call.pool().find(server, path, RoomKind::of(path)));
    let wanted = Selection {
        server,
        path,
        file_id: open.map(|open| open.info.file_id.into()),
    };
    let seen = |activity: &Activity| call.sees_activity(activity);
    let found = call.activity().latest(&wanted, limit, seen).await;
    let reader = &call.principal().id;
    let activities: Vec<ShownActivity> = found
        .activities
        .iter()
        .map(|activity| activity.shown_to(reader))
        .collect();
    Ok(UserActivities {
        total: activities.len(),
        activities,
        note: (!found.is_complete).then_some("The store cannot be read now, so older activities are missing."),
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BroadcastArguments {
    /// e.g. edit, view, execute
    activity_type: String,
    description: String,
    document_path: Option<String>,
    metadata: Option<JsonObject>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Broadcast {
    success: bool,
    activity_id: String,
    timestamp: String,
    activity_type: String,
    description: String,
    document_path: Option<String>,
    server: String,
    /// People see it beside your name
    shown_to_people: bool,
    message: String,
}

described_by!(message: Broadcast);

pub(super) async fn broadcast_user_activity(call: Call, arguments: BroadcastArguments) -> Result<Broadcast, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = arguments
        .document_path
        .as_deref()
        .map(|path| call.file(path))
        .transpose()?;
    let kind = bounded("activity_type", &arguments.activity_type, MAX_TYPE)?;
    let description = bounded("description", &arguments.description, MAX_DESCRIPTION)?;
    let metadata = arguments.metadata.unwrap_or_default();
    let size = serde_json::to_string(&metadata).map_or(0, |text| text.len());
    if size > MAX_METADATA {
        let why = format!("it has {size} bytes; at most {MAX_METADATA} are told");
        return Err(ToolError::argument("metadata", why));
    }
    let principal = call.principal();
    let mut activity = Activity::new(
        &kind,
        Actor::agent(&principal.id, &principal.name),
        server.name(),
        description,
    );
    activity.metadata = metadata;
    // What the gateway itself finds out is not to be mistaken for what somebody says.
    activity.metadata.insert("broadcast".to_owned(), true.into());
    activity.metadata.remove("from");
    activity.tenant = Some(principal.tenant.name.as_str().into());
    let open = path
        .as_ref()
        .and_then(|path| call.pool().find(server.name(), path, RoomKind::of(path)));
    if let Some(open) = &open {
        activity.file_id = Some(open.info.file_id.as_str().into());
        open.room
            .announce(&principal.id, &principal.name, &activity.description);
    }
    activity.path.clone_from(&path);
    let shown = call
        .pool()
        .announce(server, &principal.id, &principal.name, &activity.description);
    let answer = Broadcast {
        success: true,
        activity_id: activity.id.clone(),
        timestamp: super::timestamp(activity.time),
        activity_type: kind,
        description: activity.description.clone(),
        document_path: path.as_ref().map(ToString::to_string),
        server: server.name().to_owned(),
        shown_to_people: shown,
        message: format!("Told: {}", activity.description),
    };
    call.activity().record(activity);
    Ok(answer)
}

fn bounded(argument: &str, text: &str, max: usize) -> Result<String, ToolError> {
    let text = text.trim();
    match text.chars().count() {
        0 => Err(ToolError::argument(argument, "it is empty")),
        count if count > max => {
            let why = format!("it has {count} characters; at most {max} are told");
            Err(ToolError::argument(argument, why))
        }
        _ => Ok(text.to_owned()),
    }
}
