//! Trace contexts: those that come with requests, in HTTP headers and inside MCP messages, and what goes on to Jupyter.

use std::{collections::HashMap, sync::LazyLock};

use executor::AdmittedExecution;
use http::HeaderMap;
use opentelemetry::{
    Context,
    propagation::{TextMapCompositePropagator, TextMapPropagator},
    trace::TraceContextExt,
};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_sdk::propagation::{BaggagePropagator, TraceContextPropagator};
use tracing::{Span, field};
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Longer ones are not W3C's, and would be carried on to every server.
const MAX_STATE_BYTES: usize = 512;
const MAX_BAGGAGE_BYTES: usize = 8192;

/// The three headers of W3C.
static PROPAGATOR: LazyLock<TextMapCompositePropagator> = LazyLock::new(|| {
    TextMapCompositePropagator::new(vec![
        Box::new(TraceContextPropagator::new()),
        Box::new(BaggagePropagator::new()),
    ])
});

/// Trace context of an HTTP request, for the messages that it carries.
#[derive(Clone)]
pub struct HttpTrace(Context);

impl HttpTrace {
    /// Has the span of a request join the trace that its headers name, if they do. There is none where nobody looks.
    pub fn join(span: &Span, headers: &HeaderMap) -> Option<Self> {
        if span.is_disabled() {
            return None;
        }
        let context = PROPAGATOR.extract_with_context(&Context::new(), &HeaderExtractor(headers));
        // Without an exporter there is no trace to join, and nothing to report.
        let _ = span.set_parent(context);
        let context = span.context();
        context.span().span_context().is_valid().then_some(Self(context))
    }
}

/// Has the span of a message join the trace that its `_meta` names; the HTTP request that carried it becomes a link
/// then, since one connection carries many traces. Else the request's trace goes on.
pub fn join_trace(span: &Span, meta: [(&str, Option<&str>); 3], http: Option<&HttpTrace>) {
    let limit = |name: &str| {
        if name == "baggage" {
            MAX_BAGGAGE_BYTES
        } else {
            MAX_STATE_BYTES
        }
    };
    let known = meta
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
    let carrier: HashMap<String, String> = known.filter(|(name, value)| value.len() <= limit(name)).collect();
    let http = http.map(|HttpTrace(context)| context);
    let before = http.cloned().unwrap_or_default();
    let context = PROPAGATOR.extract_with_context(&before, &carrier);
    let of_message = context.span().span_context().clone();
    if let Some(http) = http.map(|http| http.span().span_context().clone())
        && http != of_message
    {
        span.add_link(http);
    }
    if of_message.is_valid() {
        let _ = span.set_parent(context);
    }
}

/// The headers by which a server can join the trace of the current work.
pub(super) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    PROPAGATOR.inject_context(&Context::current(), &mut HeaderInjector(&mut headers));
    headers
}

/// The span of an execution. It belongs to the trace of the call that asked for it and is linked to that, but not kept
/// in it: the call may be answered long before, and is told of then.
pub(super) fn execution_span(execution: &AdmittedExecution<'_>) -> Span {
    let span = tracing::debug_span!(
        parent: None,
        "execution",
        jmg.execution.id = execution.id,
        jmg.execution.kind = execution.kind.as_str(),
        jmg.execution.cells = execution.cells,
        jmg.execution.resumed = execution.is_resumed.then_some(true),
        jmg.execution.status = field::Empty,
        jmg.jupyter.server = execution.server,
        error.type = field::Empty,
    );
    let asking = Context::current();
    let call = asking.span().span_context().clone();
    if !span.is_disabled() && call.is_valid() {
        span.add_link(call.clone());
        let _ = span.set_parent(asking.with_remote_span_context(call));
    }
    span
}
