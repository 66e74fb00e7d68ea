//! Logs and traces: to stderr, and to an OpenTelemetry collector if one is configured.

use std::io::IsTerminal;

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithExportConfig};
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::{
    EnvFilter, Layer, Registry, filter::ParseError, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

use super::{Metrics, metrics::resource};
use crate::config::{LogFormat, TelemetryConfig};

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("telemetry.log_level: {0}")]
    Filter(#[from] ParseError),
    #[error("telemetry.otlp_endpoint: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    #[error("metrics: {0}")]
    Metrics(#[from] opentelemetry_sdk::error::OTelSdkError),
    #[error("logging is set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Flushes the exporters when the process ends.
pub struct TelemetryGuard {
    tracer: Option<SdkTracerProvider>,
    metrics: Metrics,
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        if let Some(tracer) = &self.tracer {
            let _ = tracer.shutdown();
        }
        self.metrics.shutdown();
    }
}

/// Sets up logging for the whole process and makes the metrics.
pub fn init(config: &TelemetryConfig) -> Result<(Metrics, TelemetryGuard), TelemetryError> {
    let (mut spans, mut points) = (None, None);
    if let Some(endpoint) = config.otlp_endpoint.as_ref().map(url::Url::as_str) {
        spans = Some(SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?);
        points = Some(MetricExporter::builder().with_tonic().with_endpoint(endpoint).build()?);
    }
    let metrics = Metrics::new(&config.service_name, points)?;
    let tracer = spans.map(|exporter| {
        SdkTracerProvider::builder()
            .with_resource(resource(&config.service_name))
            .with_batch_exporter(exporter)
            .build()
    });
    let traces = tracer.as_ref().map(|tracer| {
        tracing_opentelemetry::layer()
            .with_tracer(tracer.tracer("jupyter-mcp-gateway"))
            .with_filter(EnvFilter::new("info,jupyter_mcp_gateway=debug"))
    });
    let logs = log_layer(config.log_format).with_filter(filter(&config.log_level)?);
    // Not `.with(None)`: beside a layer without a filter, no span or event is ever switched off for good,
    // and those that the filter above refuses would cost every request.
    let mut layers = vec![logs.boxed()];
    layers.extend(traces.map(Layer::boxed));
    tracing_subscriber::registry().with(layers).try_init()?;
    Ok((metrics.clone(), TelemetryGuard { tracer, metrics }))
}

/// The target of what the protocol library logs.
const LIBRARY: &str = "rmcp";

/// Filter of a level. The library tells of every session's start and end; its warnings are enough unless more is asked
/// for. What its service loop calls errors are answers to clients that have gone, which is theirs to do.
fn filter(level: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("{LIBRARY}=warn,{LIBRARY}::service=off,{level}"))
}

fn log_layer(format: LogFormat) -> Box<dyn Layer<Registry> + Send + Sync> {
    let terminal = std::io::stderr().is_terminal();
    let layer = fmt::layer().with_writer(std::io::stderr);
    match format {
        LogFormat::Auto if terminal => layer.compact().with_target(false).boxed(),
        LogFormat::Pretty => layer.compact().with_ansi(terminal).with_target(false).boxed(),
        LogFormat::Auto | LogFormat::Json => layer
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .boxed(),
    }
}

#[cfg(test)]
mod tests {
    use tracing::{Level, subscriber::with_default};

    use super::*;

    const SERVICE: &str = concat!("rmcp", "::service");

    #[test]
    fn clients_that_leave_are_no_errors_and_ours_are() {
        let logs = |level: &str| tracing_subscriber::registry().with(filter(level).expect("a filter"));
        with_default(logs("info"), || {
            assert!(tracing::enabled!(target: "jupyter_mcp_gateway::mcp", Level::ERROR));
            assert!(tracing::enabled!(target: concat!("rmcp", "::transport"), Level::WARN));
            assert!(!tracing::enabled!(target: SERVICE, Level::ERROR));
        });
        with_default(logs(&format!("info,{SERVICE}=debug")), || {
            assert!(tracing::enabled!(target: SERVICE, Level::DEBUG), "if it is asked for");
        });
    }
}
