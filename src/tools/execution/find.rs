//! Lookup of a caller's own execution, and actions on it.

use std::{sync::Arc, time::Duration};

use executor::{Execution, Snapshot};
use store::ExecutionStatus;
use tokio::time::{Instant, sleep};

use crate::{
    tools::{Call, Input, ToolError},
    types::Permission,
};

/// Interval between looks at the record of an execution that another gateway runs: a database does not tell of changes.
const RECORD_INTERVAL: Duration = Duration::from_millis(500);

/// Execution that a call names, live or from the records.
pub(in crate::tools) enum FoundExecution {
    Live(Arc<Execution>),
    /// It has ended, or another gateway with the same database runs it.
    Recorded(Box<Snapshot>),
}

impl FoundExecution {
    /// An execution of the caller's by its id, in a notebook that the caller may read.
    pub(super) async fn find(call: &Call, id: &str) -> Result<Self, ToolError> {
        let found = Self::find_anywhere(call, id).await?;
        let path = match &found {
            Self::Live(execution) => execution.path().map(|path| path.to_string()),
            Self::Recorded(snapshot) => snapshot.path.clone(),
        };
        match is_readable(call, path.as_deref()) {
            true => Ok(found),
            false => Err(ToolError::MovedAway { id: id.to_owned() }),
        }
    }

    /// An execution of the caller's by its id, wherever its notebook is now: its owner may always end it.
    pub(super) async fn find_anywhere(call: &Call, id: &str) -> Result<Self, ToolError> {
        let (owner, engine) = (call.owner(), call.engine());
        if let Some(execution) = engine.live(&owner, id) {
            return Ok(Self::Live(execution));
        }
        let snapshot = engine.ended(&owner, id).await?;
        if !snapshot.status.is_finished() {
            // One that an earlier process began is not taken up yet, right after the start.
            engine.settled_in().await;
            if let Some(execution) = engine.live(&owner, id) {
                return Ok(Self::Live(execution));
            }
        }
        Ok(Self::Recorded(Box::new(snapshot)))
    }

    /// The same execution, once it has ended or is run by this gateway, or at the deadline.
    pub(super) async fn wait_if_elsewhere(self, call: &Call, id: &str, deadline: Instant) -> Result<Self, ToolError> {
        let mut found = self;
        while found.is_elsewhere() && Instant::now() < deadline {
            let pause = RECORD_INTERVAL.min(deadline.saturating_duration_since(Instant::now()));
            tokio::select! {
                () = sleep(pause) => {}
                () = call.last_call() => break,
                () = call.client().cancelled() => break,
            }
            found = Self::find(call, id).await?;
        }
        Ok(found)
    }

    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Recorded(snapshot) if !snapshot.status.is_finished())
    }

    pub(super) fn snapshot(self, call: &Call) -> Snapshot {
        match self {
            Self::Live(execution) => call.engine().snapshot(&call.owner(), &execution),
            Self::Recorded(snapshot) => *snapshot,
        }
    }
}

/// Returns whether an execution at a path may be shown: people may have moved the notebook out of the caller's paths.
pub(super) fn is_readable(call: &Call, path: Option<&str>) -> bool {
    path.is_none_or(|path| call.sees(path, false))
}

/// The execution that a call resumes instead of doing anything, if it repeats an earlier call.
pub(in crate::tools) async fn resumed_execution(call: &Call) -> Result<Option<FoundExecution>, ToolError> {
    let Some(resumption) = call.resumption() else {
        return Ok(None);
    };
    let found = FoundExecution::find(call, &resumption.execution_id).await?;
    // One that ended while the person thought has its result as the answer.
    if let FoundExecution::Live(execution) = &found {
        reply(call, execution, &resumption.input).await?;
    }
    Ok(Some(found))
}

/// An execution as it is now.
pub async fn find_execution(call: &Call, id: &str) -> Result<Snapshot, ToolError> {
    Ok(FoundExecution::find(call, id).await?.snapshot(call))
}

/// Answers what an execution asks.
pub async fn answer_execution(call: &Call, id: &str, input: Input) -> Result<(), ToolError> {
    match FoundExecution::find(call, id).await? {
        FoundExecution::Live(execution) => reply(call, &execution, &input).await,
        found if found.is_elsewhere() => Err(ToolError::RunElsewhere { id: id.to_owned() }),
        FoundExecution::Recorded(ended) => {
            let why = format!("the execution is {} and asks for nothing", ended.status.as_str());
            Err(ToolError::argument("input", why))
        }
    }
}

/// Asks for an execution to end. Returns its status, which may lag behind.
pub async fn cancel_execution(call: &Call, id: &str) -> Result<ExecutionStatus, ToolError> {
    call.principal().require(Permission::Execute)?;
    let found = FoundExecution::find_anywhere(call, id).await?;
    if found.is_elsewhere() {
        return Err(ToolError::RunElsewhere { id: id.to_owned() });
    }
    if let FoundExecution::Live(execution) = &found {
        call.engine().cancel(execution).await;
    }
    Ok(found.snapshot(call).status)
}

async fn reply(call: &Call, execution: &Arc<Execution>, input: &Input) -> Result<(), ToolError> {
    if matches!(input, Input::Nothing) {
        return Ok(());
    }
    call.principal().require(Permission::Execute)?;
    match input {
        Input::Answer { value, number } => call.engine().answer(execution, value.clone(), *number).await?,
        Input::Declined => call.engine().decline(execution).await,
        Input::Nothing => {}
    }
    Ok(())
}
