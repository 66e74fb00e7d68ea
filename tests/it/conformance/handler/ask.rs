//! Owns the words in which a modern server asks the client for something (SEP-2322): the question,
//! the reading of the answer, and the sealed state that travels between two rounds.
//!
//! Knows nothing of tools, prompts or tasks, which all ask in these words.

#![expect(
    deprecated,
    reason = "SEP-2577 deprecates sampling and roots, the suite still asks for them"
)]

use std::{collections::BTreeMap, time::Duration};

use rmcp::{ErrorData, model::*};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A fixture may sign with a public key: there is nothing behind it to protect.
const SIGNING_KEY: [u8; RequestStateCodec::MIN_KEY_LENGTH] = *b"conformance fixture signing key!";

/// Long enough for a slow test run, short enough to show that state expires.
const STATE_TTL: Duration = Duration::from_secs(600);

/// Asks the person one question whose answer is a form with one required text field.
pub(super) fn text_question(message: impl Into<String>, field: &str) -> InputRequest {
    question(message, field, PrimitiveSchemaDefinition::String(StringSchema::new()))
}

/// Asks the person one yes-or-no question.
pub(super) fn yes_no_question(message: impl Into<String>, field: &str) -> InputRequest {
    question(message, field, PrimitiveSchemaDefinition::Boolean(BooleanSchema::new()))
}

fn question(message: impl Into<String>, field: &str, kind: PrimitiveSchemaDefinition) -> InputRequest {
    let schema =
        ElicitationSchema::new(BTreeMap::from([(field.to_owned(), kind)])).with_required(vec![field.to_owned()]);
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: schema,
    }))
}

/// Asks the client's model to complete a prompt.
pub(super) fn sampling(prompt: &str) -> InputRequest {
    let messages = vec![SamplingMessage::user_text(prompt)];
    InputRequest::CreateMessage(CreateMessageRequest::new(CreateMessageRequestParams::new(
        messages, 100,
    )))
}

/// Asks for the directories the client works in.
pub(super) fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

/// A round that asks one thing and keeps no state.
pub(super) fn single(key: &str, request: InputRequest) -> InputRequiredResult {
    InputRequiredResult::from_input_requests(InputRequests::from([(key.to_owned(), request)]))
}

/// The answer under `key`, if it has the only shape an answer can have: an object.
///
/// Anything else counts as not answered, so the tool asks again, as SEP-2322 recommends.
pub(super) fn answer<'a>(responses: Option<&'a InputResponses>, key: &str) -> Option<&'a JsonObject> {
    responses?.get(key)?.as_object()
}

/// A text field of an answered form.
pub(super) fn text_field(answer: &JsonObject, field: &str) -> Option<String> {
    let text = answer.get("content")?.get(field)?.as_str()?;
    Some(text.to_owned())
}

/// A yes-or-no field of an answered form. No answer means no.
pub(super) fn is_yes(answer: &Value, field: &str) -> bool {
    answer
        .pointer(&format!("/content/{field}"))
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

/// Signs what a server wants back from the client in the next round.
#[derive(Clone)]
pub(super) struct StateSeal(RequestStateCodec);

impl Default for StateSeal {
    fn default() -> Self {
        Self(RequestStateCodec::new_unchecked(SIGNING_KEY))
    }
}

impl StateSeal {
    /// Seals `state` for the tool called `tool`: no other tool can open it.
    pub(super) fn seal(&self, tool: &str, state: &impl Serialize) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(tool.as_bytes()).ttl(STATE_TTL);
        self.0
            .seal_json_with(state, &options)
            .map_err(|problem| ErrorData::internal_error(problem.to_string(), None))
    }

    /// Opens what the client brought back, which may be anything.
    pub(super) fn open<T: DeserializeOwned>(&self, tool: &str, sealed: &str) -> Result<T, ErrorData> {
        self.0
            .open_json_with(sealed, tool.as_bytes())
            .map_err(|problem| ErrorData::invalid_params(problem.to_string(), None))
    }
}
