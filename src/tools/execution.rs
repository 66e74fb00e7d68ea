//! Tools about executions, and what every tool that runs something shares: waiting for it and showing it.

mod run_code;
mod shown;
mod take;
mod track;
mod wait;

use super::{Effect, ToolDefinition};
use crate::types::Toolset;

pub use take::{answer_execution, cancel_execution, find_execution};

pub(super) use shown::{Asked, CellResult, RunOptions, RunResult};
pub(super) use take::{Taken, resumed};
pub(super) use wait::Disconnect;

/// Vocabularies that have no word for following an execution, which goes on all the same.
const OTHER_WORDS: &[Toolset] = &[Toolset::Collab, Toolset::Classic];

pub(super) fn tools() -> Vec<ToolDefinition> {
    let execution = Toolset::Execution;
    vec![
        ToolDefinition::new(
            execution,
            "run_code",
            "Runs code without storing it: in a notebook's kernel (`path`), or in a kernel of your own that is kept while you use it.",
            Effect::Execute,
            run_code::run_code,
        ),
        ToolDefinition::new(
            execution,
            "get_execution",
            "Shows an execution and its outputs so far; waits up to `wait` seconds for its end. `input` answers what it asks.",
            // It may answer what code asks, so that it is no mere reading.
            Effect::Open,
            track::get_execution,
        )
        .answers_in(OTHER_WORDS),
        ToolDefinition::new(
            execution,
            "list_executions",
            "Lists your executions, the newest first.",
            Effect::Read,
            track::list_executions,
        ),
        ToolDefinition::new(
            execution,
            "cancel_execution",
            "Interrupts an execution, or takes it out of the queue.",
            Effect::Execute,
            track::cancel_execution,
        )
        .answers_in(OTHER_WORDS),
    ]
}
