//! `run_code`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    FoundExecution, RunOptions,
    result::{CellResult, InputRequest, RunResult},
    resumed_execution,
    wait::Disconnect,
};
use crate::tools::{Call, ToolError, cells::outputs_schema, notebook::require_notebook_name, output::ToolReply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    code: String,
    path: Option<String>,
    /// Only without path
    kernel_name: Option<String>,
    /// Seconds to wait
    timeout: Option<f64>,
    #[serde(default)]
    on_disconnect: Disconnect,
    max_cell_output_size: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CodeRun {
    execution_id: String,
    status: &'static str,
    #[schemars(schema_with = "outputs_schema")]
    outputs: Vec<Value>,
    truncated: bool,
    original_size: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_request: Option<InputRequest>,
    /// For get_execution: only what comes after this answer
    since: String,
}

pub(super) async fn run_code(call: Call, arguments: Arguments) -> Result<ToolReply<CodeRun>, ToolError> {
    let options = RunOptions::new(
        &call,
        arguments.timeout,
        arguments.on_disconnect,
        arguments.max_cell_output_size,
    )?;
    let found = match resumed_execution(&call).await? {
        Some(found) => found,
        None => FoundExecution::Live(start(&call, arguments).await?),
    };
    let result = RunResult::of(&call, found, options).await?;
    let (is_failure, open, input_request) = (result.is_failure(), result.open(), result.input_request());
    let (outputs, truncated, original_size) = result
        .results
        .into_iter()
        .next()
        .map(CellResult::into_outputs)
        .unwrap_or_default();
    Ok(ToolReply {
        images: result.images,
        is_failure,
        open,
        ..ToolReply::told(
            result.text,
            CodeRun {
                execution_id: result.execution_id,
                status: result.status.as_str(),
                outputs,
                truncated,
                original_size,
                reason: result.reason,
                input_request,
                since: result.since,
            },
        )
    })
}

async fn start(call: &Call, arguments: Arguments) -> Result<Arc<executor::Execution>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = match &arguments.path {
        Some(path) => {
            let path = call.file(path)?;
            require_notebook_name("path", &path)?;
            if arguments.kernel_name.is_some() {
                let why = "a notebook runs in its own kernel; leave it out, or use assign_nb_kernel to change it";
                return Err(ToolError::argument("kernel_name", why));
            }
            Some(path)
        }
        None => None,
    };
    let kernel_name = arguments.kernel_name.as_deref();
    call.run_code(server, path.as_ref(), kernel_name, arguments.code).await
}
