//! Owns the tools that ask by returning `input_required` and finish when the client calls again
//! with the answers (SEP-2322). Modern only: rmcp turns such a result into an error for others.

use rmcp::{
    ErrorData, RoleServer,
    handler::server::tool::{InputResponses, RequestState, ToolName},
    model::{CallToolResponse, InputRequests, InputRequiredResult},
    service::RequestContext,
    tool, tool_router,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    ConformanceHandler,
    ask::{self, answer},
    say,
};

/// State of a conversation, which the tools that keep state want back.
#[derive(Serialize, Deserialize)]
struct Progress {
    rounds_asked: usize,
}

#[tool_router(router = input_tools, vis = "pub(super)")]
impl ConformanceHandler {
    #[tool(name = "test_input_required_result_elicitation", description = "Asks for a name")]
    fn input_elicitation(&self, InputResponses(responses): InputResponses) -> CallToolResponse {
        let name = answer(responses.as_ref(), "user_name").and_then(|form| ask::text_field(form, "name"));
        match name {
            Some(name) => say(format!("Hello, {name}!")).into(),
            None => ask::single("user_name", ask::text_question("What is your name?", "name")).into(),
        }
    }

    #[tool(
        name = "test_input_required_result_sampling",
        description = "Asks the client's model"
    )]
    fn input_sampling(&self, InputResponses(responses): InputResponses) -> CallToolResponse {
        let Some(reply) = answer(responses.as_ref(), "capital_question") else {
            let request = ask::sampling("What is the capital of France?");
            return ask::single("capital_question", request).into();
        };
        let text = ask::text_field(reply, "text").unwrap_or_default();
        say(format!("Sampling response: {text}")).into()
    }

    #[tool(
        name = "test_input_required_result_list_roots",
        description = "Asks for the client's roots"
    )]
    fn input_list_roots(&self, InputResponses(responses): InputResponses) -> CallToolResponse {
        let Some(reply) = answer(responses.as_ref(), "client_roots") else {
            return ask::single("client_roots", ask::roots()).into();
        };
        let roots = reply.get("roots").and_then(Value::as_array);
        let uris: Vec<_> = roots
            .into_iter()
            .flatten()
            .filter_map(|root| root.get("uri")?.as_str())
            .collect();
        say(format!("Client roots: {}", uris.join(", "))).into()
    }

    #[tool(
        name = "test_input_required_result_request_state",
        description = "Asks for a confirmation and wants its state back"
    )]
    fn input_request_state(
        &self,
        tool: ToolName,
        responses: InputResponses,
        state: RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        self.confirm(tool, responses, state)
    }

    #[tool(
        name = "test_input_required_result_tampered_state",
        description = "Refuses state that it did not sign"
    )]
    fn input_tampered_state(
        &self,
        tool: ToolName,
        responses: InputResponses,
        state: RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        self.confirm(tool, responses, state)
    }

    #[tool(
        name = "test_input_required_result_multiple_inputs",
        description = "Asks the person, the model and for the roots at once"
    )]
    fn input_multiple(
        &self,
        ToolName(tool): ToolName,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        let progress = self.open_progress(&tool, state)?;
        let requests = InputRequests::from([
            ("user_name".to_owned(), ask::text_question("What is your name?", "name")),
            ("greeting".to_owned(), ask::sampling("Generate a greeting")),
            ("client_roots".to_owned(), ask::roots()),
        ]);
        let all_answered = requests.keys().all(|key| answer(responses.as_ref(), key).is_some());
        if progress.is_some() && all_answered {
            return Ok(say("All inputs received").into());
        }
        self.ask_with_progress(&tool, requests, 1)
    }

    #[tool(
        name = "test_input_required_result_multi_round",
        description = "Asks for a name, then for a colour"
    )]
    fn input_multi_round(
        &self,
        ToolName(tool): ToolName,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        let rounds = [
            ("step1", "Step 1: What is your name?", "name"),
            ("step2", "Step 2: What is your favorite color?", "color"),
        ];
        let asked = self
            .open_progress(&tool, state)?
            .map_or(0, |progress| progress.rounds_asked);
        let unanswered = |round: &usize| {
            let key = rounds.get(*round).map(|(key, _, _)| key);
            key.is_some_and(|key| answer(responses.as_ref(), key).is_none())
        };
        // A round without an answer is asked again: echoing the state must not skip it.
        let round = asked.checked_sub(1).filter(unanswered).unwrap_or(asked);
        match rounds.get(round) {
            Some((key, message, field)) => {
                let question = ask::text_question(*message, field);
                let requests = InputRequests::from([((*key).to_owned(), question)]);
                self.ask_with_progress(&tool, requests, round + 1)
            }
            None => Ok(say("Both rounds are complete").into()),
        }
    }

    #[tool(
        name = "test_input_required_result_capabilities",
        description = "Asks only for what the client declared"
    )]
    fn input_capabilities(
        &self,
        context: RequestContext<RoleServer>,
        InputResponses(responses): InputResponses,
    ) -> CallToolResponse {
        if responses.is_some() {
            return say("The client answered").into();
        }
        let declared = context.client_capabilities().unwrap_or_default();
        let mut requests = InputRequests::new();
        if declared.elicitation.is_some() {
            let question = ask::text_question("What is your name?", "name");
            requests.insert("user_name".to_owned(), question);
        }
        if declared.sampling.is_some() {
            requests.insert("greeting".to_owned(), ask::sampling("Generate a greeting"));
        }
        if declared.roots.is_some() {
            requests.insert("client_roots".to_owned(), ask::roots());
        }
        if requests.is_empty() {
            return say("The client declared nothing that could be asked").into();
        }
        InputRequiredResult::from_input_requests(requests).into()
    }

    /// Despite its name it streams nothing: the check is that no request appears on the stream.
    #[tool(
        name = "test_streaming_elicitation",
        description = "Asks in its result, never on the stream"
    )]
    fn streaming_elicitation(&self) -> InputRequiredResult {
        let question = ask::text_question("Provide a value", "value");
        ask::single("streaming_elicitation", question)
    }

    /// Asks for a confirmation and accepts it only together with the state it handed out.
    fn confirm(
        &self,
        ToolName(tool): ToolName,
        InputResponses(responses): InputResponses,
        RequestState(state): RequestState,
    ) -> Result<CallToolResponse, ErrorData> {
        let progress = self.open_progress(&tool, state)?;
        if progress.is_some() && answer(responses.as_ref(), "confirm").is_some() {
            // The suite looks for this word.
            return Ok(say("state-ok").into());
        }
        let question = ask::yes_no_question("Please confirm", "ok");
        self.ask_with_progress(&tool, InputRequests::from([("confirm".to_owned(), question)]), 1)
    }

    fn open_progress(&self, tool: &str, sealed: Option<String>) -> Result<Option<Progress>, ErrorData> {
        sealed.map(|sealed| self.shared.seal.open(tool, &sealed)).transpose()
    }

    fn ask_with_progress(
        &self,
        tool: &str,
        requests: InputRequests,
        rounds_asked: usize,
    ) -> Result<CallToolResponse, ErrorData> {
        let state = self.shared.seal.seal(tool, &Progress { rounds_asked })?;
        Ok(InputRequiredResult::new(Some(requests), Some(state)).into())
    }
}
