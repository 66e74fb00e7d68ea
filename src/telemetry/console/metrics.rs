//! Metrics as lines, only those that have changed since they were shown.

use std::{collections::HashMap, fmt::Write, io::Write as _, time::Duration};

use opentelemetry_sdk::{
    error::OTelSdkResult,
    metrics::{
        Temporality,
        data::{AggregatedMetrics, Histogram, MetricData, ResourceMetrics, ScopeMetrics},
        exporter::PushMetricExporter,
    },
};
use parking_lot::Mutex;

use super::{duration, shown};

/// Prefixes of metrics that change all the time and say nothing about the work.
const UNSHOWN: [&str; 3] = ["process.", "jmg.tokio.", "jmg.process."];

#[derive(Default)]
pub(in crate::telemetry) struct ConsoleMetrics {
    shown: Mutex<HashMap<String, String>>,
}

impl PushMetricExporter for ConsoleMetrics {
    async fn export(&self, metrics: &ResourceMetrics) -> OTelSdkResult {
        let mut text = String::new();
        let mut before = self.shown.lock();
        for metric in metrics.scope_metrics().flat_map(ScopeMetrics::metrics) {
            if UNSHOWN.iter().any(|unshown| metric.name().starts_with(unshown)) {
                continue;
            }
            for (attributes, value) in points(metric.data()) {
                let series = format!("{} {attributes}", metric.name());
                if before.get(&series) != Some(&value) {
                    let _ = writeln!(text, "  {}  {value}", series.trim_end());
                    before.insert(series, value);
                }
            }
        }
        drop(before);
        if !text.is_empty() {
            // Nobody can be told if that fails.
            let _ = write!(std::io::stderr().lock(), "metrics\n{text}");
        }
        Ok(())
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn temporality(&self) -> Temporality {
        Temporality::Cumulative
    }
}

/// The attributes and the value of each series.
fn points(data: &AggregatedMetrics) -> Vec<(String, String)> {
    match data {
        AggregatedMetrics::F64(data) => points_of(data, |sum| *sum),
        #[expect(clippy::cast_precision_loss, reason = "for the eye")]
        AggregatedMetrics::U64(data) => points_of(data, |sum| *sum as f64),
        #[expect(clippy::cast_precision_loss, reason = "for the eye")]
        AggregatedMetrics::I64(data) => points_of(data, |sum| *sum as f64),
    }
}

fn points_of<T: Copy + std::fmt::Display>(data: &MetricData<T>, number: fn(&T) -> f64) -> Vec<(String, String)> {
    match data {
        MetricData::Gauge(gauge) => gauge
            .data_points()
            .map(|point| (shown(point.attributes()), point.value().to_string()))
            .collect(),
        MetricData::Sum(sum) => sum
            .data_points()
            .map(|point| (shown(point.attributes()), point.value().to_string()))
            .collect(),
        MetricData::Histogram(histogram) => summaries(histogram, number),
        // There are none.
        MetricData::ExponentialHistogram(_) => Vec::new(),
    }
}

/// Counts and averages of histograms, which are all of durations.
#[expect(clippy::cast_precision_loss, reason = "for the eye")]
fn summaries<T: Copy>(histogram: &Histogram<T>, number: fn(&T) -> f64) -> Vec<(String, String)> {
    let points = histogram.data_points().filter(|point| point.count() > 0);
    points
        .map(|point| {
            let mean = number(&point.sum()) / point.count() as f64;
            let value = format!("{} times, {} on average", point.count(), duration(mean));
            (shown(point.attributes()), value)
        })
        .collect()
}
