//! The one place where a call of a tool is answered, however it came and however the answer travels.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use executor::Question;
use rmcp::{
    ErrorData,
    model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, InputRequiredResult, JsonObject},
};

use super::GatewayHandler;
use crate::{
    audit::{Decision, Outcome},
    mcp::{
        Answer, Caller,
        catalogue::{Refusal, shortened},
        client::{choice, choice_required, input_required, resumption},
        observe::Observed,
        request_state::CallBinding,
        tasks::TaskCall,
    },
    tools::{Call, Client, Effect, Output, find_execution},
};

/// Time after an expired question in which a client may still ask for the result of its call.
const RETRY_GRACE: Duration = Duration::from_secs(60 * 60);

/// Begins the state of a call that asks for a choice, and has done nothing. No execution's id begins so.
const CHOICE: &str = "choice:";

/// Begins each version of a question that was allowed before, in such a state.
const GRANTED: char = ';';

/// A call of a tool.
pub(super) struct ToolCall<'a> {
    pub(super) params: CallToolRequestParams,
    pub(super) caller: &'a Caller,
    /// The id under which logs can be found.
    pub(super) request_id: &'a str,
    pub(super) client: Arc<dyn Client>,
    /// True if the client repeats a call that was answered with a question.
    pub(super) repeats_with_input: bool,
}

/// Answer to a call.
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
        let arguments = params.arguments.unwrap_or_default();
        let definition = match self.catalogue.find(&params.name, caller) {
            Ok(definition) => definition,
            Err(refusal) => {
                let context = caller.call(&self.services, call.client);
                return self.refuse(&refusal, &params.name, &context, &arguments);
            }
        };
        let becomes_task = definition.effect != Effect::Read && call.client.knows_tasks();
        let mut context = caller.call(&self.services, call.client);
        let arguments = definition.arguments(arguments);
        // Only calls that are repeated with input have a state.
        let binding = (call.repeats_with_input || params.request_state.is_some())
            .then(|| CallBinding::new(&caller.principal.id, definition.name, arguments.members()));
        if let (Some(state), Some(binding)) = (params.request_state, &binding) {
            let invalid = |why: String| ErrorData::invalid_params(self.catalogue.advise(&why, caller), None);
            let opened = self.states.open(&state, binding, Instant::now());
            let id = opened.map_err(|error| invalid(error.to_string()))?;
            context = match id.strip_prefix(CHOICE) {
                Some(state) => {
                    // What was allowed in earlier rounds stays so in this.
                    let (version, granted) = state.split_once(GRANTED).unwrap_or((state, ""));
                    let granted = granted.split(GRANTED).filter(|version| !version.is_empty());
                    let context = context.with_granted(granted.map(str::to_owned).collect());
                    match choice(params.input_responses.as_ref()) {
                        Some(choice) => context.choosing(choice, version),
                        None => context,
                    }
                }
                None => {
                    let found = find_execution(&context, &id).await;
                    found.map_err(|error| invalid(format!("`params.requestState`: {error}")))?;
                    context.resuming(resumption(id, params.input_responses.as_ref()))
                }
            };
        }
        let made_by = becomes_task.then(|| TaskCall::new(definition.name, arguments.members()));
        let result = definition.call(context.clone(), arguments).await;
        if let (Ok(Output { asks: Some(form), .. }), Some(binding), true) = (&result, &binding, call.repeats_with_input)
        {
            let granted = context
                .granted()
                .into_iter()
                .map(|version| format!("{GRANTED}{version}"));
            let state = format!("{CHOICE}{}{}", form.version, granted.collect::<String>());
            let state = self.states.seal(&state, binding, RETRY_GRACE, Instant::now());
            let state = state.ok_or_else(|| ErrorData::internal_error("the question cannot be sealed", None))?;
            return Ok(Answered::Question(Box::new(choice_required(state, form))));
        }
        if let Ok(Output { open: Some(open), .. }) = &result {
            if let Some(made_by) = made_by {
                let task = self.tasks.begin(&context, &open.id, made_by).await?;
                return Ok(Answered::Task(Box::new(task)));
            }
            let question = open.question.as_ref().filter(|_| call.repeats_with_input);
            if let (Some(question), Some(binding)) = (question, &binding) {
                return self.pass_on(question, &open.id, binding);
            }
        }
        Ok(Answered::Result(Answer::of(definition.name, call.request_id, result)))
    }

    /// Answers a call of a tool that the caller cannot use here, and records it.
    fn refuse(
        &self,
        refusal: &Refusal,
        name: &str,
        context: &Call,
        arguments: &JsonObject,
    ) -> Result<Answered, ErrorData> {
        let tool = self.catalogue.known_name(name).map(Cow::Borrowed);
        if let Some(audited) = context.audited(tool.unwrap_or_else(|| shortened(name).into()), arguments) {
            audited.end(Decision::Denied { rule: refusal.rule() }, Outcome::Failed);
        }
        match refusal {
            Refusal::Unknown(_) => Err(ErrorData::invalid_params(refusal.to_string(), None)),
            _ => Ok(Answered::Result(Answer::failure(&refusal.to_string()))),
        }
    }

    /// A question of an execution, with the state by which the call is taken up again.
    fn pass_on(&self, question: &Question, execution_id: &str, call: &CallBinding) -> Result<Answered, ErrorData> {
        let settings = self.services.engine.settings();
        let ttl = settings.input_timeout.saturating_add(RETRY_GRACE);
        let state = self.states.seal(execution_id, call, ttl, Instant::now());
        let state = state.ok_or_else(|| ErrorData::internal_error("the question cannot be sealed", None))?;
        Ok(Answered::Question(Box::new(input_required(state, question))))
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
