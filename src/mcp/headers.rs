//! The headers of a request beside its body: what it accepts, which version it speaks, and what it repeats for
//! whoever routes without reading bodies. They must agree, or two readers would see two requests.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, JsonObject, JsonRpcMessage, JsonRpcRequest, ProtocolVersion,
    RequestMetaObject,
};
use serde_json::Value;

use super::reply::{HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, Rejection, id_value};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM_PREFIX: &str = "Mcp-Param-";

/// The first version without sessions. Versions are dates, so they compare as text.
const FIRST_MODERN: ProtocolVersion = ProtocolVersion::V_2026_07_28;

pub(super) fn is_modern(headers: &HeaderMap) -> bool {
    text(headers, VERSION).is_some_and(|version| version >= FIRST_MODERN.as_str())
}

pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Refuses who does not take what is answered, or sends something other than JSON.
pub(super) fn check_media(method: &Method, headers: &HeaderMap) -> Result<(), Rejection> {
    let refused = |status, message| Err(Rejection::new(Value::Null, INVALID_REQUEST, message).with_status(status));
    let (wildcards, needed): (&[&str], &[&str]) = match *method {
        Method::POST => (&["*/*", "application/*"], &["application/json", "text/event-stream"]),
        Method::GET => (&["*/*", "text/*"], &["text/event-stream"]),
        _ => return Ok(()),
    };
    if !accepts(headers, wildcards, needed) {
        let message = format!("Not Acceptable: the client must accept {}", needed.join(" and "));
        return refused(StatusCode::NOT_ACCEPTABLE, message);
    }
    let is_json = text(headers, CONTENT_TYPE.as_str()).is_some_and(|kind| kind.starts_with("application/json"));
    if method == Method::POST && !is_json {
        let message = "Unsupported Media Type: Content-Type must be application/json".to_owned();
        return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, message);
    }
    Ok(())
}

/// Returns whether a client accepts all that is needed. A wildcard, or no header at all, accepts it too.
fn accepts(headers: &HeaderMap, wildcards: &[&str], needed: &[&str]) -> bool {
    let mut accepted = headers.get_all(ACCEPT).iter().map(HeaderValue::to_str).peekable();
    if accepted.peek().is_none() {
        return true;
    }
    let ranges: Vec<&str> = accepted
        .flatten()
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim())
        .collect();
    ranges.iter().any(|range| wildcards.contains(range)) || needed.iter().all(|kind| ranges.contains(kind))
}

/// Refuses a version that is not known, unless the message itself names one, which is then judged by that.
pub(super) fn check_version(headers: &HeaderMap, message: Option<&ClientJsonRpcMessage>) -> Result<(), Rejection> {
    let request = message.and_then(request_of);
    let named = request.and_then(|request| request.request.get_meta().protocol_version());
    if let Some(version) = headers.get(VERSION) {
        let refused = |why: String| Rejection::new(Value::Null, INVALID_REQUEST, why);
        let version = version
            .to_str()
            .map_err(|_| refused("Bad Request: Invalid MCP-Protocol-Version header encoding".to_owned()))?;
        let is_known = ProtocolVersion::KNOWN_VERSIONS
            .iter()
            .any(|known| known.as_str() == version);
        if named.is_none() && !is_known {
            return Err(refused(format!(
                "Bad Request: Unsupported MCP-Protocol-Version: {version}"
            )));
        }
    }
    match request {
        Some(request) => check_named_version(headers, request),
        None => Ok(()),
    }
}

/// Refuses a request that names another version than its header.
fn check_named_version(headers: &HeaderMap, request: &JsonRpcRequest<ClientRequest>) -> Result<(), Rejection> {
    let sent = text(headers, VERSION);
    let refused = |code, why: String| Err(Rejection::new(id_value(&request.id), code, why));
    if let ClientRequest::InitializeRequest(initialize) = &request.request {
        let named = initialize.params.protocol_version.as_str();
        return match sent.filter(|sent| *sent != named) {
            None => Ok(()),
            Some(sent) => refused(
                INVALID_REQUEST,
                format!(
                    "Invalid Request: MCP-Protocol-Version header ({sent}) does not match initialize params.protocolVersion ({named})"
                ),
            ),
        };
    }
    let meta = request.request.get_meta();
    let is_discovery = matches!(&request.request, ClientRequest::DiscoverRequest(_));
    match (meta.protocol_version(), sent) {
        (None, sent) if is_discovery || sent.is_some_and(|sent| sent >= FIRST_MODERN.as_str()) => {
            let missing = meta.missing_required_keys(&FIRST_MODERN).join(", ");
            let why = format!("Invalid params: request _meta is missing or has malformed required fields: {missing}");
            refused(INVALID_PARAMS, why)
        }
        (Some(_), None) => {
            let why = "request _meta protocolVersion requires MCP-Protocol-Version header";
            refused(HEADER_MISMATCH, why.to_owned())
        }
        (Some(named), Some(sent)) if named.as_str() != sent => refused(
            HEADER_MISMATCH,
            format!("MCP-Protocol-Version header ({sent}) does not match request _meta protocolVersion ({named})"),
        ),
        _ => Ok(()),
    }
}

