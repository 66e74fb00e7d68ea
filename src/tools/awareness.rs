//! Presence: people and agents online, their cursors, what everybody did, and sessions to join.

mod activity;
mod cursors;
mod known_users;
mod presence;
mod record;
mod sessions;
mod users;

pub(super) use record::CallNote;

use std::time::SystemTime;

use super::{Effect, ToolDefinition};
use crate::types::Toolset;

/// Users that an error names.
const MAX_NAMED: usize = 20;

pub(super) fn tools() -> Vec<ToolDefinition> {
    use Effect::{Add, Present, Read};
    let awareness = Toolset::Awareness;
    vec![
        ToolDefinition::new(
            awareness,
            "get_online_users",
            "Lists the people and agents who are online on the Jupyter server, or in one document, and which documents they have open.",
            Read,
            users::get_online_users,
        ),
        ToolDefinition::new(
            awareness,
            "get_user_presence",
            "Gets the status, last activity and current document of one user.",
            Read,
            users::get_user_presence,
        ),
        ToolDefinition::new(
            awareness,
            "set_user_presence",
            "Sets your own status, which people see beside your name; `offline` hides you. It holds for an hour.",
            Present,
            presence::set_user_presence,
        ),
        ToolDefinition::new(
            awareness,
            "get_user_cursors",
            "Gets the cursors and selections of people and agents in a document.",
            Read,
            cursors::get_user_cursors,
        ),
        ToolDefinition::new(
            awareness,
            "update_cursor_position",
            "Moves your cursor in a document, and selects text, where people see it. In a notebook name the cell.",
            Present,
            cursors::update_cursor_position,
        ),
        ToolDefinition::new(
            awareness,
            "get_user_activity",
            "Lists what people and agents did lately, the newest first: edits, runs, joins, renames, mentions (@name), broadcasts.",
            Read,
            activity::get_user_activity,
        ),
        ToolDefinition::new(
            awareness,
            "broadcast_user_activity",
            "Tells other agents, and people beside your name, what you do.",
            Add,
            activity::broadcast_user_activity,
        ),
        ToolDefinition::new(
            awareness,
            "get_active_sessions",
            "Lists the open collaboration sessions and who is in them.",
            Read,
            sessions::get_active_sessions,
        ),
        ToolDefinition::new(
            awareness,
            "join_session",
            "Joins an open session: people see you in it, and @mentions of you are noticed, until you leave or do nothing for an hour.",
            Present,
            sessions::join_session,
        ),
        ToolDefinition::new(
            awareness,
            "leave_session",
            "Leaves a session, which stays open. With `user_id` another agent is taken out (needs `admin`).",
            Present,
            sessions::leave_session,
        ),
    ]
}

fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Some names of a list, for an error.
fn some_names(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    match names.len() {
        0 => "nobody".to_owned(),
        count if count > MAX_NAMED => format!("{} and {} more", names[..MAX_NAMED].join(", "), count - MAX_NAMED),
        _ => names.join(", "),
    }
}
