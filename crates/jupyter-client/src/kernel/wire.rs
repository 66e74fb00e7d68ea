//! Encoding of messages in WebSocket frames: the `v1.kernel.websocket.jupyter.org` subprotocol, and the format of
//! servers without it. Does no I/O.

mod long_stream;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

pub(super) use self::long_stream::LongStream;
use super::message::{Channel, Message, Outgoing};
use crate::{MAX_NESTING, is_shallow_json};

/// The name of the newer framing, as the opening handshake spells it.
pub(super) const SUBPROTOCOL: &str = "v1.kernel.websocket.jupyter.org";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Binary frames that hold the parts of a message one after another.
    V1,
    /// One JSON text, or a binary frame of that JSON and its buffers.
    Legacy,
}

/// The content of a WebSocket frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Payload {
    Text(String),
    Binary(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the offsets of a frame lie outside of it")]
    Offsets,
    #[error("a frame has too few parts")]
    TooFewParts,
    #[error("a frame names no channel of a kernel")]
    Channel,
    #[error("a part of a frame is not JSON")]
    Json,
    #[error("a message has no id or no type")]
    Header,
}

pub(super) fn encode(framing: Framing, message: &Outgoing) -> Payload {
    match framing {
        Framing::V1 => Payload::Binary(encode_v1(message)),
        Framing::Legacy => Payload::Text(encode_legacy(message)),
    }
}

/// Reads a binary frame.
pub(super) fn decode_binary(framing: Framing, frame: &Bytes) -> Result<Message, WireError> {
    match framing {
        Framing::V1 => decode_v1(frame),
        Framing::Legacy => decode_legacy_binary(frame),
    }
}

/// Reads a text frame, which only the older framing has.
pub(super) fn decode_text(frame: &[u8]) -> Result<Message, WireError> {
    decode_legacy(frame, Vec::new())
}

/// Reads a frame in every way that there is.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_any(frame: &Bytes) {
    let _ = decode_binary(Framing::V1, frame);
    let _ = decode_binary(Framing::Legacy, frame);
    let _ = decode_text(frame);
}

fn encode_v1(message: &Outgoing) -> Vec<u8> {
    let parts = [
        message.channel.as_str(),
        &message.header,
        &message.parent,
        "{}",
        &message.content,
    ];
    let offsets = parts.len() + 1;
    let mut end = 8 * (offsets + 1);
    let mut frame = Vec::with_capacity(end + message.size() + 16);
    frame.extend_from_slice(&(offsets as u64).to_le_bytes());
    frame.extend_from_slice(&(end as u64).to_le_bytes());
    for part in parts {
        end += part.len();
        frame.extend_from_slice(&(end as u64).to_le_bytes());
    }
    for part in parts {
        frame.extend_from_slice(part.as_bytes());
    }
    frame
}

fn decode_v1(frame: &Bytes) -> Result<Message, WireError> {
    let mut parts = v1_parts(frame)?;
    let buffers = parts.split_off(5);
    let channel = std::str::from_utf8(&parts[0])
        .ok()
        .and_then(Channel::parse)
        .ok_or(WireError::Channel)?;
    let [_, header, parent, metadata, content] = &parts[..] else {
        return Err(WireError::TooFewParts);
    };
    message(channel, [header, parent, metadata, content], buffers)
}

/// A message of its four JSON parts. Of one that is nested too deeply nothing is read; what it should have shown is
/// told instead, since a message that does not come is waited for.
fn message(channel: Channel, parts: [&[u8]; 4], buffers: Vec<Bytes>) -> Result<Message, WireError> {
    let read = |json: &[u8]| match is_shallow_json(json) {
        true => parse(json).map(Some),
        false => Ok(None),
    };
    let [header, parent, metadata, content] = parts;
    let header: Value = read(header)?.ok_or(WireError::Header)?;
    let content = match read(content)? {
        Some(content) => content,
        None => left_out(&header),
    };
    let (parent, metadata) = (read(parent)?.unwrap_or_default(), read(metadata)?.unwrap_or_default());
    Message::new(channel, header, &parent, metadata, content, buffers).ok_or(WireError::Header)
}

/// The content in the place of one that is nested too deeply. Requests end by what says that they ended, whatever else
/// it says.
fn left_out(header: &Value) -> Value {
    let kind = header.get("msg_type").and_then(Value::as_str).unwrap_or_default();
    tracing::warn!(
        kind,
        "a kernel sent a message that is nested too deeply; it is left out"
    );
    let notice = format!("[left out: nested more than {MAX_NESTING} levels deep]");
    match kind {
        "display_data" | "update_display_data" | "execute_result" => {
            json!({ "data": { "text/plain": notice }, "metadata": {}, "transient": {} })
        }
        "execute_reply" => json!({ "status": "ok" }),
        _ => json!({}),
    }
}

