//! The instruments. One set per gateway, so that several can live in one process.

use std::{sync::Arc, time::Duration};

use jupyter_client::RequestObserver;
use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, MeterProvider, UpDownCounter},
};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider};
use prometheus::{Registry, TextEncoder};

use super::trace::current_traceparent;

/// The bucket boundaries that the conventions advise for MCP operations, in seconds.
const OPERATION_BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Requests to Jupyter on the same network take a few milliseconds.
const JUPYTER_BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];
const SESSION_BUCKETS: [f64; 10] = [1.0, 5.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0, 86400.0];

#[derive(Clone)]
pub struct Metrics {
    registry: Registry,
    provider: SdkMeterProvider,
    operation_duration: Histogram<f64>,
    session_duration: Histogram<f64>,
    sessions: UpDownCounter<i64>,
    rejections: Counter<u64>,
    connections: UpDownCounter<i64>,
    connections_closed: Counter<u64>,
    replays: Counter<u64>,
    jupyter_duration: Histogram<f64>,
    versions_written: Counter<u64>,
    versions_lost: Counter<u64>,
    limit_refusals: Counter<u64>,
}

/// Use of something of which a tenant may have only so much.
#[derive(Debug, Clone)]
pub struct LimitUse {
    pub tenant: Arc<str>,
    pub limit: &'static str,
    pub used: usize,
    pub max: usize,
}

/// One MCP operation, as spans and metrics name it.
#[derive(Debug, Clone, Copy)]
pub struct Operation<'a> {
    pub method: &'static str,
    pub tool: Option<&'static str>,
    pub protocol_version: &'a str,
}

/// Outcome of an operation: success, or an `error.type`.
pub type Outcome<'a> = Result<(), &'a str>;

impl Metrics {
    /// Makes the instruments; `readers` adds exporters beside the Prometheus one.
    pub fn new(
        service_name: &str,
        otlp: Option<opentelemetry_otlp::MetricExporter>,
    ) -> Result<Self, opentelemetry_sdk::error::OTelSdkError> {
        let registry = Registry::new();
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .build()?;
        let mut provider = SdkMeterProvider::builder()
            .with_resource(resource(service_name))
            .with_reader(prometheus);
        if let Some(otlp) = otlp {
            provider = provider.with_periodic_exporter(otlp);
        }
        let provider = provider.build();
        let meter = provider.meter("jupyter-mcp-gateway");
        build_info(&meter);
        Ok(Self {
            operation_duration: histogram(
                &meter,
                "mcp.server.operation.duration",
                "How long MCP operations take.",
                &OPERATION_BUCKETS,
            ),
            session_duration: histogram(
                &meter,
                "mcp.server.session.duration",
                "How long MCP sessions live.",
                &SESSION_BUCKETS,
            ),
            sessions: meter
                .i64_up_down_counter("jmg.mcp.sessions")
                .with_description("Open MCP sessions.")
                .build(),
            rejections: meter
                .u64_counter("jmg.http.rejections")
                .with_description("Requests refused at the edge, by reason.")
                .build(),
            connections: meter
                .i64_up_down_counter("jmg.http.connections")
                .with_description("Open connections of clients.")
                .build(),
            connections_closed: meter
                .u64_counter("jmg.http.connections.closed")
                .with_description("Connections that the gateway closed or refused, by reason.")
                .build(),
            replays: meter
                .u64_counter("jmg.events.replays")
                .with_description("Resumed streams, by whether the event was still known.")
                .build(),
            versions_written: meter
                .u64_counter("jmg.history.versions")
                .with_description("Versions of documents that were written.")
                .build(),
            versions_lost: meter
                .u64_counter("jmg.history.lost")
                .with_description("Versions of documents that could not be kept.")
                .build(),
            limit_refusals: meter
                .u64_counter("jmg.limits.refusals")
                .with_description("Requests refused because of a limit, by tenant and limit.")
                .build(),
            jupyter_duration: histogram(
                &meter,
                "jmg.jupyter.request.duration",
                "How long requests to Jupyter servers take.",
                &JUPYTER_BUCKETS,
            ),
            registry,
            provider,
        })
    }

    pub fn operation(&self, operation: Operation<'_>, outcome: Outcome<'_>, took: Duration) {
        let mut attributes = Vec::with_capacity(7);
        attributes.push(KeyValue::new("mcp.method.name", operation.method));
        attributes.push(KeyValue::new(
            "mcp.protocol.version",
            operation.protocol_version.to_owned(),
        ));
        attributes.push(KeyValue::new("network.transport", "tcp"));
        attributes.push(KeyValue::new("network.protocol.name", "http"));
        if let Some(tool) = operation.tool {
            attributes.push(KeyValue::new("gen_ai.tool.name", tool));
            attributes.push(KeyValue::new("gen_ai.operation.name", "execute_tool"));
        }
        if let Err(error_type) = outcome {
            attributes.push(KeyValue::new("error.type", error_type.to_owned()));
        }
        self.operation_duration.record(took.as_secs_f64(), &attributes);
    }

