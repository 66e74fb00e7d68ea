//! What an agent can do, as plain async functions on a [`Call`]. Each tool is one short piece: typed
//! arguments, a permission, an effect, a typed result. Knows nothing of MCP's wire types or of HTTP.

mod call;
mod cells;
mod definition;
mod document;
mod error;
mod files;
mod gateway;
mod images;
mod kernel;
mod notebook;
mod output;
mod session;
mod url;

pub use call::{Call, Scope};
pub use definition::{Effect, ToolDefinition};
pub use error::ToolError;
pub use images::ImageLimits;
pub use output::{Block, Output};

/// Every tool there is, in the order in which clients see them.
pub fn catalogue() -> Vec<ToolDefinition> {
    [
        gateway::tools(),
        url::tools(),
        notebook::tools(),
        cells::tools(),
        kernel::tools(),
        document::tools(),
        files::tools(),
        session::tools(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
