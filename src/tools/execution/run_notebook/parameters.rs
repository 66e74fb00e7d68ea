//! Parameters of a notebook as papermill has them: a cell of assignments after the one with the tag `parameters`, in the
//! language of the kernel.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::tools::ToolError;

/// The tag of the cell after which parameters are put.
const PARAMETERS: &str = "parameters";
/// The tag of cells that are meant to raise an error.
pub(super) const RAISES: &str = "raises-exception";
/// The tag, and here also the id, of the cell that assigns them.
pub(super) const INJECTED: &str = "injected-parameters";

/// A language in which parameters can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    R,
    Julia,
}

/// Puts a cell with parameters into a copy of a notebook, in the place of an earlier one, after the one that has their
/// defaults, or at the top. Returns its position, and whether it took the place of another.
pub(super) fn inject(
    notebook: &mut Value,
    parameters: &Map<String, Value>,
    language: &str,
) -> Result<(usize, bool), ToolError> {
    let language = Language::of(language)?;
    let lines: Result<Vec<String>, ToolError> = parameters
        .iter()
        .map(|(name, value)| language.assignment(name, value))
        .collect();
    let mut cell = json!({
        "cell_type": "code",
        "metadata": { "tags": [INJECTED] },
        "source": format!("# Parameters\n{}\n", lines?.join("\n")),
        "outputs": [],
        "execution_count": null,
    });
    let Some(cells) = notebook["cells"].as_array_mut() else {
        return Err(ToolError::argument("path", "the notebook has no list of cells"));
    };
    if cells.iter().any(|cell| cell.get("id").is_some()) {
        cell["id"] = INJECTED.into();
    }
    if let Some(earlier) = cells.iter().position(|cell| has_tag(cell, INJECTED)) {
        cells[earlier] = cell;
        return Ok((earlier, true));
    }
    let defaults = cells.iter().position(|cell| has_tag(cell, PARAMETERS));
    let at = defaults.map_or(0, |defaults| defaults + 1);
    cells.insert(at, cell);
    Ok((at, false))
}

/// Returns whether there is a cell that parameters follow or replace.
pub(super) fn has_place(cells: &Value) -> bool {
    let cells = cells.as_array().map(Vec::as_slice).unwrap_or_default();
    let is_place = |cell: &Value| has_tag(cell, PARAMETERS) || has_tag(cell, INJECTED);
    cells.iter().any(is_place)
}

pub(super) fn has_tag(cell: &Value, tag: &str) -> bool {
    let tags = cell.pointer("/metadata/tags").and_then(Value::as_array);
    cell["cell_type"] == "code" && tags.is_some_and(|tags| tags.iter().any(|own| own == tag))
}

impl Language {
    fn of(name: &str) -> Result<Self, ToolError> {
        match name.to_ascii_lowercase().as_str() {
            "python" => Ok(Self::Python),
            "r" => Ok(Self::R),
            "julia" => Ok(Self::Julia),
            _ => {
                let why = format!(
                    "the gateway cannot write values in the kernel's language {name:?}; it can in Python, R and Julia"
                );
                Err(ToolError::argument("parameters", why))
            }
        }
    }

    fn assignment(self, name: &str, value: &Value) -> Result<String, ToolError> {
        if !self.is_name(name) {
            let why = "it is not the name of a variable in the kernel's language";
            return Err(ToolError::argument(&format!("parameters.{name}"), why));
        }
        Ok(format!("{name} = {}", self.literal(value)))
    }

    fn is_name(self, name: &str) -> bool {
        let reserved: &[&str] = match self {
            Self::Python => &[
                "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
                "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
                "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
            ],
            Self::R => &[
                "if", "else", "repeat", "while", "function", "for", "next", "break", "TRUE", "FALSE", "NULL",
            ],
            Self::Julia => &[
                "begin", "end", "if", "for", "while", "function", "return", "true", "false", "let", "do",
            ],
        };
        let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '.' && self == Self::R;
        let is_first = |c: char| c.is_alphabetic() || c == '_' && self != Self::R;
        name.starts_with(is_first) && name.chars().all(is_inner) && !reserved.contains(&name)
    }

