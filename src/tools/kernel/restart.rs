//! `restart_nb_kernel`.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterServer, RunningKernel};
use live_document::{Room, RoomKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::assign::give_kernel;
use crate::{
    tools::{
        Call, ToolError,
        cells::{Run, RunCells, approve_cells, run_cells, run_reply},
        execution::{Disconnect, FoundExecution, RunOptions, RunResult, resumed_execution},
        notebook::require_notebook_name,
        output::ToolReply,
    },
    types::Permission,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[serde(default)]
    clear_outputs: bool,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    /// Another kernel than it has
    kernel_name: Option<String>,
    /// Seconds to wait
    timeout: Option<f64>,
    #[serde(default)]
    #[schemars(extend("x-unlisted" = true))]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Restarted {
    message: String,
    kernel_restarted: bool,
    outputs_cleared: bool,
    cells_executed: bool,
    #[serde(flatten)]
    run: Option<Run>,
}

pub(super) async fn restart_nb_kernel(call: Call, arguments: Arguments) -> Result<ToolReply<Restarted>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let outputs_cleared = arguments.clear_outputs;
    let answered = |message: String, run: Option<Run>| Restarted {
        message,
        kernel_restarted: true,
        outputs_cleared,
        cells_executed: run.as_ref().is_some_and(Run::is_executed),
        run,
    };
    let found = match resumed_execution(&call).await? {
        Some(found) => Some(found),
        None => restart(&call, &arguments).await?.map(FoundExecution::Live),
    };
    let done = "Successfully restarted notebook kernel";
    let Some(found) = found else {
        return Ok(ToolReply::told(done, answered(done.to_owned(), None)));
    };
    let result = RunResult::of(&call, found, options).await?;
    Ok(run_reply(result, |run, message| {
        answered(message(&run.after(done)), Some(run))
    }))
}

async fn restart(call: &Call, arguments: &Arguments) -> Result<Option<Arc<executor::Execution>>, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    if arguments.clear_outputs {
        call.principal().require(Permission::Write)?;
    }
    if arguments.exec.unwrap_or(true) {
        call.engine().has_room(&call.claim(), &server, &path)?;
    }
    // Opened first: a notebook that cannot be opened must not lose its kernel's state.
    let room = call.room(&server, &path, RoomKind::Notebook).await?;
    if arguments.exec.unwrap_or(true) {
        // Asked before anything is lost.
        let cells = room.ids(|order| Ok::<_, ToolError>((0..order.count()).collect()))?;
        approve_cells(call, &server, &room, &cells).await?;
    }
    restart_kernel(call, &server, &path, &room, arguments.kernel_name.as_deref()).await?;
    let principal = call.principal();
    if arguments.clear_outputs {
        room.clear_outputs(&principal.id, &principal.name, call.tool())?;
    }
    if !arguments.exec.unwrap_or(true) {
        return Ok(None);
    }
    let cells = room.ids(|order| Ok::<_, ToolError>((0..order.count()).collect()))?;
    let wanted = RunCells {
        cells,
        stop_on_error: true,
    };
    run_cells(call, &server, room, &wanted).await.map(Some)
}

/// Restarts the kernel of a notebook, or starts the one it is written for, or gives it the one of another name.
pub(in crate::tools) async fn restart_kernel(
    call: &Call,
    server: &Arc<JupyterServer>,
    path: &DocPath,
    room: &Room,
    name: Option<&str>,
) -> Result<RunningKernel, ToolError> {
    let running = server.kernel_of(path).await?;
    let other = name.filter(|name| running.as_ref().is_none_or(|kernel| kernel.name != *name));
    let kernel = match (other, running) {
        (Some(name), _) => give_kernel(call, server, path, name).await?.kernel,
        (None, Some(kernel)) => kernel,
        (None, None) => start_kernel(call, server, path, room).await?,
    };
    // A new connection gets no messages of the process that ends now.
    call.engine()
        .leave_kernel(server, path, call.actor(), "restarted the kernel")
        .await;
    Ok(server.restart_kernel(&kernel.id).await?)
}

/// Starts the kernel that a notebook says it is written for, unless it has one.
pub(in crate::tools) async fn start_kernel(
    call: &Call,
    server: &JupyterServer,
    path: &DocPath,
    room: &Room,
) -> Result<RunningKernel, ToolError> {
    let metadata = room.metadata();
    let name = metadata.pointer("/kernelspec/name").and_then(serde_json::Value::as_str);
    let name = name.filter(|name| !name.is_empty());
    let kernel = server.start_session(path, name).await?.kernel;
    server.record_starter(&kernel.id, &call.starter());
    Ok(kernel)
}
