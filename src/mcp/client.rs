//! The MCP client behind a tool call: progress, questions to its person, and its going away, in both eras.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use dashmap::DashMap;
use executor::Question;
use rmcp::{
    RoleServer,
    model::{
        BooleanSchema, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema, InputRequest,
        InputRequests, InputRequiredResult, InputResponses, PrimitiveSchemaDefinition, ProgressNotificationParam,
        ProtocolVersion, RequestId, StringSchema,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    events::Audience,
    tools::{Choice, ChoiceForm, ChoiceReply, Client, ClientReply, Input, Resumption},
};

/// The name under which an answer comes back.
const FIELD: &str = "input";
/// Begins the names of questions.
const KEY: &str = "input-";
/// Names a choice, beside which there is no other question.
const CHOICE: &str = "choice";
/// Longest delay of a cancellation notice behind the end of its call, in the versions that have such notices.
const CANCEL_NOTICE_DELAY: Duration = Duration::from_secs(5);

/// Time limit for a client whose connection is lost to resume the stream of its call. Clients are told to retry after
/// three seconds.
const RESUME_TIMEOUT: Duration = Duration::from_secs(10);

/// The calls of one session that are under way, so that those that the client takes back can be told from those
/// whose connection is lost.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<DashMap<RequestId, CancellationToken>>);

impl Calls {
    /// The client has taken a call back.
    pub(super) fn taken_back(&self, id: &RequestId) {
        if let Some(token) = self.0.get(id) {
            token.cancel();
        }
    }
}

pub(super) struct McpClient {
    context: Arc<RequestContext<RoleServer>>,
    progress: AtomicU64,
    taken_back: Option<(CancellationToken, Calls)>,
}

impl McpClient {
    /// The client of a call that runs nothing, which therefore need not be told from one that was taken back.
    pub(super) fn passive(context: &Arc<RequestContext<RoleServer>>) -> Self {
        Self {
            context: Arc::clone(context),
            progress: AtomicU64::new(0),
            taken_back: None,
        }
    }

    pub(super) fn new(context: &Arc<RequestContext<RoleServer>>, calls: &Calls) -> Self {
        let token = CancellationToken::new();
        calls.0.insert(context.id.clone(), token.clone());
        let mut client = Self::passive(context);
        client.taken_back = Some((token, calls.clone()));
        client
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        if let Some((_, calls)) = &self.taken_back {
            calls.0.remove(&self.context.id);
        }
    }
}

#[async_trait]
impl Client for McpClient {
    fn knows_tasks(&self) -> bool {
        knows_tasks(&self.context)
    }

    fn follows(&self) -> bool {
        self.context.meta.get_progress_token().is_some()
    }

    async fn progress(&self, message: &str) {
        let Some(token) = self.context.meta.get_progress_token() else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "nobody is told 2^52 times")]
        let progress = (self.progress.fetch_add(1, Ordering::Relaxed) + 1) as f64;
        let notice = ProgressNotificationParam::new(token, progress).with_message(message);
        // A client that cannot be told will see the result.
        let _ = self.context.peer.notify_progress(notice).await;
    }

    async fn ask(&self, question: &Question) -> ClientReply {
        // The newer era asks by answering the call with the question.
        if is_modern(&self.context) || !can_elicit(&self.context) {
            return ClientReply::Unable;
        }
        let asked = tokio::select! {
            asked = self.context.peer.create_elicitation(form(question)) => asked,
            () = self.context.ct.cancelled() => return ClientReply::Unable,
        };
        match asked {
            Ok(answer) if answer.action == ElicitationAction::Accept => {
                // A form without the answer is as good as none; the call says what is asked instead.
                let value = answer.content.as_ref().and_then(answer_in);
                value.map_or(ClientReply::Unable, ClientReply::Answered)
            }
            Ok(_) => ClientReply::Declined,
            Err(error) => {
                tracing::debug!(%error, "a question could not be asked");
                ClientReply::Unable
            }
        }
    }

    async fn choose(&self, form: &ChoiceForm) -> ChoiceReply {
        if is_modern(&self.context) || !can_elicit(&self.context) {
            return ChoiceReply::Unable;
        }
        let asked = tokio::select! {
            asked = self.context.peer.create_elicitation(choice_form(form)) => asked,
            () = self.context.ct.cancelled() => return ChoiceReply::Declined,
        };
        match asked {
            Ok(answer) if answer.action == ElicitationAction::Accept => {
                ChoiceReply::Chosen(answer.content.as_ref().map(chosen_in).unwrap_or_default())
            }
            Ok(_) => ChoiceReply::Declined,
            Err(error) => {
                tracing::debug!(%error, "a choice could not be asked for");
                ChoiceReply::Unable
            }
        }
    }

    fn asks_by_answering(&self) -> bool {
        asks_by_answering(&self.context)
    }

    async fn cancelled(&self) {
        let Some((taken_back, _)) = &self.taken_back else {
            return self.context.ct.cancelled().await;
        };
        tokio::select! {
            () = taken_back.cancelled() => {}
            () = self.context.ct.cancelled() => {
                if !is_modern(&self.context) {
                    let _ = timeout(CANCEL_NOTICE_DELAY, taken_back.cancelled()).await;
                }
            }
        }
    }

    async fn left(&self) {
        match self.context.extensions.get::<Audience>() {
            Some(audience) => audience.wait_until_left(RESUME_TIMEOUT).await,
            // The newer era has no way to come back; whose connection is lost has cancelled.
            None => std::future::pending().await,
        }
    }

    fn takes_back(&self) -> bool {
        self.taken_back.as_ref().is_some_and(|(token, _)| token.is_cancelled())
    }
}

