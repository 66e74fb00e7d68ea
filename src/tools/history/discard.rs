//! `discard_document_fork`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    forks::Root,
    tools::{Call, ToolError, text::described_by},
    types::Permission,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    fork_id: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Discarded {
    message: String,
    path: String,
    fork_id: String,
}

described_by!(message: Discarded);

pub(super) async fn discard_document_fork(call: Call, arguments: Arguments) -> Result<Discarded, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let (path, account) = (call.file(&arguments.path)?, call.account());
    let root = Root::of(&server, &path, &account);
    let fork = call.forks().find(root, &arguments.fork_id).await?;
    if *fork.principal != *call.principal().id {
        call.principal().require(Permission::Admin)?;
    }
    call.forks().discard(root, &fork).await?;
    Ok(Discarded {
        message: format!("Discarded fork {} of {path}", fork.fork_id),
        path: path.to_string(),
        fork_id: fork.fork_id,
    })
}
