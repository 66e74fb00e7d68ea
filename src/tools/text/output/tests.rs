//! Outputs of real libraries (pandas, Plotly, Altair, Bokeh, Matplotlib, ipywidgets, tqdm, IPython 7 to 9), and of nobody in particular.

use std::{iter, time::Instant};

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, json};

use super::*;

fn fixture(name: &str) -> Vec<Value> {
    let files = [
        include_str!("fixtures/errors.json"),
        include_str!("fixtures/figures.json"),
        include_str!("fixtures/tables.json"),
        include_str!("fixtures/texts.json"),
    ];
    let mut files = files
        .iter()
        .map(|file| serde_json::from_str::<Map<String, Value>>(file).unwrap());
    let outputs = files.find_map(|mut file| file.remove(name));
    outputs.unwrap().as_array().unwrap().clone()
}

fn shown(outputs: &[Value]) -> String {
    let text = outputs_text(outputs, 50_000);
    assert!(!text.is_cut);
    text.text
}

fn within(outputs: &[Value], max: usize) -> String {
    let text = outputs_text(outputs, max);
    assert!(text.is_cut && text.text.len() <= max, "{} of {max}", text.text.len());
    text.text
}

fn line(outputs: &[Value]) -> String {
    output_lines(outputs, 5, 80).join("; ")
}

fn data(data: Value) -> Value {
    json!({ "output_type": "display_data", "data": data, "metadata": {} })
}

fn stream(text: impl Into<Value>) -> Value {
    json!({ "output_type": "stream", "name": "stdout", "text": text.into() })
}

fn error(name: &str, value: &str, traceback: Value) -> Value {
    json!({ "output_type": "error", "ename": name, "evalue": value, "traceback": traceback })
}

#[test]
fn errors_are_told_with_the_frames_of_cells() {
    for (name, text) in [
        (
            "key_error",
            "KeyError: 'x'\nCell In[5], line 1\n----> 1 df['x']\n[1 frame in pandas left out]\n\
             pandas/core/indexes/base.py:3823, in Index.get_loc(self, key)\n-> 3823     raise KeyError(key) from err",
        ),
        (
            "zero",
            "ZeroDivisionError: division by zero\nCell In[6], line 8\n----> 8 outer(1)\n\
             Cell In[6], line 6, in outer(x)\n      5 def outer(x):\n----> 6     return inner(x)\n\
             Cell In[6], line 3, in inner(x)\n      2     y = x - 1\n----> 3     return 1 / y",
        ),
        (
            "syntax2",
            "SyntaxError: invalid syntax\nCell In[8], line 2\n    for i in range(3) print(i)\n                      ^",
        ),
        (
            "chained",
            "ValueError: no such column\nCell In[10], line 4\n      3 except KeyError as e:\n\
             ----> 4     raise ValueError('no such column') from e\ncaused by KeyError: 'a' at Cell In[10], line 4",
        ),
        (
            "during",
            "ValueError: invalid literal for int() with base 10: 'z'\nCell In[11], line 4\n      3 except KeyError:\n\
             ----> 4     int('z')\nwhile handling KeyError: 'a' at Cell In[11], line 4",
        ),
        (
            "interrupt",
            "KeyboardInterrupt\nCell In[12], line 1\n----> 1 raise KeyboardInterrupt()",
        ),
        (
            "multiline_error",
            "ValueError: first\nsecond\nthird\nCell In[16], line 1\n----> 1 raise ValueError('first\\nsecond\\nthird')",
        ),
    ] {
        assert_eq!(shown(&fixture(name)), text);
    }
    assert_eq!(line(&fixture("key_error")), "KeyError: 'x'");
}