/// Returns whether a request has everything that one without a session needs.
pub(super) fn is_self_contained(meta: &RequestMetaObject) -> bool {
    meta.missing_required_keys(&FIRST_MODERN).is_empty()
}

/// Refuses a message of the newer era whose headers do not repeat what its body says. `schema` is that of a tool's
/// arguments, some of which may be repeated too.
pub(super) fn check_repeated(
    headers: &HeaderMap,
    message: &ClientJsonRpcMessage,
    schema: impl FnOnce(&str) -> Option<Arc<JsonObject>>,
) -> Result<(), Rejection> {
    if !is_modern(headers) {
        return Ok(());
    }
    let (id, checked) = match message {
        JsonRpcMessage::Request(request) => (id_value(&request.id), check_request(headers, &request.request, schema)),
        JsonRpcMessage::Notification(notification) => {
            let sent = serde_json::to_value(&notification.notification).unwrap_or_default();
            (
                Value::Null,
                check_method(headers, sent["method"].as_str().unwrap_or_default()),
            )
        }
        JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => return Ok(()),
    };
    checked.map_err(|why| Rejection::new(id, HEADER_MISMATCH, why))
}

fn check_request(
    headers: &HeaderMap,
    request: &ClientRequest,
    schema: impl FnOnce(&str) -> Option<Arc<JsonObject>>,
) -> Result<(), String> {
    // Who begins a session need not repeat anything, but must not contradict itself.
    if matches!(request, ClientRequest::InitializeRequest(_)) && !headers.contains_key(METHOD) {
        return Ok(());
    }
    check_method(headers, request.method())?;
    if let Some(name) = name_of(request) {
        let method = request.method();
        let sent = only(headers, NAME)?.ok_or_else(|| format!("missing required Mcp-Name header for `{method}`"))?;
        let sent = decoded(sent).ok_or("Mcp-Name header is not valid Base64")?;
        if sent != name {
            return Err(format!("Mcp-Name header `{sent}` does not match body value `{name}`"));
        }
    }
    match request {
        ClientRequest::CallToolRequest(call) => match schema(&call.params.name) {
            Some(schema) => check_params(headers, &schema, call.params.arguments.as_ref()),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn check_method(headers: &HeaderMap, method: &str) -> Result<(), String> {
    match only(headers, METHOD)? {
        None => Err("missing required Mcp-Method header".to_owned()),
        Some(sent) if sent != method => Err(format!(
            "Mcp-Method header `{sent}` does not match body method `{method}`"
        )),
        Some(_) => Ok(()),
    }
}

/// The subject of a request, by which it can be routed.
fn name_of(request: &ClientRequest) -> Option<&str> {
    Some(match request {
        ClientRequest::CallToolRequest(request) => &request.params.name,
        ClientRequest::GetPromptRequest(request) => &request.params.name,
        ClientRequest::ReadResourceRequest(request) => &request.params.uri,
        ClientRequest::SubscribeRequest(request) => &request.params.uri,
        ClientRequest::UnsubscribeRequest(request) => &request.params.uri,
        ClientRequest::GetTaskRequest(request) => &request.params.task_id,
        ClientRequest::UpdateTaskRequest(request) => &request.params.task_id,
        ClientRequest::CancelTaskRequest(request) => &request.params.task_id,
        _ => return None,
    })
}

/// Refuses arguments that their schema wants repeated and that are not, wherever in the schema they are.
fn check_params(headers: &HeaderMap, schema: &JsonObject, arguments: Option<&JsonObject>) -> Result<(), String> {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return Ok(());
    };
    for (name, property) in properties {
        let Some(property) = property.as_object() else { continue };
        let value = arguments.and_then(|arguments| arguments.get(name));
        if let Some(Value::String(header)) = property.get("x-mcp-header") {
            check_param(headers, &format!("{PARAM_PREFIX}{header}"), name, value)?;
        }
        check_params(headers, property, value.and_then(Value::as_object))?;
    }
    Ok(())
}

fn check_param(headers: &HeaderMap, header: &str, name: &str, value: Option<&Value>) -> Result<(), String> {
    let value = match value {
        Some(Value::String(text)) => Some(text.clone()),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => Some(value.to_string()),
        _ => None,
    };
    match (only(headers, header)?, value) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(format!("unexpected {header} header for absent or null `{name}`")),
        (None, Some(_)) => Err(format!("missing {header} header for `{name}`")),
        (Some(sent), Some(value)) => {
            let sent = decoded(sent).ok_or_else(|| format!("{header} header is not valid Base64"))?;
            match sent == value {
                true => Ok(()),
                false => Err(format!("{header} header `{sent}` does not match body value `{value}`")),
            }
        }
    }
}

/// The value of a header that may be there once: whoever routes might believe the other one.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    match values.next() {
        Some(_) => Err(format!("duplicate {name} header")),
        // A value that is no text matches nothing.
        None => Ok(value.map(|value| value.to_str().unwrap_or_default())),
    }
}

