//! Arguments as models send them, made to fit a tool's schema and then read into its type.
//!
//! Numbers, booleans, arrays and objects may come as JSON in a string, one item without the array around it, and names
//! in camel case: all of that is taken where the schema leaves only one reading. A string stays as it is wherever a
//! string is allowed. What fits already is looked at once and not copied.

mod names;
mod shape;
#[cfg(test)]
mod tests;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use self::{
    names::known_name,
    shape::{Member, Members, Numbers, Shape},
};
use super::ToolError;
use crate::error::nearest;

/// Integers up to here are the same as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The parameters of a tool.
pub(super) struct Parameters(Members);

/// Arguments of a call in the names and kinds of the tool's schema, as far as they could be made so.
pub struct Arguments {
    members: Map<String, Value>,
    fault: Option<ToolError>,
}

impl Parameters {
    pub(super) fn of(schema: &Map<String, Value>) -> Self {
        Self(Members::of(schema))
    }

    pub(super) fn fit(&self, mut members: Map<String, Value>) -> Arguments {
        let fault = fit_members(&self.0, &mut members).err().map(Fault::into_error);
        Arguments { members, fault }
    }
}

impl Arguments {
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// Takes out an argument that is not the tool's own.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    /// The arguments as a tool takes them.
    pub(super) fn read<A: DeserializeOwned>(self) -> Result<A, ToolError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        serde_path_to_error::deserialize(Value::Object(self.members)).map_err(|error| {
            let (path, said) = (error.path().to_string(), error.inner().to_string());
            refusal(&path, &said)
        })
    }
}

/// Error for a value that cannot be meant, and its place.
struct Fault {
    path: String,
    why: String,
}

impl Fault {
    fn new(why: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            why: why.into(),
        }
    }

    fn in_member(mut self, name: &str) -> Self {
        let joint = if matches!(self.path.chars().next(), None | Some('[')) {
            ""
        } else {
            "."
        };
        self.path = format!("{name}{joint}{}", self.path);
        self
    }

    fn in_item(self, index: usize) -> Self {
        self.in_member(&format!("[{index}]"))
    }

    fn into_error(self) -> ToolError {
        ToolError::argument(&self.path, self.why)
    }
}

