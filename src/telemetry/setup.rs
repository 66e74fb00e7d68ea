//! Sets up what the process tells of itself, and flushes it when the process ends.

use std::{
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use opentelemetry::trace::TracerProvider;
use opentelemetry_sdk::{Resource, logs::SdkLoggerProvider, trace::SdkTracerProvider};
use tracing::{Level, Metadata, level_filters::LevelFilter};
use tracing_subscriber::{
    Layer,
    filter::{FilterFn, ParseError},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use super::{
    Metrics, OtlpError,
    console::ConsoleSpans,
    logs::{self, AnyLayer},
    metrics::Readers,
    otlp::{Otlp, Reports},
};
use crate::config::{Env, TelemetryConfig};

/// The `service.name` where nobody gave another.
const SERVICE_NAME: &str = "jupyter-mcp-gateway";
/// Time that sending what is left may take when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
/// The crates whose spans make up a trace.
const TRACED: [&str; 4] = ["jupyter_mcp_gateway", "executor", "jupyter_client", "live_document"];
/// Target of the spans of what is asked too often and too regularly to be looked at.
pub const UNTRACED: &str = "jupyter_mcp_gateway::probe";

#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("telemetry.log_level: {0}")]
    Filter(#[from] ParseError),
    #[error(transparent)]
    Otlp(#[from] OtlpError),
    #[error("metrics: {0}")]
    Metrics(#[from] opentelemetry_sdk::error::OTelSdkError),
    #[error("logging is set up already")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Flushes the exporters when the process ends, for as long as that may take.
pub struct TelemetryGuard {
    traces: Option<SdkTracerProvider>,
    logs: Option<SdkLoggerProvider>,
    metrics: Metrics,
}

impl Drop for TelemetryGuard {
    fn drop(&mut self) {
        // A collector that does not answer must not keep the process, and each of these waits for it by itself.
        let (done, ended) = mpsc::channel();
        let mut flushes: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
        if let Some(traces) = self.traces.take() {
            flushes.push(Box::new(move || drop(traces.shutdown_with_timeout(FLUSH_TIMEOUT))));
        }
        if let Some(logs) = self.logs.take() {
            flushes.push(Box::new(move || drop(logs.shutdown_with_timeout(FLUSH_TIMEOUT))));
        }
        let metrics = self.metrics.clone();
        flushes.push(Box::new(move || metrics.shutdown()));
        let until = Instant::now() + FLUSH_TIMEOUT;
        let count = flushes.len();
        for flush in flushes {
            let done = done.clone();
            thread::spawn(move || {
                flush();
                // Nobody listens after the time is over.
                let _ = done.send(());
            });
        }
        for _ in 0..count {
            let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

/// Says what is wrong with what the config and the environment want of telemetry.
pub fn check(config: &TelemetryConfig, env: &Env) -> Result<(), OtlpError> {
    Otlp::resolve(config, env).map(drop)
}

/// Sets up logging for the whole process and makes the metrics. With `console`, spans and metrics are shown on stderr.
/// Within a Tokio runtime, which carries what is sent.
pub fn init(config: &TelemetryConfig, env: &Env, console: bool) -> Result<(Metrics, TelemetryGuard), TelemetryError> {
    let otlp = Otlp::resolve(config, env)?;
    let console = console || otlp.console;
    let reports = Arc::<Reports>::default();
    let resource = resource(config, env);
    let readers = Readers {
        resource: resource.clone(),
        otlp: otlp.metrics(&reports)?,
        console,
        reports: Arc::clone(&reports),
    };
    let metrics = Metrics::new(SERVICE_NAME, Some(readers))?;
    let traces = tracer(&otlp, &reports, &resource, console)?;
    let logs = otlp.logs(&reports)?.map(|exporter| {
        SdkLoggerProvider::builder()
            .with_resource(resource.clone())
            .with_batch_exporter(exporter)
            .build()
    });
    // Not `.with(None)`: beside a layer without a filter, no span or event is ever switched off for good,
    // and those that the filters refuse would cost every request.
    let mut layers = vec![
        logs::stderr(config.log_format)
            .with_filter(logs::filter(&config.log_level)?)
            .boxed(),
    ];
    layers.extend(traces.as_ref().map(span_layer));
    if let Some(logs) = &logs {
        layers.push(logs::otlp(&config.log_level, logs)?);
    }
    tracing_subscriber::registry().with(layers).try_init()?;
    let guard = TelemetryGuard {
        traces,
        logs,
        metrics: metrics.clone(),
    };
    Ok((metrics, guard))
}

fn tracer(
    otlp: &Otlp,
    reports: &Arc<Reports>,
    resource: &Resource,
    console: bool,
) -> Result<Option<SdkTracerProvider>, OtlpError> {
    let exporter = otlp.traces(reports)?;
    if exporter.is_none() && !console {
        return Ok(None);
    }
    let mut traces = SdkTracerProvider::builder().with_resource(resource.clone());
    if let Some(exporter) = exporter {
        traces = traces.with_batch_exporter(exporter);
    }
    if console {
        traces = traces.with_span_processor(ConsoleSpans::default());
    }
    Ok(Some(traces.build()))
}

/// Makes OpenTelemetry's spans of those of the gateway.
fn span_layer(traces: &SdkTracerProvider) -> AnyLayer {
    tracing_opentelemetry::layer()
        .with_tracer(traces.tracer(SERVICE_NAME))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_filter(FilterFn::new(is_traced).with_max_level_hint(LevelFilter::DEBUG))
        .boxed()
}

/// Spans of the gateway's own crates, and the warnings within them.
fn is_traced(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let is_ours = TRACED.iter().any(|traced| target.starts_with(traced));
    let level = if metadata.is_span() { Level::DEBUG } else { Level::WARN };
    is_ours && *metadata.level() <= level && target != UNTRACED
}

/// The telemetry resource: the config's name first, then that of the environment.
fn resource(config: &TelemetryConfig, env: &Env) -> Resource {
    let is_named = |variable: &str| env.get(variable).is_some_and(|value| !value.is_empty());
    let named_by_attributes = || {
        let attributes = env
            .get("OTEL_RESOURCE_ATTRIBUTES")
            .map(String::as_str)
            .unwrap_or_default();
        attributes
            .split(',')
            .any(|attribute| attribute.trim_start().starts_with("service.name="))
    };
    let mut resource = Resource::builder().with_attribute(opentelemetry::KeyValue::new(
        "service.version",
        env!("CARGO_PKG_VERSION"),
    ));
    match &config.service_name {
        Some(name) => resource = resource.with_service_name(name.clone()),
        None if is_named("OTEL_SERVICE_NAME") || named_by_attributes() => {}
        None => resource = resource.with_service_name(SERVICE_NAME),
    }
    resource.build()
}

#[cfg(test)]
mod tests {
    use opentelemetry::Key;

    use super::*;

    #[test]
    fn the_name_of_the_config_comes_first_and_that_of_the_program_last() {
        let name = |config: Option<&str>, variables: &[(&str, &str)]| {
            let config = TelemetryConfig {
                service_name: config.map(str::to_owned),
                ..TelemetryConfig::default()
            };
            let env = variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            let name = resource(&config, &env.collect()).get(&Key::new("service.name"));
            name.map(|name| name.to_string())
        };
        assert_eq!(name(None, &[]).as_deref(), Some(SERVICE_NAME));
        assert_eq!(
            name(Some("ours"), &[("OTEL_SERVICE_NAME", "theirs")]).as_deref(),
            Some("ours")
        );
        // The library reads these by itself; here they are not set for the process.
        assert_ne!(
            name(None, &[("OTEL_SERVICE_NAME", "theirs")]).as_deref(),
            Some(SERVICE_NAME)
        );
        let attributes = [("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name=c")];
        assert_ne!(name(None, &attributes).as_deref(), Some(SERVICE_NAME));
    }
}
