//! Spans as tests look at them.

use std::{sync::Arc, time::Duration};

use opentelemetry::{Context, trace::TracerProvider};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SdkTracerProvider, Span, SpanData, SpanProcessor},
};
use parking_lot::Mutex;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::layer::SubscriberExt;

/// Keeps the spans that have ended.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptSpans(Arc<Mutex<Vec<SpanData>>>);

impl KeptSpans {
    pub(super) fn provider(&self) -> SdkTracerProvider {
        SdkTracerProvider::builder().with_span_processor(self.clone()).build()
    }

    /// Has the spans of this thread kept, until the guard is dropped.
    pub(super) fn keep(&self) -> DefaultGuard {
        let layer = tracing_opentelemetry::layer().with_tracer(self.provider().tracer("test"));
        tracing::subscriber::set_default(tracing_subscriber::registry().with(layer))
    }

    pub(super) fn all(&self) -> Vec<SpanData> {
        self.0.lock().clone()
    }

    pub(super) fn named(&self, name: &str) -> SpanData {
        let spans = self.all();
        let found = spans.iter().find(|span| span.name == name);
        found.unwrap_or_else(|| panic!("no {name}: {spans:?}")).clone()
    }
}

impl SpanProcessor for KeptSpans {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.0.lock().push(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}