fn fit(shape: &Shape, value: &mut Value) -> Result<(), Fault> {
    match value {
        Value::String(text) => {
            if let Some(words) = &shape.words {
                return fit_word(words, text);
            }
            match from_text(shape, text) {
                Some(parsed) => *value = parsed,
                None => {
                    if let Some(names) = shape.item_names() {
                        let shown: String = text.chars().take(100).collect();
                        let why = format!("invalid type: string {shown:?}, expected an array of objects with {names}");
                        return Err(Fault::new(why));
                    }
                }
            }
        }
        Value::Array(_) if shape.items.is_none() && shape.members.is_some() => {
            // serde would take it for the members in their order, which nobody means.
            let why = "expected an object with named members, not an array";
            return Err(Fault::new(match shape.only_names() {
                Some(names) => format!("{why}: {names}"),
                None => why.to_owned(),
            }));
        }
        Value::Number(number) => {
            if let Some(names) = shape.only_names() {
                return Err(Fault::new(format!("expected an object with {names}, not {number}")));
            }
        }
        _ => {}
    }
    if let Some(items) = shape
        .items
        .as_deref()
        .filter(|items| !shape.takes(value) && items.takes(value))
    {
        let mut only = value.take();
        fit(items, &mut only)?;
        *value = Value::Array(vec![only]);
        return Ok(());
    }
    match value {
        Value::Array(items) => match shape.items.as_deref() {
            Some(shape) => {
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(index, item)| fit(shape, item).map_err(|fault| fault.in_item(index)))
            }
            None => Ok(()),
        },
        Value::Object(members) => match &shape.members {
            Some(known) => fit_members(known, members),
            None => Ok(()),
        },
        Value::Number(number) if shape.numbers == Some(Numbers::Whole) && number.is_f64() => {
            if let Some(float) = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < EXACT)
            {
                #[expect(clippy::cast_possible_truncation, reason = "it is a whole number within range")]
                let whole = float as i64;
                *value = whole.into();
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn fit_members(known: &Members, members: &mut Map<String, Value>) -> Result<(), Fault> {
    if known.is_open() {
        return Ok(());
    }
    let (mut unknown, mut fault) = (Vec::new(), None);
    members.retain(|name, value| {
        let Some(member) = known.get(name) else {
            unknown.push(name.clone());
            return true;
        };
        if is_left_out(member, value) {
            return false;
        }
        if fault.is_none() {
            fault = fit(&member.shape, value).err().map(|fault| fault.in_member(name));
        }
        true
    });
    match fault {
        Some(fault) => Err(fault),
        None => rename(known, members, unknown),
    }
}

/// Clients send null for what they leave out, and some write it as a string.
fn is_left_out(member: &Member, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => {
            let is_optional = !member.is_required && !member.shape.takes_text();
            is_optional && matches!(text.trim(), "null" | "None")
        }
        _ => false,
    }
}

/// Gives members their names in the schema. Unknown ones are left, to be refused with the names of the others.
fn rename(known: &Members, members: &mut Map<String, Value>, unknown: Vec<String>) -> Result<(), Fault> {
    let mut renamed: Vec<(&str, String)> = Vec::new();
    for given in unknown {
        let member = known_name(known, &given).and_then(|name| Some((name, known.get(name)?)));
        let is_dropped =
            |value: &Value| value.is_null() || member.is_some_and(|(_, member)| is_left_out(member, value));
        if members.get(&given).is_some_and(is_dropped) {
            members.remove(&given);
            continue;
        }
        let Some((name, member)) = member else { continue };
        let Some(mut value) = members.remove(&given) else {
            continue;
        };
        fit(&member.shape, &mut value).map_err(|fault| fault.in_member(&given))?;
        if members.get(name).is_some_and(|present| *present != value) {
            let other = renamed.iter().find(|(to, _)| *to == name);
            let other = other.map_or(name, |(_, from)| from.as_str());
            return Err(
                Fault::new(format!("the same as `{other}`, with another value; give one of them")).in_member(&given),
            );
        }
        members.insert(name.to_owned(), value);
        renamed.push((name, given));
    }
    Ok(())
}

/// Makes a text one of the words that are allowed; all are if there are none.
fn fit_word(words: &[String], text: &mut String) -> Result<(), Fault> {
    if words.is_empty() || words.contains(text) {
        return Ok(());
    }
    if let Some(word) = words.iter().find(|word| word.eq_ignore_ascii_case(text.trim())) {
        word.clone_into(text);
        return Ok(());
    }
    let shown: String = text.chars().take(100).collect();
    let allowed = format!("allowed: `{}`", words.join("`, `"));
    let why = match nearest(text, words.iter().map(String::as_str)) {
        Some(word) => format!("unknown value {shown:?}; did you mean {word:?}? {allowed}"),
        None => format!("unknown value {shown:?}; {allowed}"),
    };
    Err(Fault::new(why))
}

/// The value that a text must mean where no text is allowed.
fn from_text(shape: &Shape, text: &str) -> Option<Value> {
    if shape.takes_text() {
        return None;
    }
    let text = text.trim();
    let parsed = match text {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        _ => serde_json::from_str(text).ok()?,
    };
    let fits = |shape: &Shape| !parsed.is_string() && shape.takes(&parsed);
    let is_item = || {
        shape
            .items
            .as_deref()
            .is_some_and(|items| !items.takes_text() && fits(items))
    };
    (fits(shape) || is_item()).then_some(parsed)
}

/// The refusal of arguments by serde, worded for the caller of a tool.
fn refusal(path: &str, said: &str) -> ToolError {
    if let Some(unknown) = said.strip_prefix("unknown field `") {
        return unknown_argument(path, unknown);
    }
    let why = in_plain_words(said);
    match (path, quoted_name(said)) {
        // A missing member is named in the message and has no path of its own.
        ("." | "?", name) => ToolError::argument(name.unwrap_or("arguments"), why),
        (path, Some(name)) if said.starts_with("missing field ") => ToolError::argument(&format!("{path}.{name}"), why),
        (path, _) => ToolError::argument(path, why),
    }
}

/// Refuses an unknown member; `said` begins with its name and ends with the known ones.
fn unknown_argument(path: &str, said: &str) -> ToolError {
    let (name, known) = said.rsplit_once("`, expected ").unwrap_or((said, ""));
    let name = name.split("`, there are no fields").next().unwrap_or(name);
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let shown: String = name.chars().take(100).collect();
    let within = path.strip_suffix(name).unwrap_or(path).trim_end_matches(['.', '?']);
    let argument = match within {
        "" => shown,
        within => format!("{within}.{shown}"),
    };
    let names = match known.as_slice() {
        [] => "none".to_owned(),
        known => known.join(", "),
    };
    let advice = match nearest(name, known) {
        Some(near) => format!("did you mean `{near}`? known: {names}"),
        None => format!("known: {names}"),
    };
    ToolError::UnknownArgument { argument, advice }
}

/// The message without the names of types that mean nothing to the caller of a tool.
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
