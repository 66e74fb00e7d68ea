//! Inputs and effects of the core: everything that can happen to it, and everything that it can want done.

use std::{sync::Arc, time::SystemTime};

use jupyter_client::{JupyterError, RunningKernel, kernel::Message};
use live_document::Activity;
use serde_json::Value;
use tokio::{sync::oneshot, time::Instant};

use super::{
    actor::{Actor, Reason},
    execution::Execution,
};
use crate::ExecutionError;

/// The time at which something happens, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    /// For records.
    pub(crate) time: SystemTime,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self {
            at: Instant::now(),
            time: SystemTime::now(),
        }
    }
}

/// Input to the core: something that happened.
pub(crate) enum Input {
    // Commands.
    Execute(Arc<Execution>),
    /// Takes up an execution that an earlier process began.
    Resume(Arc<Execution>),
    Cancel(Arc<Execution>),
    Answer {
        execution: Arc<Execution>,
        value: String,
        /// Number of the question that is answered, if it is known.
        number: Option<usize>,
        reply: Reply,
    },
    /// Somebody interrupts the kernel, so that the run that ends now did not fail by itself. One that the kernel has
    /// not begun with is interrupted when it does, and one that waits for the kernel does not run.
    Interrupted(Actor),
    /// The notebook's kernel is to be replaced or restarted.
    LeaveKernel(Reason),
    /// The gateway stops, or nothing was requested for a while.
    Stop,
    /// All messages of the kernel from before it was left have been given.
    Drained,

    // Kernels.
    KernelFound(Result<FoundKernel, ExecutionError>),
    Message(Message),
    ConnectionLost,
    ConnectionRestored,
    KernelGone(String),
    /// Somebody started a kernel, which may be one for this notebook.
    KernelsChanged(Instant),
    /// The server's answer about the kernel.
    ServerAnswered(Result<Option<RunningKernel>, JupyterError>),
    /// Number of clients connected to the kernel, if the server tells.
    Listeners(Option<i64>),
    /// A request could not be sent, and never will be.
    NotSent {
        msg_id: String,
        error: String,
    },
    /// The kernel has the answer to a question.
    AnswerSent {
        execution: Arc<Execution>,
        value: String,
        reply: Reply,
    },

    // Documents.
    /// The edits of the next cell's owner are on disk, except for these paths, and this is the cell's code.
    Prepared {
        execution: Arc<Execution>,
        unsaved: Vec<String>,
        code: Result<Code, Obstacle>,
    },
    Written(RunId),
    /// Earlier writes of the document have not been sent yet.
    WriteDelayed(RunId),
    /// Something of a run is missing in the document.
    WriteWanted(RunId),
    /// Outcome of sending the end of a run to the server.
    EndArrived {
        run: RunId,
        arrived: bool,
    },
    /// The end of a run was to be written again.
    EndRewritten {
        run: RunId,
        result: Rewritten,
    },

    /// The copy that an execution ran is kept, or cannot be.
    CopyKept(Arc<Execution>),

    /// A time has come that [`super::Core::timer`] named.
    Tick,
}

/// Effect of an input: something that the driver is to do.
pub(crate) enum Effect {
    // To the kernel.
    FindKernel,
    /// Connects to the kernel of an earlier process, and opens the notebook first.
    ReturnToKernel {
        execution: Arc<Execution>,
        kernel_id: String,
        session: String,
    },
    /// Closes the connection.
    DropKernel,
    /// Stops looking for a kernel.
    AbandonLookup,
    Execute {
        execution: Arc<Execution>,
        msg_id: String,
        code: String,
        /// True if the record already has it as sent. Otherwise it is recorded before.
        is_recorded: bool,
    },
    KernelInfo {
        msg_id: String,
    },
    SendAnswer {
        execution: Arc<Execution>,
        header: Value,
        value: String,
        reply: Reply,
    },
    CommMsg(Value),
    Interrupt,
    RenewConnection,
    /// Asks the server about the kernel.
    AskServer,
    /// Asks the server who listens to the kernel, whose messages wait meanwhile.
    AskListeners,
    /// Ends a kernel that the notebook does not have any more, if the gateway started it and nobody else uses it.
    RetireKernel {
        kernel_id: String,
    },
    /// Ends a kernel that served only the gateway.
    ShutDownKernel {
        kernel_id: String,
    },
    /// Ends a kernel that the gateway started, if somebody gave the notebook another one.
    RetireIfReplaced {
        kernel_id: String,
    },

    // To the document.
    /// Saves what the owner edited on this server, and reads the code of a cell.
    Prepare {
        execution: Arc<Execution>,
        position: usize,
    },
    /// Adopts the outputs that an earlier process wrote as those of the run.
    AdoptWritten(Written),
    /// Writes new outputs; not while earlier writes have not been sent, if that can wait.
    Write {
        run: Written,
        can_wait: bool,
    },
    WriteEnd {
        run: Written,
        attempts: u32,
    },
    RewriteEnd(Written),
    /// Waits for the end that was written again to arrive.
    AwaitEnd {
        run: RunId,
        attempts: u32,
    },
    /// Tells that nothing more of a run will be written.
    Forget(RunId),
    MarkQueued(Arc<Execution>, Vec<String>),
    /// Shows cells as they were before that will not run, or all that are shown as queued.
    UnmarkQueued {
        execution: Arc<Execution>,
        all: bool,
    },
    /// Shows people whose cells run and wait.
    ShowPresence(Vec<(Arc<Execution>, Activity)>),
    HidePresence(Arc<str>),

    // To the store, and to others.
    Record(Arc<Execution>),
    /// Also keeps the outputs so far, for the next process.
    RecordOutputs(Arc<Execution>),
    /// Writes the copy that an execution ran to where it is to be kept.
    KeepCopy(Arc<Execution>),
    /// The execution has ended.
    Finish(Arc<Execution>),
    /// A process of the kernel, as it names itself, has picked up a run.
    PickedUp {
        execution: Arc<Execution>,
        process: String,
    },
    /// The kernel, or its process, has ended.
    KernelEnded {
        kernel_id: String,
        reason: Reason,
    },
    Answered(Reply, Result<(), ExecutionError>),
}

/// Channel to the caller who answered a question.
pub(crate) type Reply = oneshot::Sender<Result<(), ExecutionError>>;

/// A run by its message id.
pub(crate) type RunId = String;

/// A run whose outputs are written: where they are, and under which id its cell's writer is known.
#[derive(Clone)]
pub(crate) struct Written {
    pub(crate) run: RunId,
    pub(crate) execution: Arc<Execution>,
    pub(crate) position: usize,
}

/// Result of looking for a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FoundKernel {
    /// The one that is connected is still the notebook's.
    Same,
    Other(KernelInfo),
    /// The one that an earlier process ran something in.
    Earlier(KernelInfo),
}

/// A kernel that was just connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelInfo {
    pub(crate) id: String,
    /// Of the connection.
    pub(crate) session: String,
    /// The gateway started it.
    pub(crate) started: bool,
    /// It is busy.
    pub(crate) busy: bool,
}

/// The code of a cell, just before it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) source: String,
    /// The count that its cell shows.
    pub(crate) replaces: Option<i64>,
}

/// Reason why a cell cannot run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    NotebookGone,
    CellGone,
    NotCode,
    /// The gate of its execution does not let the code through.
    NotAllowed,
}

/// Result of writing the end of a run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rewritten {
    /// It is on its way.
    Written,
    /// There was nothing to write, or nowhere to write it to for now.
    NotWritten,
    /// The notebook or the cell was deleted.
    Never,
}
