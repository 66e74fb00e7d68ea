//! Metrics, as reported by callers. One set of instruments per gateway, so that several can live in one process.
//!
//! | module | what it owns |
//! | --- | --- |
//! | `instruments` | the instruments that are told of what happens, and their buckets |
//! | `watches` | what is read when somebody looks: rooms, executions, limits, the store |
//! | `observers` | what the libraries tell |
//! | `process` | memory, files, processor and tasks of the process |
//! | `servers` | names of servers as attributes, of which there are only so many |

mod instruments;
mod observers;
mod process;
mod servers;
mod watches;

use std::{sync::Arc, time::Duration};

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider},
};
use opentelemetry_otlp::MetricExporter;
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkError,
    metrics::{PeriodicReader, SdkMeterProvider},
};
use prometheus::{Registry, TextEncoder};

use self::{instruments::Instruments, servers::KnownServers};
use super::{
    console::ConsoleMetrics,
    otlp::{Reports, Watched},
};

pub use self::watches::{LimitUse, StoreState};

/// Interval at which metrics that changed are shown on stderr.
const CONSOLE_INTERVAL: Duration = Duration::from_secs(15);

/// Handle of the instruments. Clones share them.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    provider: SdkMeterProvider,
    instruments: Instruments,
    servers: Arc<KnownServers>,
}

/// Readers of the metrics beside `/metrics`, and the resource they belong to.
pub struct Readers {
    pub(super) resource: Resource,
    pub(super) otlp: Option<Watched<MetricExporter>>,
    pub(super) console: bool,
    pub(super) reports: Arc<Reports>,
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
    /// Makes the instruments, for `/metrics` and for the readers.
    pub fn new(service_name: &str, readers: Option<Readers>) -> Result<Self, OTelSdkError> {
        let readers = readers.unwrap_or_else(|| Readers {
            resource: Resource::builder().with_service_name(service_name.to_owned()).build(),
            otlp: None,
            console: false,
            reports: Arc::default(),
        });
        let registry = Registry::new();
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .build()?;
        let mut provider = SdkMeterProvider::builder()
            .with_resource(readers.resource)
            .with_reader(prometheus);
        if let Some(otlp) = readers.otlp {
            provider = provider.with_periodic_exporter(otlp);
        }
        if readers.console {
            let reader = PeriodicReader::builder(ConsoleMetrics::default());
            provider = provider.with_reader(reader.with_interval(CONSOLE_INTERVAL).build());
        }
        let provider = provider.build();
        let meter = meter(&provider);
        process::watch(&meter);
        watches::exports(&meter, readers.reports);
        let servers = Arc::<KnownServers>::default();
        watches::servers(&meter, Arc::clone(&servers));
        let instruments = Instruments::new(&meter);
        // There from the start, so that the first loss is seen as an increase.
        for counter in [&instruments.versions_written, &instruments.versions_lost] {
            counter.add(0, &[]);
        }
        Ok(Self(Arc::new(Inner {
            registry,
            provider,
            instruments,
            servers,
        })))
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
        self.instruments()
            .operation_duration
            .record(took.as_secs_f64(), &attributes);
    }

    pub fn session_opened(&self) {
        self.instruments().sessions.add(1, &[]);
    }

    pub fn session_closed(&self, lived: Duration) {
        self.instruments().sessions.add(-1, &[]);
        self.instruments()
            .session_duration
            .record(lived.as_secs_f64(), &[KeyValue::new("network.transport", "tcp")]);
    }

    pub fn rejected(&self, reason: &'static str) {
        self.instruments().rejections.add(1, &[KeyValue::new("reason", reason)]);
    }

    pub fn connection_opened(&self) {
        self.instruments().connections.add(1, &[]);
    }

    pub fn connection_ended(&self) {
        self.instruments().connections.add(-1, &[]);
    }

    /// A connection was closed, or refused, because of the gateway's own limits.
    pub fn connection_closed(&self, reason: &'static str) {
        let attributes = [KeyValue::new("reason", reason)];
        self.instruments().connections_closed.add(1, &attributes);
    }

    pub fn replayed(&self, known: bool) {
        self.instruments().replays.add(1, &[KeyValue::new("hit", known)]);
    }

    /// A version of a document was written.
    pub fn version_written(&self) {
        self.instruments().versions_written.add(1, &[]);
    }

    /// A version of a document was given up.
    pub fn version_lost(&self) {
        self.instruments().versions_lost.add(1, &[]);
    }

    /// A request was refused because of a limit of a tenant, or of none before anybody has logged in.
    pub fn limit_refused(&self, tenant: &str, limit: &'static str) {
        let attributes = [
            KeyValue::new("tenant", tenant.to_owned()),
            KeyValue::new("limit", limit),
        ];
        self.instruments().limit_refusals.add(1, &attributes);
    }

    /// Everything measured so far, in Prometheus' text format.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        TextEncoder::new().encode_to_string(&self.0.registry.gather())
    }

    /// Sends what is still buffered.
    pub(super) fn shutdown(&self) {
        let _ = self.0.provider.shutdown();
    }

    fn instruments(&self) -> &Instruments {
        &self.0.instruments
    }

    fn meter(&self) -> Meter {
        meter(&self.0.provider)
    }
}

fn meter(provider: &SdkMeterProvider) -> Meter {
    provider.meter("jupyter-mcp-gateway")
}
