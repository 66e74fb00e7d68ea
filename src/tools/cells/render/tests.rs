//! Tests of what is cut, what is left out, and what always comes whole.

use std::sync::Arc;

use super::*;
use crate::tools::{Client, ImageLimits};

struct Nobody;

impl Client for Nobody {}

fn illustrator() -> Illustrator {
    Illustrator {
        limits: ImageLimits {
            enabled: true,
            max_width: 700,
            max_height: 700,
            max_bytes: 1 << 20,
        },
        wanted: true,
        places: 8.into(),
        scaling: Arc::default(),
        tenant: "tenant".into(),
        client: Arc::new(Nobody),
    }
}

fn shown(output: Value, max: usize) -> (Value, bool) {
    show_output(output, max, "")
}

fn within(outputs: &[Value], max: usize) -> ShownOutputs {
    show_within(outputs.to_vec(), max, &|size| format!("ask for {size}"))
}

fn stream(text: impl Into<String>) -> Value {
    json!({ "output_type": "stream", "name": "stdout", "text": text.into() })
}

#[test]
fn long_outputs_are_cut_and_say_so() {
    let (value, cut) = shown(stream("x".repeat(100)), 40);
    assert_eq!(
        (&value["text"], cut),
        (&json!("xxxx\n[87 characters left out]\nxxxxxxxxx"), true)
    );
    let (value, cut) = shown(json!({ "output_type": "stream", "text": ["a\n", "b"] }), 40);
    assert!(!cut && value["text"] == "a\nb");
}

#[test]
fn what_is_no_text_is_whole_or_left_out() {
    let pdf = |size: usize| json!({ "output_type": "display_data", "data": { "application/pdf": ["J".repeat(size), "K"], "text/plain": "a document" } });
    let (value, cut) = shown(pdf(100), 200);
    assert!(!cut && value["data"]["application/pdf"] == format!("{}K", "J".repeat(100)));
    let (value, cut) = shown(pdf(300), 200);
    assert_eq!(
        value["data"],
        json!({ "application/pdf": "[left out: it is too large, 301 characters]", "text/plain": "a document" })
    );
    assert!(cut);
}

#[test]
fn the_types_of_an_output_share_its_limit() {
    let data = json!({ "text/html": "h".repeat(900), "text/latex": "l".repeat(900), "text/plain": "p".repeat(900) });
    let (value, cut) = shown(json!({ "output_type": "execute_result", "data": data }), 1000);
    assert!(cut && value["data"]["text/plain"] == "p".repeat(900));
    assert!(value.to_string().len() < 1200, "{value}");
}

#[test]
fn large_metadata_is_left_out_and_small_is_free() {
    let output = |metadata: Value| json!({ "output_type": "display_data", "data": {}, "metadata": metadata });
    let small = json!({ "trusted": true, "image/png": { "width": 20 } });
    let (value, cut) = shown(output(small.clone()), 4);
    assert!(!cut && value["metadata"] == small && text_size(&output(small)) == 0);
    let large = output(json!({ "a": ["x".repeat(500)] }));
    assert!(text_size(&large) >= 500);
    let (value, cut) = shown(large, 400);
    assert!(cut && value["metadata"] == json!({}));
}

#[test]
fn a_long_error_is_within_the_limit() {
    let long = "e".repeat(10_000);
    let output = json!({ "output_type": "error", "ename": long, "evalue": long, "traceback": [long, long] });
    assert_eq!(text_size(&output), 30_000);
    let (value, cut) = shown(output, 2000);
    assert!(cut && value.to_string().len() < 2700, "{}", value.to_string().len());
}

fn cell(source: &str, metadata: Value, outputs: Vec<Value>) -> Cell {
    Cell {
        id: "c".to_owned(),
        cell_type: "code".to_owned(),
        source: source.to_owned(),
        metadata,
        execution_count: Value::Null,
        outputs,
        attachments: None,
        execution_state: String::new(),
    }
}

fn all(cells: Vec<Cell>, limit: Limit) -> Vec<ShownCell> {
    let mut cells = cells.into_iter().enumerate().collect();
    drop_beyond(&mut cells, limit);
    show_all(cells, limit, |size: usize| format!("ask for {size}"))
}

#[test]
fn one_limit_holds_for_metadata_errors_and_empty_cells() {
    let max = 10_000;
    let heavy = || json!({ "notes": "n".repeat(3000) });
    let error = json!({ "output_type": "error", "ename": "E", "evalue": "v".repeat(6000), "traceback": [] });
    let output = json!({ "output_type": "display_data", "data": {}, "metadata": heavy() });
    for cells in [
        (0..50).map(|_| cell("x", heavy(), Vec::new())).collect::<Vec<_>>(),
        (0..50).map(|_| cell("x", json!({}), vec![output.clone()])).collect(),
        (0..50).map(|_| cell("x", json!({}), vec![error.clone()])).collect(),
        (0..50_000).map(|_| cell("", json!({}), Vec::new())).collect(),
    ] {
        let count = cells.len();
        let shown = all(cells, Limit::All(max));
        assert!(shown.len() < count || shown.iter().any(ShownCell::is_truncated));
        let size = serde_json::to_string(&shown).expect("json").len();
        assert!(size < 4 * max, "{size} characters of {count} cells");
    }
}

#[test]
fn a_limit_for_each_holds_for_metadata_too() {
    let cells = vec![cell("x", json!({ "notes": "n".repeat(3000) }), Vec::new())];
    let shown = all(cells, Limit::Each(2048));
    assert!(shown[0].lacks_metadata() && shown[0].metadata == json!({}));
}

