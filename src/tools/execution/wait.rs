//! Waiting for an execution on behalf of a client, which is told how far it is, asked what it asks, and may leave.

use std::{sync::Arc, time::Duration};

use executor::{Engine, Execution, Question};
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use store::ExecutionStatus;
use tokio::time::{Instant, interval_at, sleep_until};

use crate::tools::{Call, ToolError, client::Reply};

/// How often a client is told of new output.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// How often a client is told that it goes on, when there is no output: proxies close silent connections.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The longest that one call may wait.
const MAX_PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// A client that knows tasks gets one for whatever takes longer, unless it said how long to wait.
const TASK_PATIENCE: Duration = Duration::from_secs(1);

// What happens to an execution when the connection that waits for it is lost. Not a doc comment, which would be
// repeated in the schema of every tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum Disconnect {
    #[default]
    Continue,
    Interrupt,
}

/// The seconds that a call wants to wait.
pub(in crate::tools) fn patience(call: &Call, argument: &str, seconds: Option<f64>) -> Result<Duration, ToolError> {
    let Some(seconds) = seconds else {
        let default = call.engine().settings().default_wait;
        return Ok(match call.client().knows_tasks() {
            true => default.min(TASK_PATIENCE),
            false => default,
        });
    };
    Duration::try_from_secs_f64(seconds.min(MAX_PATIENCE.as_secs_f64()))
        .map_err(|_| ToolError::argument(argument, format!("{seconds} is not a number of seconds, 0 or more")))
}

/// Waits until the execution has ended, or asks what this client cannot be asked, or patience has run out, or the
/// gateway leaves, after which another one knows the execution by its id.
pub(in crate::tools) async fn wait(
    call: &Call,
    execution: &Arc<Execution>,
    patience: Duration,
    disconnect: Disconnect,
) {
    let deadline = Instant::now() + patience;
    let mut changes = execution.changes();
    let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
    let follows = call.client().follows();
    // What comes first is told at once, what follows closely is gathered.
    let mut told: Option<Instant> = None;
    let mut untold = false;
    // The last question that was asked; what comes of it takes a moment.
    let mut dealt_with = None;
    let mut asking: Option<Asking> = None;
    let mut left = LeftBehind {
        engine: Arc::clone(call.engine()),
        execution: Arc::clone(execution),
        interrupts: disconnect == Disconnect::Interrupt,
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
            .filter(|question| status == ExecutionStatus::InputRequired && Some(question.number) != dealt_with);
        match question {
            Some(question) if asking.as_ref().is_some_and(|asking| asking.number == question.number) => {}
            // One that somebody else has answered is not waited for any longer.
            question => asking = question.map(|question| Asking::new(call, question)),
        }
        let tells_at = told.map_or_else(Instant::now, |last| last + PROGRESS_INTERVAL);
        tokio::select! {
            Some((number, reply)) = async { Some(asking.as_mut()?.reply().await) }, if asking.is_some() => {
                asking = None;
                match reply {
                    Reply::Answered(value) => {
                        // A question that is gone meanwhile needs no answer.
                        let _ = call.engine().answer(execution, value, Some(number)).await;
                    }
                    Reply::Declined => call.engine().decline(execution).await,
                    Reply::Unable => break,
                }
                dealt_with = Some(number);
            }
            _ = changes.changed() => untold = true,
            () = sleep_until(tells_at), if follows && untold => {
                tell(call, execution).await;
                (told, untold) = (Some(Instant::now()), false);
            }
            _ = heartbeat.tick(), if follows => tell(call, execution).await,
            () = sleep_until(deadline) => break,
            () = call.last_call() => break,
            () = &mut gone, if left.interrupts => {
                // Whoever still comes back finds how it ended.
                left.interrupts = false;
                call.engine().cancel(execution).await;
            }
            () = call.client().cancelled() => {
                if call.client().takes_back() {
                    left.interrupts = true;
                }
                return;
            }
        }
    }
    left.interrupts = false;
}

/// A question that the client's person is thinking about.
struct Asking {
    number: usize,
    reply: BoxFuture<'static, Reply>,
}

impl Asking {
    fn new(call: &Call, question: Question) -> Self {
        let client = Arc::clone(call.client());
        Self {
            number: question.number,
            reply: Box::pin(async move { client.ask(&question).await }),
        }
    }

    async fn reply(&mut self) -> (usize, Reply) {
        (self.number, (&mut self.reply).await)
    }
}

async fn tell(call: &Call, execution: &Execution) {
    let (ended, all) = execution.progress();
    let latest = execution.latest_line().unwrap_or_else(|| "running".to_owned());
    let message = match all {
        1 => latest,
        _ => format!("{ended} of {all} cells done; {latest}"),
    };
    call.client().progress(&message).await;
}

/// Interrupts an execution whose caller has gone, however the caller went, if that is what was wanted.
struct LeftBehind {
    engine: Arc<Engine>,
    execution: Arc<Execution>,
    interrupts: bool,
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        if self.interrupts && !self.execution.status().is_finished() {
            let (engine, execution) = (Arc::clone(&self.engine), Arc::clone(&self.execution));
            tokio::spawn(async move { engine.cancel(&execution).await });
        }
    }
}
