//! A first look at a message, before the protocol library reads it: is it JSON, is it sane, what is it?
//! The library answers malformed bodies in plain text; clients deserve JSON-RPC errors.

use serde::Deserialize;
use serde_json::{Value, json};

/// What the rest of the endpoint needs to know of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Envelope {
    Initialize,
    /// A tool is called.
    Call,
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Malformed {
    id: Value,
    code: i32,
    message: String,
}

impl Malformed {
    pub(super) fn to_json(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": self.code, "message": self.message } })
    }
}

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    jsonrpc: Option<Value>,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<Value>,
    #[serde(default, borrow)]
    params: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    result: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct CallParams {
    name: Option<Value>,
    arguments: Option<ObjectOrElse>,
}

/// Tells an object from anything else without keeping it.
struct ObjectOrElse {
    is_object: bool,
}

impl<'de> Deserialize<'de> for ObjectOrElse {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        Ok(Self {
            is_object: raw.get().starts_with('{') || raw.get() == "null",
        })
    }
}

/// Checks the shape of a body.
pub(super) fn inspect(body: &[u8], max_depth: usize) -> Result<Envelope, Malformed> {
    if nesting(body) > max_depth {
        return Err(malformed(
            Value::Null,
            INVALID_REQUEST,
            format!("the message is nested deeper than {max_depth} levels"),
        ));
    }
    if body.trim_ascii_start().first() == Some(&b'[') {
        let why = "batches are not supported; send each message as a request of its own";
        return Err(malformed(Value::Null, INVALID_REQUEST, why));
    }
    let message: Message<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            malformed(Value::Null, INVALID_REQUEST, format!("not a JSON-RPC message: {error}"))
        }
        _ => malformed(Value::Null, PARSE_ERROR, format!("the body is not valid JSON: {error}")),
    })?;
    let id = message.id.clone().unwrap_or_default();
    if message.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(malformed(id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    if message
        .id
        .as_ref()
        .is_some_and(|id| !id.is_string() && !id.is_i64() && !id.is_u64())
    {
        return Err(malformed(
            Value::Null,
            INVALID_REQUEST,
            "`id` must be a string or an integer",
        ));
    }
    match message.method {
        Some(Value::String(method)) => inspect_request(&method, message.params, id),
        Some(_) => Err(malformed(id, INVALID_REQUEST, "`method` must be a string")),
        None if message.result.is_some() || message.error.is_some() => Ok(Envelope::Other),
        None => Err(malformed(id, INVALID_REQUEST, "`method` is missing")),
    }
}

fn inspect_request(
    method: &str,
    params: Option<&serde_json::value::RawValue>,
    id: Value,
) -> Result<Envelope, Malformed> {
    let text = params.map_or("{}", |params| params.get());
    if !text.starts_with('{') {
        return Err(malformed(id, INVALID_PARAMS, "`params` must be an object"));
    }
    match method {
        "initialize" => Ok(Envelope::Initialize),
        // The library takes a call it cannot read for an unknown method; this names what is wrong.
        "tools/call" => {
            let call: CallParams =
                serde_json::from_str(text).map_err(|error| malformed(id.clone(), INVALID_PARAMS, error.to_string()))?;
            if !call.name.is_some_and(|name| name.is_string()) {
                return Err(malformed(
                    id,
                    INVALID_PARAMS,
                    "`params.name` must be the name of a tool",
                ));
            }
            if call.arguments.is_some_and(|arguments| !arguments.is_object) {
                return Err(malformed(id, INVALID_PARAMS, "`params.arguments` must be an object"));
            }
            Ok(Envelope::Call)
        }
        _ => Ok(Envelope::Other),
    }
}

fn malformed(id: Value, code: i32, message: impl Into<String>) -> Malformed {
    Malformed {
        id,
        code,
        message: message.into(),
    }
}

/// How deeply objects and arrays are nested, found without building them.
fn nesting(body: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = body.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(body: &str) -> Option<i32> {
        inspect(body.as_bytes(), 16).err().map(|malformed| malformed.code)
    }

    #[test]
    fn sound_messages_pass() {
        for body in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#" {"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            assert_eq!(inspect(body.as_bytes(), 16), Ok(Envelope::Other), "{body}");
        }
        for body in [
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"a":"[[[[[[[[[[[[[[[["}}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":null}}"#,
        ] {
            assert_eq!(inspect(body.as_bytes(), 16), Ok(Envelope::Call), "{body}");
        }
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
        assert_eq!(inspect(initialize.as_bytes(), 16), Ok(Envelope::Initialize));
    }

    #[test]
    fn malformed_messages_are_told_what_is_wrong() {
        let cases = [
            ("", PARSE_ERROR),
            ("{", PARSE_ERROR),
            ("nonsense", PARSE_ERROR),
            ("\u{feff}{}", PARSE_ERROR),
            ("[]", INVALID_REQUEST),
            ("5", INVALID_REQUEST),
            ("{}", INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#,
                INVALID_PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#,
                INVALID_PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
                INVALID_PARAMS,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":[1]}}"#,
                INVALID_PARAMS,
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(code(body), Some(expected), "{body}");
        }
        let deep = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}{}}}}}"#,
            "[".repeat(40),
            "]".repeat(40)
        );
        assert_eq!(code(&deep), Some(INVALID_REQUEST));
    }

    proptest! {
        #[test]
        fn nothing_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = inspect(&body, 16);
        }
    }
}
