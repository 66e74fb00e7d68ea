//! The one place where a call of a tool is answered, however it came and however the answer travels.

use std::sync::Arc;

use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, InputRequiredResult},
};

use super::GatewayHandler;
use crate::{
    mcp::{
        Answer, Caller,
        catalogue::Refusal,
        client::{input_required, resumption},
        observe::Observed,
        tasks::TaskCall,
    },
    tools::{Client, Effect, Output, find_execution},
};

/// A call of a tool.
pub(super) struct ToolCall<'a> {
    pub(super) params: CallToolRequestParams,
    pub(super) caller: &'a Caller,
    /// The id under which logs can be found.
    pub(super) request_id: &'a str,
    pub(super) client: Arc<dyn Client>,
    /// Whether the client repeats a call that is answered with a question.
    pub(super) repeats_with_input: bool,
}

/// What a call is answered with.
pub(super) enum Answered {
    Result(Answer),
    /// The execution goes on as a task.
    Task(Box<CreateTaskResult>),
    /// The running code asks something.
    Question(Box<InputRequiredResult>),
}

impl GatewayHandler {
    /// Answers a call.
    pub(super) async fn answer(&self, call: ToolCall<'_>) -> Result<Answered, ErrorData> {
        let ToolCall { params, caller, .. } = call;
        let definition = match self.catalogue.find(&params.name, caller) {
            Ok(definition) => definition,
            Err(refusal @ Refusal::Unknown(_)) => return Err(ErrorData::invalid_params(refusal.to_string(), None)),
            Err(refusal) => return Ok(Answered::Result(Answer::failure(&refusal.to_string()))),
        };
        let becomes_task = definition.effect != Effect::Read && call.client.knows_tasks();
        let mut context = caller.call(&self.services, call.client);
        if let Some(state) = params.request_state {
            // The client got it from here; one that is not known was changed on the way.
            if let Err(error) = find_execution(&context, &state).await {
                let why = format!("`params.requestState` is not one that this server gave you: {error}");
                return Err(ErrorData::invalid_params(why, None));
            }
            context = context.resuming(resumption(state, params.input_responses.as_ref()));
        }
        let arguments = params.arguments.unwrap_or_default();
        let made_by = becomes_task.then(|| TaskCall::new(definition.name, &arguments));
        let result = definition.call(context.clone(), arguments).await;
        if let Ok(Output { open: Some(open), .. }) = &result {
            if let Some(made_by) = made_by {
                let task = self.tasks.begin(&context, &open.id, made_by).await?;
                return Ok(Answered::Task(Box::new(task)));
            }
            if let Some(question) = open.question.as_ref().filter(|_| call.repeats_with_input) {
                let question = input_required(open.id.clone(), question);
                return Ok(Answered::Question(Box::new(question)));
            }
        }
        Ok(Answered::Result(Answer::of(definition.name, call.request_id, result)))
    }
}

impl From<Answered> for CallToolResponse {
    fn from(answered: Answered) -> Self {
        match answered {
            Answered::Result(answer) => answer.into_result().into(),
            Answered::Task(task) => (*task).into(),
            Answered::Question(question) => (*question).into(),
        }
    }
}

impl Observed for Answered {
    fn tool_failed(&self) -> bool {
        matches!(self, Self::Result(answer) if answer.tool_failed())
    }
}
