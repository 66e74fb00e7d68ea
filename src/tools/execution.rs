//! Tools about executions, and what every tool that runs something shares: waiting for it and showing it.

mod cursor;
mod find;
mod manage;
mod result;
mod run_code;
mod run_notebook;
mod summary;
mod wait;

use super::{Effect, ToolDefinition};
use crate::types::Toolset;

pub use find::{answer_execution, cancel_execution, find_execution};

pub(super) use find::{FoundExecution, resumed_execution};
pub(super) use result::{CellResult, InputRequest, RunOptions, RunResult, timestamp};
pub(super) use wait::Disconnect;

/// Toolsets that run code and have no tool of their own for following it.
const RUNNING: &[Toolset] = &[Toolset::Notebook, Toolset::Collab, Toolset::Classic, Toolset::Datalayer];

pub(super) fn tools() -> Vec<ToolDefinition> {
    let execution = Toolset::Execution;
    vec![
        ToolDefinition::new(
            execution,
            "run_code",
            "Runs code without storing it, in a notebook's kernel (`path`) or in one of your own.",
            Effect::Execute,
            run_code::run_code,
        ),
        ToolDefinition::new(
            execution,
            "run_notebook",
            "Runs a copy of a notebook from top to bottom in a fresh kernel, up to the first error; tells which outputs differ. The notebook and its kernel stay as they are.",
            Effect::Execute,
            run_notebook::run_notebook,
        ),
        ToolDefinition::new(
            execution,
            "get_execution",
            "Shows an execution; waits up to `wait` seconds for its end. `since`: only what is new. `input` answers what it asks.",
            // It may answer what code asks, so that it is no mere reading.
            Effect::Open,
            manage::get_execution,
        )
        .also_in(RUNNING),
        ToolDefinition::new(
            execution,
            "list_executions",
            "Lists your executions, the newest first.",
            Effect::Read,
            manage::list_executions,
        ),
        ToolDefinition::new(
            execution,
            "cancel_execution",
            "Interrupts an execution or takes it out of the queue.",
            Effect::Execute,
            manage::cancel_execution,
        )
        // Ending work must be possible for who has begun too much.
        .costing(1)
        .also_in(RUNNING),
    ]
}
