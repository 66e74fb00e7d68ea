//! Tests of how outputs are merged, and that the document ends up with the result.

use proptest::prelude::*;

use super::*;

/// The document's side: applies changes as the room does.
#[derive(Default)]
struct Mirror(Vec<Value>);

impl Mirror {
    fn take(&mut self, outputs: &mut Outputs) {
        let Some(change) = outputs.take_change() else { return };
        let mut detached = change.expected != self.0.len();
        if !detached {
            self.0.truncate(change.keep);
        }
        if let Some(tail) = &change.tail {
            let last = self
                .0
                .last_mut()
                .filter(|last| !detached && last["output_type"] == "stream");
            match last {
                Some(last) => {
                    let mut units: Vec<u16> = last["text"].as_str().unwrap_or_default().encode_utf16().collect();
                    units.truncate(units.len().saturating_sub(tail.cut as usize));
                    last["text"] = (String::from_utf16_lossy(&units) + &tail.append).into();
                }
                None => {
                    detached = true;
                    if !tail.append.is_empty() {
                        self.0
                            .push(json!({ "output_type": "stream", "name": tail.name, "text": tail.append }));
                    }
                }
            }
        }
        self.0.extend(change.push.iter().cloned());
        if detached {
            outputs.detached(&change, self.0.len());
        }
    }
}

fn stream(name: &str, text: &str) -> (&'static str, Value) {
    ("stream", json!({ "name": name, "text": text }))
}

fn display(text: &str, id: Option<&str>) -> (&'static str, Value) {
    let transient = id.map_or(json!({}), |id| json!({ "display_id": id }));
    (
        "display_data",
        json!({ "data": { "text/plain": text }, "metadata": {}, "transient": transient }),
    )
}

fn folded(messages: &[(&str, Value)]) -> Vec<Value> {
    let mut outputs = Outputs::new(1000);
    for (msg_type, content) in messages {
        outputs.apply(msg_type, content);
    }
    outputs.to_json()
}

#[test]
fn streams_join_only_their_own_kind_and_keep_their_order() {
    let outputs = folded(&[
        stream("stdout", "a"),
        stream("stdout", "b"),
        stream("stderr", "c"),
        stream("stdout", "d"),
    ]);
    let texts: Vec<&str> = outputs.iter().filter_map(|output| output["text"].as_str()).collect();
    assert_eq!(texts, ["ab", "c", "d"]);
}

#[test]
fn a_display_is_updated_in_its_place_and_keeps_no_transient() {
    let update = json!({ "data": { "text/plain": "new" }, "metadata": {}, "transient": { "display_id": "x" } });
    let outputs = folded(&[
        display("old", Some("x")),
        stream("stdout", "a"),
        ("update_display_data", update),
    ]);
    assert_eq!(
        outputs[0],
        json!({ "output_type": "display_data", "data": { "text/plain": "new" }, "metadata": {} })
    );
}

#[test]
fn clearing_with_wait_waits_for_the_next_output() {
    let wait = ("clear_output", json!({ "wait": true }));
    assert_eq!(folded(&[stream("stdout", "a"), wait.clone()]).len(), 1);
    let outputs = folded(&[stream("stdout", "a"), wait, stream("stdout", "b")]);
    assert_eq!(
        outputs,
        [json!({ "output_type": "stream", "name": "stdout", "text": "b" })]
    );
    assert!(folded(&[stream("stdout", "a"), ("clear_output", json!({ "wait": false }))]).is_empty());
}

#[test]
fn beyond_the_limit_it_says_so_once_and_still_takes_the_error() {
    let error = ("error", json!({ "ename": "E", "evalue": "v", "traceback": ["t"] }));
    let long = "😀".repeat(500);
    let outputs = folded(&[stream("stdout", &long), stream("stdout", &long), error]);
    assert_eq!(outputs[0]["text"], "😀".repeat(250), "never half a character");
    assert!(
        outputs[1]["text"]
            .as_str()
            .is_some_and(|mark| mark.contains("beyond 1000 bytes"))
    );
    assert_eq!((outputs.len(), &outputs[2]["ename"]), (3, &json!("E")));
}

#[test]
fn what_others_put_into_the_cell_stays() {
    let (mut outputs, mut mirror) = (Outputs::new(1000), Mirror::default());
    outputs.apply("stream", &stream("stdout", "one ").1);
    mirror.take(&mut outputs);
    // A person clears the cell while it runs.
    mirror.0.clear();
    outputs.apply("stream", &stream("stdout", "two ").1);
    mirror.take(&mut outputs);
    outputs.apply("stream", &stream("stdout", "three\rT").1);
    mirror.take(&mut outputs);
    assert_eq!(mirror.0.len(), 1);
    assert_eq!(outputs.to_json()[0]["text"], "Tne two three");
    mirror.0.insert(0, json!("theirs"));
    outputs.apply("display_data", &display("mine", None).1);
    mirror.take(&mut outputs);
    outputs.apply("stream", &stream("stdout", "more").1);
    mirror.take(&mut outputs);
    assert_eq!(mirror.0[0], "theirs");
    assert_eq!(mirror.0.last().map(|last| &last["text"]), Some(&json!("more")));
}

