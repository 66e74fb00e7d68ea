//! A tool as data: its name, schemas and rules beside the function that runs it.

use std::{pin::Pin, sync::Arc};

use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Call, Output, ToolError, advice::advise, output::IntoOutput};
use crate::{
    audit::{Decision, Outcome},
    error::ClientError,
    types::{Permission, Toolset},
};

/// Effect of a tool on the world; clients see it as annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Opens or follows what is there, and adds to it only what the caller may add.
    Open,
    /// Only adds.
    Add,
    /// May change or remove what exists.
    Change,
    /// Changes as `Change` does, and doing it twice is as doing it once.
    Set,
    /// Changes what exists and then, unless told otherwise, runs it.
    ChangeAndExecute,
    /// Runs code, which may do anything.
    Execute,
}

/// Levels of members that the schema of a result tells of.
const OUTLINE_DEPTH: usize = 3;

type ToolFunction = Arc<
    dyn Fn(Call, Map<String, Value>) -> Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send>> + Send + Sync,
>;

#[derive(Clone)]
pub struct ToolDefinition {
    pub name: &'static str,
    /// Older names under which it can be called; nobody is told of them but people.
    pub aliases: &'static [&'static str],
    pub description: &'static str,
    /// Toolsets that offer it; its own first.
    pub toolsets: Vec<Toolset>,
    pub permission: Permission,
    /// Needed as well.
    pub also_needs: Option<Permission>,
    pub effect: Effect,
    pub input_schema: Map<String, Value>,
    pub output_schema: Map<String, Value>,
    run: ToolFunction,
}

