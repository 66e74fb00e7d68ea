//! Answers held against the schemas of their tools: what is said of types is true, and what is sent is told of.

use std::{collections::HashMap, sync::LazyLock};

use jupyter_mcp_gateway::tools::catalogue;
use serde_json::Value;

/// Any answer may tell what the caller must know of earlier calls.
const IN_EVERY_ANSWER: &str = "notices";

/// The schemas of each name, of which vocabularies share some.
static SCHEMAS: LazyLock<HashMap<&'static str, Vec<Value>>> = LazyLock::new(|| {
    let mut schemas: HashMap<_, Vec<_>> = HashMap::new();
    for tool in catalogue() {
        for name in [tool.name].into_iter().chain(tool.aliases.iter().copied()) {
            let schema = Value::Object(tool.output_schema.clone());
            schemas.entry(name).or_default().push(schema);
        }
    }
    schemas
});

/// Panics unless an answer is as the schema of a tool of this name says. Tools of other handlers are not known here.
#[track_caller]
pub fn check(tool: &str, answer: &Value) {
    let Some(schemas) = SCHEMAS.get(tool).filter(|_| !answer.is_null()) else {
        return;
    };
    let unfitting: Vec<String> = schemas
        .iter()
        .filter_map(|schema| compare(schema, answer, tool).err())
        .collect();
    let fits_one = unfitting.len() < schemas.len();
    assert!(fits_one, "{}: {answer}", unfitting.join("; "));
}

fn compare(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let allowed = match &schema["type"] {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !allowed.is_empty() && !allowed.iter().any(|kind| is_of(kind, value)) {
        return Err(format!("{place} is none of {allowed:?}"));
    }
    if let (Value::Object(told), Value::Object(members)) = (&schema["properties"], value) {
        for (name, member) in members {
            let place = format!("{place}.{name}");
            match told.get(name) {
                Some(schema) => compare(schema, member, &place)?,
                // What has no type is only told of in part.
                None if allowed.is_empty() || name == IN_EVERY_ANSWER => {}
                None => return Err(format!("{place} is not told of")),
            }
        }
    }
    if let (Value::Object(_), Value::Array(items)) = (&schema["items"], value) {
        let mut items = items.iter().enumerate();
        items.try_for_each(|(index, item)| compare(&schema["items"], item, &format!("{place}[{index}]")))?;
    }
    Ok(())
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schema has a type of its own: {other}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_does_not_fit_is_found() {
        let cells =
            json!({ "type": "array", "items": { "type": "object", "properties": { "id": { "type": "string" } } } });
        let schema = json!({ "type": "object", "properties": {
            "cells": cells, "count": { "type": ["integer", "null"] }, "any": {},
            "outputs": { "type": "array", "items": { "properties": { "text": {} } } } } });
        let fits = |value: Value| compare(&schema, &value, "x").is_ok();
        assert!(fits(
            json!({ "cells": [{ "id": "a" }, {}], "count": null, "any": [1], "notices": ["n"] })
        ));
        assert!(fits(json!({ "outputs": [{ "text": 1, "name": "stdout" }, "hostile"] })));
        for unfitting in [
            json!([]),
            json!({ "cells": [{ "id": 1 }] }),
            json!({ "cells": [[]] }),
            json!({ "cells": [{ "other": 1 }] }),
            json!({ "count": 1.5 }),
            json!({ "other": 1 }),
        ] {
            assert!(!fits(unfitting.clone()), "{unfitting}");
        }
    }
}