    fn literal(self, value: &Value) -> String {
        match (self, value) {
            (Self::Python, Value::Null) => "None".to_owned(),
            (Self::R, Value::Null) => "NULL".to_owned(),
            (Self::Julia, Value::Null) => "nothing".to_owned(),
            (Self::Python, Value::Bool(is)) => if *is { "True" } else { "False" }.to_owned(),
            (Self::R, Value::Bool(is)) => if *is { "TRUE" } else { "FALSE" }.to_owned(),
            (Self::Julia, Value::Bool(is)) => is.to_string(),
            (_, Value::Number(number)) => number.to_string(),
            (_, Value::String(text)) => self.string(text),
            (_, Value::Array(items)) => {
                let items: Vec<String> = items.iter().map(|item| self.literal(item)).collect();
                let items = items.join(", ");
                match self {
                    Self::R => format!("list({items})"),
                    Self::Python | Self::Julia => format!("[{items}]"),
                }
            }
            (_, Value::Object(members)) => {
                let (begin, between, end) = match self {
                    Self::Python => ("{", ": ", "}"),
                    Self::R => ("list(", " = ", ")"),
                    Self::Julia => ("Dict(", " => ", ")"),
                };
                let members = members
                    .iter()
                    .map(|(name, value)| (self.string(name), self.literal(value)));
                let members: Vec<String> = members.map(|(name, value)| format!("{name}{between}{value}")).collect();
                format!("{begin}{}{end}", members.join(", "))
            }
        }
    }

    /// A text in quotes. All three languages know these escapes; in Julia a dollar would begin a variable.
    fn string(self, text: &str) -> String {
        let mut quoted = String::from("\"");
        for c in text.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '$' if self == Self::Julia => quoted.push_str("\\$"),
                '\n' => quoted.push_str("\\n"),
                '\r' => quoted.push_str("\\r"),
                '\t' => quoted.push_str("\\t"),
                c if c.is_control() => {
                    // A string takes everything.
                    let _ = write!(quoted, "\\u{:04x}", u32::from(c));
                }
                c => quoted.push(c),
            }
        }
        quoted + "\""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Map<String, Value> {
        let values = json!({
            "alpha": 0.6, "name": "a \"b\"\\\n$x", "on": true, "none": null, "list": [1, [true]], "map": { "k": -1 },
        });
        values.as_object().expect("an object").clone()
    }

    fn source(language: &str) -> Vec<String> {
        let mut notebook = json!({ "cells": [] });
        inject(&mut notebook, &parameters(), language).expect("it is written");
        let source = notebook["cells"][0]["source"].as_str().expect("a source");
        let mut lines: Vec<String> = source.lines().skip(1).map(str::to_owned).collect();
        lines.sort();
        lines
    }

    #[test]
    fn values_are_written_in_the_language_of_the_kernel() {
        assert_eq!(
            source("python"),
            [
                "alpha = 0.6",
                "list = [1, [True]]",
                "map = {\"k\": -1}",
                r#"name = "a \"b\"\\\n$x""#,
                "none = None",
                "on = True"
            ]
        );
        assert_eq!(
            source("R"),
            [
                "alpha = 0.6",
                "list = list(1, list(TRUE))",
                "map = list(\"k\" = -1)",
                r#"name = "a \"b\"\\\n$x""#,
                "none = NULL",
                "on = TRUE"
            ]
        );
        assert_eq!(
            source("julia"),
            [
                "alpha = 0.6",
                "list = [1, [true]]",
                "map = Dict(\"k\" => -1)",
                r#"name = "a \"b\"\\\n\$x""#,
                "none = nothing",
                "on = true"
            ]
        );
    }

    #[test]
    fn parameters_come_after_their_defaults_or_first_or_in_the_place_of_earlier_ones() {
        let cell = |tags: Value| json!({ "id": "c", "cell_type": "code", "metadata": { "tags": tags }, "source": "" });
        let at = |cells: Value| {
            let mut notebook = json!({ "cells": cells });
            let found = inject(&mut notebook, &parameters(), "python").expect("it is written");
            assert_eq!(notebook["cells"][found.0]["id"], INJECTED);
            (found, notebook["cells"].as_array().expect("cells").len())
        };
        let (plain, defaults) = (cell(json!([])), cell(json!(["parameters"])));
        assert_eq!(at(json!([plain, plain])), ((0, false), 3));
        assert_eq!(at(json!([plain, defaults, plain])), ((2, false), 4));
        let earlier = cell(json!(["injected-parameters"]));
        assert_eq!(at(json!([defaults, plain, earlier])), ((2, true), 3));
    }

    #[test]
    fn what_is_no_name_and_what_is_no_known_language_is_refused() {
        for (name, language) in [
            ("a b", "python"),
            ("class", "python"),
            ("1a", "python"),
            ("", "python"),
            ("x; import os", "python"),
            ("a.b", "julia"),
            ("a", "ruby"),
        ] {
            let parameters = Map::from_iter([(name.to_owned(), json!(1))]);
            let mut notebook = json!({ "cells": [] });
            let error = inject(&mut notebook, &parameters, language).expect_err(name);
            assert!(error.to_string().contains("parameters"), "{error}");
            assert_eq!(notebook, json!({ "cells": [] }));
        }
    }
}
