//! Exporters that say once when they fail, and once when they work again, and count. A collector that is down costs
//! nothing else: what waits for it is bounded, and given up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use opentelemetry_otlp::{LogExporter, MetricExporter, SpanExporter};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogBatch, LogExporter as ExportLogs},
    metrics::{Temporality, data::ResourceMetrics, exporter::PushMetricExporter},
    trace::{SpanData, SpanExporter as ExportSpans},
};

/// Kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::telemetry) enum Signal {
    Traces,
    Metrics,
    Logs,
}

impl Signal {
    const ALL: [Self; 3] = [Self::Traces, Self::Metrics, Self::Logs];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Traces => "traces",
            Self::Metrics => "metrics",
            Self::Logs => "logs",
        }
    }

    /// The name of its variable among those that differ by the signal only.
    pub(super) fn variable(self, before: &str, after: &str) -> String {
        format!("{before}{}{after}", self.as_str().to_ascii_uppercase())
    }
}

/// Outcomes of what was sent.
#[derive(Debug, Default)]
pub(in crate::telemetry) struct Reports([Report; 3]);

#[derive(Debug, Default)]
struct Report {
    is_failing: AtomicBool,
    successes: AtomicU64,
    failures: AtomicU64,
}

impl Reports {
    /// Signal, outcome and number, for all there are.
    pub(in crate::telemetry) fn counts(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        Signal::ALL.into_iter().zip(&self.0).flat_map(|(signal, report)| {
            [
                (signal.as_str(), "success", report.successes.load(Ordering::Relaxed)),
                (signal.as_str(), "failure", report.failures.load(Ordering::Relaxed)),
            ]
        })
    }

    fn on_sent(&self, signal: Signal, result: &OTelSdkResult) {
        let report = match signal {
            Signal::Traces => &self.0[0],
            Signal::Metrics => &self.0[1],
            Signal::Logs => &self.0[2],
        };
        let was_failing = report.is_failing.swap(result.is_err(), Ordering::Relaxed);
        match result {
            Ok(()) => {
                report.successes.fetch_add(1, Ordering::Relaxed);
                if was_failing {
                    tracing::info!(signal = signal.as_str(), "the collector takes telemetry again");
                }
            }
            Err(error) => {
                report.failures.fetch_add(1, Ordering::Relaxed);
                if !was_failing {
                    tracing::warn!(
                        signal = signal.as_str(),
                        %error,
                        "cannot send telemetry to the collector; it is dropped until the collector answers again"
                    );
                }
            }
        }
    }
}

/// An exporter whose outcomes are counted and told.
#[derive(Debug)]
pub(in crate::telemetry) struct Watched<E> {
    exporter: E,
    signal: Signal,
    reports: Arc<Reports>,
}

impl<E> Watched<E> {
    pub(super) fn new(exporter: E, signal: Signal, reports: &Arc<Reports>) -> Self {
        Self {
            exporter,
            signal,
            reports: Arc::clone(reports),
        }
    }

    fn told(&self, result: OTelSdkResult) -> OTelSdkResult {
        self.reports.on_sent(self.signal, &result);
        result
    }
}

impl ExportSpans for Watched<SpanExporter> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.told(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl ExportLogs for Watched<LogExporter> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        self.told(self.exporter.export(batch).await)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl PushMetricExporter for Watched<MetricExporter> {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        self.told(self.exporter.export(metrics).await)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn temporality(&self) -> Temporality {
        self.exporter.temporality()
    }
}
