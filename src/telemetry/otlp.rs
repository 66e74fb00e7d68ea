//! Whether, where and how telemetry is sent to an OpenTelemetry collector: by the config's own keys first, then by
//! OpenTelemetry's variables. What is about headers, timeouts, sampling and intervals the libraries read by themselves.

mod http_client;
mod report;

use std::sync::Arc;

use opentelemetry_otlp::{
    ExporterBuildError, LogExporter, MetricExporter, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
    WithTonicConfig,
};
use url::Url;

use self::http_client::CollectorClient;
pub(super) use self::report::{Reports, Signal, Watched};
use crate::config::{Env, OtlpProtocol, TelemetryConfig};

/// The port of OTLP over HTTP.
const HTTP_PORT: u16 = 4318;
/// The variable that names the collector of all signals.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Address of the collector if none is given.
const LOCAL_GRPC: &str = "http://localhost:4317";
const LOCAL_HTTP: &str = "http://localhost:4318";
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// Defect of the settings for telemetry.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    #[error("{variable}: {value:?} is not supported; expected one of {expected}")]
    Variable {
        variable: String,
        value: String,
        expected: String,
    },
    #[error("{key}: {why}")]
    Endpoint { key: String, why: String },
    #[error("telemetry.otlp_logs: there is no collector to send them to; set telemetry.otlp_endpoint")]
    NoEndpointForLogs,
    #[error("telemetry.otlp_endpoint: {0}")]
    Exporter(#[from] ExporterBuildError),
}

/// Destination of each signal, if it is sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Otlp {
    traces: Option<Target>,
    metrics: Option<Target>,
    logs: Option<Target>,
    /// True if the environment wants spans and metrics on the console.
    pub(super) console: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Target {
    protocol: OtlpProtocol,
    /// Complete, with the path of the signal where there is one.
    endpoint: String,
}

impl Otlp {
    pub(super) fn resolve(config: &TelemetryConfig, env: &Env) -> Result<Self, OtlpError> {
        let env = Variables(env);
        if env
            .get("OTEL_SDK_DISABLED")
            .is_some_and(|value| value.eq_ignore_ascii_case("true"))
        {
            return Ok(Self::default());
        }
        if let Some(sampler) = env.get("OTEL_TRACES_SAMPLER") {
            one_of("OTEL_TRACES_SAMPLER", sampler, &SAMPLERS)?;
        }
        let target = |signal| target(config, &env, signal);
        let console = |signal| Ok::<_, OtlpError>(env.wants(signal, "console")? == Some(true));
        Ok(Self {
            console: console(Signal::Traces)? || console(Signal::Metrics)?,
            traces: target(Signal::Traces)?,
            metrics: target(Signal::Metrics)?,
            logs: target(Signal::Logs)?,
        })
    }

    pub(super) fn traces(&self, reports: &Arc<Reports>) -> Result<Option<Watched<SpanExporter>>, OtlpError> {
        let Some(Target { protocol, endpoint }) = &self.traces else {
            return Ok(None);
        };
        let exporter = match protocol {
            OtlpProtocol::Grpc => {
                let builder = SpanExporter::builder().with_tonic().with_endpoint(endpoint);
                WithTonicConfig::with_retry_policy(builder, retries()).build()
            }
            OtlpProtocol::HttpProtobuf => {
                let builder = SpanExporter::builder().with_http().with_endpoint(endpoint);
                let builder = builder.with_http_client(CollectorClient::new(endpoint)?);
                WithHttpConfig::with_retry_policy(builder, retries()).build()
            }
        };
        Ok(Some(Watched::new(exporter?, Signal::Traces, reports)))
    }

    pub(super) fn metrics(&self, reports: &Arc<Reports>) -> Result<Option<Watched<MetricExporter>>, OtlpError> {
        let Some(Target { protocol, endpoint }) = &self.metrics else {
            return Ok(None);
        };
        let exporter = match protocol {
            OtlpProtocol::Grpc => {
                let builder = MetricExporter::builder().with_tonic().with_endpoint(endpoint);
                WithTonicConfig::with_retry_policy(builder, retries()).build()
            }
            OtlpProtocol::HttpProtobuf => {
                let builder = MetricExporter::builder().with_http().with_endpoint(endpoint);
                let builder = builder.with_http_client(CollectorClient::new(endpoint)?);
                WithHttpConfig::with_retry_policy(builder, retries()).build()
            }
        };
        Ok(Some(Watched::new(exporter?, Signal::Metrics, reports)))
    }

