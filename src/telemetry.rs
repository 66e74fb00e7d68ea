//! Logs, traces and metrics, under the names of OpenTelemetry's conventions for MCP. Knows nothing of what it measures:
//! callers hand over names and values.
//!
//! | module | what it owns |
//! | --- | --- |
//! | `setup`, `logs` | what is set up for the process, and flushed at its end |
//! | `metrics` | the instruments, what they are told, and `/metrics` |
//! | `trace` | trace contexts that come with requests and go on to Jupyter; the spans of executions |
//! | `otlp` | whether, where and how telemetry is sent to a collector |
//! | `console` | spans and metrics on stderr, for a person who looks on |

mod console;
mod logs;
mod metrics;
mod otlp;
mod setup;
#[cfg(test)]
mod testing;
mod trace;

pub use metrics::{LimitUse, Metrics, Operation, Outcome, Readers, StoreState};
pub use otlp::OtlpError;
pub use setup::{TelemetryError, TelemetryGuard, UNTRACED, check, init};
pub use trace::{HttpTrace, join_trace};