impl ToolDefinition {
    /// Binds a function to its name. Schemas come from its types, so they cannot drift from the code.
    pub(super) fn new<A, R, F, Fut>(
        toolset: Toolset,
        name: &'static str,
        description: &'static str,
        effect: Effect,
        function: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: IntoOutput,
        F: Fn(Call, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let permission = match effect {
            Effect::Read | Effect::Open => Permission::Read,
            Effect::Add | Effect::Change | Effect::Set | Effect::ChangeAndExecute => Permission::Write,
            Effect::Execute => Permission::Execute,
        };
        let input_schema = input_schema::<A>();
        let (function, schema) = (Arc::new(function), Arc::new(Value::Object(input_schema.clone())));
        let run: ToolFunction = Arc::new(move |call, arguments| {
            let (function, schema) = (Arc::clone(&function), Arc::clone(&schema));
            Box::pin(async move {
                let arguments = parse_arguments(&schema, arguments)?;
                let faces = call.faces();
                function(call, arguments).await.map(|result| result.into_output(&faces))
            })
        });
        Self {
            name,
            aliases: &[],
            description,
            toolsets: vec![toolset],
            permission,
            also_needs: None,
            effect,
            input_schema,
            output_schema: output_schema::<R::Schema>(),
            run,
        }
    }

    /// Has the tool need another permission beside that of its effect.
    pub(super) fn also_needs(mut self, permission: Permission) -> Self {
        self.also_needs = Some(permission);
        self
    }

    /// All permissions that a caller needs.
    pub fn permissions(&self) -> impl Iterator<Item = Permission> {
        [Some(self.permission), self.also_needs].into_iter().flatten()
    }

    pub(super) fn also_called(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Offers the tool in other toolsets too: their vocabulary has the same name for it, or what they list tells of it.
    pub(super) fn also_in(mut self, toolsets: &[Toolset]) -> Self {
        self.toolsets.extend(toolsets);
        self
    }

    /// Whether a call with these arguments only reads.
    pub fn only_reads(&self) -> bool {
        self.effect == Effect::Read
    }

    /// Whether a call with these arguments needs nothing of its client: what runs nothing asks and tells nobody.
    pub fn needs_no_client(&self, arguments: Option<&Map<String, Value>>) -> bool {
        match self.effect {
            Effect::Read | Effect::Add | Effect::Change | Effect::Set => true,
            Effect::ChangeAndExecute => arguments
                .and_then(|arguments| arguments.get("exec"))
                .is_some_and(|exec| exec == false),
            Effect::Open | Effect::Execute => false,
        }
    }

    /// Checks the permission, then the arguments, then runs.
    pub async fn call(&self, call: Call, arguments: Map<String, Value>) -> Result<Output, ToolError> {
        let audited = call.audited(self.name, &arguments);
        let result = self.run_if_permitted(&call, arguments).await;
        if let Some(audited) = audited {
            let (decision, outcome) = judged(&result);
            audited.end(decision, outcome);
        }
        match result {
            Ok(output) => Ok(output.with_notices(call.take_notices())),
            Err(error) => Err(advised(&call, call.explained(error))),
        }
    }

    async fn run_if_permitted(&self, call: &Call, arguments: Map<String, Value>) -> Result<Output, ToolError> {
        self.permissions()
            .try_for_each(|needed| call.principal().require(needed))?;
        (self.run)(call.clone(), arguments).await
    }
}

/// Whether a call was let and how it ended, as records tell it.
fn judged(result: &Result<Output, ToolError>) -> (Decision, Outcome) {
    match result {
        Ok(_) => (Decision::Allowed, Outcome::Completed),
        Err(error) => match error.denied_by() {
            Some(rule) => (Decision::Denied { rule }, Outcome::Failed),
            None => (Decision::Allowed, Outcome::Failed),
        },
    }
}

/// The failure as it is, unless it names tools that the caller does not see.
fn advised(call: &Call, error: ToolError) -> ToolError {
    let told = error.to_string();
    let message = advise(call, &told);
    match message == told {
        true => error,
        false => ToolError::Advised {
            message,
            kind: error.kind(),
        },
    }
}

fn parse_arguments<A: DeserializeOwned>(schema: &Value, arguments: Map<String, Value>) -> Result<A, ToolError> {
    for (name, value) in &arguments {
        refuse_lists_of_members(&schema["properties"][name], value, name)?;
    }
    // Clients send null for what they leave out; a schema with optional members means the same.
    let given = arguments.into_iter().filter(|(_, value)| !value.is_null());
    let given: Map<String, Value> = given.map(|(name, value)| (name, with_integers(value))).collect();
    serde_path_to_error::deserialize(Value::Object(given)).map_err(|error| {
        let said = error.inner().to_string();
        let why = in_plain_words(&said);
        let path = error.path().to_string();
        match (path.as_str(), quoted_name(&said)) {
            // An unknown or missing member is named in the message and has no path of its own.
            ("." | "?", name) => ToolError::argument(name.unwrap_or("arguments"), why),
            (path, Some(name)) if said.starts_with("missing field ") => {
                ToolError::argument(&format!("{path}.{name}"), why)
            }
            (path, _) => ToolError::argument(path, why),
        }
    })
}

/// Refuses an array for an object: serde would take it for the members in their order, which nobody means.
fn refuse_lists_of_members(schema: &Value, value: &Value, argument: &str) -> Result<(), ToolError> {
    match value {
        Value::Array(items) => {
            if !takes_array(schema) {
                return Err(ToolError::argument(
                    argument,
                    "expected an object with named members, not an array",
                ));
            }
            let mut items = items.iter().enumerate();
            items.try_for_each(|(index, item)| {
                refuse_lists_of_members(&schema["items"], item, &format!("{argument}[{index}]"))
            })
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.try_for_each(|(name, value)| {
                refuse_lists_of_members(&schema["properties"][name], value, &format!("{argument}.{name}"))
            })
        }
        _ => Ok(()),
    }
}

/// Whether an array may stand where a schema does, or is refused elsewhere in better words.
fn takes_array(schema: &Value) -> bool {
    match &schema["anyOf"] {
        Value::Array(variants) => variants.iter().all(takes_array),
        _ => schema["type"] != "object",
    }
}

/// The value with integers for numbers without a fraction, which are integers to JSON however they are written.
fn with_integers(value: Value) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            #[expect(clippy::cast_possible_truncation, reason = "it is one, and within range")]
            Some(float) if float.fract() == 0.0 && float.abs() < EXACT => (float as i64).into(),
            _ => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(with_integers).collect(),
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| (name, with_integers(value)));
            Value::Object(members.collect())
        }
        other => other,
    }
}