    pub fn session_opened(&self) {
        self.sessions.add(1, &[]);
    }

    pub fn session_closed(&self, lived: Duration) {
        self.sessions.add(-1, &[]);
        self.session_duration
            .record(lived.as_secs_f64(), &[KeyValue::new("network.transport", "tcp")]);
    }

    pub fn rejected(&self, reason: &'static str) {
        self.rejections.add(1, &[KeyValue::new("reason", reason)]);
    }

    pub fn connection_opened(&self) {
        self.connections.add(1, &[]);
    }

    pub fn connection_ended(&self) {
        self.connections.add(-1, &[]);
    }

    /// A connection was closed, or refused, because of the gateway's own limits.
    pub fn connection_closed(&self, reason: &'static str) {
        self.connections_closed.add(1, &[KeyValue::new("reason", reason)]);
    }

    pub fn replayed(&self, known: bool) {
        self.replays.add(1, &[KeyValue::new("hit", known)]);
    }

    /// A version of a document was written.
    pub fn version_written(&self) {
        self.versions_written.add(1, &[]);
    }

    /// A version of a document was given up.
    pub fn version_lost(&self) {
        self.versions_lost.add(1, &[]);
    }

    /// A request was refused because of a limit of a tenant, or of none before anybody has logged in.
    pub fn limit_refused(&self, tenant: &str, limit: &'static str) {
        let attributes = [
            KeyValue::new("tenant", tenant.to_owned()),
            KeyValue::new("limit", limit),
        ];
        self.limit_refusals.add(1, &attributes);
    }

    /// Tells how much of what may be had only so often at once is in use, as `read` tells it.
    pub fn watch_limits(&self, read: impl Fn() -> Vec<LimitUse> + Send + Sync + Clone + 'static) {
        let attributes = |limit: &LimitUse| {
            [
                KeyValue::new("tenant", Arc::clone(&limit.tenant)),
                KeyValue::new("limit", limit.limit),
            ]
        };
        let meter = self.provider.meter("jupyter-mcp-gateway");
        let used = read.clone();
        meter
            .u64_observable_gauge("jmg.limits.used")
            .with_description("What a tenant has at this moment of what is limited, by tenant and limit.")
            .with_callback(move |observer| {
                for limit in used() {
                    observer.observe(limit.used as u64, &attributes(&limit));
                }
            })
            .build();
        meter
            .u64_observable_gauge("jmg.limits.max")
            .with_description("How much a tenant may have at once, by tenant and limit.")
            .with_callback(move |observer| {
                for limit in read() {
                    observer.observe(limit.max as u64, &attributes(&limit));
                }
            })
            .build();
    }

    /// Counts the records that the store gave up, by table, as `read` tells them.
    pub fn watch_lost_records(&self, read: impl Fn() -> Vec<(&'static str, u64)> + Send + Sync + 'static) {
        let meter = self.provider.meter("jupyter-mcp-gateway");
        meter
            .u64_observable_counter("jmg.store.lost")
            .with_description(
                "Records that were given up because the database or the audit file failed for too long, by table.",
            )
            .with_callback(move |observer| {
                for (table, lost) in read() {
                    observer.observe(lost, &[KeyValue::new("table", table)]);
                }
            })
            .build();
    }

    /// Everything measured so far, in Prometheus' text format.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }

    /// Sends what is still buffered.
    pub(super) fn shutdown(&self) {
        let _ = self.provider.shutdown();
    }
}

impl RequestObserver for Metrics {
    fn traceparent(&self) -> Option<String> {
        current_traceparent()
    }

    fn on_request(&self, server: &str, outcome: &'static str, took: Duration) {
        let attributes = [
            KeyValue::new("server", server.to_owned()),
            KeyValue::new("outcome", outcome),
        ];
        self.jupyter_duration.record(took.as_secs_f64(), &attributes);
    }
}

pub(super) fn resource(service_name: &str) -> Resource {
    Resource::builder()
        .with_service_name(service_name.to_owned())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build()
}

fn build_info(meter: &Meter) {
    let info = meter
        .u64_gauge("jmg.build.info")
        .with_description("Always 1; the version is its attribute.")
        .build();
    info.record(1, &[KeyValue::new("version", env!("CARGO_PKG_VERSION"))]);
}

fn histogram(meter: &Meter, name: &'static str, description: &'static str, buckets: &[f64]) -> Histogram<f64> {
    meter
        .f64_histogram(name)
        .with_unit("s")
        .with_description(description)
        .with_boundaries(buckets.to_vec())
        .build()
}
