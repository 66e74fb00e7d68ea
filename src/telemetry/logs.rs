//! Log lines: to stderr, and to an OpenTelemetry collector if that is wanted.

use std::io::IsTerminal;

use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use tracing_subscriber::{EnvFilter, Layer, Registry, filter::ParseError, fmt};

use crate::config::LogFormat;

/// The target of what the protocol library logs.
const LIBRARY: &str = "rmcp";
/// Libraries that carry log lines to the collector. What they say of it would be carried there too, and so on.
const CARRIERS: [&str; 6] = ["h2", "hyper", "hyper_util", "opentelemetry", "reqwest", "tonic"];

/// A layer of what is done with spans and events.
pub(super) type AnyLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Filter of a level. The library tells of every session's start and end; its warnings are enough unless more is asked
/// for. What its service loop calls errors are answers to clients that have gone, which is theirs to do.
pub(super) fn filter(level: &str) -> Result<EnvFilter, ParseError> {
    EnvFilter::try_new(format!("{LIBRARY}=warn,{LIBRARY}::service=off,{level}"))
}

/// Writes lines to stderr.
pub(super) fn stderr(format: LogFormat) -> AnyLayer {
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

/// Hands lines to OpenTelemetry.
pub(super) fn otlp(level: &str, logs: &SdkLoggerProvider) -> Result<AnyLayer, ParseError> {
    let quiet: String = CARRIERS.iter().map(|carrier| format!(",{carrier}=off")).collect();
    let filter = filter(&format!("{level}{quiet}"))?;
    Ok(OpenTelemetryTracingBridge::new(logs).with_filter(filter).boxed())
}

#[cfg(test)]
mod tests {
    use tracing::{Level, subscriber::with_default};
    use tracing_subscriber::layer::SubscriberExt;

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

    #[test]
    fn what_carries_log_lines_to_a_collector_does_not_make_more_of_them() {
        let logs = SdkLoggerProvider::builder().build();
        let layer = otlp("trace", &logs).expect("a layer");
        with_default(tracing_subscriber::registry().with(layer), || {
            assert!(tracing::enabled!(target: "jupyter_mcp_gateway::mcp", Level::TRACE));
            assert!(!tracing::enabled!(target: "h2::client", Level::ERROR));
            assert!(!tracing::enabled!(target: "reqwest::connect", Level::ERROR));
        });
    }
}