/// The message without the names of types that mean nothing to who calls a tool.
fn in_plain_words(message: &str) -> String {
    if message.starts_with("missing field ") {
        return "required but missing".to_owned();
    }
    let Some((before, expected)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    let plain = match expected {
        "usize" | "u64" | "u32" => "a whole number, 0 or more",
        "i64" | "i32" => "a whole number",
        "f64" => "a number",
        "a sequence" => "an array",
        "a boolean" => "true or false",
        expected if expected.starts_with("struct ") || expected == "a map" => "an object",
        expected => expected,
    };
    format!("{before}expected {plain}")
}

/// The first name that a message of serde puts in backticks.
fn quoted_name(message: &str) -> Option<&str> {
    message.split('`').nth(1)
}

/// The schema of arguments, without what a model does not need: every byte is in its context.
fn input_schema<A: JsonSchema>() -> Map<String, Value> {
    let mut schema = generate::<A>(SchemaSettings::draft2020_12().for_deserialize());
    strip_noise(&mut schema);
    schema
}

/// The schema of a result: its members with their types, and theirs down to a depth. It is in what every client reads
/// before it calls anything, so there are no descriptions in it.
fn output_schema<T: JsonSchema>() -> Map<String, Value> {
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
    // Unknown arguments are refused with the names of the known ones, so the schema need not say it.
    for key in ["$schema", "title", "format", "additionalProperties"] {
        schema.remove(key);
    }
    schema.retain(|key, value| !(key == "default" && value.is_null() || key == "minimum" && value == 0));
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
    for value in schema.values_mut() {
        strip_nested(value);
    }
}

fn strip_nested(value: &mut Value) {
    match value {
        Value::Object(inner) => strip_noise(inner),
        Value::Array(items) => items.iter_mut().for_each(strip_nested),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Pair {
        #[serde(rename = "from")]
        _from: usize,
        #[serde(rename = "to")]
        _to: Option<Inner>,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(untagged)]
    enum Inner {
        #[expect(dead_code, reason = "only read from JSON")]
        Index(usize),
        #[expect(dead_code, reason = "only read from JSON")]
        Named { id: String },
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Arguments {
        #[serde(rename = "pairs")]
        _pairs: Vec<Pair>,
        #[serde(rename = "one")]
        _one: Option<Pair>,
    }

    #[test]
    fn an_object_is_not_written_as_an_array() {
        let schema = Value::Object(input_schema::<Arguments>());
        let parse = |arguments: Value| {
            let Value::Object(arguments) = arguments else {
                panic!("an object")
            };
            parse_arguments::<Arguments>(&schema, arguments)
        };
        assert!(parse(json!({ "pairs": [{ "from": 1, "to": { "id": "x" } }], "one": { "from": 1, "to": 2 } })).is_ok());
        assert!(parse(json!({ "pairs": [] })).is_ok());
        for (arguments, named) in [
            (json!({ "pairs": [[1, 2]] }), "pairs[0]"),
            (json!({ "pairs": [], "one": [1, 2] }), "one"),
            (json!({ "pairs": [{ "from": 1, "to": ["x"] }] }), "pairs[0].to"),
        ] {
            let refused = parse(arguments).expect_err("refused").to_string();
            assert!(
                refused.starts_with(&format!("argument `{named}`: expected an object")),
                "{refused}"
            );
        }
    }
}