fn any_message() -> impl Strategy<Value = (&'static str, Value)> {
    let piece = prop::sample::select(vec!["a", "bc\n", "\r", "\u{8}", "😀", "é\rx", "\n", "50%\r100%"]);
    let id = prop::sample::select(vec![None, Some("x"), Some("y")]);
    prop_oneof![
        6 => (prop::sample::select(vec!["stdout", "stderr"]), prop::collection::vec(piece, 1..4))
            .prop_map(|(name, pieces)| stream(name, &pieces.concat())),
        2 => (".{0,3}", id.clone()).prop_map(|(text, id)| display(&text, id)),
        1 => (".{0,3}", id).prop_map(|(text, id)| ("update_display_data", display(&text, id).1)),
        1 => any::<bool>().prop_map(|wait| ("clear_output", json!({ "wait": wait }))),
        1 => Just(("error", json!({ "ename": "E", "evalue": "v", "traceback": [] }))),
    ]
}

proptest! {
    #[test]
    fn the_document_ends_up_with_what_was_folded(messages in prop::collection::vec((any_message(), any::<bool>()), 0..40)) {
        let (mut outputs, mut mirror) = (Outputs::new(100_000), Mirror::default());
        for ((msg_type, content), flush) in messages {
            outputs.apply(msg_type, &content);
            if flush {
                mirror.take(&mut outputs);
                prop_assert_eq!(&mirror.0, &outputs.to_json());
            }
        }
        mirror.take(&mut outputs);
        prop_assert_eq!(&mirror.0, &outputs.to_json());
    }
}

#[test]
fn what_an_earlier_process_wrote_comes_before_what_is_new() {
    let written = [
        json!({ "output_type": "stream", "name": "stdout", "text": "begin\n" }),
        json!({ "output_type": "stream", "name": "stderr", "text": "middle\n" }),
    ];
    let mut outputs = Outputs::new(1000);
    // The record knows less than the notebook, which is seen later than the end.
    outputs.adopt(&written[..1]);
    outputs.push_end("ExecutionLost", "why");
    outputs.adopt(&written);
    let mut mirror = Mirror(written.to_vec());
    mirror.take(&mut outputs);
    assert_eq!(mirror.0, outputs.to_json());
    let kinds: Vec<&Value> = mirror.0.iter().map(|output| &output["output_type"]).collect();
    assert_eq!(kinds, ["stream", "stream", "error"]);
}

#[test]
fn a_question_and_its_answer_are_a_line_for_people() {
    let (mut outputs, mut mirror) = (Outputs::new(10_000), Mirror::default());
    let print = |outputs: &mut Outputs, text: &str| outputs.apply("stream", &json!({ "name": "stdout", "text": text }));
    print(&mut outputs, "one\n");
    assert!(outputs.ask("Who?"));
    mirror.take(&mut outputs);
    assert_eq!(
        mirror.0[1],
        json!({ "output_type": "stream", "name": "stdin", "text": "Who? " }),
        "while it waits"
    );
    outputs.answer("Who?", Some("Ana"));
    assert!(!outputs.ask(""), "nothing to be shown");
    outputs.answer("", Some("Bo"));
    print(&mut outputs, "two\n");
    mirror.take(&mut outputs);
    assert_eq!(mirror.0[1]["text"], "Who? Ana\nBo\n");
    assert_eq!(mirror.0[2]["text"], "two\n");
    let told = json!([{ "output_type": "stream", "name": "stdout", "text": "one\ntwo\n" }]);
    assert_eq!(json!(outputs.to_json()), told, "whoever runs it knows the answers");
    assert_eq!(json!(outputs.to_json_within(1000).0), told);
}

#[test]
fn a_password_leaves_no_line() {
    for before in ["", "printed\n"] {
        let (mut outputs, mut mirror) = (Outputs::new(10_000), Mirror::default());
        let print =
            |outputs: &mut Outputs, text: &str| outputs.apply("stream", &json!({ "name": "stdout", "text": text }));
        if !before.is_empty() {
            print(&mut outputs, before);
        }
        outputs.ask("Key: ");
        mirror.take(&mut outputs);
        assert_eq!(mirror.0.last().unwrap()["text"], "Key: ");
        outputs.answer("Key: ", None);
        print(&mut outputs, "6\n");
        mirror.take(&mut outputs);
        assert_eq!(
            json!(mirror.0),
            json!([{ "output_type": "stream", "name": "stdout", "text": format!("{before}6\n") }])
        );
    }
}

#[test]
fn an_interrupt_is_told_from_an_error_that_code_raises() {
    let raised = |traceback: &str| {
        let mut outputs = Outputs::new(10_000);
        outputs.apply(
            "error",
            &json!({ "ename": "KeyboardInterrupt", "evalue": "", "traceback": [traceback] }),
        );
        outputs.was_raised("KeyboardInterrupt")
    };
    assert!(raised(
        "----> 1 \u{1b}[38;5;28;01mraise\u{1b}[39;00m \u{1b}[38;5;167;01mKeyboardInterrupt\u{1b}[39;00m"
    ));
    assert!(!raised(
        "----> 1 \u{1b}[38;5;28;01mwhile\u{1b}[39;00m True: pass\n\nKeyboardInterrupt: "
    ));
}