pub(super) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn can_elicit(context: &RequestContext<RoleServer>) -> bool {
    context
        .client_capabilities()
        .is_some_and(|declared| declared.elicitation.is_some())
}

/// Returns whether questions are answers, which the client repeats its call with.
pub(super) fn asks_by_answering(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context) && can_elicit(context)
}

pub(super) fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context)
        && context
            .client_capabilities()
            .is_some_and(|declared| declared.supports_tasks())
}

/// A question as the result of a call, which the client repeats with the answer.
pub(super) fn input_required(state: String, question: &Question) -> InputRequiredResult {
    InputRequiredResult::new(Some(input_requests(question)), Some(state))
}

/// A question for the client's person, under a name that no other question of the execution has.
pub(super) fn input_requests(question: &Question) -> InputRequests {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(question)));
    InputRequests::from([(format!("{KEY}{}", question.number + 1), request)])
}

/// The answer of a client for an execution that asks.
pub(super) fn input(responses: &InputResponses) -> Input {
    let Some((key, reply)) = responses.iter().find(|(key, _)| key.starts_with(KEY)) else {
        return Input::Nothing;
    };
    let number = key
        .strip_prefix(KEY)
        .and_then(|number| number.parse::<usize>().ok()?.checked_sub(1));
    match reply.get("action").map(|action| action.as_str().unwrap_or_default()) {
        Some("decline" | "cancel") => Input::Declined,
        None | Some("accept") => match reply.get("content").and_then(answer_in) {
            Some(value) => Input::Answer { value, number },
            None => Input::Nothing,
        },
        // What cannot be understood must end nothing; the question is put again.
        Some(_) => Input::Nothing,
    }
}

/// A choice as the result of a call, which the client repeats with what was chosen.
pub(super) fn choice_required(state: String, form: &ChoiceForm) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(choice_form(form)));
    let requests = InputRequests::from([(CHOICE.to_owned(), request)]);
    InputRequiredResult::new(Some(requests), Some(state))
}

/// The choice in a client's answers; none if there is no answer, so that the client is asked again.
pub(super) fn choice(responses: Option<&InputResponses>) -> Option<ChoiceReply> {
    let reply = responses?.get(CHOICE)?;
    match reply.get("action").map(|action| action.as_str().unwrap_or_default()) {
        Some("decline" | "cancel") => Some(ChoiceReply::Declined),
        None | Some("accept") => reply
            .get("content")
            .map(|content| ChoiceReply::Chosen(chosen_in(content))),
        Some(_) => None,
    }
}

/// The names of what was ticked in a form.
fn chosen_in(content: &Value) -> Vec<String> {
    let is_ticked = |value: &Value| *value == true || *value == "true";
    let ticked = content
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| is_ticked(value));
    ticked.map(|(key, _)| key.clone()).collect()
}

fn choice_form(form: &ChoiceForm) -> ElicitRequestParams {
    let field = |choice: &Choice| {
        let field = BooleanSchema::new()
            .title(choice.title.clone())
            .description(choice.description.clone())
            .with_default(false);
        (choice.key.clone(), PrimitiveSchemaDefinition::Boolean(field))
    };
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: form.message.clone(),
        requested_schema: ElicitationSchema::new(form.choices.iter().map(field).collect()),
    }
}

/// The person's answer in a form that was filled in.
fn answer_in(content: &Value) -> Option<String> {
    match content.get(FIELD)? {
        Value::String(value) => Some(value.clone()),
        // A client may have made a number of what looks like one.
        value @ (Value::Number(_) | Value::Bool(_)) => Some(value.to_string()),
        _ => None,
    }
}

/// The resumption that a call with the state of an earlier one asks for.
pub(super) fn resumption(execution_id: String, responses: Option<&InputResponses>) -> Resumption {
    Resumption {
        execution_id,
        input: responses.map_or(Input::Nothing, input),
    }
}

fn form(question: &Question) -> ElicitRequestParams {
    let field = PrimitiveSchemaDefinition::String(StringSchema::new().title(match question.password {
        true => "Password",
        false => "Input",
    }));
    let prompt = question.prompt.trim();
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: match prompt.is_empty() {
            true => "The running code asks for input".to_owned(),
            false => format!("The running code asks: {prompt}"),
        },
        requested_schema: ElicitationSchema::new([(FIELD.to_owned(), field)].into())
            .with_required(vec![FIELD.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn brought(reply: Value) -> Input {
        let responses = serde_json::from_value(json!({ "input-2": reply })).expect("responses");
        input(&responses)
    }

    #[test]
    fn only_who_declines_or_cancels_declines() {
        for action in ["decline", "cancel"] {
            assert!(matches!(brought(json!({ "action": action })), Input::Declined));
        }
        let answer = brought(json!({ "action": "accept", "content": { "input": 7 } }));
        assert!(matches!(answer, Input::Answer { value, number: Some(1) } if value == "7"));
        for malformed in [
            json!({}),
            json!({ "action": "accept" }),
            json!({ "action": "accept", "content": { "input": ["x"] } }),
            json!({ "action": "accept", "content": "x" }),
            json!({ "action": "accepted", "content": { "input": "x" } }),
            json!({ "action": 1, "content": { "input": "x" } }),
        ] {
            let told = malformed.to_string();
            assert!(matches!(brought(malformed), Input::Nothing), "{told}");
        }
    }
}
