//! `restart_notebook`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{
    Call, ToolError,
    cells::Kernel,
    kernel::restart_kernel,
    named::{Notebook, blocks},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    notebook_name: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Restarted {
    message: String,
    notebook_name: String,
    kernel: Kernel,
}

pub(super) async fn restart_notebook(call: Call, arguments: Arguments) -> Result<ToolReply<Restarted>, ToolError> {
    let notebook_name = arguments.notebook_name;
    let Notebook { server, path, room } = Notebook::find(&call, &notebook_name).await?;
    let kernel = restart_kernel(&call, &server, &path, &room, None).await?;
    let message = format!("{notebook_name} restart successful");
    Ok(ToolReply::in_blocks(
        blocks([message.clone()]),
        Restarted {
            message,
            notebook_name,
            kernel: kernel.into(),
        },
    ))
}
