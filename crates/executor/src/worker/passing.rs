//! What passes from one process of the gateway to the next: runs that this one leaves behind, or takes up.

use std::{
    fmt::Display,
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::FutureExt;
use jupyter_client::kernel::KernelEvent;
use live_document::{
    RoomKind,
    pool::{Lease, PoolError},
};
use store::ExecutionStatus;
use tokio::time::{Instant, sleep, timeout};

use super::{Place, Worker};
use crate::{
    ExecutionError,
    actor::Reason,
    job::{Execution, Question},
    kernel::{Found, Kernel},
    piece::Piece,
};

/// How long a server that cannot be reached is waited for when the gateway returns to what runs there.
const RETURNS_WITHIN: Duration = Duration::from_secs(60);
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_millis(2500);
/// How long a kernel may take to shut down when the gateway leaves it.
const SHUTS_DOWN_WITHIN: Duration = Duration::from_secs(10);

impl Worker {
    /// Returns to the kernel of an earlier process and to the piece that ran there.
    pub(super) fn resume(&mut self, execution: Arc<Execution>) {
        let Some((step, msg_id, kernel_id, session)) = execution.resumable() else {
            execution.end_rest(
                ExecutionStatus::Cancelled,
                Some("the gateway restarted before this ran".to_owned()),
            );
            self.finish(&execution);
            return;
        };
        let piece = Piece::resume(Arc::clone(&execution), step, msg_id);
        let (server, pool, account) = (
            Arc::clone(&self.server),
            Arc::clone(&self.shared.pool),
            execution.owner.account(),
        );
        let path = self.path().filter(|_| piece.is_shown());
        let returning = async move {
            let until = Instant::now() + RETURNS_WITHIN;
            // The room comes first, so that what the kernel says follows what the notebook shows already.
            let room = match &path {
                Some(path) => {
                    let lease = || pool.lease(&server, path, RoomKind::Notebook, &account);
                    match persist(until, lease, PoolError::may_pass).await {
                        // What it puts out could be shown nowhere, now or after the next start.
                        Err(error) if error.is_excess() => return Err(ExecutionError::Document(error)),
                        lease => lease.ok(),
                    }
                }
                None => None,
            };
            let connect = || Kernel::return_to(&server, &kernel_id, &session);
            let kernel = persist(until, connect, ExecutionError::may_pass).await?;
            Ok(Found::Earlier(kernel, room))
        };
        self.queue.push_front(execution);
        self.active = Some(piece);
        self.finding = Some(returning.boxed());
    }

    /// Goes on where an earlier process was.
    pub(super) async fn returned(&mut self, kernel: Kernel, lease: Option<Lease>) {
        self.kernel = Some(kernel);
        self.lease = lease.or(self.lease.take());
        let room = self.room();
        if let (Some(active), Some(room)) = (&mut self.active, &room) {
            active.adopt(room);
        }
        self.ask_again();
        // Nobody could be told to interrupt it before.
        if self
            .active
            .as_ref()
            .is_some_and(|active| active.execution.is_unwanted())
        {
            self.interrupt();
        }
        self.doubt_outputs().await;
        // It may have ended meanwhile.
        self.raise_barrier("the gateway restarted, so it is unknown how the run ended")
            .await;
    }

    /// Notes that something which the run put out may not have been heard; where that is because the gateway was down,
    /// its cell says so too.
    pub(super) fn mark_gap(&mut self) {
        let Some(active) = &mut self.active else { return };
        let execution = Arc::clone(&active.execution);
        let Some(since) = execution.last_noted.filter(|_| active.resumed) else {
            return execution.may_miss_output();
        };
        if std::mem::replace(&mut active.is_gap_marked, true) {
            return;
        }
        let (since, until) = (clock(since), clock(SystemTime::now()));
        let lost = format!("output between {since} and {until} UTC may be lost: the gateway was down");
        active.say(&format!("[jupyter-mcp-gateway: {lost}]\n"));
        execution.add_remark(lost);
    }

    /// Puts the question again that an earlier process heard, now that the answer can be passed on.
    fn ask_again(&mut self) {
        let Some(active) = &mut self.active else { return };
        let Some(open) = active.execution.open_question() else {
            return;
        };
        let question = Question {
            prompt: open.prompt,
            password: open.password,
            number: 0,
        };
        let asked_at = open.asked_at.unwrap_or_else(SystemTime::now);
        active.execution.asks(active.step, question, &open.header, asked_at);
        active.set_question(open.header, asked_at);
    }

    /// Closes what the worker had open. A kernel that served only the gateway is shut down, unless something runs in
    /// it that the next process is to take up.
    pub(super) async fn leave(mut self) {
        // The next process begins nothing of what waits.
        for execution in &self.queue {
            self.unshow_queue(execution, true);
            self.shared.note(execution);
        }
        let Some(mut kernel) = self.kernel.take() else { return };
        kernel.link.close();
        // What the kernel said before it heard of the closing will not be said again.
        while let Some(event) = kernel.events.recv().await {
            if let KernelEvent::Message(message) = event {
                self.hear(message).await;
            }
        }
        self.flush_unwritten();
        if let Some(active) = &self.active {
            self.shared.note_outputs(&active.execution);
            return;
        }
        let ours = matches!(self.place, Place::Scratch { .. })
            || kernel.started && self.shared.settings.shutdown_started_kernels;
        if self.successor.is_some() {
            // The worker of the notebook's new path has taken it over.
        } else if ours {
            let unused = Reason::new("your kernel was shut down after it had not been used for a while");
            self.shared.history.on_ended(kernel.link.kernel_id(), &unused);
            let shut_down = self.server.shutdown_kernel(kernel.link.kernel_id());
            let _ = timeout(SHUTS_DOWN_WITHIN, shut_down).await;
        } else if let Some(path) = self.path().filter(|_| kernel.started) {
            // Somebody may have given the notebook another one.
            let retired = async {
                match self.server.session_of(&path).await {
                    Ok(Some(session)) if session.kernel.id != kernel.link.kernel_id() => {
                        self.server.retire_kernel(kernel.link.kernel_id(), &path).await;
                    }
                    _ => {}
                }
            };
            let _ = timeout(SHUTS_DOWN_WITHIN, retired).await;
        }
    }
}

/// The time of day.
fn clock(time: SystemTime) -> String {
    let time = humantime::format_rfc3339_seconds(time).to_string();
    let (_, clock) = time.split_once('T').unwrap_or_default();
    clock.trim_end_matches('Z').to_owned()
}

/// Tries again what failed for a reason that may pass, until then.
async fn persist<T, E, F>(until: Instant, mut attempt: impl FnMut() -> F, may_pass: impl Fn(&E) -> bool) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    let mut backoff = FIRST_BACKOFF;
    loop {
        match attempt().await {
            Err(error) if may_pass(&error) && Instant::now() < until => {
                tracing::debug!(%error, "the gateway cannot return to a run yet");
            }
            result => return result,
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_may_pass_is_tried_until_it_does_but_not_for_ever() {
        let until = Instant::now() + FIRST_BACKOFF;
        let mut failures = 2;
        let attempt = || {
            failures -= 1;
            std::future::ready(if failures > 0 { Err("down") } else { Ok(()) })
        };
        assert_eq!(persist(until, attempt, |_| true).await, Ok(()));
        let always = |error: &'static str| move || std::future::ready(Err::<(), _>(error));
        assert_eq!(persist(until, always("down"), |_| true).await, Err("down"));
        let until = Instant::now() + RETURNS_WITHIN;
        let refused = persist(until, always("gone"), |_| false);
        assert_eq!(timeout(FIRST_BACKOFF, refused).await, Ok(Err("gone")), "at once");
    }
}
