//! JSON to and from the values of a shared document.

use std::sync::Arc;

use serde_json::{Map, Number, Value};
use yrs::{Any, Array, GetString, Map as _, MapRef, Out, ReadTxn, types::ToJson};

/// A shared value as JSON. Numbers that are whole come back as integers: Yjs knows only floats.
pub(crate) fn to_json(any: &Any) -> Value {
    match any {
        Any::Null | Any::Undefined => Value::Null,
        Any::Bool(flag) => Value::Bool(*flag),
        Any::Number(yrs::any::Number::Int(number)) => Value::from(*number),
        Any::Number(yrs::any::Number::Float(number)) => from_float(*number),
        Any::String(text) => Value::from(&**text),
        // Notebooks hold no binary values; what somebody else put there is shown as its length.
        Any::Buffer(bytes) => Value::from(format!("<{} bytes>", bytes.len())),
        Any::Array(items) => items.iter().map(to_json).collect(),
        Any::Map(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), to_json(value)))
            .collect::<Map<_, _>>()
            .into(),
    }
}

/// JSON as a shared value.
pub(crate) fn from_json(value: &Value) -> Any {
    match value {
        Value::Null => Any::Null,
        Value::Bool(flag) => Any::Bool(*flag),
        Value::Number(number) => from_number(number),
        Value::String(text) => Any::String(Arc::from(text.as_str())),
        Value::Array(items) => Any::Array(items.iter().map(from_json).collect()),
        Value::Object(members) => Any::Map(Arc::new(
            members
                .iter()
                .map(|(key, value)| (key.clone(), from_json(value)))
                .collect(),
        )),
    }
}

/// A nested collection or a plain value, as JSON. yrs would make a copy of its own kind first.
pub(crate) fn shared_to_json(value: &Out, txn: &impl ReadTxn) -> Value {
    match value {
        Out::Any(any) => to_json(any),
        Out::YText(text) => text.get_string(txn).into(),
        Out::YArray(items) => items.iter(txn).map(|item| shared_to_json(&item, txn)).collect(),
        Out::YMap(members) => map_to_json(members, txn),
        other => to_json(&other.to_json(txn)),
    }
}

pub(crate) fn map_to_json(members: &MapRef, txn: &impl ReadTxn) -> Value {
    members
        .iter(txn)
        .map(|(key, value)| (key.to_owned(), shared_to_json(&value, txn)))
        .collect::<Map<_, _>>()
        .into()
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "checked to be whole and within what a float holds exactly"
)]
fn from_float(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn from_number(number: &Number) -> Any {
    match number.as_i64() {
        Some(whole) if whole.abs() < 1 << 53 => Any::from(whole),
        _ => Any::from(number.as_f64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_survives_the_way_there_and_back() {
        for value in [
            json!(null),
            json!(true),
            json!(3),
            json!(-2.5),
            json!("ü🎉"),
            json!([1, [2]]),
            json!({ "a": { "b": [] } }),
        ] {
            assert_eq!(to_json(&from_json(&value)), value);
        }
        assert_eq!(to_json(&Any::from(4.0)), json!(4));
    }
}