#[test]
fn errors_of_older_kernels_are_told_alike() {
    for (name, text) in [
        (
            "ipython7_json",
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n\
             Cell in <cell line: 0>()\n      3     return json.loads(text)\n----> 4 load('{')\n\
             Cell in load(text)\n      2 def load(text):\n----> 3     return json.loads(text)\n      4 load('{')\n\
             [2 frames in json left out]\njson/decoder.py in raw_decode(self, s, idx)\n\
             --> 353             obj, end = self.scan_once(s, idx)",
        ),
        (
            "ipython7_syntax",
            "SyntaxError: invalid syntax\nCell, line 1\n    x =\n        ^",
        ),
        (
            "ipython7_recursion",
            "RecursionError: maximum recursion depth exceeded\nCell in <cell line: 0>()\n\
             \x20     1 def r(n): return r(n+1)\n----> 2 r(0)\nCell in r(n)\n----> 1 def r(n): return r(n+1)\n      2 r(0)\n\
             ... last 1 frames repeated, from the frame below ...\nCell in r(n)\n----> 1 def r(n): return r(n+1)\n      2 r(0)",
        ),
        (
            "ipython8_json",
            "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n\
             Input In [1], in <cell line: 0>()\n      3     return json.loads(text)\n----> 4 load('{')\n\
             Input In [1], in load(text)\n      2 def load(text):\n----> 3     return json.loads(text)\n\
             [2 frames in json left out]\njson/decoder.py:353, in JSONDecoder.raw_decode(self, s, idx)\n\
             --> 353     obj, end = self.scan_once(s, idx)",
        ),
        (
            "ipython8_syntax",
            "SyntaxError: invalid syntax\nInput In [2]\n    x =\n        ^",
        ),
        (
            "ipython8_recursion",
            "RecursionError: maximum recursion depth exceeded\nInput In [3], in <cell line: 0>()\n\
             \x20     1 def r(n): return r(n+1)\n----> 2 r(0)\nInput In [3], in r(n)\n----> 1 def r(n): return r(n+1)\n\
             [the same 1 more times]\n[... skipping similar frames: r at line 1 (970 times)]\n\
             Input In [3], in r(n)\n----> 1 def r(n): return r(n+1)",
        ),
    ] {
        assert_eq!(shown(&fixture(name)), text, "{name}");
    }
}

#[test]
fn errors_of_other_languages_are_told_by_their_end() {
    let r = error(
        "ERROR",
        "Error in f(): object 'x' not found",
        json!(["Error in f(): object 'x' not found\nTraceback:\n", "1. f()"]),
    );
    assert_eq!(shown(&[r]), "Error in f(): object 'x' not found\nTraceback:\n1. f()");
    let julia = json!([
        "UndefVarError: `x` not defined",
        "",
        "Stacktrace:",
        " [1] top-level scope",
        "   @ In[1]:1"
    ]);
    let julia = error("UndefVarError", "UndefVarError: `x` not defined", julia);
    assert_eq!(
        shown(&[julia]),
        "UndefVarError: `x` not defined\nStacktrace:\n [1] top-level scope\n   @ In[1]:1"
    );
    let long: Vec<String> = (0..1000).map(|frame| format!("frame {frame}")).collect();
    let text = shown(&[error("E", "v", json!(long))]);
    assert!(
        text.starts_with("E: v\nframe 988") && text.ends_with("frame 999"),
        "{text}"
    );
}

#[test]
fn errors_are_short_whatever_they_say() {
    let frame = |number: usize| format!("Cell In[1], line {number}, in f{number}()\n----> {number} f()\n\n");
    let frames: String = (0..500).map(frame).collect();
    let text = shown(&[error("E", &"v".repeat(100_000), json!([frames]))]);
    assert!(
        text.len() < 1200 && text.contains("[494 frames in cells left out]"),
        "{text}"
    );
    let same: String = iter::repeat_n(frame(1), 900).collect();
    let text = shown(&[error("RecursionError", "deep", json!([same]))]);
    assert_eq!(
        text,
        "RecursionError: deep\nCell In[1], line 1, in f1()\n----> 1 f()\n[the same 899 more times]"
    );
    let noted = "Cell In[1], line 1\n----> 1 f()\n\nValueError: bad\nseen in row 3";
    assert!(shown(&[error("ValueError", "bad", json!([noted]))]).starts_with("ValueError: bad\nseen in row 3\nCell"));
    for output in [
        json!({ "output_type": "error" }),
        json!({ "output_type": "error", "ename": null, "evalue": [], "traceback": {} }),
        error("", "", json!(null)),
    ] {
        assert!(!shown(&[output]).is_empty());
    }
}

