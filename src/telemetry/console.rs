//! Spans and metrics on stderr, for a person who looks on: a tree for each trace, and what has changed of the metrics.

mod metrics;
mod spans;

use opentelemetry::KeyValue;

pub(super) use self::{metrics::ConsoleMetrics, spans::ConsoleSpans};

/// Attributes that say the same everywhere.
const UNSHOWN: [&str; 3] = ["network.transport", "network.protocol.name", "gen_ai.operation.name"];

/// `name=value` for each attribute that tells something.
fn shown<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let told = attributes.filter(|attribute| !UNSHOWN.contains(&attribute.key.as_str()));
    let words: Vec<String> = told
        .map(|attribute| format!("{}={}", attribute.key, attribute.value))
        .collect();
    words.join(" ")
}

/// A duration in seconds, as people write it.
fn duration(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 1.0 => format!("{:.1} ms", seconds * 1000.0),
        seconds if seconds < 60.0 => format!("{seconds:.2} s"),
        seconds => format!("{:.1} min", seconds / 60.0),
    }
}
