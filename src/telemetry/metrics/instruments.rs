//! The instruments that are told of what happens, and the buckets of their histograms.

use opentelemetry::{
    KeyValue,
    metrics::{Counter, Histogram, Meter, UpDownCounter},
};

/// The bucket boundaries that the conventions advise for MCP operations, in seconds.
const OPERATION_BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// Requests to Jupyter on the same network take a few milliseconds.
const JUPYTER_BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];
/// Statements take less than a millisecond; one that waits for a lock or a connection takes seconds.
const STORE_BUCKETS: [f64; 11] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.025, 0.1, 0.5, 5.0, 30.0,
];
/// A kernel that runs takes code at once; one that is started needs seconds, one that is busy any time.
const QUEUE_BUCKETS: [f64; 12] = [0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0];
const EXECUTION_BUCKETS: [f64; 12] = [
    0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 3600.0, 14400.0, 86400.0,
];
const SESSION_BUCKETS: [f64; 10] = [1.0, 5.0, 30.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 14400.0, 86400.0];

pub(super) struct Instruments {
    pub(super) operation_duration: Histogram<f64>,
    pub(super) session_duration: Histogram<f64>,
    pub(super) sessions: UpDownCounter<i64>,
    pub(super) rejections: Counter<u64>,
    pub(super) connections: UpDownCounter<i64>,
    pub(super) connections_closed: Counter<u64>,
    pub(super) replays: Counter<u64>,
    pub(super) jupyter_duration: Histogram<f64>,
    pub(super) queue_duration: Histogram<f64>,
    pub(super) execution_duration: Histogram<f64>,
    pub(super) store_duration: Histogram<f64>,
    pub(super) versions_written: Counter<u64>,
    pub(super) versions_lost: Counter<u64>,
    pub(super) limit_refusals: Counter<u64>,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        build_info(meter);
        let instruments = Self::with_durations(meter);
        // What has no attributes is there from the start, so that its first increase is seen as one.
        instruments.sessions.add(0, &[]);
        instruments.connections.add(0, &[]);
        instruments.versions_written.add(0, &[]);
        instruments.versions_lost.add(0, &[]);
        for hit in [true, false] {
            instruments.replays.add(0, &[KeyValue::new("hit", hit)]);
        }
        instruments
    }

    fn with_durations(meter: &Meter) -> Self {
        Self {
            operation_duration: histogram(
                meter,
                "mcp.server.operation.duration",
                "How long MCP operations take.",
                &OPERATION_BUCKETS,
            ),
            session_duration: histogram(
                meter,
                "mcp.server.session.duration",
                "How long MCP sessions live.",
                &SESSION_BUCKETS,
            ),
            jupyter_duration: histogram(
                meter,
                "jmg.jupyter.request.duration",
                "How long requests to Jupyter servers take.",
                &JUPYTER_BUCKETS,
            ),
            queue_duration: histogram(
                meter,
                "jmg.kernel.queue.duration",
                "How long executions wait until their first cell is sent to the kernel.",
                &QUEUE_BUCKETS,
            ),
            execution_duration: histogram(
                meter,
                "jmg.execution.duration",
                "How long executions take, from when they were asked for.",
                &EXECUTION_BUCKETS,
            ),
            store_duration: histogram(
                meter,
                "jmg.store.operation.duration",
                "How long statements of the database take.",
                &STORE_BUCKETS,
            ),
            sessions: gauge(meter, "jmg.mcp.sessions", "Open MCP sessions."),
            connections: gauge(meter, "jmg.http.connections", "Open connections of clients."),
            rejections: counter(meter, "jmg.http.rejections", "Requests refused at the edge, by reason."),
            connections_closed: counter(
                meter,
                "jmg.http.connections.closed",
                "Connections that the gateway closed or refused, by reason.",
            ),
            replays: counter(
                meter,
                "jmg.events.replays",
                "Resumed streams, by whether the event was still known.",
            ),
            versions_written: counter(
                meter,
                "jmg.history.versions",
                "Versions of documents that were written.",
            ),
            versions_lost: counter(
                meter,
                "jmg.history.lost",
                "Versions of documents that could not be kept.",
            ),
            limit_refusals: counter(
                meter,
                "jmg.limits.refusals",
                "Requests refused because of a limit, by tenant and limit.",
            ),
        }
    }
}

fn build_info(meter: &Meter) {
    let info = meter
        .u64_gauge("jmg.build.info")
        .with_description("Always 1; the version is its attribute.")
        .build();
    info.record(1, &[KeyValue::new("version", env!("CARGO_PKG_VERSION"))]);
}

fn counter(meter: &Meter, name: &'static str, description: &'static str) -> Counter<u64> {
    meter.u64_counter(name).with_description(description).build()
}

fn gauge(meter: &Meter, name: &'static str, description: &'static str) -> UpDownCounter<i64> {
    meter.i64_up_down_counter(name).with_description(description).build()
}

fn histogram(meter: &Meter, name: &'static str, description: &'static str, buckets: &[f64]) -> Histogram<f64> {
    meter
        .f64_histogram(name)
        .with_unit("s")
        .with_description(description)
        .with_boundaries(buckets.to_vec())
        .build()
}
