//! Observers that turn events of the libraries into metrics.

use std::time::Duration;

use executor::{AdmittedExecution, ExecutionObserver};
use http::HeaderMap;
use jupyter_client::{RequestObserver, RequestOutcome};
use opentelemetry::KeyValue;
use store::{ExecutionStatus, StoreObserver, StoreOperation};
use tracing::Span;

use super::Metrics;
use crate::telemetry::trace;

impl RequestObserver for Metrics {
    fn trace_headers(&self) -> HeaderMap {
        trace::headers()
    }

    fn on_request(&self, server: &str, outcome: RequestOutcome, took: Duration) {
        self.0.servers.on_asked(server, outcome.is_answer());
        let attributes = [self.server(server), KeyValue::new("outcome", outcome.as_str())];
        self.instruments()
            .jupyter_duration
            .record(took.as_secs_f64(), &attributes);
    }
}

impl ExecutionObserver for Metrics {
    fn on_admitted(&self, execution: &AdmittedExecution<'_>) -> Span {
        trace::execution_span(execution)
    }

    fn on_first_sent(&self, server: &str, waited: Duration) {
        self.instruments()
            .queue_duration
            .record(waited.as_secs_f64(), &[self.server(server)]);
    }

    fn on_ended(&self, server: &str, status: ExecutionStatus, took: Duration) {
        let attributes = [self.server(server), KeyValue::new("status", status.as_str())];
        self.instruments()
            .execution_duration
            .record(took.as_secs_f64(), &attributes);
    }
}

impl StoreObserver for Metrics {
    fn on_operation(&self, operation: StoreOperation, succeeded: bool, took: Duration) {
        let outcome = if succeeded { "success" } else { "failure" };
        let attributes = [
            KeyValue::new("operation", operation.as_str()),
            KeyValue::new("outcome", outcome),
        ];
        self.instruments()
            .store_duration
            .record(took.as_secs_f64(), &attributes);
    }
}

impl Metrics {
    fn server(&self, server: &str) -> KeyValue {
        KeyValue::new("server", self.0.servers.label(server))
    }
}
