//! A first look at a message, before the protocol library reads it: is it JSON, is it sane, what is it?
//! The library answers malformed bodies in plain text; clients deserve JSON-RPC errors.

mod params;

use serde::{Deserialize, Deserializer};
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

pub(super) const PARSE_ERROR: i32 = -32700;
pub(super) const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

/// Methods of the older era only.
const REMOVED: [&str; 3] = ["initialize", "resources/subscribe", "resources/unsubscribe"];

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "present")]
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

/// Tells a member that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The id under which a message is answered, as far as it can be read.
pub(super) fn id_of(body: &[u8]) -> Value {
    let message = serde_json::from_slice::<Message<'_>>(body);
    message.ok().and_then(|message| message.id).unwrap_or_default()
}

/// Checks the shape of a body, which came as one of the newer era or not.
pub(super) fn inspect(body: &[u8], max_depth: usize, is_modern: bool) -> Result<Envelope, Malformed> {
    let shape = Shape::of(body);
    if shape.depth > max_depth {
        return Err(malformed(
            Value::Null,
            INVALID_REQUEST,
            format!("the message is nested more than {max_depth} levels deep"),
        ));
    }
    if body.trim_ascii_start().first() == Some(&b'[') {
        let why = "batches are not supported; send each message as a request of its own";
        return Err(malformed(Value::Null, INVALID_REQUEST, why));
    }
    // What is not looked at here would pass, and be refused by the library in words for nobody.
    if shape.has_lone_surrogate {
        let why = "the body is not valid JSON: an escape such as \\ud83d is half of a character";
        return Err(malformed(Value::Null, PARSE_ERROR, why));
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
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    // Only an answer to what could not be read has none.
    let may_be_null = message.method.is_none();
    if !message
        .id
        .as_ref()
        .is_none_or(|id| is_id(id) || may_be_null && id.is_null())
    {
        return Err(malformed(
            Value::Null,
            INVALID_REQUEST,
            "`id` must be a string or an integer",
        ));
    }
    match message.method {
        Some(Value::String(method)) => inspect_request(&method, message.params, id, is_modern),
        Some(_) => Err(malformed(id, INVALID_REQUEST, "`method` must be a string")),
        None if message.result.is_some() || message.error.is_some() => Ok(Envelope::Other),
        None => Err(malformed(id, INVALID_REQUEST, "`method` is missing")),
    }
}

fn inspect_request(
    method: &str,
    params: Option<&serde_json::value::RawValue>,
    id: Value,
    is_modern: bool,
) -> Result<Envelope, Malformed> {
    let text = params.map_or("{}", |params| params.get());
    if !text.starts_with('{') {
        return Err(malformed(id, INVALID_PARAMS, "`params` must be an object"));
    }
    // A method that the newer era has not got takes no parameters there, right or wrong.
    if !(is_modern && REMOVED.contains(&method)) {
        params::check(method, text).map_err(|why| malformed(id, INVALID_PARAMS, why))?;
    }
    Ok(match method {
        "initialize" => Envelope::Initialize,
        "tools/call" => Envelope::Call,
        _ => Envelope::Other,
    })
}

pub(super) fn malformed(id: Value, code: i32, message: impl Into<String>) -> Malformed {
    Malformed {
        id,
        code,
        message: message.into(),
    }
}

/// What can be seen of a body without building what it says.
#[derive(Default)]
struct Shape {
    /// How deeply objects and arrays are nested.
    depth: usize,
    /// Whether a string has half of a character.
    has_lone_surrogate: bool,
}

impl Shape {
    fn of(body: &[u8]) -> Self {
        let (mut depth, mut shape) = (0_usize, Self::default());
        let mut bytes = body.iter();
        while let Some(byte) = bytes.next() {
            match byte {
                b'{' | b'[' => {
                    depth += 1;
                    shape.depth = shape.depth.max(depth);
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                b'"' => shape.has_lone_surrogate |= !skip_string(&mut bytes),
                _ => {}
            }
        }
        shape
    }
}

/// Skips the rest of a string, and tells whether its escapes make whole characters.
fn skip_string(bytes: &mut std::slice::Iter<'_, u8>) -> bool {
    let mut is_whole = true;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return is_whole,
            b'\\' if bytes.next() == Some(&b'u') => is_whole &= skip_character(bytes),
            _ => {}
        }
    }
    is_whole
}

/// Skips what follows `\u`: one code unit, or two that are a character together.
fn skip_character(bytes: &mut std::slice::Iter<'_, u8>) -> bool {
    let code_unit = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    let rest = bytes.as_slice();
    match rest.get(..4).and_then(code_unit) {
        Some(0xD800..0xDC00) => {
            let second = rest.get(4..10).and_then(|rest| code_unit(rest.strip_prefix(b"\\u")?));
            let is_pair = second.is_some_and(|second| (0xDC00..0xE000).contains(&second));
            if is_pair {
                *bytes = rest[10..].iter();
            }
            is_pair
        }
        Some(0xDC00..0xE000) => false,
        // What is no escape at all is found by those who read it.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(body: &str) -> Option<i32> {
        inspect(body.as_bytes(), 16, false)
            .err()
            .map(|malformed| malformed.code)
    }

    #[test]
    fn sound_messages_pass() {
        for body in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#" {"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
            r#"{"jsonrpc":"2.0","id":"\ud83d\ude00 \\ud83d \u00e9","method":"ping"}"#,
        ] {
            assert_eq!(inspect(body.as_bytes(), 16, false), Ok(Envelope::Other), "{body}");
        }
        for body in [
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"a":"[[[[[[[[[[[[[[[["}}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":null}}"#,
        ] {
            assert_eq!(inspect(body.as_bytes(), 16, false), Ok(Envelope::Call), "{body}");
        }
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        assert_eq!(inspect(initialize.as_bytes(), 16, false), Ok(Envelope::Initialize));
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
                r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}"#,
                INVALID_PARAMS,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"resources/read"}"#, INVALID_PARAMS),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\ud83d"}}"#,
                PARSE_ERROR,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\ud83d\ud83d"}}"#,
                PARSE_ERROR,
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","other":"\ude00"}"#, PARSE_ERROR),
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
        let removed = r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe"}"#;
        assert_eq!(code(removed), Some(INVALID_PARAMS));
        assert_eq!(inspect(removed.as_bytes(), 16, true), Ok(Envelope::Other));
    }

    proptest! {
        #[test]
        fn nothing_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = inspect(&body, 16, false);
        }
    }
}