#[test]
fn figures_are_told_by_their_data() {
    for (name, text) in [
        (
            "plotly",
            "Plotly figure \"Sales\": 2 traces (scatter \"a\" 100 points, x 0..99, y 1.2..9.7; \
             bar \"b\" 12 points, x 0..11, y 3), x \"month\", y \"EUR\"",
        ),
        (
            "plotly_dates",
            "Plotly figure \"T\": 1 trace (scatter 5 points, x 2024-01-01..2024-01-05, y 1..5.5), x \"x\", y \"y\"",
        ),
        (
            "plotly_pie",
            "Plotly figure: 1 trace (pie 2 points, labels x, y, values 1..2)",
        ),
        ("plotly_heat", "Plotly figure: 1 trace (heatmap 6 points, z 0..5)"),
        (
            "altair",
            "Vega-Lite chart \"Digits\": line, x t 0..4, y v 1..5 \"value\", color mean(v), 5 rows",
        ),
        (
            "altair_layer",
            "Vega-Lite chart: ((line, x t 0..2, y v 1..4) + (point, x t 0..2, y v 1..4)) | (bar, x t 0..2, y v 1..4), 3 rows",
        ),
        ("altair_html", "Vega-Lite chart: bar, x t 0..2, y v 1..4, 3 rows"),
        (
            "bokeh_show",
            "Bokeh figure \"Lines\": Line 3 points (x 1..3, y 4..6), axis \"t\", legend \"a\"",
        ),
        ("svg", "SVG 120x80 \"Plan\": Room & hall, B"),
        ("audio", "[audio/wav, 844 bytes, 0.5 s]"),
        ("video", "[video/mp4, 4 bytes]"),
        ("iframe", "[iframe https://example.org]"),
        ("geojson", "GeoJSON: 1 feature (Point), properties name"),
        ("mpl", "image/png 23x24"),
        ("widget", "widget IntSlider(value=3)"),
        ("widget_output", "[widget; what it shows is not in the notebook]"),
    ] {
        assert_eq!(shown(&fixture(name)), text, "{name}");
        assert_eq!(output_lines(&fixture(name), 9, 200), [text]);
    }
    let html = "<div id=\"a\"></div><script>Plotly.newPlot(\"a\", [{\"y\": [1, 2]}], {\"title\": \"T\"}, {})</script>";
    assert_eq!(
        shown(&[data(json!({ "text/html": html }))]),
        "Plotly figure \"T\": 1 trace (scatter 2 points, y 1..2)"
    );
}

#[test]
fn images_are_told_by_the_words_in_their_place() {
    let plot = |plain: &str| [data(json!({ "image/png": "[image 1 attached]", "text/plain": plain }))];
    assert_eq!(shown(&plot("<Figure size 640x480 with 1 Axes>")), "[image 1 attached]");
    assert_eq!(shown(&plot("a label")), "[image 1 attached]\na label");
    assert_eq!(shown(&[data(json!({ "image/png": "rubbish" }))]), "image/png, 5 bytes");
}

#[test]
fn tables_are_plain_text() {
    let table = shown(&fixture("dataframe"));
    assert!(
        table.starts_with("   a  b         c\n0  0  w  0.000000\n") && table.ends_with("3  3  z  1.000000"),
        "{table}"
    );
    assert_eq!(
        shown(&fixture("dataframe_styled")).lines().nth(1),
        Some("0  0  w  0.00")
    );
    assert_eq!(shown(&fixture("pd_html_only")), "   n  sq\n0  0  0\n1  1  1\n2  2  4");
    let cut = within(&fixture("dataframe_long"), 300);
    assert!(
        cut.starts_with("       n     sq\n0      0      0\n") && cut.contains(" rows, "),
        "{cut}"
    );
    assert!(cut.ends_with("119  119  14161\n[120 rows x 2 columns]"), "{cut}");
    let cut = within(&fixture("dataframe_cut"), 150);
    assert!(cut.ends_with("\n\n[120 rows x 2 columns]"), "{cut}");
    for (name, text) in [
        ("dataframe", "table 4 x 3"),
        ("dataframe_long", "table 120 x 2"),
        ("dataframe_cut", "table 120 x 2"),
        ("dataframe_styled", "table 4 x 3"),
        ("pd_html_only", "table 3 x 2"),
    ] {
        assert_eq!(line(&fixture(name)), text);
    }
    let polars = "shape: (1200, 2)\n| a | b |";
    assert_eq!(line(&[data(json!({ "text/plain": polars }))]), "table 1200 x 2");
}

