//! Executions that outlive their callers: the gateway owns them, not the call that asked for them. One queue per
//! notebook, one driver behind it; whoever is interested waits for as long as they like.
//!
//! | module | what it owns |
//! | --- | --- |
//! | `engine` | the public face: what is admitted, found, moved and recovered; one driver per queue |
//! | `driver` | one task per queue: the connection to its kernel, the lease of its room, its timers |
//! | `observer` | what those are told who measure executions |
//! | `core` | the state machine of a queue, its kernel, its runs and their outputs; no I/O, no clock |
//! | `policy` | all waiting times and limits, with their reasons |

mod core;
mod driver;
mod engine;
mod error;
mod observer;
mod policy;

pub use core::{
    actor::Actor,
    execution::{CellSnapshot, CopiedCell, Execution, Keep, NotebookCopy, Owner, Question, Snapshot},
};
pub use engine::{Claim, Engine, EngineSettings};
pub use error::ExecutionError;
pub use observer::{AdmittedExecution, ExecutionCounts, ExecutionObserver};
pub use store::{NotebookRuns, RunsByNotebook};
