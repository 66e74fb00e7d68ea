//! Owns the tools whose whole point is the shape of their answer or of their input schema.

use std::{sync::Arc, time::Duration};

use rmcp::{handler::server::wrapper::Parameters, model::*, tool, tool_router};
use serde::Deserialize;
use serde_json::json;

use super::{ConformanceHandler, say};

/// A PNG of one red pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";

/// A WAV file of no samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

#[derive(Deserialize, schemars::JsonSchema)]
struct MirroredArgument {
    /// Clients of 2026-07-28 repeat this argument in the header `Mcp-Param-Value` (SEP-2243).
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

#[tool_router(router = content_tools, vis = "pub(super)")]
impl ConformanceHandler {
    #[tool(name = "test_simple_text", description = "Answers with text")]
    fn simple_text(&self) -> CallToolResult {
        say("This is a simple text response for testing.")
    }

    #[tool(name = "test_image_content", description = "Answers with an image")]
    fn image_content(&self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::image(PNG, "image/png")])
    }

    #[tool(name = "test_audio_content", description = "Answers with audio")]
    fn audio_content(&self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::audio(WAV, "audio/wav")])
    }

    #[tool(name = "test_embedded_resource", description = "Answers with an embedded resource")]
    fn embedded_resource(&self) -> CallToolResult {
        let resource = ResourceContents::text("This is an embedded resource content.", "test://embedded-resource");
        let resource = resource.with_mime_type("text/plain");
        CallToolResult::success(vec![ContentBlock::resource(resource)])
    }

    #[tool(
        name = "test_multiple_content_types",
        description = "Answers with text, an image and an embedded resource"
    )]
    fn multiple_content_types(&self) -> CallToolResult {
        let resource = ResourceContents::text(
            json!({"test": "data", "value": 123}).to_string(),
            "test://mixed-content-resource",
        );
        CallToolResult::success(vec![
            ContentBlock::text("Multiple content types test:"),
            ContentBlock::image(PNG, "image/png"),
            ContentBlock::resource(resource.with_mime_type("application/json")),
        ])
    }

    #[tool(name = "test_error_handling", description = "Always fails")]
    fn error_handling(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )])
    }

    /// The suite would like the stream to be cut in the middle of this call (SEP-1699), but rmcp
    /// lets no handler close its own stream. Answering on the first stream is reported, not failed.
    #[tool(
        name = "test_reconnection",
        description = "Answers after a pause, for tests of resumption"
    )]
    async fn reconnection(&self) -> CallToolResult {
        tokio::time::sleep(Duration::from_millis(100)).await;
        say("Reconnection test completed")
    }

    #[tool(
        name = "json_schema_2020_12_tool",
        description = "Has an input schema that uses JSON Schema 2020-12",
        input_schema = schema_2020_12()
    )]
    fn json_schema_2020_12(&self, arguments: JsonObject) -> CallToolResult {
        let name = arguments.get("name").and_then(|name| name.as_str());
        say(format!("Hello, {}!", name.unwrap_or("stranger")))
    }

    #[tool(
        name = "test_custom_header",
        description = "Has an argument that is mirrored into a header"
    )]
    fn custom_header(&self, arguments: Parameters<MirroredArgument>) -> CallToolResult {
        say(arguments.0.value)
    }
}

/// The schema is written out because no Rust type derives to it. The suite checks that every
/// keyword of it arrives: `$schema`, `$defs`, `$anchor`, `allOf`, `anyOf`, `if` and the rest.
fn schema_2020_12() -> Arc<JsonObject> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "address",
                "type": "object",
                "properties": {
                    "street": { "type": "string" },
                    "city": { "type": "string" },
                },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
        },
        "allOf": [{ "anyOf": [{ "required": ["name"] }, { "required": ["address"] }] }],
        "if": { "required": ["address"] },
        "then": { "properties": { "address": { "required": ["city"] } } },
        "else": { "required": ["name"] },
        "additionalProperties": false,
    });
    Arc::new(object(schema))
}
