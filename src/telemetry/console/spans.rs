//! Spans as trees. A trace is shown when its request was answered; what goes on then, as executions do, is shown when it
//! has ended too.

use std::{
    collections::HashMap,
    fmt::{self, Write},
    io::Write as _,
    time::Duration,
};

use opentelemetry::{
    Context,
    trace::{Span as _, SpanId, TraceId},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{Span, SpanData, SpanProcessor},
};
use parking_lot::Mutex;

use super::{duration, shown};

/// Traces that are kept until they can be shown; what is beyond that is not shown.
const MAX_TRACES: usize = 1000;
/// Spans of one trace, likewise.
const MAX_SPANS: usize = 500;

#[derive(Default)]
pub(in crate::telemetry) struct ConsoleSpans(Mutex<HashMap<TraceId, Open>>);

/// A trace of which spans have not ended.
#[derive(Default)]
struct Open {
    running: usize,
    ended: Vec<SpanData>,
    /// Part of it was shown before.
    is_continued: bool,
}

impl fmt::Debug for ConsoleSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConsoleSpans")
    }
}

impl SpanProcessor for ConsoleSpans {
    fn on_start(&self, span: &mut Span, _: &Context) {
        let mut traces = self.0.lock();
        let id = span.span_context().trace_id();
        if traces.len() < MAX_TRACES || traces.contains_key(&id) {
            traces.entry(id).or_default().running += 1;
        }
    }

    fn on_end(&self, span: SpanData) {
        let mut traces = self.0.lock();
        let id = span.span_context.trace_id();
        let Some(trace) = traces.get_mut(&id) else { return };
        trace.running = trace.running.saturating_sub(1);
        let is_first = span.parent_span_id == SpanId::INVALID || span.parent_span_is_remote;
        if trace.ended.len() < MAX_SPANS {
            trace.ended.push(span);
        }
        let is_over = trace.running == 0;
        if !is_first && !is_over {
            return;
        }
        let (spans, is_continued) = (std::mem::take(&mut trace.ended), trace.is_continued);
        trace.is_continued = true;
        if is_over {
            traces.remove(&id);
        }
        drop(traces);
        // Nobody can be told if that fails.
        let _ = std::io::stderr().lock().write_all(tree(spans, is_continued).as_bytes());
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// The spans of a trace, each below the one that it is part of.
fn tree(mut spans: Vec<SpanData>, is_continued: bool) -> String {
    spans.sort_by_key(|span| span.start_time);
    let mut text = String::new();
    let is_here = |id: SpanId| spans.iter().any(|span| span.span_context.span_id() == id);
    for span in spans.iter().filter(|span| !is_here(span.parent_span_id)) {
        let more = if is_continued { ", continued" } else { "" };
        let _ = writeln!(text, "trace {}{more}", span.span_context.trace_id());
        branch(&mut text, &spans, span, 1);
    }
    text
}

fn branch(text: &mut String, spans: &[SpanData], span: &SpanData, depth: usize) {
    let took = span.end_time.duration_since(span.start_time).unwrap_or_default();
    let links = match span.links.len() {
        0 => String::new(),
        links => format!(" links={links}"),
    };
    let _ = writeln!(
        text,
        "{:indent$}{}  {}  {}{links}",
        "",
        span.name,
        duration(took.as_secs_f64()),
        shown(span.attributes.iter()),
        indent = depth * 2,
    );
    // A span is no part of itself, so that this ends.
    let id = span.span_context.span_id();
    for part in spans.iter().filter(|part| part.parent_span_id == id) {
        branch(text, spans, part, depth + 1);
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};

    use super::*;
    use crate::telemetry::testing::KeptSpans;

    #[test]
    fn a_trace_is_shown_as_a_tree() {
        let kept = KeptSpans::default();
        let provider = kept.provider();
        let tracer = provider.tracer("test");
        let request = Context::new().with_span(tracer.start_with_context("POST /mcp", &Context::new()));
        let call = request.with_span(tracer.start_with_context("tools/call run_code", &request));
        tracer.start_with_context("execution", &call).end();
        call.span().end();
        request.span().end();
        let text = tree(kept.all(), false);
        let lines: Vec<(usize, &str)> = text
            .lines()
            .map(|line| (line.len() - line.trim_start().len(), line.trim_start()))
            .collect();
        assert!(lines[0].0 == 0 && lines[0].1.starts_with("trace "), "{text}");
        for (line, depth, name) in [
            (1, 2, "POST /mcp  "),
            (2, 4, "tools/call run_code  "),
            (3, 6, "execution  "),
        ] {
            assert!(lines[line].0 == depth && lines[line].1.starts_with(name), "{text}");
        }
    }
}
