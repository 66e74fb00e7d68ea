//! One span and one measurement for every MCP operation, whatever it is.

use std::{borrow::Cow, panic::AssertUnwindSafe, pin::Pin, time::Instant};

use futures::FutureExt;
use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolResponse, CallToolResult, InitializeResult, MetaObject, ProtocolVersion, RequestId},
    service::RequestContext,
};
use tracing::{Instrument, Span, field};

use super::Answer;
use crate::telemetry::{HttpTrace, Metrics, Operation, join_trace};

/// Longer names than this are nobody's.
const MAX_NAME_CHARS: usize = 256;

/// An answer as metrics count it: a tool that failed is an answered request and still an error.
pub(super) trait Observed {
    fn tool_failed(&self) -> bool {
        false
    }

    /// The version that was agreed upon, if the answer settles it.
    fn negotiated(&self) -> Option<&ProtocolVersion> {
        None
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

impl Observed for std::sync::Arc<str> {}

impl Observed for Answer {
    fn tool_failed(&self) -> bool {
        self.result.tool_failed()
    }
}

impl Observed for rmcp::model::ListToolsResult {}
impl Observed for InitializeResult {
    fn negotiated(&self) -> Option<&ProtocolVersion> {
        Some(&self.protocol_version)
    }
}
impl Observed for rmcp::model::CustomResult {}
impl Observed for rmcp::model::DiscoverResult {}
impl Observed for rmcp::model::GetTaskResult {}
impl Observed for rmcp::model::ListResourcesResult {}
impl Observed for rmcp::model::ListResourceTemplatesResult {}
impl Observed for rmcp::model::ReadResourceResponse {}
impl Observed for rmcp::model::ListPromptsResult {}
impl Observed for rmcp::model::GetPromptResponse {}
impl Observed for rmcp::model::CompleteResult {}
impl Observed for () {}

/// Subject of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target<'a> {
    Nothing,
    /// A tool that there is: another name would make a new time series for every guess.
    Tool(Option<&'static str>),
    Prompt(&'a str),
    Resource(&'a str),
}

impl<'a> Target<'a> {
    /// The resource, however long its URI is.
    pub(super) fn uri(self) -> Option<&'a str> {
        match self {
            Self::Resource(uri) => Some(uri),
            Self::Nothing | Self::Tool(_) | Self::Prompt(_) => None,
        }
    }

    fn tool(self) -> Option<&'static str> {
        match self {
            Self::Tool(tool) => tool,
            _ => None,
        }
    }

    fn prompt(self) -> Option<&'a str> {
        match self {
            Self::Prompt(name) => Some(beginning(name)),
            _ => None,
        }
    }

    fn resource(self) -> Option<&'a str> {
        match self {
            Self::Resource(uri) => Some(beginning(uri)),
            _ => None,
        }
    }
}

/// The beginning of a text from a client, which may be of any length.
fn beginning(text: &str) -> &str {
    let end = text
        .char_indices()
        .nth(MAX_NAME_CHARS)
        .map_or(text.len(), |(end, _)| end);
    &text[..end]
}

/// A request, whichever way it came.
pub(super) trait RequestInfo: Sync {
    fn id(&self) -> &RequestId;
    /// One of those that are spoken here: what a client says would make a new time series each time.
    fn protocol_version(&self) -> &'static str;
    fn meta(&self) -> Option<&MetaObject>;
    fn parts(&self) -> Option<&Parts>;
}

pub(super) fn known_version(version: &str) -> &'static str {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str);
    known.find(|known| *known == version).unwrap_or("unknown")
}

impl RequestInfo for RequestContext<RoleServer> {
    fn id(&self) -> &RequestId {
        &self.id
    }

    fn protocol_version(&self) -> &'static str {
        let version = RequestContext::protocol_version(self);
        version.map_or("unknown", |version| known_version(version.as_str()))
    }

    fn meta(&self) -> Option<&MetaObject> {
        Some(&self.meta)
    }

    fn parts(&self) -> Option<&Parts> {
        self.extensions.get()
    }
}

