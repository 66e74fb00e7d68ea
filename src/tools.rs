//! Tools of an agent, as plain async functions on a [`Call`]. Each tool is one short function: typed
//! arguments, a permission, an effect, a typed result. Knows nothing of MCP's wire types or of HTTP.

mod advice;
mod arguments;
mod authorization;
mod awareness;
mod call;
mod cells;
mod changes;
mod classic;
mod client;
mod collab;
mod datalayer;
mod definition;
mod diff;
mod document;
mod error;
mod execution;
mod files;
mod fork_argument;
mod gateway;
mod history;
mod images;
mod kernel;
mod lines;
mod matches;
mod named;
mod notebook;
mod output;
mod people;
mod position;
mod schema;
mod session;
mod shares;
mod text;
mod url;

pub use advice::advice_for;
pub use arguments::Arguments;
pub use call::{Call, Scope, Services, Unanswered};
pub use client::{Choice, ChoiceForm, ChoiceReply, Client, ClientReply, Input, Resumption};
pub use datalayer::{cite, open_named};
pub use definition::{Effect, ToolDefinition};
pub use error::ToolError;
pub use execution::{answer_execution, cancel_execution, find_execution};
pub use history::{ForkReview, ReviewedCell, review_fork};
pub use images::{ImageLimits, Scaling};
pub use named::Connections;
pub use output::{AnswerLimits, Block, OpenExecution, Output, Structured};

/// Every tool there is, in the order in which clients see them.
pub fn catalogue() -> Vec<ToolDefinition> {
    [
        gateway::tools(),
        url::tools(),
        notebook::tools(),
        cells::tools(),
        kernel::tools(),
        execution::tools(),
        document::tools(),
        files::tools(),
        session::tools(),
        history::tools(),
        awareness::tools(),
        collab::tools(),
        classic::tools(),
        datalayer::tools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
