//! Logs, traces and metrics, under the names of OpenTelemetry's conventions for MCP.
//! Knows nothing of what it measures: callers hand over names and values.

mod logs;
mod metrics;
mod trace;

pub use logs::{TelemetryError, TelemetryGuard, init};
pub use metrics::{LimitUse, Metrics, Operation, Outcome};
pub use trace::set_remote_parent;
