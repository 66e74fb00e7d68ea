//! One span and one measurement for every MCP operation, whatever it is.

use std::{borrow::Cow, pin::Pin, time::Instant};

use rmcp::{ErrorData, RoleServer, model::CallToolResponse, service::RequestContext};
use tracing::{Instrument, Span, field};

use crate::telemetry::{Metrics, Operation, set_remote_parent};

/// How an answer counts: a tool that failed is an answered request and still an error.
pub(super) trait Observed {
    fn tool_failed(&self) -> bool {
        false
    }
}

impl Observed for CallToolResponse {
    fn tool_failed(&self) -> bool {
        matches!(self, CallToolResponse::Complete(result) if result.is_error == Some(true))
    }
}

impl Observed for rmcp::model::ListToolsResult {}
impl Observed for rmcp::model::InitializeResult {}
impl Observed for rmcp::model::DiscoverResult {}
impl Observed for rmcp::model::GetTaskResult {}
impl Observed for rmcp::model::ListResourcesResult {}
impl Observed for rmcp::model::ListResourceTemplatesResult {}
impl Observed for rmcp::model::ReadResourceResponse {}
impl Observed for rmcp::model::ListPromptsResult {}
impl Observed for rmcp::model::GetPromptResponse {}
impl Observed for rmcp::model::CompleteResult {}
impl Observed for () {}

/// Runs an operation in its span and records how it ended. The operation is put on the heap at once: rmcp moves the
/// future of a request several times before it runs, and that is as large as the largest operation there is.
pub(super) fn observe<'a, T: Observed + 'a>(
    metrics: &'a Metrics,
    method: &'static str,
    tool: Option<&'static str>,
    context: &'a RequestContext<RoleServer>,
    operation: impl Future<Output = Result<T, ErrorData>> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send + 'a>> {
    Box::pin(async move {
        let started = Instant::now();
        let version = context.protocol_version();
        let protocol_version = version.as_ref().map_or("unknown", |version| version.as_str());
        let span = span(method, tool, context, protocol_version);
        let result = operation.instrument(span.clone()).await;
        let code;
        let outcome = match &result {
            Ok(answer) if answer.tool_failed() => Err("tool_error"),
            Ok(_) => Ok(()),
            Err(error) => {
                code = error.code.0.to_string();
                span.record("rpc.response.status_code", code.as_str());
                Err(code.as_str())
            }
        };
        if let Err(error_type) = outcome {
            span.record("error.type", error_type);
        }
        metrics.operation(
            Operation {
                method,
                tool,
                protocol_version,
            },
            outcome,
            started.elapsed(),
        );
        result
    })
}

fn span(
    method: &'static str,
    tool: Option<&str>,
    context: &RequestContext<RoleServer>,
    protocol_version: &str,
) -> Span {
    // At this level spans cost nothing unless a collector wants them, or somebody looks closely.
    let span = tracing::debug_span!(
        "mcp",
        otel.name = &*span_name(method, tool),
        otel.kind = "server",
        mcp.method.name = method,
        mcp.protocol.version = protocol_version,
        jsonrpc.request.id = %context.id,
        network.transport = "tcp",
        network.protocol.name = "http",
        gen_ai.tool.name = tool,
        gen_ai.operation.name = tool.map(|_| "execute_tool"),
        mcp.session.id = session_id(context),
        error.type = field::Empty,
        rpc.response.status_code = field::Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some(traceparent) = context.meta.get_traceparent() {
        set_remote_parent(&span, traceparent, context.meta.get_tracestate());
    }
    span
}

fn span_name(method: &'static str, tool: Option<&str>) -> Cow<'static, str> {
    match tool {
        Some(tool) => format!("{method} {tool}").into(),
        None => method.into(),
    }
}

/// Only protocol versions with sessions send the header.
fn session_id(context: &RequestContext<RoleServer>) -> Option<&str> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    parts.headers.get("mcp-session-id")?.to_str().ok()
}