/// Runs an operation in its span and records how it ended. A defect in it is answered, since most are run by tasks of their own,
/// whose end would leave the caller waiting. The operation is put on the heap at once: rmcp moves the
/// future of a request several times before it runs, and that is as large as the largest operation there is.
pub(super) fn observe<'a, T: Observed + 'a>(
    metrics: &'a Metrics,
    method: &'static str,
    target: Target<'a>,
    request: &'a dyn RequestInfo,
    operation: impl Future<Output = Result<T, ErrorData>> + Send + 'a,
) -> Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send + 'a>> {
    Box::pin(async move {
        let started = Instant::now();
        let span = span(method, target, request);
        let result = AssertUnwindSafe(operation.instrument(span.clone()))
            .catch_unwind()
            .await;
        let result = result.unwrap_or_else(|_| Err(defect(method, request)));
        let negotiated = result.as_ref().ok().and_then(Observed::negotiated);
        let protocol_version = match negotiated {
            Some(version) => known_version(version.as_str()),
            None => request.protocol_version(),
        };
        span.record("mcp.protocol.version", protocol_version);
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
            span.record("otel.status_code", "error");
        }
        metrics.operation(
            Operation {
                method,
                tool: target.tool(),
                protocol_version,
            },
            outcome,
            started.elapsed(),
        );
        result
    })
}

/// The answer in the place of one that failed because of a bug.
fn defect(method: &'static str, request: &dyn RequestInfo) -> ErrorData {
    let headers = request.parts().map(|parts| &parts.headers);
    let id = headers.and_then(|headers| headers.get("x-request-id")?.to_str().ok());
    let request_id = id.unwrap_or("unknown");
    tracing::error!(method, request_id, "an operation panicked");
    let message = format!("the gateway failed because of a bug; report it with the request id {request_id}");
    ErrorData::internal_error(message, None)
}

fn span(method: &'static str, target: Target<'_>, request: &dyn RequestInfo) -> Span {
    let tool = target.tool();
    // At this level spans cost nothing unless a collector wants them, or somebody looks closely.
    let span = tracing::debug_span!(
        "mcp",
        otel.name = &*span_name(method, tool.or(target.prompt())),
        otel.kind = "server",
        otel.status_code = field::Empty,
        mcp.method.name = method,
        mcp.protocol.version = field::Empty,
        jsonrpc.request.id = %request.id(),
        network.transport = "tcp",
        network.protocol.name = "http",
        gen_ai.tool.name = tool,
        gen_ai.prompt.name = target.prompt(),
        mcp.resource.uri = target.resource(),
        gen_ai.operation.name = tool.map(|_| "execute_tool"),
        mcp.session.id = session_id(request),
        error.type = field::Empty,
        rpc.response.status_code = field::Empty,
    );
    if span.is_disabled() {
        return span;
    }
    let meta = request.meta();
    let of_message = [
        ("traceparent", meta.and_then(|meta| meta.get_traceparent())),
        ("tracestate", meta.and_then(|meta| meta.get_tracestate())),
        ("baggage", meta.and_then(|meta| meta.get_baggage())),
    ];
    // In a session the message is answered by a task of the session's, which knows nothing of the request.
    let http = request.parts().and_then(|parts| parts.extensions.get::<HttpTrace>());
    join_trace(&span, of_message, http);
    span
}

