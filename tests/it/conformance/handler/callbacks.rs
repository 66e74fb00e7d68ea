//! Owns the tools that call the client back in the middle of a call, as servers did up to
//! 2025-11-25, and the tool that refuses a client for what it cannot do.
//!
//! In the modern era rmcp refuses to send these requests, and the tools report that as their error.

#![expect(deprecated, reason = "SEP-2577 deprecates sampling, 2025-11-25 still tests it")]

use rmcp::{
    ErrorData, RoleServer,
    handler::server::wrapper::Parameters,
    model::*,
    service::{Peer, RequestContext},
    tool, tool_router,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{ConformanceHandler, say};

#[derive(Deserialize, schemars::JsonSchema)]
struct SamplingArguments {
    /// What to send to the client's model.
    prompt: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct ElicitationArguments {
    /// What to show to the person.
    message: String,
}

#[tool_router(router = callback_tools, vis = "pub(super)")]
impl ConformanceHandler {
    #[tool(name = "test_sampling", description = "Has the client's model complete a prompt")]
    async fn sampling(
        &self,
        peer: Peer<RoleServer>,
        arguments: Parameters<SamplingArguments>,
    ) -> Result<CallToolResult, String> {
        let messages = vec![SamplingMessage::user_text(arguments.0.prompt)];
        let reply = peer
            .create_message(CreateMessageRequestParams::new(messages, 100))
            .await
            .map_err(|problem| format!("Sampling failed: {problem}"))?;
        let text = reply.message.content.first().and_then(|c| c.as_text());
        let text = text.map_or("(no text)", |content| content.text.as_str());
        Ok(say(format!("LLM response: {text}")))
    }

    #[tool(name = "test_elicitation", description = "Asks the person two things")]
    async fn elicitation(
        &self,
        peer: Peer<RoleServer>,
        arguments: Parameters<ElicitationArguments>,
    ) -> Result<CallToolResult, String> {
        let form = json!({
            "type": "object",
            "properties": {
                "username": { "type": "string", "description": "The person's name" },
                "email": { "type": "string", "description": "The person's e-mail address" },
            },
            "required": ["username", "email"],
        });
        let outcome = elicit(&peer, arguments.0.message, form).await?;
        Ok(say(format!("User response: {outcome}")))
    }

    #[tool(
        name = "test_elicitation_sep1034_defaults",
        description = "Asks with a default for every kind of field (SEP-1034)"
    )]
    async fn elicitation_defaults(&self, peer: Peer<RoleServer>) -> Result<CallToolResult, String> {
        let form = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "default": "John Doe" },
                "age": { "type": "integer", "default": 30 },
                "score": { "type": "number", "default": 95.5 },
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": { "type": "boolean", "default": true },
            },
        });
        let outcome = elicit(&peer, "Every field has a default", form).await?;
        Ok(say(format!("Elicitation completed: {outcome}")))
    }

    #[tool(
        name = "test_elicitation_sep1330_enums",
        description = "Asks with every kind of choice (SEP-1330)"
    )]
    async fn elicitation_enums(&self, peer: Peer<RoleServer>) -> Result<CallToolResult, String> {
        let options = json!(["option1", "option2", "option3"]);
        let titled = |noun: &str| {
            json!([
                { "const": "value1", "title": format!("First {noun}") },
                { "const": "value2", "title": format!("Second {noun}") },
                { "const": "value3", "title": format!("Third {noun}") },
            ])
        };
        let form = json!({
            "type": "object",
            "properties": {
                "untitledSingle": { "type": "string", "enum": options },
                "titledSingle": { "type": "string", "oneOf": titled("Option") },
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {
                    "type": "array",
                    "items": { "type": "string", "enum": options },
                },
                "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
            },
        });
        let outcome = elicit(&peer, "Choose", form).await?;
        Ok(say(format!("Elicitation completed: {outcome}")))
    }

    #[tool(
        name = "test_missing_capability",
        description = "Refuses clients that did not declare sampling"
    )]
    fn missing_capability(&self, context: RequestContext<RoleServer>) -> Result<CallToolResult, ErrorData> {
        let declared = context.client_capabilities().unwrap_or_default();
        if declared.sampling.is_none() {
            let required = ClientCapabilities::builder().enable_sampling().build();
            return Err(ErrorData::missing_required_client_capability(required));
        }
        Ok(say("The client declared sampling"))
    }
}

/// Shows a form to the person and puts what came back into words. Whatever goes wrong is the
/// tool's failure, for the caller to read, not the protocol's.
async fn elicit(peer: &Peer<RoleServer>, message: impl Into<String>, form: Value) -> Result<String, String> {
    let requested_schema =
        ElicitationSchema::from_json_schema(object(form)).map_err(|problem| format!("Not a form: {problem}"))?;
    let request = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema,
    };
    let outcome = peer
        .create_elicitation(request)
        .await
        .map_err(|problem| format!("Elicitation failed: {problem}"))?;
    let action = match outcome.action {
        ElicitationAction::Accept => "accept",
        ElicitationAction::Decline => "decline",
        ElicitationAction::Cancel => "cancel",
        _ => "unknown",
    };
    let content = outcome.content.unwrap_or_default();
    Ok(format!("action={action}, content={content}"))
}
