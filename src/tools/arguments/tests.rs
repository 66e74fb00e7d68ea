//! Arguments that are accepted and refused; valid ones are left alone.

use proptest::{prelude::*, strategy::Union};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::tools::{catalogue, schema::input_schema};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only read from JSON")]
struct Sample {
    path: String,
    content: Option<String>,
    ranges: Option<Vec<Pair>>,
    one: Option<Pair>,
    ids: Option<Vec<String>>,
    places: Option<Vec<i64>>,
    #[serde(default)]
    force: bool,
    timeout: Option<f64>,
    max_results: Option<usize>,
    cell_index: Option<Index>,
    #[serde(default)]
    scope: Scope,
    #[serde(rename = "newPath")]
    new_path: Option<String>,
    parameters: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only read from JSON")]
struct Pair {
    start: Option<usize>,
    cell_id: Option<String>,
    at: Option<Index>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected an index, or an id as in {\"cell_id\": \"...\"}")]
#[expect(dead_code, reason = "only read from JSON")]
enum Index {
    Position(usize),
    Id { cell_id: String },
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    Only,
    Above,
    Below,
}

fn sample(arguments: Value) -> Arguments {
    let Value::Object(mut arguments) = arguments else {
        panic!("an object")
    };
    arguments.entry("path").or_insert("a.ipynb".into());
    Parameters::of(&input_schema::<Sample>()).fit(arguments)
}

#[test]
fn what_has_one_reading_is_taken() {
    for (sent, meant) in [
        (json!({ "max_results": "5" }), json!({ "max_results": 5 })),
        (json!({ "max_results": " 5 " }), json!({ "max_results": 5 })),
        (json!({ "max_results": "5.0" }), json!({ "max_results": 5 })),
        (json!({ "max_results": 5.0 }), json!({ "max_results": 5 })),
        (json!({ "timeout": "2.5" }), json!({ "timeout": 2.5 })),
        (json!({ "timeout": "30" }), json!({ "timeout": 30 })),
        (json!({ "force": "true" }), json!({ "force": true })),
        (json!({ "force": "False" }), json!({ "force": false })),
        (json!({ "force": null }), json!({})),
        (json!({ "force": "None" }), json!({})),
        (json!({ "max_results": "null" }), json!({})),
        (json!({ "ranges": "null" }), json!({})),
        (
            json!({ "ranges": "[{\"start\": 0}]" }),
            json!({ "ranges": [{ "start": 0 }] }),
        ),
        (
            json!({ "ranges": "{\"start\": \"1\"}" }),
            json!({ "ranges": [{ "start": 1 }] }),
        ),
        (
            json!({ "ranges": { "start": "2" } }),
            json!({ "ranges": [{ "start": 2 }] }),
        ),
        (
            json!({ "ranges": ["{\"start\": 3}", { "start": null, "cell_id": "null" }] }),
            json!({ "ranges": [{ "start": 3 }, { "cell_id": "null" }] }),
        ),
        (
            json!({ "ranges": [{ "at": "4" }, { "at": "{\"cellId\": \"x\"}" }] }),
            json!({ "ranges": [{ "at": 4 }, { "at": { "cell_id": "x" } }] }),
        ),
        (json!({ "one": "{\"start\": 5}" }), json!({ "one": { "start": 5 } })),
        (json!({ "cell_index": "3" }), json!({ "cell_index": 3 })),
        (
            json!({ "cell_index": "{\"cell_id\": \"7\"}" }),
            json!({ "cell_index": { "cell_id": "7" } }),
        ),
        (json!({ "ids": "abc" }), json!({ "ids": ["abc"] })),
        (json!({ "ids": "null" }), json!({})),
        (json!({ "ids": "5" }), json!({ "ids": ["5"] })),
        (json!({ "ids": "[\"a\", \"5\"]" }), json!({ "ids": ["a", "5"] })),
        (json!({ "places": 1 }), json!({ "places": [1] })),
        (json!({ "places": "-1" }), json!({ "places": [-1] })),
        (json!({ "places": "[1, 2]" }), json!({ "places": [1, 2] })),
        (json!({ "scope": "Above" }), json!({ "scope": "above" })),
        (json!({ "maxResults": 5 }), json!({ "max_results": 5 })),
        (json!({ "max-results": "5" }), json!({ "max_results": 5 })),
        (json!({ "new_path": "b" }), json!({ "newPath": "b" })),
        (json!({ "new_path": "b", "newPath": "b" }), json!({ "newPath": "b" })),
        (json!({ "new_path": null, "newPath": "b" }), json!({ "newPath": "b" })),
        (
            json!({ "maxResults": 5.0, "max_results": "5" }),
            json!({ "max_results": 5 }),
        ),
        (
            json!({ "ranges": [{ "cellId": "x" }] }),
            json!({ "ranges": [{ "cell_id": "x" }] }),
        ),
        (json!({ "source": "1" }), json!({ "content": "1" })),
        (json!({ "notebook_path": "a.ipynb" }), json!({})),
        (json!({ "whatever": null }), json!({})),
    ] {
        let arguments = sample(sent.clone());
        let mut meant = meant;
        meant["path"] = "a.ipynb".into();
        assert_eq!(Value::from(arguments.members().clone()), meant, "{sent}");
        arguments
            .read::<Sample>()
            .unwrap_or_else(|error| panic!("{sent}: {error}"));
    }
}

#[test]
fn texts_and_names_of_the_callers_own_stay() {
    for text in [
        "5",
        "true",
        "None",
        "null",
        "[1,2]",
        "{\"start\": 0}",
        " 5 ",
        "\"x\"",
        "",
    ] {
        let sent = json!({ "path": "a.ipynb", "content": text, "ranges": [{ "cell_id": text }], "ids": [text] });
        assert_eq!(Value::from(sample(sent.clone()).members().clone()), sent);
    }
    let own = json!({ "path": "a.ipynb", "parameters": { "maxResults": "5", "alpha": 1.0, "none": null, "path": [] } });
    assert_eq!(Value::from(sample(own.clone()).members().clone()), own);
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    for (sent, told) in [
        (
            json!({ "rangs": [] }),
            "unknown argument `rangs`; did you mean `ranges`? known: path, content, ranges,",
        ),
        (
            json!({ "quite_another": 1 }),
            "unknown argument `quite_another`; known: path,",
        ),
        (
            json!({ "ranges": [{ "stard": 1 }] }),
            "unknown argument `ranges[0].stard`; did you mean `start`? known: start, cell_id, at",
        ),
        (
            json!({ "one": { "stard": 1 } }),
            "unknown argument `one.stard`; did you mean `start`?",
        ),
        (
            json!({ "scope": "abov" }),
            "argument `scope`: unknown value \"abov\"; did you mean \"above\"? allowed: `only`, `above`, `below`",
        ),
        (
            json!({ "scope": "sideways" }),
            "argument `scope`: unknown value \"sideways\"; allowed: `only`, `above`, `below`",
        ),
        (
            json!({ "new_path": "a", "newPath": "b" }),
            "argument `new_path`: the same as `newPath`, with another value; give one of them",
        ),
        (
            json!({ "new_path": "a", "new-path": "b" }),
            "argument `new_path`: the same as `new-path`, with another value; give one of them",
        ),
        (
            json!({ "max_results": "many" }),
            "argument `max_results`: invalid type: string \"many\", expected a whole number, 0 or more",
        ),
        (
            json!({ "max_results": "-1" }),
            "argument `max_results`: invalid value: integer `-1`, expected a whole number, 0 or more",
        ),
        (
            json!({ "max_results": 1.5 }),
            "argument `max_results`: invalid type: floating point `1.5`",
        ),
        (
            json!({ "force": "yes" }),
            "argument `force`: invalid type: string \"yes\", expected true or false",
        ),
        (
            json!({ "ranges": "[{\"start\": 0" }),
            "argument `ranges`: invalid type: string \"[{\\\"start\\\": 0\", expected an array",
        ),
        (
            json!({ "ranges": [0, 1] }),
            "argument `ranges[0]`: expected an object with `",
        ),
        (
            json!({ "cell_index": "x" }),
            "argument `cell_index`: expected an index, or an id as in",
        ),
        (
            json!({ "content": 5 }),
            "argument `content`: invalid type: integer `5`, expected a string",
        ),
        (
            json!({ "one": [1, 2] }),
            "argument `one`: expected an object with named members, not an array",
        ),
        (
            json!({ "ranges": [[1, 2]] }),
            "argument `ranges[0]`: expected an object with named members",
        ),
        (
            json!({ "ranges": [{ "at": ["x"] }] }),
            "argument `ranges[0].at`: expected an object with named members",
        ),
        (json!({ "path": null }), "argument `path`: required but missing"),
        (json!({ "`, expected `": 1 }), "unknown argument `"),
    ] {
        let refused = sample(sent.clone()).read::<Sample>().expect_err("refused").to_string();
        assert!(refused.starts_with(told), "{sent}: {refused}");
    }
}

#[test]
fn a_synonym_stands_only_for_what_the_tool_does_not_know() {
    let tools = catalogue();
    for (tool, sent, meant) in [
        ("get_nb_stat", json!({ "notebook_path": "a" }), json!({ "path": "a" })),
        ("get_document_info", json!({ "filePath": "a" }), json!({ "path": "a" })),
        (
            "connect_notebook",
            json!({ "path": "a" }),
            json!({ "notebook_path": "a" }),
        ),
        (
            "connect_notebook",
            json!({ "server": "lab" }),
            json!({ "server_url": "lab" }),
        ),
        (
            "insert_nb_cells",
            json!({ "cells": [{ "cell_type": "markdown", "source": "1" }] }),
            json!({ "cells": [{ "type": "markdown", "content": "1" }] }),
        ),
        (
            "batch_insert_notebook_cells",
            json!({ "cells": { "cellType": "code", "content": "1" } }),
            json!({ "cells": [{ "cell_type": "code", "content": "1" }] }),
        ),
        (
            "insert_cell",
            json!({ "direction": "above" }),
            json!({ "location": "above" }),
        ),
        (
            "overwrite_cell",
            json!({ "content": "5" }),
            json!({ "cell_content": "5" }),
        ),
        ("rename_document", json!({ "new_path": "b" }), json!({ "newPath": "b" })),
    ] {
        let tool = tools.iter().find(|known| known.name == tool).expect("a tool");
        let arguments = tool.arguments(sent.as_object().cloned().unwrap_or_default());
        assert_eq!(Value::from(arguments.members().clone()), meant, "{}: {sent}", tool.name);
    }
}

/// Unlisted arguments are accepted all the same, in every spelling.
#[test]
fn an_unlisted_argument_is_taken() {
    let tools = catalogue();
    let tool = tools
        .iter()
        .find(|tool| tool.name == "execute_nb_cells")
        .expect("a tool");
    let listed = &tool.input_schema["properties"];
    assert!(
        listed.get("timeout").is_some() && listed.get("on_disconnect").is_none(),
        "{listed}"
    );
    let given = json!({ "onDisconnect": "Interrupt" });
    let arguments = tool.arguments(given.as_object().cloned().unwrap_or_default());
    assert_eq!(arguments.members()["on_disconnect"], "interrupt");
}

/// Values that a schema allows.
fn fitting(schema: &Value) -> BoxedStrategy<Value> {
    if let Some(Value::Array(choices)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
        return Union::new(choices.iter().map(fitting)).boxed();
    }
    if let Some(Value::Array(words)) = schema.get("enum") {
        return prop::sample::select(words.clone()).boxed();
    }
    if let Some(only) = schema.get("const") {
        return Just(only.clone()).boxed();
    }
    match schema["type"].as_str() {
        Some("string") => {
            let tempting = ["5", "true", "None", "null", "[1]", "{\"start\": 0}", "[{}]", " x "];
            prop_oneof![
                prop::sample::select(tempting.to_vec()).prop_map(Value::from),
                ".{0,8}".prop_map(Value::from)
            ]
            .boxed()
        }
        Some("integer") => (0..1000).prop_map(Value::from).boxed(),
        Some("number") => (0..8000).prop_map(|eighths| (f64::from(eighths) / 8.0).into()).boxed(),
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        Some("array") => prop::collection::vec(fitting(&schema["items"]), 0..3)
            .prop_map(Value::from)
            .boxed(),
        Some("object") => {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let mut members = Just(Map::new()).boxed();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let (name, is_required) = (name.clone(), required.iter().any(|required| required == name));
                let value = match is_required {
                    true => fitting(member).prop_map(Some).boxed(),
                    false => prop::option::of(fitting(member)).boxed(),
                };
                members = (members, value)
                    .prop_map(move |(mut members, value)| {
                        members.extend(value.map(|value| (name.clone(), value)));
                        members
                    })
                    .boxed();
            }
            members.prop_map(Value::from).boxed()
        }
        _ => Just(json!({ "anything": [1.0, "5", null] })).boxed(),
    }
}

/// The same members, as text wherever no text is allowed.
fn as_text(schema: &Value, members: &Map<String, Value>) -> Map<String, Value> {
    let text = |(name, value): (&String, &Value)| {
        let takes_text = Shape::of(&schema["properties"][name]).takes_text();
        let value = if takes_text {
            value.clone()
        } else {
            value.to_string().into()
        };
        (name.clone(), value)
    };
    members.iter().map(text).collect()
}

#[test]
fn what_fits_every_tool_is_not_changed() {
    for tool in catalogue() {
        let schema = Value::from(tool.input_schema.clone());
        proptest!(ProptestConfig::with_cases(24), |(value in fitting(&schema))| {
            let members = value.as_object().cloned().unwrap_or_default();
            let arguments = tool.arguments(members.clone());
            prop_assert!(arguments.fault.is_none(), "{}: {value}", tool.name);
            prop_assert_eq!(arguments.members(), &members, "{}", tool.name);
            let arguments = tool.arguments(as_text(&schema, &members));
            prop_assert!(arguments.fault.is_none(), "{}: {value}", tool.name);
            prop_assert_eq!(arguments.members(), &members, "{} from text", tool.name);
        });
    }
}
