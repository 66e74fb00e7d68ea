//! The values that a schema allows, in a form that takes no time to ask.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// The kinds of values that are allowed at a place.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// True if nothing is known, so that nothing is changed.
    is_any: bool,
    takes_booleans: bool,
    pub(super) numbers: Option<Numbers>,
    /// The only texts that are allowed; all are if there are none.
    pub(super) words: Option<Vec<String>>,
    pub(super) items: Option<Box<Shape>>,
    pub(super) members: Option<Members>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Numbers {
    Whole,
    All,
}

/// The members of an object, by name.
#[derive(Debug, Default)]
pub(super) struct Members(HashMap<String, Member>);

#[derive(Debug)]
pub(super) struct Member {
    pub(super) shape: Shape,
    pub(super) is_required: bool,
}

impl Shape {
    pub(super) fn of(schema: &Value) -> Self {
        match schema {
            Value::Object(schema) => Self::of_object(schema),
            _ => Self::any(),
        }
    }

    fn of_object(schema: &Map<String, Value>) -> Self {
        if let Some(Value::Array(choices)) = schema.get("anyOf").or_else(|| schema.get("oneOf")) {
            let choices = choices.iter().filter(|choice| choice["type"] != "null");
            return choices.map(Self::of).fold(Self::default(), Self::or);
        }
        let mut shape = Self::default();
        match schema.get("type") {
            Some(Value::String(kind)) => shape.allow(kind, schema),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                kinds.for_each(|kind| shape.allow(kind, schema));
            }
            _ => shape.is_any = true,
        }
        shape
    }

    fn any() -> Self {
        Self {
            is_any: true,
            ..Self::default()
        }
    }

    fn allow(&mut self, kind: &str, schema: &Map<String, Value>) {
        match kind {
            "string" => self.words = Some(words(schema)),
            "integer" => self.numbers = self.numbers.max(Some(Numbers::Whole)),
            "number" => self.numbers = Some(Numbers::All),
            "boolean" => self.takes_booleans = true,
            "array" => self.items = Some(Box::new(schema.get("items").map_or_else(Self::any, Self::of))),
            "object" => self.members = Some(Members::of(schema)),
            "null" => {}
            _ => self.is_any = true,
        }
    }

    fn or(mut self, other: Self) -> Self {
        self.is_any |= other.is_any;
        self.takes_booleans |= other.takes_booleans;
        self.numbers = self.numbers.max(other.numbers);
        self.words = match (self.words, other.words) {
            // One of them allows all texts.
            (Some(one), Some(another)) if one.is_empty() || another.is_empty() => Some(Vec::new()),
            (Some(one), Some(another)) => Some([one, another].concat()),
            (one, another) => one.or(another),
        };
        self.items = match (self.items, other.items) {
            (Some(one), Some(another)) => Some(Box::new(one.or(*another))),
            (one, another) => one.or(another),
        };
        self.members = match (self.members, other.members) {
            (Some(one), Some(another)) => Some(one.or(another)),
            (one, another) => one.or(another),
        };
        self
    }

    /// Names of the members, where nothing but an object with members is taken.
    pub(super) fn only_names(&self) -> Option<String> {
        let takes_others = self.is_any || self.takes_booleans || self.numbers.is_some() || self.words.is_some();
        let members = self
            .members
            .as_ref()
            .filter(|_| !takes_others && self.items.is_none())?;
        let mut names: Vec<&str> = members.names().collect();
        names.sort_unstable();
        (!names.is_empty()).then(|| format!("`{}`", names.join("`, `")))
    }

    /// The same for the items, where nothing but an array of such objects is taken.
    pub(super) fn item_names(&self) -> Option<String> {
        let takes_others = self.is_any || self.takes_booleans || self.numbers.is_some() || self.words.is_some();
        let items = self
            .items
            .as_ref()
            .filter(|_| !takes_others && self.members.is_none())?;
        items.only_names()
    }

    pub(super) fn takes_text(&self) -> bool {
        self.is_any || self.words.is_some()
    }

    /// Returns whether the schema takes a value of this type, whatever is inside it.
    pub(super) fn takes(&self, value: &Value) -> bool {
        self.is_any
            || match value {
                Value::Null => false,
                Value::Bool(_) => self.takes_booleans,
                Value::Number(number) => match self.numbers {
                    Some(Numbers::All) => true,
                    Some(Numbers::Whole) => is_whole(number),
                    None => false,
                },
                Value::String(_) => self.words.is_some(),
                Value::Array(_) => self.items.is_some(),
                Value::Object(_) => self.members.is_some(),
            }
    }
}

/// Returns whether a number has no fraction, however it is written.
fn is_whole(number: &serde_json::Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

fn words(schema: &Map<String, Value>) -> Vec<String> {
    let word = |value: &Value| value.as_str().map(str::to_owned);
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(words)), _) => words.iter().filter_map(word).collect(),
        (_, Some(only)) => word(only).into_iter().collect(),
        _ => Vec::new(),
    }
}

impl Members {
    pub(super) fn of(schema: &Map<String, Value>) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
        let Some(Value::Object(properties)) = schema.get("properties") else {
            return Self::default();
        };
        let member = |(name, schema): (&String, &Value)| {
            let member = Member {
                shape: Shape::of(schema),
                is_required: is_required(name),
            };
            (name.clone(), member)
        };
        Self(properties.iter().map(member).collect())
    }

    fn or(mut self, other: Self) -> Self {
        for (name, member) in other.0 {
            let merged = match self.0.remove(&name) {
                Some(own) => Member {
                    shape: own.shape.or(member.shape),
                    is_required: own.is_required && member.is_required,
                },
                None => member,
            };
            self.0.insert(name, merged);
        }
        self
    }

    pub(super) fn get(&self, name: &str) -> Option<&Member> {
        self.0.get(name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether any names are allowed.
    pub(super) fn is_open(&self) -> bool {
        self.0.is_empty()
    }
}