#[test]
fn text_is_as_it_is_shown() {
    for (name, text, short) in [
        ("html", "Hi\na < b\nc\nn  v\n1  two", "html 5 lines: Hi"),
        ("markdown", "# T\n*x*", "markdown 2 lines: # T"),
        (
            "latex",
            "$\\displaystyle \\frac{1}{2}$",
            "latex: $\\displaystyle \\frac{1}{2}$",
        ),
        ("json", "{\"a\":[1,2,{\"b\":null}]}", "json: {\"a\":[1,2,{\"b\":null}]}"),
        ("javascript", "[JavaScript, 3 bytes]", "[JavaScript, 3 bytes]"),
        ("ansi", "red plain\nb", "text 2 lines: red plain"),
        ("array", "array([0, 1, 2])", "text: array([0, 1, 2])"),
        ("display_update", "ab\nerr", "text: ab; text: err"),
        (
            "tqdm",
            "100%|██████████| 3/3 [00:00<00:00, 1524.46it/s]",
            "text: 100%|██████████| 3/3 [00:00<00:00, 1524.46it/s]",
        ),
    ] {
        assert_eq!(shown(&fixture(name)), text, "{name}");
        assert_eq!(line(&fixture(name)), short);
    }
    assert_eq!(shown(&[stream(json!(["a\n", "b\n"]))]), "a\nb");
    assert_eq!(shown(&[stream("\n"), data(json!({ "text/plain": "5" }))]), "5");
    assert_eq!(shown(&[stream("\n\n")]), "[blank]");
    assert_eq!(shown(&[stream("")]), "");
    assert_eq!(
        shown(&[data(json!({ "application/x-a": "AAAA", "text/plain": "<A at 0x1>" }))]),
        "[application/x-a, 3 bytes]"
    );
    assert_eq!(
        shown(&[data(json!({ "text/latex": "$x$", "text/plain": "x\n-\n2" }))]),
        "$x$"
    );
    assert_eq!(
        shown(&[data(json!({ "application/pdf": "JVBERi0=" }))]),
        "[application/pdf, 5 bytes]"
    );
}

#[test]
fn what_is_newest_is_kept_of_a_long_stream() {
    let lines: String = (0..1000).map(|epoch| format!("epoch {epoch}\n")).collect();
    let text = within(&[stream(lines)], 300);
    assert!(
        text.starts_with("epoch 0\n") && text.ends_with("epoch 998\nepoch 999"),
        "{text}"
    );
    let (head, tail) = text.split_once(" left out]").unwrap();
    assert!(head.len() < tail.len(), "{text}");
}

#[test]
fn an_error_is_told_however_much_was_put_out() {
    let mut outputs: Vec<Value> = (0..300)
        .map(|n| data(json!({ "text/plain": format!("{n} {}", "x".repeat(50)) })))
        .collect();
    outputs.extend(fixture("key_error"));
    outputs.extend(iter::repeat_n(data(json!({ "text/plain": "after" })), 50));
    let text = within(&outputs, 1200);
    assert!(
        text.contains("KeyError: 'x'\nCell In[5], line 1\n") && text.contains(" outputs left out]"),
        "{text}"
    );
    let text = within(&[stream("x\n".repeat(10_000)), fixture("key_error").remove(0)], 600);
    assert!(
        text.starts_with("x\n") && text.ends_with("raise KeyError(key) from err"),
        "{text}"
    );
}

