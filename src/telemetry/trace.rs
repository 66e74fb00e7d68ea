//! Trace context that arrives inside MCP messages rather than in HTTP headers.

use std::collections::HashMap;

use opentelemetry::{propagation::TextMapPropagator, trace::TraceContextExt};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// Makes the trace context of a request's `_meta` the parent of a span; the HTTP span that carried
/// the request becomes a link, since one connection carries many traces.
pub fn set_remote_parent(span: &Span, traceparent: &str, tracestate: Option<&str>) {
    let mut carrier = HashMap::from([("traceparent".to_owned(), traceparent.to_owned())]);
    if let Some(tracestate) = tracestate {
        carrier.insert("tracestate".to_owned(), tracestate.to_owned());
    }
    let context = TraceContextPropagator::new().extract(&carrier);
    if !context.span().span_context().is_valid() {
        return;
    }
    let transport = Span::current().context().span().span_context().clone();
    if transport.is_valid() {
        span.add_link(transport);
    }
    // Without an exporter there is no trace to join, and nothing to report.
    let _ = span.set_parent(context);
}

/// The trace context of the current span, for the servers that are asked on its behalf.
pub(super) fn current_traceparent() -> Option<String> {
    let context = Span::current().context();
    let span = context.span().span_context().clone();
    let flags = span.trace_flags().to_u8();
    span.is_valid()
        .then(|| format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id()))
}
