//! Text that a kernel puts out in one very long message. It is handed on piece by piece, as if the kernel had put it out
//! so: most of it will be left out by whoever keeps outputs, and unescaped as a whole it would be in memory several times.

use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{Framing, Message, escape_length, parse, v1_parts};
use crate::{is_shallow_json, kernel::Channel};

/// Upper bound of the bytes of JSON for one character: a surrogate pair, both halves escaped.
const LONGEST_CHARACTER: usize = 12;

/// The messages that a long one is taken for.
pub(in crate::kernel) struct LongStream {
    /// Without its text.
    message: Message,
    frame: Bytes,
    /// Range of the rest of the text in the frame, escaped as in JSON and without its quotes.
    rest: Range<usize>,
    piece: usize,
}

#[derive(Deserialize)]
struct Content<'a> {
    name: String,
    #[serde(borrow)]
    text: &'a RawValue,
}

impl LongStream {
    /// A frame as pieces of about so many bytes; `None` if it is anything else than a stream that is longer.
    pub(in crate::kernel) fn of(framing: Framing, frame: &Bytes, piece: usize) -> Option<Self> {
        if framing != Framing::V1 || frame.len() <= piece {
            return None;
        }
        let parts = v1_parts(frame).ok()?;
        let [channel, header, parent, metadata, content] = &parts[..] else {
            return None;
        };
        // The text is looked through by its parser.
        if [header, parent, metadata]
            .into_iter()
            .any(|part| !is_shallow_json(part))
        {
            return None;
        }
        let channel = Channel::parse(std::str::from_utf8(channel).ok()?)?;
        let header: Value = parse(header).ok()?;
        if header.get("msg_type")? != "stream" {
            return None;
        }
        let Content { name, text } = serde_json::from_slice(content).ok()?;
        let text = text.get().strip_prefix('"')?.strip_suffix('"')?;
        let start = text.as_ptr().addr() - frame.as_ptr().addr();
        let (parent, metadata) = (parse(parent).ok()?, parse(metadata).ok()?);
        let content = json!({ "name": name });
        Some(Self {
            message: Message::new(channel, header, &parent, metadata, content, Vec::new())?,
            rest: start..start + text.len(),
            frame: frame.clone(),
            piece,
        })
    }
}

impl Iterator for LongStream {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        let end = self.rest.end.min(self.rest.start + self.piece + LONGEST_CHARACTER);
        let ahead = self.frame.get(self.rest.start..end)?.utf8_chunks().next()?.valid();
        let piece = ahead.get(..end_of_piece(ahead, self.piece))?;
        if piece.is_empty() {
            return None;
        }
        self.rest.start += piece.len();
        let mut message = self.message.clone();
        message.content["text"] = parse(format!("\"{piece}\"").as_bytes()).unwrap_or_default();
        Some(message)
    }
}

/// The end of a piece about as long as wanted: between two characters, however they are escaped.
fn end_of_piece(text: &str, wanted: usize) -> usize {
    let wanted = text.ceil_char_boundary(wanted.min(text.len()));
    let mut end = 0;
    while let Some(plain) = text.get(end..wanted).and_then(|piece| piece.find('\\')) {
        let escape = end + plain;
        end = escape + escape_length(&text[escape..]);
    }
    end.max(wanted)
}
