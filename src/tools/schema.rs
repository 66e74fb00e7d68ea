//! Schemas of arguments and results, made from their types and cut down to what a model needs.

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};

/// Levels of members that the schema of a result tells of.
const OUTLINE_DEPTH: usize = 3;
/// Marks an argument that is taken and not listed.
const UNLISTED: &str = "x-unlisted";

/// The schema of arguments, without what a model does not need: every byte is in its context.
pub(super) fn input_schema<A: JsonSchema>() -> Map<String, Value> {
    let mut schema = generate::<A>(SchemaSettings::draft2020_12().for_deserialize());
    strip_noise(&mut schema);
    schema
}

/// The schema for models, without what only programs need and another tool describes.
pub(super) fn listed(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        members.retain(|_, member| member.get(UNLISTED).is_none());
    }
    schema
}

/// The schema of a result: its members with their types, and theirs down to a depth. It is in what every client reads
/// before it calls anything, so there are no descriptions in it.
pub(super) fn output_schema<T: JsonSchema>() -> Map<String, Value> {
    let full = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    let mut outlined = outline(&full, OUTLINE_DEPTH);
    // A result is always an object, which clients check.
    outlined.insert("type".to_owned(), "object".into());
    outlined
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    outlined
}

/// The types of a schema, of its members and of its items, and nothing else.
fn outline(schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
    let mut outlined = Map::new();
    let choices = schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array);
    let kind = schema.get("type").cloned().or_else(|| alternatives(choices?));
    if let Some(kind) = kind {
        outlined.insert("type".to_owned(), kind);
    }
    // What may be there or null has the members of what may be there.
    let shape = match choices {
        Some(choices) => only_choice(choices),
        None => Some(schema),
    };
    let Some(shape) = shape.filter(|_| depth > 0) else {
        return outlined;
    };
    if let Some(Value::Object(members)) = shape.get("properties") {
        let members = members
            .iter()
            .map(|(name, member)| (name.clone(), outline_of(member, depth - 1)));
        outlined.insert("properties".to_owned(), members.collect::<Map<_, _>>().into());
    }
    let items = shape.get("items").map(|items| outline_of(items, depth));
    if let Some(items) = items.filter(|items| items.as_object().is_some_and(|items| !items.is_empty())) {
        outlined.insert("items".to_owned(), items);
    }
    outlined
}

fn outline_of(schema: &Value, depth: usize) -> Value {
    // Anything may stand where a schema is `true`.
    schema
        .as_object()
        .map(|schema| outline(schema, depth))
        .unwrap_or_default()
        .into()
}

/// The one choice that is not null.
fn only_choice(choices: &[Value]) -> Option<&Map<String, Value>> {
    let mut shapes = choices.iter().filter(|choice| choice["type"] != "null");
    let only = shapes.next()?.as_object();
    only.filter(|_| shapes.next().is_none())
}

/// The types of which a schema allows any.
fn alternatives(choices: &[Value]) -> Option<Value> {
    let mut kinds = Vec::new();
    for choice in choices {
        match choice.get("type")? {
            Value::Array(several) => kinds.extend(several.iter().cloned()),
            kind => kinds.push(kind.clone()),
        }
    }
    kinds.dedup();
    match kinds.as_slice() {
        [only] => Some(only.clone()),
        _ => Some(kinds.into()),
    }
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Map<String, Value> {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let schema = SchemaGenerator::new(settings).into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn strip_noise(schema: &mut Map<String, Value>) {
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            // Its members are named by the tool, and may be named as what is noise elsewhere.
            ("properties", Value::Object(members)) => members.values_mut().for_each(strip_nested),
            (_, value) => strip_nested(value),
        }
    }
    join_choices(schema);
    // Unknown arguments are refused with the names of the known ones, so the schema need not say it.
    for key in ["$schema", "title", "format", "additionalProperties"] {
        schema.remove(key);
    }
    schema.retain(|key, value| !is_implied(key, value));
    if let Some(Value::Array(allowed)) = schema.get_mut("enum") {
        allowed.retain(|value| !value.is_null());
    }
    // `["string", "null"]` says what leaving the member out says already.
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
}

/// Returns whether a member of a schema only repeats what holds without it.
fn is_implied(key: &str, value: &Value) -> bool {
    match key {
        "default" => value.is_null() || *value == false,
        "minimum" => *value == 0,
        _ => false,
    }
}

/// Says in a line what a schema says as a list of choices: one of some words, or something or null.
fn join_choices(schema: &mut Map<String, Value>) {
    for key in ["anyOf", "oneOf"] {
        let Some(Value::Array(mut choices)) = schema.remove(key) else {
            continue;
        };
        choices.retain(|choice| choice["type"] != "null");
        let words: Option<Vec<Value>> = choices.iter().map(|choice| choice.get("const").cloned()).collect();
        match (words, choices.as_mut_slice()) {
            (Some(words), [_, ..]) => {
                schema.insert("type".to_owned(), "string".into());
                schema.insert("enum".to_owned(), words.into());
            }
            (_, [Value::Object(only)]) => {
                for (name, value) in std::mem::take(only) {
                    schema.entry(name).or_insert(value);
                }
            }
            _ => drop(schema.insert(key.to_owned(), choices.into())),
        }
    }
}

fn strip_nested(value: &mut Value) {
    match value {
        Value::Object(inner) => strip_noise(inner),
        Value::Array(items) => items.iter_mut().for_each(strip_nested),
        _ => {}
    }
}
