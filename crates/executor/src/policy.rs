//! Waiting times, intervals and limits of running code, each with its reason. Whatever waits, retries or gives up in this
//! crate takes its numbers from here.

use std::time::Duration;

/// Commands that wait for a driver; more wait with their callers.
pub(crate) const MAX_COMMANDS: usize = 64;

/// Longest wait for a slow disk to record cells before they are shown as queued.
pub(crate) const RECORD_TIMEOUT: Duration = Duration::from_millis(250);

/// Longest time that sending code waits for its record on a slow disk.
pub(crate) const SENDING_RECORDED_WITHIN: Duration = Duration::from_millis(500);
/// Interval between records of an execution whose cells follow each other quickly, except for...
pub(crate) const RECORD_INTERVAL: Duration = Duration::from_millis(250);
/// ...so many records that are written because cells are about to be sent. One of no more cells is recorded with each.
pub(crate) const RECORDS_OF_ALL_CELLS: usize = 64;

// Kernels.

/// Time without a message from a busy kernel after which the server is asked about it.
pub(crate) const QUIET_LIMIT: Duration = Duration::from_secs(5);
/// Time within which a kernel's process says that it starts. Some say so from another thread than the one that runs code, and so after
/// the first run has begun.
pub(crate) const STARTING_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which a notebook is trusted to still have its kernel. One that is shut down says so itself.
pub(crate) const KERNEL_TRUSTED: Duration = Duration::from_secs(10);
/// Time after the start of a kernel in which a notebook may be assigned to it: JupyterLab says which notebook a
/// kernel is for only some time after starting it.
pub(crate) const KERNEL_UNSETTLED: Duration = Duration::from_secs(15);
/// Whoever runs code in so many notebooks within `FILE_TRUSTED` has files looked at no more often than that.
pub(crate) const MANY_NOTEBOOKS: usize = 8;
/// Jupyter looks at the files of open documents so often by itself. Asking for each before each of many runs would take it
/// as long as running them.
pub(crate) const FILE_TRUSTED: Duration = Duration::from_secs(1);
/// Time limit for asking a server which notebook is at a path; after that, the notebook is known by its path.
pub(crate) const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(2);
/// Shortest distance between two starts of kernels; closer ones are one start whose age was measured twice.
pub(crate) const KERNEL_START_RESOLUTION: Duration = Duration::from_millis(10);
/// The pauses between questions to a new process whether it is heard, which double.
pub(crate) const PROBE_FIRST_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const PROBE_MAX_PAUSE: Duration = Duration::from_secs(5);
/// A process that was not heard after such a pause may be behind a connection that leads nowhere any more.
pub(crate) const PROBE_RENEWS_AFTER: Duration = Duration::from_secs(2);
/// Requests that a kernel says to be at. It is at one or two; one that never says that it is done must not make this grow.
pub(crate) const MAX_OPEN_REQUESTS: usize = 16;
/// Time limit for asking Jupyter who else listens to a kernel; the kernel's messages wait meanwhile.
pub(crate) const LISTENERS_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for shutting down a kernel that the notebook does not have any more, while the next run waits.
pub(crate) const KERNEL_RETIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for a kernel to shut down when the gateway leaves it.
pub(crate) const KERNEL_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time between a request to interrupt and the end of the run that it hits.
pub(crate) const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(10);
/// A request that the kernel drops because another client's failed is sent again, but not for ever.
pub(crate) const MAX_REPEATS: u32 = 5;

// Questions of running code.

/// Time without outputs before a question is shown. Questions and outputs come by different sockets, and what was
/// printed before a question should be read before it.
pub(crate) const QUESTION_AFTER_QUIET: Duration = Duration::from_millis(20);
/// Longest delay of a question while code goes on printing from another thread.
pub(crate) const QUESTION_AT_LATEST: Duration = Duration::from_millis(100);

// Outputs on their way into a notebook, or into the store.

/// A chatty cell is written to the shared document at most this often.
pub(crate) const WRITE_INTERVAL: Duration = Duration::from_millis(50);
/// Interval between checks whether earlier writes have been sent to a busy server.
pub(crate) const BUSY_ROOM_INTERVAL: Duration = Duration::from_millis(25);
/// Runs that are over before a person could notice are shown once, with their end: each change of a notebook costs Jupyter
/// about as much as running a small cell.
pub(crate) const RUN_SHOWN_AFTER: Duration = Duration::from_millis(50);
/// Time within which a kernel may pick up a cell before people see the cell as queued.
pub(crate) const PICK_UP_SHOWN_AFTER: Duration = Duration::from_millis(250);
/// Longest delay between the result of a cell and its end.
pub(crate) const END_FOLLOWS_RESULT: Duration = Duration::from_millis(5);
/// Outputs that no notebook shows are stored as often as they change while they are small, and then less often.
pub(crate) const STORE_INTERVAL: Duration = Duration::from_secs(1);
pub(crate) const SMALL_OUTPUTS: usize = 64 * 1024;
/// Time limit for the end of a run to reach the server before it is written once more.
pub(crate) const END_ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(30);
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
/// Upper bound of the stored outputs of one execution, for callers that ask after it is forgotten here.
pub(crate) const MAX_STORED_OUTPUT_BYTES: usize = 1024 * 1024;

// What people see.

/// Interval at which people are shown an agent whose cell has no output.
pub(crate) const PRESENCE_INTERVAL: Duration = Duration::from_secs(10);
/// Time for which a cell may wait before people see it as queued. Each change of a notebook costs Jupyter about as
/// much as running a small cell, and with many callers of one notebook most cells wait only some tenths of a second.
pub(crate) const QUEUED_SHOWN_AFTER: Duration = Duration::from_millis(500);

// From one process of the gateway to the next.

/// Longest wait of a call right after the start for executions of earlier processes to be resumed.
pub(crate) const RECOVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for reaching a server when the gateway resumes what runs there.
pub(crate) const SERVER_RETURN_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for which what an earlier process left on a server of a user waits for the user, who brings the credentials. A kernel
/// that runs on over a holiday is found again; after that nobody asks how it ended.
pub(crate) const UNCLAIMED_KEPT: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Time between looks for what waited too long.
pub(crate) const UNCLAIMED_INTERVAL: Duration = Duration::from_secs(60 * 60);
pub(crate) const RETURN_FIRST_BACKOFF: Duration = Duration::from_millis(100);
pub(crate) const RETURN_MAX_BACKOFF: Duration = Duration::from_millis(2500);
/// Times of the checks for orphan kernels: Jupyter may take a moment to notice that the gateway that used them is
/// gone.
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
