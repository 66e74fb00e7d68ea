//! Validation of a request's parameters against its method. The library takes a request whose parameters it cannot
//! read for one of an unknown method; this names what is wrong.

use rmcp::model::{
    CancelTaskParams, CompleteRequestParams, GetPromptRequestParams, GetTaskParams, InitializeRequestParams,
    PaginatedRequestParams, ReadResourceRequestParams, SubscribeRequestParams, SubscriptionsListenRequestParams,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

/// Checks the parameters of a request, given as a JSON object, and says what is wrong with them.
pub(super) fn check(method: &str, params: &str) -> Result<(), String> {
    match method {
        "tools/call" => check_call(params),
        "initialize" => read::<InitializeRequestParams>(params),
        "completion/complete" => read::<CompleteRequestParams>(params),
        "prompts/get" => read::<GetPromptRequestParams>(params),
        "resources/read" | "skills/get" => read::<ReadResourceRequestParams>(params),
        "resources/subscribe" => read::<SubscribeRequestParams>(params),
        "resources/unsubscribe" => read::<UnsubscribeRequestParams>(params),
        "subscriptions/listen" => read::<SubscriptionsListenRequestParams>(params),
        "tasks/get" => read::<GetTaskParams>(params),
        "tasks/update" => read::<UpdateTaskParams>(params),
        "tasks/cancel" => read::<CancelTaskParams>(params),
        "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" | "skills/list" => {
            read::<PaginatedRequestParams>(params)
        }
        _ => Ok(()),
    }
}

fn read<T: DeserializeOwned>(params: &str) -> Result<(), String> {
    let mut json = serde_json::Deserializer::from_str(params);
    let Err(error) = serde_path_to_error::deserialize::<_, T>(&mut json) else {
        return Ok(());
    };
    let place = match error.path().to_string().as_str() {
        "." => "`params`".to_owned(),
        field => format!("`params.{field}`"),
    };
    let why = error.into_inner().to_string();
    // Lines and columns would be those of the parameters alone, which nobody can count.
    let why = why.rsplit_once(" at line ").map_or(&*why, |(why, _)| why);
    Err(format!("{place}: {why}"))
}

/// The members of a call. Arguments may be large, and are read when it is known who reads them.
#[derive(Deserialize)]
struct Call<'a> {
    name: Option<Value>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputResponses")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow, rename = "requestState")]
    request_state: Option<&'a RawValue>,
}

fn check_call(params: &str) -> Result<(), String> {
    let call: Call<'_> = serde_json::from_str(params).map_err(|error| error.to_string())?;
    if !call.name.is_some_and(|name| name.is_string()) {
        return Err("`params.name` must be the name of a tool".to_owned());
    }
    let begins = |value: Option<&RawValue>, with: char| {
        value.is_none_or(|value| value.get() == "null" || value.get().starts_with(with))
    };
    let objects = [
        ("arguments", call.arguments),
        ("_meta", call.meta),
        ("inputResponses", call.input_responses),
    ];
    for (name, value) in objects {
        if !begins(value, '{') {
            return Err(format!("`params.{name}` must be an object"));
        }
    }
    match begins(call.request_state, '"') {
        true => Ok(()),
        false => Err("`params.requestState` must be a string".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sound_parameters_pass() {
        for (method, params) in [
            ("tools/call", r#"{"name":"x","arguments":null,"requestState":"s"}"#),
            ("tools/list", "{}"),
            ("tools/list", r#"{"cursor":"c","_meta":{"progressToken":1}}"#),
            ("resources/read", r#"{"uri":"notebook://list","more":1}"#),
            ("prompts/get", r#"{"name":"x","arguments":{"a":"b"}}"#),
            ("prompts/get", r#"{"name":"x"}"#),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":""}}"#,
            ),
            (
                "initialize",
                r#"{"protocolVersion":"1999-01-01","capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#,
            ),
            ("no/such", r#"{"anything":1}"#),
        ] {
            assert_eq!(check(method, params), Ok(()), "{method} {params}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (method, params, named) in [
            ("tools/call", "{}", "params.name"),
            ("tools/call", r#"{"name":7}"#, "params.name"),
            ("tools/call", r#"{"name":"x","arguments":[1]}"#, "params.arguments"),
            ("tools/call", r#"{"name":"x","_meta":5}"#, "params._meta"),
            ("tools/call", r#"{"name":"x","requestState":5}"#, "params.requestState"),
            ("tools/list", r#"{"cursor":5}"#, "params.cursor"),
            ("resources/read", "{}", "`uri`"),
            ("resources/read", r#"{"uri":5}"#, "params.uri"),
            ("resources/subscribe", "{}", "`uri`"),
            ("resources/unsubscribe", r#"{"uri":null}"#, "params.uri"),
            ("prompts/get", "{}", "`name`"),
            ("prompts/get", r#"{"name":"x","arguments":[]}"#, "params.arguments"),
            ("completion/complete", "{}", "`ref`"),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/nothing"},"argument":{"name":"a","value":""}}"#,
                "params.ref",
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"x"}}"#,
                "`argument`",
            ),
            ("initialize", "{}", "`protocolVersion`"),
            (
                "initialize",
                r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
                "`clientInfo`",
            ),
            (
                "initialize",
                r#"{"protocolVersion":7,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}"#,
                "params.protocolVersion",
            ),
            (
                "initialize",
                r#"{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{"name":"t","version":"1"}}"#,
                "params.capabilities",
            ),
            (
                "initialize",
                r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t"}}"#,
                "params.clientInfo",
            ),
        ] {
            let why = check(method, params).expect_err(params);
            assert!(why.contains(named) && !why.contains("line"), "{method} {params}: {why}");
        }
    }
}
