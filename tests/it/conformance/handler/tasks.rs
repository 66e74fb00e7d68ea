//! Owns the tools that run as tasks (SEP-2663, `io.modelcontextprotocol/tasks`).
//!
//! The server decides what becomes a task. A tool that can answer at once does so for a client
//! without the extension, and one that cannot refuses such a client with -32021.

use std::{future::Future, time::Duration};

use rmcp::{
    ErrorData, RoleServer,
    handler::server::{tool::InputResponses, wrapper::Parameters},
    model::*,
    service::RequestContext,
    task_manager::{TaskContext, TaskExit, TaskOptions},
    tool, tool_router,
};
use serde::Deserialize;

use super::{
    ConformanceHandler,
    ask::{self, answer},
    say,
};

#[derive(Deserialize, schemars::JsonSchema)]
struct GreetArguments {
    name: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
#[serde(default)]
struct ComputeArguments {
    /// How long to work.
    seconds: u32,
    /// What to call the work.
    label: String,
}

impl Default for ComputeArguments {
    fn default() -> Self {
        Self {
            seconds: 1,
            label: "work".to_owned(),
        }
    }
}

#[derive(Deserialize, schemars::JsonSchema)]
struct DeleteArguments {
    filename: String,
}

#[tool_router(router = task_tools, vis = "pub(super)")]
impl ConformanceHandler {
    #[tool(name = "greet", description = "Greets at once, never as a task")]
    fn greet(&self, arguments: Parameters<GreetArguments>) -> CallToolResult {
        say(format!("Hello, {}!", arguments.0.name))
    }

    #[tool(
        name = "slow_compute",
        description = "Works for some seconds, as a task if the client knows tasks"
    )]
    async fn slow_compute(
        &self,
        context: RequestContext<RoleServer>,
        Parameters(arguments): Parameters<ComputeArguments>,
    ) -> CallToolResponse {
        if !knows_tasks(&context) {
            return compute(arguments).await.into();
        }
        self.start(|task| async move {
            // Cancelling is cooperative: without this branch the task would run to its end.
            tokio::select! {
                () = task.cancelled() => Err(TaskExit::Cancelled),
                result = compute(arguments) => Ok(result),
            }
        })
    }

    #[tool(
        name = "failing_job",
        description = "Fails as a tool does: a completed task with an error in it"
    )]
    fn failing_job(&self, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        Ok(self.start(|_| async {
            Ok(CallToolResult::error(vec![ContentBlock::text(
                "This job fails on purpose",
            )]))
        }))
    }

    #[tool(
        name = "protocol_error_job",
        description = "Fails as the protocol does: a failed task"
    )]
    fn protocol_error_job(&self, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let failure = ErrorData::internal_error("This job fails on purpose", None);
        if !knows_tasks(&context) {
            return Err(failure);
        }
        Ok(self.start(|_| async { Err(TaskExit::Error(failure)) }))
    }

    #[tool(
        name = "confirm_delete",
        description = "Waits in the middle of its task for one answer"
    )]
    fn confirm_delete(
        &self,
        context: RequestContext<RoleServer>,
        Parameters(DeleteArguments { filename }): Parameters<DeleteArguments>,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        Ok(self.start(|task| async move {
            let question = ask::yes_no_question(format!("Delete {filename}?"), "confirm");
            let reply = task.request_input("confirm", question).await?;
            let outcome = if ask::is_yes(&reply, "confirm") {
                "deleted"
            } else {
                "kept"
            };
            Ok(say(format!("{filename} was {outcome}")))
        }))
    }

    #[tool(
        name = "multi_input",
        description = "Waits in the middle of its task for two answers at once"
    )]
    fn multi_input(&self, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        Ok(self.start(|task| async move {
            let name = ask::text_question("What is your name?", "name");
            let sure = ask::yes_no_question("Are you sure?", "confirm");
            tokio::try_join!(task.request_input("name", name), task.request_input("confirm", sure),)?;
            Ok(say("Both answers arrived"))
        }))
    }

    #[tool(
        name = "test_tool_with_task",
        description = "Asks for a name first and becomes a task once it has it"
    )]
    fn tool_with_task(
        &self,
        context: RequestContext<RoleServer>,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        require_tasks(&context)?;
        let name = answer(responses.as_ref(), "user_name").and_then(|form| ask::text_field(form, "name"));
        let Some(name) = name else {
            let question = ask::text_question("What is your name?", "name");
            return Ok(ask::single("user_name", question).into());
        };
        Ok(self.start(|_| async move { Ok(say(format!("Hello, {name}!"))) }))
    }

    /// Starts `work` as a task. `tasks/get` can find it before this returns.
    fn start<W, F>(&self, work: W) -> CallToolResponse
    where
        W: FnOnce(TaskContext) -> F,
        F: Future<Output = Result<CallToolResult, TaskExit>> + Send + 'static,
    {
        let tasks = &self.shared.tasks;
        let task = tasks.spawn(TaskOptions::default(), |context| Box::pin(work(context)));
        CreateTaskResult::new(task).into()
    }
}

async fn compute(arguments: ComputeArguments) -> CallToolResult {
    tokio::time::sleep(Duration::from_secs(arguments.seconds.into())).await;
    say(format!("{} is done", arguments.label))
}

fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    context
        .client_capabilities()
        .is_some_and(|declared| declared.supports_tasks())
}

/// For tools that have no answer but a task.
fn require_tasks(context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
    if knows_tasks(context) {
        return Ok(());
    }
    let required = ClientCapabilities::builder().enable_tasks().build();
    Err(ErrorData::missing_required_client_capability(required))
}
