//! One span and one measurement for every MCP operation, whatever it is.

use std::{borrow::Cow, pin::Pin, time::Instant};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, CallToolResult, MetaObject, RequestId},
    service::RequestContext,
};
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
        matches!(self, CallToolResponse::Complete(result) if result.tool_failed())
    }
}

impl Observed for CallToolResult {
    fn tool_failed(&self) -> bool {
        self.is_error == Some(true)
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

/// What is known of a request, whichever way it came.
pub(super) trait Asked: Sync {
    fn id(&self) -> &RequestId;
    fn protocol_version(&self) -> Cow<'_, str>;
    fn meta(&self) -> Option<&MetaObject>;
    fn parts(&self) -> Option<&Parts>;
}

impl Asked for RequestContext<RoleServer> {
    fn id(&self) -> &RequestId {
        &self.id
    }

    fn protocol_version(&self) -> Cow<'_, str> {
        let version = RequestContext::protocol_version(self);
        version.map_or("unknown".into(), |version| version.as_str().to_owned().into())
    }

    fn meta(&self) -> Option<&MetaObject> {
        Some(&self.meta)
    }

    fn parts(&self) -> Option<&Parts> {
        self.extensions.get()
    }
}

/// Runs an operation in its span and records how it ended. The operation is put on the heap at once: rmcp moves the
/// future of a request several times before it runs, and that is as large as the largest operation there is.
pub(super) fn observe<'a, T: Observed + 'a>(
    metrics: &'a Metrics,
    method: &'static str,
    tool: Option<&'static str>,
    request: &'a dyn Asked,
    operation: impl Future<Output = Result<T, ErrorData>> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send + 'a>> {
    Box::pin(async move {
        let started = Instant::now();
        let protocol_version = &*request.protocol_version();
        let span = span(method, tool, request, protocol_version);
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

fn span(method: &'static str, tool: Option<&str>, request: &dyn Asked, protocol_version: &str) -> Span {
    // At this level spans cost nothing unless a collector wants them, or somebody looks closely.
    let span = tracing::debug_span!(
        "mcp",
        otel.name = &*span_name(method, tool),
        otel.kind = "server",
        mcp.method.name = method,
        mcp.protocol.version = protocol_version,
        jsonrpc.request.id = %request.id(),
        network.transport = "tcp",
        network.protocol.name = "http",
        gen_ai.tool.name = tool,
        gen_ai.operation.name = tool.map(|_| "execute_tool"),
        mcp.session.id = session_id(request),
        error.type = field::Empty,
        rpc.response.status_code = field::Empty,
    );
    if span.is_disabled() {
        return span;
    }
    if let Some((meta, traceparent)) = request.meta().and_then(|meta| Some((meta, meta.get_traceparent()?))) {
        set_remote_parent(&span, traceparent, meta.get_tracestate());
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
fn session_id(request: &dyn Asked) -> Option<&str> {
    request.parts()?.headers.get("mcp-session-id")?.to_str().ok()
}
