//! Frames as bytes: what is sent can be read, and nothing that is received can do harm.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kernel::ExecuteRequest;

fn request(code: &str) -> Outgoing {
    let request = ExecuteRequest {
        code: code.to_owned(),
        silent: false,
        store_history: true,
        allow_stdin: true,
        stop_on_error: true,
    };
    Outgoing::execute("the session", "the id", &request)
}

/// A frame as Jupyter makes it of raw parts, the channel first.
fn v1_frame(parts: &[&[u8]]) -> Bytes {
    let mut end = 8 * (parts.len() as u64 + 2);
    let mut numbers = vec![parts.len() as u64 + 1, end];
    for part in parts {
        end += part.len() as u64;
        numbers.push(end);
    }
    let head = numbers.iter().flat_map(|number| number.to_le_bytes());
    head.chain(parts.concat()).collect()
}

/// The older binary frame.
fn legacy_frame(parts: &[&[u8]]) -> Bytes {
    let count = u32::try_from(parts.len()).expect("few");
    let mut start = 4 * (count + 1);
    let mut numbers = vec![count];
    for part in parts {
        numbers.push(start);
        start += u32::try_from(part.len()).expect("short");
    }
    let head = numbers.iter().flat_map(|number| number.to_be_bytes());
    head.chain(parts.concat()).collect()
}

