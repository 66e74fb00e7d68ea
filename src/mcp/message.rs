//! Reads a message: its shape, its envelope, and its parameters as the type that its method takes. What is wrong with
//! it is told as a JSON-RPC error.

mod params;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage,
    RequestId,
};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, value::RawValue};

use super::reply::{INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Rejection};

/// Methods of the older era only.
const REMOVED: [&str; 3] = ["initialize", "resources/subscribe", "resources/unsubscribe"];
const UNREADABLE: &str = "the body is not a valid JSON-RPC message";

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<Value>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    error: Option<serde::de::IgnoredAny>,
}

/// Tells a member that is null from one that is not there.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a body, which came as one of the newer era or not.
pub(super) fn read(body: &[u8], max_depth: usize, is_modern: bool) -> Result<ClientJsonRpcMessage, Rejection> {
    let shape = Shape::of(body);
    if shape.depth > max_depth {
        return Err(Rejection::new(
            Value::Null,
            INVALID_REQUEST,
            format!("the message is nested more than {max_depth} levels deep"),
        ));
    }
    if body.trim_ascii_start().first() == Some(&b'[') {
        let why = "batches are not supported; send each message as a request of its own";
        return Err(Rejection::new(Value::Null, INVALID_REQUEST, why));
    }
    // What is not looked at here would pass, and be refused by the library in words for nobody.
    if shape.has_lone_surrogate {
        let why = "the body is not valid JSON: an escape such as \\ud83d is half of a character";
        return Err(Rejection::new(Value::Null, PARSE_ERROR, why));
    }
    let message: Envelope<'_> = serde_json::from_slice(body).map_err(|error| match error.classify() {
        serde_json::error::Category::Data => {
            Rejection::new(Value::Null, INVALID_REQUEST, format!("not a JSON-RPC message: {error}"))
        }
        _ => Rejection::new(Value::Null, PARSE_ERROR, format!("the body is not valid JSON: {error}")),
    })?;
    let id = message.id.clone().unwrap_or_default();
    if message.jsonrpc.as_ref().and_then(Value::as_str) != Some("2.0") {
        return Err(Rejection::new(id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\""));
    }
    let is_id = |id: &Value| id.is_string() || id.is_i64() || id.is_u64();
    // Only an answer to what could not be read has none.
    let may_be_null = message.method.is_none();
    if !message
        .id
        .as_ref()
        .is_none_or(|id| is_id(id) || may_be_null && id.is_null())
    {
        return Err(Rejection::new(
            Value::Null,
            INVALID_REQUEST,
            "`id` must be a string or an integer",
        ));
    }
    let rejected = |code, why: &str| Err(Rejection::new(id.clone(), code, why));
    match message.method {
        Some(Value::String(method)) => {
            let params = message.params.map_or("{}", RawValue::get);
            if !params.starts_with('{') {
                return rejected(INVALID_PARAMS, "`params` must be an object");
            }
            // Calls are many, and their arguments may be large.
            let read = match (method.as_str(), message.id) {
                ("tools/call", Some(id)) => read_call(id, params),
                _ => serde_json::from_slice(body).ok(),
            };
            // rmcp takes a request whose parameters it cannot read for one of an unknown method.
            let is_unread = read.as_ref().is_none_or(is_custom);
            // A method that the newer era has not got takes no parameters there, right or wrong.
            if is_unread && !(is_modern && REMOVED.contains(&method.as_str())) {
                let checked = params::check(&method, params);
                checked.map_err(|why| Rejection::new(id.clone(), INVALID_PARAMS, why))?;
            }
            read.ok_or_else(|| Rejection::new(id, PARSE_ERROR, UNREADABLE))
        }
        Some(_) => rejected(INVALID_REQUEST, "`method` must be a string"),
        None if message.result.is_some() || message.error.is_some() => {
            serde_json::from_slice(body).map_err(|_| Rejection::new(id, PARSE_ERROR, UNREADABLE))
        }
        None => rejected(INVALID_REQUEST, "`method` is missing"),
    }
}

fn read_call(id: Value, params: &str) -> Option<ClientJsonRpcMessage> {
    let id: RequestId = serde_json::from_value(id).ok()?;
    let mut params: CallToolRequestParams = serde_json::from_str(params).ok()?;
    // As rmcp does it: what is said beside the parameters is beside them.
    let meta = params.meta.take();
    let mut request = CallToolRequest::new(params);
    if let Some(meta) = meta {
        request.extensions.insert(meta);
    }
    Some(JsonRpcMessage::request(ClientRequest::CallToolRequest(request), id))
}

fn is_custom(message: &ClientJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Request(request) => matches!(request.request, ClientRequest::CustomRequest(_)),
        JsonRpcMessage::Notification(notification) => {
            matches!(notification.notification, ClientNotification::CustomNotification(_))
        }
        _ => false,
    }
}

/// The shape of a body, seen without building its values.
#[derive(Default)]
struct Shape {
    /// Nesting depth of objects and arrays.
    depth: usize,
    /// True if a string has a lone surrogate.
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
    use rmcp::model::GetMeta;

    use super::*;
    use proptest::prelude::*;

    fn code(body: &str) -> Option<i32> {
        read(body.as_bytes(), 16, false).err().map(|rejection| rejection.code)
    }

    #[test]
    fn sound_messages_are_read() {
        let is_request = |body: &str, is: fn(&ClientRequest) -> bool| match read(body.as_bytes(), 16, false) {
            Ok(JsonRpcMessage::Request(request)) => is(&request.request),
            other => panic!("{body}: {other:?}"),
        };
        let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        assert!(is_request(list, |request| matches!(
            request,
            ClientRequest::ListToolsRequest(_)
        )));
        let ping = r#"{"jsonrpc":"2.0","id":"\ud83d\ude00 \\ud83d \u00e9","method":"ping"}"#;
        assert!(is_request(ping, |request| matches!(
            request,
            ClientRequest::PingRequest(_)
        )));
        for body in [
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"a":"[[[[[[[[[[[[[[[["}}}"#,
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":null}}"#,
        ] {
            assert!(is_request(
                body,
                |request| matches!(request, ClientRequest::CallToolRequest(call) if call.params.name == "x")
            ));
        }
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
        assert!(is_request(initialize, |request| matches!(
            request,
            ClientRequest::InitializeRequest(_)
        )));
        for body in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#" {"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
        ] {
            let read = read(body.as_bytes(), 16, false);
            assert!(
                matches!(&read, Ok(message) if !matches!(message, JsonRpcMessage::Request(_))),
                "{body}: {read:?}"
            );
        }
    }

    #[test]
    fn what_stands_beside_the_parameters_of_a_call_is_found_there() {
        let body =
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}"#;
        let by_rmcp: ClientJsonRpcMessage = serde_json::from_str(body).expect("a message");
        let read = read(body.as_bytes(), 16, false).expect("a message");
        let meta = |message: &ClientJsonRpcMessage| match message {
            JsonRpcMessage::Request(request) => request.request.get_meta().clone(),
            other => panic!("{other:?}"),
        };
        assert!(meta(&read).get_progress_token().is_some());
        assert_eq!(meta(&read), meta(&by_rmcp));
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
        assert!(read(removed.as_bytes(), 16, true).is_ok());
    }

    proptest! {
        #[test]
        fn nothing_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&body, 16, false);
        }
    }
}