#[test]
fn large_outputs_take_little_time() {
    let bar = "\r 50%|#####     |\u{1b}[K";
    for text in [
        "a line of a log\n".repeat(200_000),
        bar.repeat(100_000),
        "\u{1b}[A\n\u{8}x".repeat(300_000),
    ] {
        let start = Instant::now();
        outputs_text(&[stream(text.as_str()), data(json!({ "text/html": text }))], 1000);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
    let html = [
        "<",
        "<script",
        "<td",
        "<table><tr><td>",
        "&",
        "<a b=\"",
        "<!--",
        "</",
        "<video>",
    ];
    for html in html.map(|part| part.repeat(100_000)) {
        let start = Instant::now();
        outputs_text(&[data(json!({ "text/html": html, "image/svg+xml": html }))], 1000);
        outputs_text(&[data(json!({ "text/html": html }))], 1000);
        assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
    }
}

/// Texts that parsers here look for.
fn text() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "\u{1b}[31m",
        "\r",
        "\n",
        "\u{8}",
        "\u{9b}A",
        "<table>",
        "<tr>",
        "<td rowspan=3>",
        "</td>",
        "<svg width=1 height=2>",
        "&lt;",
        "<!--",
        "Cell In[1], line 1",
        "----> 1 x",
        "File /site-packages/a/b.py:3, in f",
        "Traceback (most recent call last)",
        "The above exception was the direct cause of",
        "[3 rows x 2 columns]",
        "docs_json = {",
        "Plotly.newPlot(\"a\", [",
        "UklGRg==",
        "2024-01-01",
        "})({",
        "vegaEmbed",
        "é",
        "[image 1]",
        "<ipython-input-3-a> in f",
        "data:audio/wav;base64,",
        "<video src='",
    ]);
    vec(prop_oneof![known.prop_map(str::to_owned), "\\PC{0,8}"], 0..12).prop_map(|parts| parts.concat())
}

fn name() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "data",
        "layout",
        "title",
        "text",
        "type",
        "name",
        "x",
        "y",
        "dtype",
        "bdata",
        "mark",
        "encoding",
        "field",
        "layer",
        "features",
        "geometry",
        "properties",
        "values",
        "attributes",
        "entries",
        "traceback",
        "ename",
        "evalue",
        "array",
    ]);
    prop_oneof![3 => known.prop_map(str::to_owned), 1 => text()]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((name(), inner), 0..6).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn output() -> impl Strategy<Value = Value> {
    let mimes = prop::sample::select(vec![
        "text/plain",
        "text/html",
        "text/markdown",
        "text/latex",
        "application/json",
        "application/vnd.plotly.v1+json",
        "application/vnd.vegalite.v5+json",
        "application/vnd.vega.v5+json",
        "application/vnd.bokehjs_exec.v0+json",
        "application/javascript",
        "application/vnd.jupyter.widget-view+json",
        "application/geo+json",
        "image/png",
        "image/svg+xml",
        "audio/wav",
        "application/pdf",
        "x",
    ]);
    let bundle = vec((mimes, value()), 0..4);
    let bundle = bundle.prop_map(|types| {
        types
            .into_iter()
            .map(|(mime, value)| (mime.to_owned(), value))
            .collect::<Map<_, _>>()
    });
    prop_oneof![
        value(),
        text().prop_map(stream),
        value().prop_map(stream),
        (value(), value(), value()).prop_map(
            |(name, value, lines)| json!({ "output_type": "error", "ename": name, "evalue": value, "traceback": lines })
        ),
        (text(), text(), vec(text(), 0..6)).prop_map(|(name, value, lines)| error(&name, &value, json!(lines))),
        bundle.prop_map(|bundle| data(Value::Object(bundle))),
    ]
}

proptest! {
    #[test]
    fn any_outputs_are_told_within_a_limit(outputs in vec(output(), 0..8), max in 0..2000_usize) {
        let text = outputs_text(&outputs, max);
        // A few outputs have a line each, however small the limit.
        prop_assert!(text.text.len() <= max.max(700), "{} of {max}", text.text.len());
        let full = outputs_text(&outputs, usize::MAX);
        prop_assert!(!full.is_cut && text.is_cut == (full.text.len() > max));
        prop_assert!(!text.is_cut || text.text.contains(" left out]"), "{}", text.text);
        prop_assert!(full.text.is_empty() == text.text.is_empty());
        prop_assert!(!full.text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{:?}", full.text);
        for line in output_lines(&outputs, 3, max) {
            prop_assert!(line.len() <= max.max(10) && !line.contains('\n'));
        }
    }
}
