//! Waiting times, intervals and limits of running code, each with its reason. Whatever waits, retries or gives up in this
//! crate takes its numbers from here.

use std::time::Duration;

/// Commands that wait for a driver; more wait with their callers.
pub(crate) const MAX_COMMANDS: usize = 64;

/// How long showing cells as queued waits for a disk that is slow to record it.
pub(crate) const RECORDED_WITHIN: Duration = Duration::from_millis(250);

/// How long sending code waits for a disk that is slow to record it.
pub(crate) const SENDING_RECORDED_WITHIN: Duration = Duration::from_millis(500);
/// How often an execution is recorded while its cells follow each other quickly, but for...
pub(crate) const RECORD_INTERVAL: Duration = Duration::from_millis(250);
/// ...so many records that are written because cells are about to be sent. One of no more cells is recorded with each.
pub(crate) const RECORDS_OF_ALL_CELLS: usize = 64;

// Kernels.

/// How long a kernel may say nothing of what it is at before the server is asked about it.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);
/// By then a kernel's process has said that it starts. Some say so from another thread than the one that runs code, and so after
/// the first run has begun.
pub(crate) const STARTS_WITHIN: Duration = Duration::from_secs(5);
/// How long a notebook is trusted to have the kernel that it had. One that is shut down says so itself.
pub(crate) const KERNEL_TRUSTED: Duration = Duration::from_secs(10);
/// How long after somebody started a kernel a notebook may come to have it: JupyterLab says which notebook a kernel is for
/// only some time after it was started.
pub(crate) const KERNEL_UNSETTLED: Duration = Duration::from_secs(15);
/// How long a server may take to say which notebook is at a path; one that takes longer has it known by its path.
pub(crate) const IDENTIFIED_WITHIN: Duration = Duration::from_secs(2);
/// How far apart two starts of kernels must be to be told from one whose age was measured twice.
pub(crate) const KERNELS_CHANGED_APART: Duration = Duration::from_millis(10);
/// The pauses between questions to a new process whether it is heard, which double.
pub(crate) const PROBE_FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const PROBE_MAX_PAUSE: Duration = Duration::from_secs(5);
/// A process that was not heard after such a pause may be behind a connection that leads nowhere any more.
pub(crate) const PROBE_RENEWS_AFTER: Duration = Duration::from_secs(2);
/// Requests that a kernel says to be at. It is at one or two; one that never says that it is done must not make this grow.
pub(crate) const MAX_OPEN_REQUESTS: usize = 16;
/// How long Jupyter may take to say who else listens to a kernel; what the kernel says waits meanwhile.
pub(crate) const LISTENERS_WITHIN: Duration = Duration::from_secs(2);
/// How long it may take to end a kernel that the notebook does not have any more, for which what comes next waits.
pub(crate) const RETIRES_WITHIN: Duration = Duration::from_secs(5);
/// How long a kernel may take to shut down when the gateway leaves it.
pub(crate) const SHUTS_DOWN_WITHIN: Duration = Duration::from_secs(10);
/// How long it may take from somebody's asking for an interrupt until what it hits has ended.
pub(crate) const INTERRUPTS_WITHIN: Duration = Duration::from_secs(10);
/// A request that the kernel drops because another client's failed is sent again, but not for ever.
pub(crate) const MAX_REPEATS: u32 = 5;

// Questions of running code.

/// How long the kernel must have put out nothing before its question is shown. Questions and outputs come by different
/// sockets, and what was printed before a question should be read before it.
pub(crate) const QUESTION_AFTER_QUIET: Duration = Duration::from_millis(20);
/// How long code that goes on printing, from a thread of its own, can put off its question.
pub(crate) const QUESTION_AT_LATEST: Duration = Duration::from_millis(100);

// Outputs on their way into a notebook, or into the store.

/// A chatty cell is written to the shared document at most this often.
pub(crate) const WRITE_INTERVAL: Duration = Duration::from_millis(50);
/// How often it is looked whether what was written before has been sent to a server with much to do.
pub(crate) const BUSY_ROOM_INTERVAL: Duration = Duration::from_millis(25);
/// Runs that are over before a person could notice are shown once, with their end: each change of a notebook costs Jupyter
/// about as much as running a small cell.
pub(crate) const UNNOTICED: Duration = Duration::from_millis(50);
/// How long the kernel may take to pick up a cell before people see that it is to run.
pub(crate) const PICKED_UP_WITHIN: Duration = Duration::from_millis(250);
/// How long the end of a cell may take to follow its result.
pub(crate) const END_FOLLOWS_RESULT: Duration = Duration::from_millis(5);
/// Outputs that no notebook shows are stored as often as they change while they are small, and then less often.
pub(crate) const STORE_INTERVAL: Duration = Duration::from_secs(1);
pub(crate) const SMALL_OUTPUTS: usize = 64 * 1024;
/// How long the end of a run may take to reach the server before it is written once more.
pub(crate) const END_ARRIVES_WITHIN: Duration = Duration::from_secs(30);
/// A server that loses the end of a run this often will not keep it.
pub(crate) const MAX_REWRITES: u32 = 5;
/// A server that cannot be written to is tried for some minutes.
pub(crate) const MAX_ATTEMPTS: u32 = 20;
pub(crate) const REWRITE_FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const REWRITE_MAX_PAUSE: Duration = Duration::from_secs(30);
/// Cells that ran and may still be changed by the kernel: displays that are updated, threads that print.
pub(crate) const MAX_RECENT: usize = 1024;
pub(crate) const MAX_RECENT_BYTES: usize = 32 * 1024 * 1024;
/// Bytes that may be retained of one principal's runs, in all notebooks together.
pub(crate) const MAX_RETAINED_BYTES: usize = 64 * 1024 * 1024;
/// What is stored of the outputs of one execution, so that it can be asked for after it is forgotten here.
pub(crate) const MAX_STORED_OUTPUT_BYTES: usize = 1024 * 1024;

// What people see.

/// How often an agent whose cell puts nothing out is shown to people.
pub(crate) const PRESENCE_INTERVAL: Duration = Duration::from_secs(10);
/// How long a cell may wait before people see it. Each change of a notebook costs Jupyter about as much as running a small
/// cell, and with many callers of one notebook most wait for some tenths of a second and are over then.
pub(crate) const QUEUE_UNNOTICED: Duration = Duration::from_millis(500);

// From one process of the gateway to the next.

/// How long a call that comes right after the start waits for what earlier processes left behind.
pub(crate) const SETTLES_WITHIN: Duration = Duration::from_secs(10);
/// How long a server that cannot be reached is waited for when the gateway returns to what runs there.
pub(crate) const RETURNS_WITHIN: Duration = Duration::from_secs(60);
pub(crate) const RETURN_FIRST_BACKOFF: Duration = Duration::from_millis(100);
pub(crate) const RETURN_MAX_BACKOFF: Duration = Duration::from_millis(2500);
/// When kernels that nobody uses any more are looked for: Jupyter may take a moment to notice that the gateway that used
/// them is gone.
pub(crate) const ORPHAN_CHECKS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30)];

// Admission.

/// Executions of one principal that may wait, and the code that they may hold.
pub(crate) const MAX_WAITING: usize = 100;
pub(crate) const MAX_WAITING_BYTES: usize = 32 * 1024 * 1024;

/// The pause before the end of a run is written again, after so many attempts.
pub(crate) fn rewrite_pause(attempts: u32) -> Duration {
    let pause = REWRITE_FIRST_PAUSE.saturating_mul(1 << attempts.min(8));
    pause.min(REWRITE_MAX_PAUSE)
}
