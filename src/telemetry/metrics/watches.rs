//! Gauges that are read at the moment of collection, from whoever has the things that they count.

use std::sync::Arc;

use executor::ExecutionCounts;
use live_document::pool::RoomCounts;
use opentelemetry::{KeyValue, metrics::Meter};
use store::{Backlog, LostRecords};

use super::{Metrics, servers::KnownServers};
use crate::telemetry::otlp::Reports;

/// Use of something of which a tenant may have only so much.
#[derive(Debug, Clone)]
pub struct LimitUse {
    pub tenant: Arc<str>,
    pub limit: &'static str,
    pub used: usize,
    pub max: usize,
}

/// State of the store.
#[derive(Debug, Clone, Copy)]
pub struct StoreState {
    pub is_up: bool,
    pub backlog: Backlog,
    /// Versions of documents that wait to be written.
    pub versions: usize,
    pub lost: LostRecords,
    /// Records of calls that the audit file did not get.
    pub lost_to_audit_file: u64,
}

impl Metrics {
    /// Tells how much of what may be had only so often at once is in use, as `read` tells it.
    pub fn watch_limits(&self, read: impl Fn() -> Vec<LimitUse> + Send + Sync + Clone + 'static) {
        let attributes = |limit: &LimitUse| {
            [
                KeyValue::new("tenant", Arc::clone(&limit.tenant)),
                KeyValue::new("limit", limit.limit),
            ]
        };
        let (meter, used) = (self.meter(), read.clone());
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

    /// Has servers measured under names of their own.
    pub fn know_servers<'a>(&self, names: impl Iterator<Item = &'a str>) {
        names.for_each(|name| self.0.servers.add(name));
    }

    /// Counts open documents, as `read` does while there are any to count.
    pub fn watch_rooms(&self, max: usize, read: impl Fn() -> Option<RoomCounts> + Send + Sync + 'static) {
        let states = move || {
            let counts = read().unwrap_or_default();
            [
                ("in_use", counts.in_use),
                ("idle", counts.idle),
                ("reconnecting", counts.reconnecting),
            ]
        };
        let meter = self.meter();
        by(&meter, "jmg.rooms", "Open documents, by state.", "state", states);
        number(&meter, "jmg.rooms.max", "How many documents may be open.", move || max);
    }

    /// Counts executions that have not ended, likewise.
    pub fn watch_executions(&self, read: impl Fn() -> Option<ExecutionCounts> + Send + Sync + Clone + 'static) {
        let (meter, counts) = (self.meter(), read.clone());
        let states = move || {
            let counts = counts().unwrap_or_default();
            [("running", counts.running), ("waiting", counts.waiting)]
        };
        by(
            &meter,
            "jmg.executions",
            "Executions that have not ended, by state.",
            "state",
            states,
        );
        meter
            .f64_observable_gauge("jmg.executions.oldest.age")
            .with_unit("s")
            .with_description("Age of the oldest execution that runs.")
            .with_callback(move |observer| {
                let oldest = read().unwrap_or_default().oldest;
                observer.observe(oldest.as_secs_f64(), &[]);
            })
            .build();
    }

    /// Tells how the store does, and whether the gateway is ready: the store is up and nobody told it to leave.
    pub fn watch_store(
        &self,
        read: impl Fn() -> StoreState + Send + Sync + Clone + 'static,
        is_draining: impl Fn() -> bool + Send + Sync + 'static,
    ) {
        let (meter, up, waiting, lost) = (self.meter(), read.clone(), read.clone(), read.clone());
        let backlog = move || {
            let StoreState { backlog, versions, .. } = waiting();
            [
                ("executions", backlog.executions),
                ("activity", backlog.activities),
                ("audit", backlog.audits),
                ("versions", versions),
            ]
        };
        by(
            &meter,
            "jmg.store.backlog",
            "Records that wait to be written, by table.",
            "table",
            backlog,
        );
        meter
            .u64_observable_counter("jmg.store.lost")
            .with_description(
                "Records that were given up because the database or the audit file failed for too long, by table.",
            )
            .with_callback(move |observer| {
                let state = lost();
                let lost = state.lost;
                for (table, count) in [
                    ("executions", lost.executions),
                    ("activity", lost.activities),
                    ("audit", lost.audits),
                    ("audit_file", state.lost_to_audit_file),
                ] {
                    observer.observe(count, &[KeyValue::new("table", table)]);
                }
            })
            .build();
        let what = "Whether the store could be written when that was last tried.";
        number(&meter, "jmg.store.up", what, move || usize::from(up().is_up));
        let what = "Whether the gateway would say that it is ready.";
        let is_ready = move || usize::from(read().is_up && !is_draining());
        number(&meter, "jmg.ready", what, is_ready);
    }
}

/// Tells which servers answered last.
pub(super) fn servers(meter: &Meter, servers: Arc<KnownServers>) {
    meter
        .u64_observable_gauge("jmg.jupyter.up")
        .with_description("Whether a Jupyter server answered when it was last asked.")
        .with_callback(move |observer| {
            for (server, up) in servers.asked() {
                observer.observe(up.into(), &[KeyValue::new("server", server)]);
            }
        })
        .build();
}

/// Counts what was sent to a collector.
pub(super) fn exports(meter: &Meter, reports: Arc<Reports>) {
    meter
        .u64_observable_counter("jmg.telemetry.exports")
        .with_description("Batches that were sent to the collector or could not be, by signal and outcome.")
        .with_callback(move |observer| {
            for (signal, outcome, count) in reports.counts() {
                let attributes = [KeyValue::new("signal", signal), KeyValue::new("outcome", outcome)];
                observer.observe(count, &attributes);
            }
        })
        .build();
}

/// A number that is read when somebody looks.
pub(super) fn number(
    meter: &Meter,
    name: &'static str,
    description: &'static str,
    read: impl Fn() -> usize + Send + Sync + 'static,
) {
    meter
        .u64_observable_gauge(name)
        .with_description(description)
        .with_callback(move |observer| observer.observe(read() as u64, &[]))
        .build();
}

/// Numbers that are read when somebody looks, told apart by one attribute.
fn by<const COUNT: usize>(
    meter: &Meter,
    name: &'static str,
    description: &'static str,
    attribute: &'static str,
    read: impl Fn() -> [(&'static str, usize); COUNT] + Send + Sync + 'static,
) {
    meter
        .u64_observable_gauge(name)
        .with_description(description)
        .with_callback(move |observer| {
            for (value, number) in read() {
                observer.observe(number as u64, &[KeyValue::new(attribute, value)]);
            }
        })
        .build();
}