/// The channel, the four parts that every message has, and its buffers. The frame begins with the count of the offsets
/// and the offsets; each part ends where the next one begins.
fn v1_parts(frame: &Bytes) -> Result<Vec<Bytes>, WireError> {
    let number = |index: usize| -> Option<usize> {
        let bytes = frame.get(index.checked_mul(8)?..)?.first_chunk::<8>()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let count = number(0).ok_or(WireError::Offsets)?;
    // A frame that is shorter than its offsets would be is refused before anything is reserved for them.
    if count > frame.len() / 8 {
        return Err(WireError::Offsets);
    }
    let part = |index: usize| -> Result<Bytes, WireError> {
        let (start, end) = number(index + 1).zip(number(index + 2)).ok_or(WireError::Offsets)?;
        slice(frame, start, end)
    };
    let parts = count.saturating_sub(1);
    if parts < 5 {
        return Err(WireError::TooFewParts);
    }
    (0..parts).map(part).collect()
}

fn encode_legacy(message: &Outgoing) -> String {
    format!(
        r#"{{"channel":"{}","header":{},"parent_header":{},"metadata":{{}},"content":{},"buffers":[]}}"#,
        message.channel.as_str(),
        message.header,
        message.parent,
        message.content
    )
}

/// Like the newer framing, but with 32-bit numbers in network order, all of the message but its buffers in
/// the first part, and the end of the last part left out.
fn decode_legacy_binary(frame: &Bytes) -> Result<Message, WireError> {
    let number = |index: usize| -> Option<usize> {
        let bytes = frame.get(index.checked_mul(4)?..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_be_bytes(*bytes)).ok()
    };
    let parts = number(0).ok_or(WireError::Offsets)?;
    if parts > frame.len() / 4 {
        return Err(WireError::Offsets);
    }
    let part = |index: usize| -> Result<Bytes, WireError> {
        let start = number(index + 1);
        let end = if index + 1 == parts {
            Some(frame.len())
        } else {
            number(index + 2)
        };
        let (start, end) = start.zip(end).ok_or(WireError::Offsets)?;
        slice(frame, start, end)
    };
    if parts == 0 {
        return Err(WireError::TooFewParts);
    }
    let buffers = (1..parts).map(part).collect::<Result<_, _>>()?;
    decode_legacy(&part(0)?, buffers)
}

/// The parts are looked at before they are read.
#[derive(Deserialize)]
struct Legacy {
    channel: String,
    header: Box<RawValue>,
    parent_header: Option<Box<RawValue>>,
    metadata: Option<Box<RawValue>>,
    content: Option<Box<RawValue>>,
}

fn decode_legacy(json: &[u8], buffers: Vec<Bytes>) -> Result<Message, WireError> {
    let legacy: Legacy = parse(json)?;
    let channel = Channel::parse(&legacy.channel).ok_or(WireError::Channel)?;
    let parts = [
        Some(&legacy.header),
        legacy.parent_header.as_ref(),
        legacy.metadata.as_ref(),
        legacy.content.as_ref(),
    ];
    let json = parts.map(|part| part.map_or("null", |part| part.get()).as_bytes());
    message(channel, json, buffers)
}

fn slice(frame: &Bytes, start: usize, end: usize) -> Result<Bytes, WireError> {
    if start > end || end > frame.len() {
        return Err(WireError::Offsets);
    }
    Ok(frame.slice(start..end))
}

/// Python prints text that is not Unicode, half surrogate pairs, and kernels send it on as it is: as
/// bytes that are not UTF-8, or as escapes of half a pair. Such characters become replacement
/// characters, as in a browser.
fn parse<T: for<'de> Deserialize<'de>>(json: &[u8]) -> Result<T, WireError> {
    serde_json::from_slice(json)
        .or_else(|_| serde_json::from_str(&replace_lone_surrogates(&String::from_utf8_lossy(json))))
        .map_err(|_| WireError::Json)
}

/// Replaces escapes of half a surrogate pair.
fn replace_lone_surrogates(json: &str) -> String {
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        mended.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = escape_length(rest);
        match escaped(rest) {
            Some(0xd800..0xe000) if length == 6 => mended.push_str("\\ufffd"),
            _ => mended.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    mended.push_str(rest);
    mended
}

/// The length of the escape of a text's first character, a surrogate pair being one character.
fn escape_length(text: &str) -> usize {
    match (escaped(text), text.get(6..).and_then(escaped)) {
        (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
        (Some(_), _) => 6,
        // The escaped character may itself be a backslash, which then begins nothing.
        (None, _) => 1 + text[1..].chars().next().map_or(0, char::len_utf8),
    }
}

/// The number of a `\uXXXX` that a text begins with.
fn escaped(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests;