/// The value of a header, which is wrapped if headers cannot carry it.
fn decoded(value: &str) -> Option<String> {
    let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match wrapped {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn request_of(message: &ClientJsonRpcMessage) -> Option<&JsonRpcRequest<ClientRequest>> {
    match message {
        JsonRpcMessage::Request(request) => Some(request),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use rmcp::model::{CallToolRequest, CallToolRequestParams, JsonRpcVersion2_0, RequestId};
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        headers
    }

    fn code(pairs: &[(&str, &str)], arguments: Value) -> Option<i32> {
        let mut params = CallToolRequestParams::new("read");
        params.arguments = arguments.as_object().cloned();
        let message = JsonRpcMessage::Request(JsonRpcRequest {
            jsonrpc: JsonRpcVersion2_0,
            id: RequestId::Number(1),
            request: ClientRequest::CallToolRequest(CallToolRequest::new(params)),
        });
        let schema = json!({ "properties": {
            "path": { "type": "string", "x-mcp-header": "Path" },
            "at": { "properties": { "row": { "type": "integer", "x-mcp-header": "Row" } } },
        } });
        let schema = schema.as_object().cloned().map(Arc::new);
        let sent = [&[(VERSION, "2026-07-28"), (METHOD, "tools/call")], pairs].concat();
        let checked = check_repeated(&headers(&sent), &message, |_| schema);
        checked.err().map(|rejection| rejection.code)
    }

    #[test]
    fn headers_repeat_what_the_body_says() {
        let name = (NAME, "read");
        let (path, row) = (("mcp-param-path", "a.ipynb"), ("mcp-param-row", "7"));
        assert_eq!(code(&[name], json!({})), None);
        assert_eq!(code(&[name, path], json!({ "path": "a.ipynb" })), None);
        assert_eq!(
            code(&[name, ("mcp-param-path", "=?base64?w6Q=?=")], json!({ "path": "ä" })),
            None
        );
        assert_eq!(code(&[name, row], json!({ "path": null, "at": { "row": 7 } })), None);
        let wrong: [(&[(&str, &str)], Value); 7] = [
            (&[], json!({})),
            (&[(NAME, "write")], json!({})),
            (&[name, name], json!({})),
            (&[name], json!({ "path": "a.ipynb" })),
            (&[name, path], json!({})),
            (&[name, path], json!({ "path": "b.ipynb" })),
            (&[name, row], json!({ "at": { "row": 8 } })),
        ];
        for (pairs, arguments) in wrong {
            assert_eq!(code(pairs, arguments), Some(HEADER_MISMATCH), "{pairs:?}");
        }
    }

    #[test]
    fn whoever_takes_anything_takes_what_is_answered() {
        let status = |pairs: &[(&str, &str)]| {
            let json = [pairs, &[("content-type", "application/json; charset=utf-8")]].concat();
            let checked = check_media(&Method::POST, &headers(&json));
            checked.err().map(|rejection| rejection.status.as_u16())
        };
        assert_eq!(status(&[]), None);
        assert_eq!(status(&[("accept", "text/html, */*;q=0.1")]), None);
        assert_eq!(
            status(&[("accept", "application/json"), ("accept", "text/event-stream")]),
            None
        );
        assert_eq!(status(&[("accept", "application/json")]), Some(406));
    }
}
