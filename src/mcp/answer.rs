//! Answer to a tool call: rmcp's result, and its JSON in the form that the transport needs.

use std::sync::LazyLock;

use rmcp::model::{CallToolResult, ContentBlock, Implementation, JsonObject, MetaObject};
use serde::{Serialize, Serializer};

use crate::{
    error::ClientError,
    tools::{Block, Output, Structured, ToolError},
};

/// Serialises as the whole result, in which the JSON is copied rather than written again.
#[derive(Serialize)]
pub struct Answer {
    /// Without its structured content.
    #[serde(flatten)]
    pub(super) result: CallToolResult,
    #[serde(
        rename = "structuredContent",
        serialize_with = "as_written",
        skip_serializing_if = "Option::is_none"
    )]
    structured: Option<Structured>,
}

impl Answer {
    /// Tells what came of a call. The request's id is that under which logs can be found.
    pub(super) fn of(tool: &str, request_id: &str, result: Result<Output, ToolError>) -> Self {
        match result {
            Ok(output) => output.into(),
            Err(error) => {
                tracing::info!(tool, kind = error.kind().as_str(), request_id, "tool failed");
                Self::failure(&error.to_string())
            }
        }
    }

    pub(super) fn failure(message: &str) -> Self {
        Self {
            result: signed(CallToolResult::error(vec![ContentBlock::text(message)])),
            structured: None,
        }
    }

    /// The same for a client that does not know of types of results.
    pub(super) fn for_older_era(mut self) -> Self {
        self.result.result_type = None;
        self
    }

    /// About how many bytes its JSON has.
    pub(super) fn size_hint(&self) -> usize {
        let structured = self
            .structured
            .as_ref()
            .map_or(0, |structured| structured.text.get().len());
        // Once as it is and once as a text, in which quotes are escaped.
        structured * 5 / 2 + 512
    }

    /// The same as rmcp has it.
    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = self.result;
        result.structured_content = self.structured.map(Structured::into_tree);
        result
    }
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        let block = |block| match block {
            Block::Text(text) => ContentBlock::text(text),
            Block::Image { data, mime } => ContentBlock::image(data, mime),
        };
        let blocks = output.blocks.into_iter().map(block).collect();
        let result = match output.is_failure {
            false => CallToolResult::success(blocks),
            true => CallToolResult::error(blocks),
        };
        Self {
            result: signed(result),
            structured: output.structured,
        }
    }
}

#[expect(clippy::ref_option, reason = "serde calls it so")]
fn as_written<S: Serializer>(structured: &Option<Structured>, serializer: S) -> Result<S::Ok, S::Error> {
    structured
        .as_ref()
        .map(|structured| &structured.text)
        .serialize(serializer)
}

pub(super) fn server_info() -> Implementation {
    Implementation::new("jupyter-mcp-gateway", env!("CARGO_PKG_VERSION")).with_title("Jupyter MCP Gateway")
}

/// Results name the server that made them, which rmcp leaves to the handler.
fn signed(mut result: CallToolResult) -> CallToolResult {
    static META: LazyLock<MetaObject> = LazyLock::new(|| {
        let server = serde_json::to_value(server_info()).unwrap_or_default();
        MetaObject(JsonObject::from_iter([(
            "io.modelcontextprotocol/serverInfo".to_owned(),
            server,
        )]))
    });
    result.meta = Some(META.clone());
    result
}
