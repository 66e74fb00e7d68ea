//! An execution's place in a trace: its own span, and in it one for each cell that the kernel runs. Spans have
//! neither sources nor outputs.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use store::ExecutionStatus;
use tracing::{Span, field};

/// Spans of an execution, from when it was admitted until it is over.
#[derive(Debug)]
pub(crate) struct Trace {
    span: Mutex<Span>,
    has_run: AtomicBool,
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            span: Mutex::new(Span::none()),
            has_run: AtomicBool::new(false),
        }
    }
}

impl Trace {
    pub(crate) fn begin(&self, span: Span) {
        *self.span.lock() = span;
    }

    pub(crate) fn span(&self) -> Span {
        self.span.lock().clone()
    }

    /// Returns whether nothing of it was sent to a kernel before.
    pub(crate) fn is_first_run(&self) -> bool {
        !self.has_run.swap(true, Ordering::Relaxed)
    }

    /// The span of a run that is sent to a kernel now.
    pub(crate) fn run(&self, kernel_id: &str) -> Span {
        let span = self.span();
        if span.is_disabled() {
            return Span::none();
        }
        tracing::debug_span!(
            parent: &span,
            "kernel",
            otel.name = "execute_request",
            otel.kind = "client",
            jmg.kernel.id = kernel_id,
            jmg.execution.status = field::Empty,
            error.type = field::Empty,
            otel.status_code = field::Empty,
        )
    }

    /// Ends the span, whoever still looks at the execution.
    pub(crate) fn end(&self, status: ExecutionStatus) {
        record_status(&std::mem::replace(&mut *self.span.lock(), Span::none()), status);
    }
}

/// Records in a span how its work ended.
pub(crate) fn record_status(span: &Span, status: ExecutionStatus) {
    if span.is_disabled() {
        return;
    }
    span.record("jmg.execution.status", status.as_str());
    match status {
        ExecutionStatus::Failed | ExecutionStatus::Cancelled | ExecutionStatus::Lost => {
            span.record("error.type", status.as_str());
            span.record("otel.status_code", "error");
        }
        ExecutionStatus::Queued
        | ExecutionStatus::Running
        | ExecutionStatus::InputRequired
        | ExecutionStatus::Completed => {}
    }
}