#[test]
fn cells_can_share_a_total() {
    let mut cells = vec![vec![stream("x".repeat(900))]; 5];
    cells.push(vec![stream("short")]);
    let hint = |_| String::new();
    let shown = show_outputs(cells, 1000, 1000, hint);
    let text = |shown: &ShownOutputs| shown.outputs[0]["text"].as_str().unwrap_or_default().to_owned();
    let sizes: Vec<usize> = shown.iter().map(|shown| text(shown).len()).collect();
    assert_eq!(sizes, [199, 199, 199, 199, 199, 5]);
    assert!(shown[4].is_truncated() && shown[4].original_size == 900 && !shown[5].is_truncated());
}

#[test]
fn a_result_after_a_long_print_is_whole() {
    let warning = json!({ "output_type": "stream", "name": "stderr", "text": "IOPub data rate exceeded.\n" });
    let value = json!({ "output_type": "execute_result", "data": { "text/plain": "42", "text/html": "<b>42</b>" } });
    let lines: String = (0..1000).map(|n| format!("step {n}\n")).collect();
    let shown = within(&[stream(lines.clone()), warning.clone(), value.clone()], 2000);
    assert_eq!(shown.outputs[1..], [warning, value]);
    assert_eq!(shown.cut, [true, false, false]);
    let text = shown.outputs[0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("step 0\n") && text.ends_with("step 999\n"), "{text}");
    assert!(
        text.contains(&format!("left out; ask for {}]", lines.len() + 26 + 11)),
        "{text}"
    );
}

#[test]
fn nothing_is_shown_as_empty_that_is_not() {
    let data = json!({ "text/plain": "p".repeat(90), "text/html": "h", "application/json": ["j"], "application/pdf": "JVBERi0" });
    let error = json!({ "output_type": "error", "ename": "E", "evalue": "why", "traceback": ["a", "why"] });
    let outputs = [
        stream("x".repeat(100)),
        json!({ "output_type": "execute_result", "data": data }),
        error,
        stream("last"),
    ];
    for max in [0, 1, 20, 100, 150] {
        let shown = within(&outputs, max);
        let json = serde_json::to_string(&shown.outputs).expect("json");
        assert!(!json.contains("\"\"") && shown.is_truncated(), "{max}: {json}");
    }
}

#[test]
fn of_very_many_outputs_the_first_and_the_newest_are_shown() {
    let mut outputs: Vec<Value> = (0..500).map(|n| stream(format!("{n}"))).collect();
    assert_eq!(leave_out_middle(&mut outputs, 2000), Some(13));
    assert_eq!(outputs.len(), 40);
    assert_eq!(outputs[12]["text"], "12");
    assert_eq!(outputs[13]["text"], "[461 outputs left out]\n");
    assert_eq!(
        (&outputs[14]["text"], &outputs[39]["text"]),
        (&json!("474"), &json!("499"))
    );
    assert_eq!(leave_out_middle(&mut outputs, 2000), None);
}

#[tokio::test]
async fn images_are_attached_whole_or_left_out() {
    let dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let lines = format!("{}\n{}", &dot[..40], &dot[40..]);
    let mut outputs = [
        json!({ "output_type": "display_data", "data": { "image/png": lines, "image/gif": "R0lG", "text/plain": "<Figure>" } }),
    ];
    let mut images = Vec::new();
    attach_images(&mut outputs, &illustrator(), &mut images)
        .await
        .expect("attached");
    let [output] = outputs;
    let (value, cut) = shown(output, 4);
    assert_eq!(
        images,
        [Block::Image {
            data: dot.to_owned(),
            mime: "image/png".to_owned()
        }]
    );
    assert_eq!(value["data"]["image/png"], "[image 1 attached]");
    assert_eq!(
        value["data"]["image/gif"],
        "[image left out: it is not a readable image]"
    );
    assert!(cut, "the text was longer than allowed");
}

#[test]
fn a_chatty_cell_that_fails_still_tells_why() {
    let chatter = stream("x".repeat(3000));
    let failure = |lines: usize| {
        let mut traceback = vec!["line"; lines];
        traceback.push("ValueError: why");
        json!({ "output_type": "error", "ename": "ValueError", "evalue": "why", "traceback": traceback })
    };
    let shown = within(&[chatter.clone(), failure(20)], 2000);
    let text = shown.outputs[0]["text"].as_str().unwrap_or_default();
    assert!(
        shown.is_truncated() && (1800..2000).contains(&text.len()),
        "{}",
        text.len()
    );
    let traceback = shown.outputs[1]["traceback"].as_array().cloned().unwrap_or_default();
    assert_eq!(traceback.len(), 21, "all of a short one: {traceback:?}");
    let shown = within(&[chatter, failure(2000)], 2000);
    let traceback = shown.outputs[1]["traceback"].as_array().cloned().unwrap_or_default();
    assert_eq!(traceback.first(), Some(&json!("[TRUNCATED]...")));
    assert_eq!(
        traceback.last(),
        Some(&json!("ValueError: why")),
        "the end of a long one"
    );
    let all = shown.outputs.iter().map(text_size).sum::<usize>();
    assert!((1700..=2000).contains(&all), "{all}");
}

#[test]
fn errors_have_both_spellings_and_no_colours() {
    let output =
        json!({ "output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u{1b}[0;31mE\u{1b}[0m: v", "x"] });
    let (value, _) = shown(output, 100);
    assert_eq!(
        (&value["name"], &value["value"], &value["ename"]),
        (&json!("E"), &json!("v"), &json!("E"))
    );
    assert_eq!(value["traceback"], json!(["E: v", "x"]));
}