fn stream(text: &[u8]) -> Bytes {
    let content = [br#"{"name":"stdout","text":""#, text, br#""}"#].concat();
    let parts: [&[u8]; 5] = [
        b"iopub",
        br#"{"msg_id":"m","msg_type":"stream"}"#,
        b"{}",
        b"{}",
        &content,
    ];
    v1_frame(&parts)
}

#[test]
fn a_part_that_is_nested_too_deeply_is_left_out_and_the_rest_is_read() {
    for depth in [8_000, 100_000] {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        let header = r#"{"msg_id":"m","msg_type":"display_data"}"#;
        let parts: [&[u8]; 5] = [
            b"iopub",
            header.as_bytes(),
            deep.as_bytes(),
            deep.as_bytes(),
            deep.as_bytes(),
        ];
        let legacy = format!(
            r#"{{"channel":"iopub","header":{header},"parent_header":{deep},"metadata":{deep},"content":{deep}}}"#
        );
        for message in [
            decode_binary(Framing::V1, &v1_frame(&parts)),
            decode_text(legacy.as_bytes()),
            decode_binary(Framing::Legacy, &legacy_frame(&[legacy.as_bytes()])),
        ] {
            let message = message.expect("a message");
            assert_eq!(message.parent_id, None);
            let shown = message.content["data"]["text/plain"].as_str().expect("a notice");
            assert!(shown.contains("left out"), "{shown}");
        }
        let parts: [&[u8]; 5] = [b"iopub", deep.as_bytes(), b"{}", b"{}", b"{}"];
        assert_eq!(decode_binary(Framing::V1, &v1_frame(&parts)), Err(WireError::Header));
    }
}

#[test]
fn a_request_reads_the_same_in_both_framings() {
    let sent = request("print('ä')\n");
    let Payload::Binary(v1) = encode(Framing::V1, &sent) else {
        panic!("the newer framing is binary");
    };
    let Payload::Text(legacy) = encode(Framing::Legacy, &sent) else {
        panic!("the older framing is text");
    };
    let v1 = decode_binary(Framing::V1, &v1.into()).expect("a message");
    assert_eq!(v1, decode_text(legacy.as_bytes()).expect("a message"));
    assert_eq!((v1.channel, v1.msg_id.as_str()), (Channel::Shell, "the id"));
    assert_eq!(v1.msg_type, "execute_request");
    assert_eq!(v1.header["session"], "the session");
    assert_eq!(v1.content["code"], "print('ä')\n");
    assert_eq!(v1.content["user_expressions"], json!({}));
    assert_eq!((v1.parent_id, v1.parent_session), (None, None));
}

#[test]
fn an_answer_names_the_header_of_its_question_as_its_parent() {
    let header = br#"{"msg_id":"q","msg_type":"input_request","session":"kernel","date":"d"}"#;
    let parts: [&[u8]; 5] = [b"stdin", header, br#"{"msg_id":"p","session":"mine"}"#, b"{}", b"{}"];
    let question = decode_binary(Framing::V1, &v1_frame(&parts)).expect("a message");
    assert_eq!(question.parent_id.as_deref(), Some("p"));
    assert_eq!(question.parent_session.as_deref(), Some("mine"));
    let reply = Outgoing::input_reply("mine", "r", &question.header, "hunter2");
    assert_eq!(
        serde_json::from_str::<Value>(&reply.parent).expect("json"),
        question.header
    );
    let Payload::Binary(frame) = encode(Framing::V1, &reply) else {
        panic!("the newer framing is binary");
    };
    let reply = decode_binary(Framing::V1, &frame.into()).expect("a message");
    assert_eq!(reply.content["value"], "hunter2");
    assert!(!format!("{reply:?}").contains("hunter2"), "a password is not shown");
}

#[test]
fn buffers_follow_the_message_in_both_framings() {
    let header = br#"{"msg_id":"m","msg_type":"comm_msg"}"#;
    let parts: [&[u8]; 7] = [b"iopub", header, b"{}", b"{}", b"{}", b"\x00\xff", b""];
    let message = decode_binary(Framing::V1, &v1_frame(&parts)).expect("a message");
    assert_eq!(message.buffers, [&b"\x00\xff"[..], b""]);
    let json = br#"{"channel":"iopub","header":{"msg_id":"m","msg_type":"comm_msg"},"parent_header":{},"metadata":{},"content":{}}"#;
    let legacy = decode_binary(Framing::Legacy, &legacy_frame(&[json, b"\x00\xff", b""])).expect("a message");
    assert_eq!(legacy, message);
}

#[test]
fn text_that_is_not_unicode_is_mended() {
    let text = |frame: Bytes| {
        let message = decode_binary(Framing::V1, &frame).expect("a message");
        message.content["text"].as_str().expect("text").to_owned()
    };
    assert_eq!(text(stream(b"a\xffb")), "a\u{fffd}b");
    assert_eq!(text(stream(br"a\udcffb")), "a\u{fffd}b");
    assert_eq!(
        text(stream(br"\ud83d\ude00 \\udcff \ud83d \ud83d\ud83d\ude00")),
        "😀 \\udcff \u{fffd} \u{fffd}😀"
    );
}

#[test]
fn a_long_stream_is_taken_for_several() {
    let pieces = |frame: &Bytes, piece| -> Vec<String> {
        let stream = LongStream::of(Framing::V1, frame, piece).expect("a long stream");
        let text = |message: Message| {
            assert_eq!((message.msg_type.as_str(), message.msg_id.as_str()), ("stream", "m"));
            assert_eq!(message.content["name"], "stdout");
            message.content["text"].as_str().expect("text").to_owned()
        };
        stream.map(text).collect()
    };
    assert_eq!(
        pieces(&stream("aaaa\u{e4}\u{1f600}bbbb".as_bytes()), 5),
        ["aaaa\u{e4}", "\u{1f600}b", "bbb"],
        "no character is cut"
    );
    let escaped = stream(br#"ab\n\\\"\ud83d\ude00\u00e4\udcffz"#);
    for piece in 1..escaped.len() {
        assert_eq!(pieces(&escaped, piece).concat(), "ab\n\\\"\u{1f600}\u{e4}\u{fffd}z");
    }
    assert!(
        LongStream::of(Framing::V1, &escaped, escaped.len()).is_none(),
        "it is short enough"
    );
    let display: [&[u8]; 5] = [
        b"iopub",
        br#"{"msg_id":"m","msg_type":"display_data"}"#,
        b"{}",
        b"{}",
        br#"{"data":{}}"#,
    ];
    assert!(LongStream::of(Framing::V1, &v1_frame(&display), 1).is_none());
    assert!(
        LongStream::of(Framing::V1, &stream(b"\xff"), 1).is_none(),
        "it has to be mended"
    );
}

#[test]
fn frames_that_lie_are_errors() {
    let decode = |bytes: &[u8]| decode_binary(Framing::V1, &Bytes::copy_from_slice(bytes));
    assert_eq!(decode(b""), Err(WireError::Offsets));
    assert_eq!(decode(&[0xff; 16]), Err(WireError::Offsets));
    assert_eq!(decode(&v1_frame(&[b"iopub", b"{}"])), Err(WireError::TooFewParts));
    assert_eq!(
        decode(&v1_frame(&[b"other", b"{}", b"{}", b"{}", b"{}"])),
        Err(WireError::Channel)
    );
    assert_eq!(
        decode(&v1_frame(&[b"iopub", b"{", b"{}", b"{}", b"{}"])),
        Err(WireError::Json)
    );
    assert_eq!(
        decode(&v1_frame(&[b"iopub", b"{}", b"{}", b"{}", b"{}"])),
        Err(WireError::Header)
    );
    assert_eq!(decode_text(b"[]"), Err(WireError::Json));
}

proptest! {
    #[test]
    fn any_code_survives_the_way(code in ".*") {
        for framing in [Framing::V1, Framing::Legacy] {
            let message = match encode(framing, &request(&code)) {
                Payload::Binary(bytes) => decode_binary(framing, &bytes.into()),
                Payload::Text(text) => decode_text(text.as_bytes()),
            };
            let content = message.expect("a message").content;
            prop_assert_eq!(content["code"].as_str(), Some(code.as_str()));
        }
    }

    #[test]
    fn no_bytes_are_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let frame = Bytes::from(bytes);
        let _ = decode_binary(Framing::V1, &frame);
        let _ = decode_binary(Framing::Legacy, &frame);
        let _ = decode_text(&frame);
    }

    #[test]
    fn no_damage_to_a_frame_is_a_panic(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), cut in any::<prop::sample::Index>()) {
        let json = br#"{"channel":"iopub","header":{"msg_id":"m","msg_type":"t"}}"#;
        for (framing, frame) in [(Framing::V1, stream(br"\ud83d\ude00")), (Framing::Legacy, legacy_frame(&[json, b"buffer"]))] {
            let mut bytes = frame.to_vec();
            for (place, byte) in &damage {
                *place.get_mut(&mut bytes) = *byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            let _ = decode_binary(framing, &bytes.into());
        }
    }

    #[test]
    fn mending_any_text_neither_panics_nor_harms_what_is_whole(text in r"(\\u[dD][89abcdef][0-9a-f]{2}|\\\\|\\n|[a-zä]|\\)*") {
        let mended = replace_lone_surrogates(&text);
        if serde_json::from_str::<String>(&format!("\"{text}\"")).is_ok() {
            prop_assert_eq!(mended, text);
        }
    }
}