fn span_name(method: &'static str, name: Option<&str>) -> Cow<'static, str> {
    match name {
        Some(name) => format!("{method} {name}").into(),
        None => method.into(),
    }
}

/// Only protocol versions with sessions send the header.
fn session_id(request: &dyn RequestInfo) -> Option<&str> {
    request.parts()?.headers.get("mcp-session-id")?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use std::{
        fmt::Write,
        sync::{Arc, Mutex},
    };

    use tracing::{Subscriber, span};
    use tracing_subscriber::{Layer, layer::Context, layer::SubscriberExt, registry};

    use super::*;

    struct Request(RequestId);

    impl RequestInfo for Request {
        fn id(&self) -> &RequestId {
            &self.0
        }

        fn protocol_version(&self) -> &'static str {
            "2026-07-28"
        }

        fn meta(&self) -> Option<&MetaObject> {
            None
        }

        fn parts(&self) -> Option<&Parts> {
            None
        }
    }

    /// Writes down what spans are told.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<String>>);

    impl field::Visit for Written {
        fn record_debug(&mut self, field: &field::Field, value: &dyn std::fmt::Debug) {
            let mut text = self.0.lock().expect("no panic");
            write!(text, "{}={value:?};", field.name()).expect("memory");
        }
    }

    impl<S: Subscriber> Layer<S> for Written {
        fn on_new_span(&self, attributes: &span::Attributes<'_>, _: &span::Id, _: Context<'_, S>) {
            attributes.record(&mut self.clone());
        }

        fn on_record(&self, _: &span::Id, values: &span::Record<'_>, _: Context<'_, S>) {
            values.record(&mut self.clone());
        }
    }

    async fn written<T: Observed + Send>(method: &'static str, target: Target<'_>, answer: T) -> String {
        let (written, metrics) = (Written::default(), Metrics::new("test", None).expect("metrics"));
        let _default = tracing::subscriber::set_default(registry().with(written.clone()));
        let request = Request(RequestId::Number(1));
        let observed = observe(&metrics, method, target, &request, async { Ok(answer) }).await;
        assert!(observed.is_ok());
        written.0.lock().expect("no panic").clone()
    }

    #[tokio::test]
    async fn spans_say_what_an_operation_is_about() {
        let read = written("resources/read", Target::Resource("notebook://list"), ()).await;
        assert!(read.contains("mcp.resource.uri=\"notebook://list\""), "{read}");
        assert!(read.contains("otel.name=\"resources/read\""), "{read}");
        assert!(read.contains("mcp.protocol.version=\"2026-07-28\""), "{read}");
        let got = written("prompts/get", Target::Prompt("explain_notebook"), ()).await;
        assert!(got.contains("gen_ai.prompt.name=\"explain_notebook\""), "{got}");
        assert!(got.contains("otel.name=\"prompts/get explain_notebook\""), "{got}");
        let called = written("tools/call", Target::Tool(Some("run_code")), ()).await;
        assert!(called.contains("gen_ai.tool.name=\"run_code\""), "{called}");
    }

    #[tokio::test]
    async fn an_operation_that_panics_is_answered() {
        let metrics = Metrics::new("test", None).expect("metrics");
        let request = Request(RequestId::Number(1));
        let operation = async {
            tokio::task::yield_now().await;
            panic!("a defect")
        };
        let answered = observe::<()>(&metrics, "tools/call", Target::Nothing, &request, operation).await;
        let error = answered.expect_err("an answer that says so");
        assert!(error.message.contains("because of a bug"), "{}", error.message);
        assert!(!error.message.contains("a defect"), "{}", error.message);
        let counted = metrics.render().expect("text");
        assert!(counted.contains("error_type=\"-32603\""), "{counted}");
    }

    #[tokio::test]
    async fn versions_are_those_that_are_spoken_here() {
        assert_eq!(known_version("2025-11-25"), "2025-11-25");
        assert_eq!(known_version("2099-01-01"), "unknown");
        let mut result = InitializeResult::default();
        result.protocol_version = ProtocolVersion::V_2025_06_18;
        let initialized = written("initialize", Target::Nothing, result).await;
        assert!(
            initialized.contains("mcp.protocol.version=\"2025-06-18\""),
            "{initialized}"
        );
        assert!(!initialized.contains("2026"), "{initialized}");
    }
}
