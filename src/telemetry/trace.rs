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
        otel.status_code = field::Empty,
    );
    let asking = Context::current();
    let call = asking.span().span_context().clone();
    if !span.is_disabled() && call.is_valid() {
        span.add_link(call.clone());
        let _ = span.set_parent(asking.with_remote_span_context(call));
    }
    span
}

#[cfg(test)]
mod tests {
    use tracing::debug_span;

    use super::*;
    use crate::telemetry::testing::KeptSpans;

    const OF_HTTP: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const OF_MESSAGE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// The spans of a message and of the HTTP request that carried it.
    fn spans(of_http: Option<&'static str>, of_message: Option<&str>) -> KeptSpans {
        let kept = KeptSpans::default();
        let _keeping = kept.keep();
        let request = debug_span!("request");
        let headers = of_http.map(|of_http| {
            (
                "traceparent".parse().expect("a name"),
                http::HeaderValue::from_static(of_http),
            )
        });
        let http = HttpTrace::join(&request, &HeaderMap::from_iter(headers));
        let message = debug_span!("message");
        let meta = [
            ("traceparent", of_message),
            ("tracestate", None),
            ("baggage", Some("team=blue")),
        ];
        join_trace(&message, meta, http.as_ref());
        message.in_scope(|| {
            let sent = super::headers();
            assert_eq!(
                sent.get("baggage").and_then(|value| value.to_str().ok()),
                Some("team=blue")
            );
            assert!(sent.contains_key("traceparent"));
        });
        drop((message, request));
        kept
    }

    #[test]
    fn without_a_context_of_its_own_a_message_is_a_part_of_its_request() {
        let kept = spans(Some(OF_HTTP), None);
        let (request, message) = (kept.named("request"), kept.named("message"));
        assert_eq!(request.parent_span_id.to_string(), "b7ad6b7169203331");
        assert_eq!(message.parent_span_id, request.span_context.span_id());
        assert!(OF_HTTP.contains(&message.span_context.trace_id().to_string()));
        assert_eq!(message.links.len(), 0);
    }

    #[test]
    fn the_context_of_a_message_comes_first_and_its_request_is_a_link() {
        for of_http in [Some(OF_HTTP), None, Some("nonsense")] {
            let kept = spans(of_http, Some(OF_MESSAGE));
            let (request, message) = (kept.named("request"), kept.named("message"));
            assert_eq!(message.parent_span_id.to_string(), "00f067aa0ba902b7");
            assert!(OF_MESSAGE.contains(&message.span_context.trace_id().to_string()));
            assert_eq!(message.links[0].span_context.span_id(), request.span_context.span_id());
        }
    }

    #[test]
    fn an_execution_may_outlive_its_call() {
        let kept = KeptSpans::default();
        let _keeping = kept.keep();
        let execution = AdmittedExecution {
            id: "e",
            server: "lab",
            kind: store::ExecutionKind::Cells,
            cells: 1,
            is_resumed: false,
        };
        let call = debug_span!("call");
        let span = call.in_scope(|| execution_span(&execution));
        drop(call);
        let call = kept.named("call");
        drop(span);
        let execution = kept.named("execution");
        assert_eq!(execution.parent_span_id, call.span_context.span_id());
        assert_eq!(execution.links[0].span_context.span_id(), call.span_context.span_id());
    }
}
