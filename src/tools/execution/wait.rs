//! Waiting for an execution on behalf of a client, which gets progress and questions, and may leave.

use std::{sync::Arc, time::Duration};

use executor::{Engine, Execution, Question};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use store::ExecutionStatus;
use tokio::time::{Instant, interval_at, sleep_until};
use tokio_util::task::TaskTracker;
use tracing::Span;

use crate::tools::{Call, ToolError, client::ClientReply};

/// Interval between progress notices of new output.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Interval between progress notices when there is no output: proxies close silent connections.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The longest that one call may wait.
const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);

// Treatment of an execution when the connection that waits for it is lost. Not a doc comment, which would be
// repeated in the schema of every tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum Disconnect {
    #[default]
    Continue,
    Interrupt,
}

/// The duration that a call wants to wait. A client that knows tasks gets one for whatever takes longer.
pub(in crate::tools) fn wait_duration(
    call: &Call,
    argument: &str,
    seconds: Option<f64>,
) -> Result<Duration, ToolError> {
    let Some(seconds) = seconds else {
        let settings = call.engine().settings();
        return Ok(match call.client().knows_tasks() {
            true => settings.default_wait.min(settings.task_after),
            false => settings.default_wait,
        });
    };
    Duration::try_from_secs_f64(seconds.min(MAX_WAIT.as_secs_f64()))
        .map_err(|_| ToolError::argument(argument, format!("{seconds} is not a number of seconds, 0 or more")))
}

/// Waits until the execution has ended, or asks what this client cannot be asked, or the time to wait is over, or the
/// gateway leaves, after which another one knows the execution by its id.
pub(in crate::tools) async fn wait(
    call: &Call,
    execution: &Arc<Execution>,
    max_wait: Duration,
    disconnect: Disconnect,
) {
    // The call may be another one than that which asked for the execution.
    Span::current().follows_from(execution.span());
    let deadline = Instant::now() + max_wait;
    let mut changes = execution.changes();
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    let wants_progress = call.client().follows();
    // What comes first is told at once, what follows closely is gathered.
    let mut last_progress: Option<Instant> = None;
    let mut has_news = false;
    // The last question that was asked; what comes of it takes a moment.
    let mut handled = None;
    let mut pending: Option<PendingQuestion> = None;
    let mut on_drop = CancelOnDrop {
        engine: Arc::clone(call.engine()),
        execution: Arc::clone(execution),
        background: call.background().clone(),
        cancels: disconnect == Disconnect::Interrupt,
    };
    let gone = call.client().left();
    tokio::pin!(gone);
    loop {
        let status = execution.status();
        if status.is_finished() {
            break;
        }
        let question = execution
            .question()
            .filter(|question| status == ExecutionStatus::InputRequired && Some(question.number) != handled);
        match question {
            Some(question)
                if pending
                    .as_ref()
                    .is_some_and(|pending| pending.number == question.number) => {}
            // One that somebody else has answered is not waited for any longer.
            question => pending = question.map(|question| PendingQuestion::new(call, question)),
        }
        let next_progress = last_progress.map_or_else(Instant::now, |last| last + PROGRESS_INTERVAL);
        tokio::select! {
            Some((number, reply)) = async { Some(pending.as_mut()?.reply().await) }, if pending.is_some() => {
                pending = None;
                match reply {
                    ClientReply::Answered(value) => {
                        // A question that is gone meanwhile needs no answer.
                        let _ = call.engine().answer(execution, value, Some(number)).await;
                    }
                    ClientReply::Declined => call.engine().decline(execution).await,
                    ClientReply::Unable => break,
                }
                handled = Some(number);
            }
            _ = changes.changed() => has_news = true,
            () = sleep_until(next_progress), if wants_progress && has_news => {
                send_progress(call, execution).await;
                (last_progress, has_news) = (Some(Instant::now()), false);
            }
            _ = heartbeat.tick(), if wants_progress => send_progress(call, execution).await,
            () = sleep_until(deadline) => break,
            () = call.last_call() => break,
            () = &mut gone, if on_drop.cancels => {
                // Whoever still comes back finds how it ended.
                on_drop.cancels = false;
                call.engine().cancel(execution).await;
            }
            () = call.client().cancelled() => {
                if call.client().takes_back() {
                    on_drop.cancels = true;
                }
                return;
            }
        }
    }
    on_drop.cancels = false;
}

/// Question that the client's user has not answered yet.
struct PendingQuestion {
    number: usize,
    reply: BoxFuture<'static, ClientReply>,
}

impl PendingQuestion {
    fn new(call: &Call, question: Question) -> Self {
        let client = Arc::clone(call.client());
        Self {
            number: question.number,
            reply: Box::pin(async move { client.ask(&question).await }),
        }
    }

    async fn reply(&mut self) -> (usize, ClientReply) {
        (self.number, (&mut self.reply).await)
    }
}

async fn send_progress(call: &Call, execution: &Execution) {
    let (ended, all) = execution.progress();
    let latest = execution.latest_line().unwrap_or_else(|| "running".to_owned());
    let message = match all {
        1 => latest,
        _ => format!("{ended} of {all} cells done; {latest}"),
    };
    call.client().progress(&message).await;
}

/// Guard that cancels an execution when its caller goes away in whatever manner, if the caller asked for that.
struct CancelOnDrop {
    engine: Arc<Engine>,
    execution: Arc<Execution>,
    background: TaskTracker,
    cancels: bool,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if self.cancels && !self.execution.status().is_finished() {
            let (engine, execution) = (Arc::clone(&self.engine), Arc::clone(&self.execution));
            self.background.spawn(async move { engine.cancel(&execution).await });
        }
    }
}
