//! Entry points for what clients send, for the fuzz targets and, for a moment, for property tests. Only there in builds for
//! these.

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{headers, message};

/// Deepest nesting, as in the config.
const MAX_DEPTH: usize = 64;

/// The body of a request, in both eras.
pub fn json_rpc(data: &[u8]) {
    for is_modern in [false, true] {
        let _ = message::read(data, MAX_DEPTH, is_modern);
    }
}

/// Lines of headers, `name: value`, and the body after an empty one.
pub fn request(data: &[u8]) {
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let mut map = HeaderMap::new();
    for line in data[..end].split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (
            HeaderName::from_bytes(name),
            HeaderValue::from_bytes(value.trim_ascii()),
        ) {
            map.append(name, value);
        }
    }
    for method in [Method::GET, Method::POST, Method::DELETE] {
        let _ = headers::check_media(&method, &map);
    }
    let body = data.get(end + 2..).unwrap_or_default();
    let read = message::read(body, MAX_DEPTH, headers::is_modern(&map)).ok();
    let _ = headers::check_version(&map, read.as_ref());
    if let Some(message) = read {
        let _ = headers::check_repeated(&map, &message, |_| None);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    const JSON: &str = "(\\{|\\}|\\[|\\]|,|:|\"jsonrpc\"|\"2.0\"|\"id\"|\"method\"|\"params\"|\"tools/call\"|\"name\"|\"arguments\"|\"_meta\"|1|1e999|null|true|\"\\\\ud83d\"|\"\\PC{0,4}\"){0,40}";

    proptest! {
        #[test]
        fn no_body_is_a_panic(text in JSON, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            super::json_rpc(text.as_bytes());
            super::json_rpc(&bytes);
        }

        #[test]
        fn no_headers_are_a_panic(headers in "((mcp-protocol-version|mcp-method|mcp-name|accept|content-type|mcp-session-id): ?(2026-07-28|2025-11-25|[a-z/*;,=? ]{0,20}|=\\?base64\\?[A-Za-z=]{0,8}\\?=|\\PC{0,8})\n){0,8}", body in JSON) {
            super::request(format!("{headers}\n{body}").as_bytes());
        }
    }
}