    pub(super) fn logs(&self, reports: &Arc<Reports>) -> Result<Option<Watched<LogExporter>>, OtlpError> {
        let Some(Target { protocol, endpoint }) = &self.logs else {
            return Ok(None);
        };
        let exporter = match protocol {
            OtlpProtocol::Grpc => {
                let builder = LogExporter::builder().with_tonic().with_endpoint(endpoint);
                WithTonicConfig::with_retry_policy(builder, retries()).build()
            }
            OtlpProtocol::HttpProtobuf => {
                let builder = LogExporter::builder().with_http().with_endpoint(endpoint);
                let builder = builder.with_http_client(CollectorClient::new(endpoint)?);
                WithHttpConfig::with_retry_policy(builder, retries()).build()
            }
        };
        Ok(Some(Watched::new(exporter?, Signal::Logs, reports)))
    }
}

/// One attempt is enough for what a moment's failure loses, and the next batch waits behind it.
fn retries() -> RetryPolicy {
    RetryPolicy::recommended().with_max_retries(1)
}

fn target(config: &TelemetryConfig, env: &Variables<'_>, signal: Signal) -> Result<Option<Target>, OtlpError> {
    let wish = env.wants(signal, "otlp")?;
    let is_wanted = match signal {
        Signal::Logs => config.otlp_logs || wish == Some(true),
        Signal::Traces | Signal::Metrics => wish != Some(false),
    };
    if !is_wanted {
        return Ok(None);
    }
    let protocol = env.protocol(config, signal)?;
    let own_variable = signal.variable("OTEL_EXPORTER_OTLP_", "_ENDPOINT");
    let (key, base, is_complete) = if let Some(endpoint) = &config.otlp_endpoint {
        ("telemetry.otlp_endpoint", endpoint.as_str(), false)
    } else if let Some(own) = env.get(&own_variable) {
        (own_variable.as_str(), own, true)
    } else if let Some(common) = env.get(ENDPOINT) {
        (ENDPOINT, common, false)
    } else if wish == Some(true) {
        let is_http = protocol == Some(OtlpProtocol::HttpProtobuf);
        (ENDPOINT, if is_http { LOCAL_HTTP } else { LOCAL_GRPC }, false)
    } else if signal == Signal::Logs {
        return Err(OtlpError::NoEndpointForLogs);
    } else {
        return Ok(None);
    };
    let port = port_of(key, base)?;
    let protocol = protocol.unwrap_or(match port {
        Some(HTTP_PORT) => OtlpProtocol::HttpProtobuf,
        _ => OtlpProtocol::Grpc,
    });
    let endpoint = match protocol {
        OtlpProtocol::HttpProtobuf if !is_complete => {
            format!("{}/v1/{}", base.trim_end_matches('/'), signal.as_str())
        }
        OtlpProtocol::HttpProtobuf | OtlpProtocol::Grpc => base.to_owned(),
    };
    Ok(Some(Target { protocol, endpoint }))
}

/// The port of an endpoint that is one.
fn port_of(key: &str, endpoint: &str) -> Result<Option<u16>, OtlpError> {
    let url = Url::parse(endpoint).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let url = url.ok_or_else(|| OtlpError::Endpoint {
        key: key.to_owned(),
        why: "not a URL; expected one such as \"http://collector:4317\"".to_owned(),
    })?;
    Ok(url.port())
}

/// OpenTelemetry's variables, of which an empty one is one that is not set.
struct Variables<'a>(&'a Env);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.get(name).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// Returns whether `OTEL_TRACES_EXPORTER` or its like choose an exporter for a signal; none if they are not set.
    fn wants(&self, signal: Signal, exporter: &str) -> Result<Option<bool>, OtlpError> {
        let variable = signal.variable("OTEL_", "_EXPORTER");
        let Some(value) = self.get(&variable) else {
            return Ok(None);
        };
        let known: &[&str] = match signal {
            // Prometheus has `/metrics` in any case.
            Signal::Metrics => &["otlp", "none", "console", "prometheus"],
            Signal::Traces => &["otlp", "none", "console"],
            Signal::Logs => &["otlp", "none"],
        };
        let mut named = value.split(',').map(str::trim);
        named.clone().try_for_each(|name| one_of(&variable, name, known))?;
        Ok(Some(named.any(|name| name == exporter)))
    }

    fn protocol(&self, config: &TelemetryConfig, signal: Signal) -> Result<Option<OtlpProtocol>, OtlpError> {
        if config.otlp_protocol.is_some() {
            return Ok(config.otlp_protocol);
        }
        let own = signal.variable("OTEL_EXPORTER_OTLP_", "_PROTOCOL");
        for variable in [own.as_str(), "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            if let Some(value) = self.get(variable) {
                one_of(variable, value, &OtlpProtocol::NAMES)?;
                return Ok(OtlpProtocol::parse(value));
            }
        }
        Ok(None)
    }
}

fn one_of(variable: &str, value: &str, known: &[&str]) -> Result<(), OtlpError> {
    match known.contains(&value) {
        true => Ok(()),
        false => Err(OtlpError::Variable {
            variable: variable.to_owned(),
            value: value.to_owned(),
            expected: known.join(", "),
        }),
    }
}

#[cfg(test)]
mod tests;
