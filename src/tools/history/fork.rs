//! `fork_document`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::ForkRecord;

use crate::{
    forks::{NewForkOf, Root},
    tools::{Call, ToolError, execution::timestamp, text::described_by},
};

/// Characters of a title, and of a description.
const MAX_TITLE: usize = 200;
const MAX_DESCRIPTION: usize = 2000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    title: Option<String>,
    description: Option<String>,
    /// Changes of the document flow into the fork
    #[serde(default)]
    synchronize: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Forked {
    message: String,
    #[serde(flatten)]
    fork: Fork,
}

described_by!(message: Forked);

/// A fork in the answers of tools.
#[derive(Serialize, JsonSchema)]
pub(super) struct Fork {
    pub(super) fork_id: String,
    pub(super) path: String,
    pub(super) title: String,
    pub(super) description: String,
    pub(super) synchronize: bool,
    pub(super) author: String,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    /// Has edits that a person has to accept
    pub(super) review: bool,
    /// The room under which JupyterLab knows it
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fork_roomid: Option<String>,
}

impl From<&ForkRecord> for Fork {
    fn from(fork: &ForkRecord) -> Self {
        Self {
            fork_id: fork.fork_id.clone(),
            path: fork.path.clone(),
            title: fork.title.clone().unwrap_or_default(),
            description: fork.description.clone().unwrap_or_default(),
            synchronize: fork.synchronize,
            author: fork.author_name.clone(),
            created_at: timestamp(fork.created_at),
            updated_at: timestamp(fork.updated_at),
            review: fork.is_review,
            fork_roomid: fork.room_id.clone(),
        }
    }
}

pub(super) async fn fork_document(call: Call, arguments: Arguments) -> Result<Forked, ToolError> {
    let title = checked("title", arguments.title, MAX_TITLE)?;
    let description = checked("description", arguments.description, MAX_DESCRIPTION)?;
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let (path, account) = (call.file(&arguments.path)?, call.account());
    // A fork is made of a document that can be opened, so that what is wrong with it is said as for every other tool.
    drop(
        call.original_room(&server, &path, live_document::RoomKind::of(&path))
            .await?,
    );
    let principal = call.principal();
    let new = NewForkOf {
        title,
        description,
        synchronize: arguments.synchronize,
        principal: &principal.id,
        author_name: &principal.name,
        is_review: false,
    };
    let record = call.forks().create(Root::of(&server, &path, &account), new).await?;
    let fork = Fork::from(&record);
    Ok(Forked {
        message: format!(
            "Forked {path} as {id}. Pass fork_id: {id:?} to tools that read, edit or run {path} to work in the fork; \
             merge_document_fork takes it over.",
            id = fork.fork_id
        ),
        fork,
    })
}

fn checked(argument: &str, text: Option<String>, max: usize) -> Result<String, ToolError> {
    let text = text.unwrap_or_default();
    match text.chars().count() > max {
        true => Err(ToolError::argument(argument, format!("at most {max} characters"))),
        false => Ok(text),
    }
}
