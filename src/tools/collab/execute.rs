//! `execute_notebook_cell` and `batch_execute_notebook_cells`.

use jupyter_client::counted;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{run_options, select::Selection};
use crate::tools::{
    Call, ToolError,
    cells::{Notebook, Range, Run, execute, run_reply},
    execution::{CellResult, InputRequest},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneArguments {
    path: String,
    cell_id: String,
    /// Seconds to wait
    #[schemars(extend("default" = 30))]
    timeout: Option<f64>,
    if_revision: Option<String>,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchArguments {
    path: String,
    start_index: Option<usize>,
    /// Inclusive
    end_index: Option<usize>,
    cell_ids: Option<Vec<String>>,
    /// Seconds to wait
    #[schemars(extend("default" = 30))]
    timeout: Option<f64>,
    if_revision: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ExecutedCell {
    description: String,
    execution_id: String,
    #[serde(flatten)]
    result: Option<CellResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_request: Option<InputRequest>,
    since: String,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ExecutedCells {
    description: String,
    executed_cells: usize,
    #[serde(flatten)]
    run: Run,
}

pub(super) async fn execute_notebook_cell(
    call: Call,
    arguments: OneArguments,
) -> Result<ToolReply<ExecutedCell>, ToolError> {
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: false,
    };
    let result = execute(&call, at, run_options(&call, arguments.timeout)?, true, false, |room| {
        let cell = Range::cell(arguments.cell_id.clone());
        let cell = room.ids(|order| match cell.resolve(order) {
            Ok(position) => Ok(position.collect()),
            Err(why) => Err(ToolError::argument("cell_id", why)),
        })?;
        match cell.iter().all(|cell| room.is_code(cell)) {
            true => Ok(cell),
            false => Err(ToolError::argument(
                "cell_id",
                format!("{:?} is no code cell; only those can be executed", arguments.cell_id),
            )),
        }
    })
    .await?;
    Ok(run_reply(result, |run, message| {
        let follow_up = super::follow_up(Some(&run));
        let mut result = run.execution_results.into_iter().next();
        if let Some(cell) = &mut result {
            // What the whole execution waits for is this one cell's too.
            cell.status = run.status;
        }
        let did = if result.as_ref().is_some_and(CellResult::has_begun) {
            "Executed"
        } else {
            "Queued"
        };
        ExecutedCell {
            description: executed(&message(&format!("{did} cell '{}' in notebook", arguments.cell_id))) + follow_up,
            execution_id: run.execution_id,
            result,
            input_request: run.input_request,
            since: run.since,
        }
    }))
}

pub(super) async fn batch_execute_notebook_cells(
    call: Call,
    arguments: BatchArguments,
) -> Result<ToolReply<ExecutedCells>, ToolError> {
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: false,
    };
    let selection = Selection::new(
        arguments.start_index,
        arguments.end_index,
        arguments.cell_ids.as_deref(),
    )?;
    let by_position = selection.is_by_position();
    let options = run_options(&call, arguments.timeout)?;
    let result = execute(&call, at, options, true, by_position, |room| selection.ids(room)).await?;
    Ok(run_reply(result, |run, message| {
        let executed_cells = run.executed_cells();
        let mut description = executed(&message(&format!(
            "Executed {} in notebook",
            counted(executed_cells, "cell")
        )));
        description += super::follow_up(Some(&run));
        if run.results().iter().any(CellResult::is_truncated) {
            description += " Outputs that were cut or left out are marked; get_notebook reads them from the notebook.";
        }
        ExecutedCells {
            description,
            executed_cells,
            run,
        }
    }))
}

/// Sentence on what was done, with the reminder of where its outputs can be seen.
fn executed(done: &str) -> String {
    super::edited(done, "create_notebook_session")
}
