//! The catalogue as a page for people, made from the schemas that clients get.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::{
    tools::ToolDefinition,
    types::{Permission, Toolset},
};

const HEAD: &str = "# Tools

<!-- Made by `make docs` from the code; do not edit. -->

Clients get the default toolsets, or those they select: `/mcp?toolsets=notebook,kernel`. `all` means every one. A tool is
listed for a token that has its permission. Where two toolsets have a tool of one name (`read_cell` of `classic` and of
`datalayer`), the name means that of the toolset which is selected first; `all` selects them in the order of this page. Arguments
in bold are required.
";

/// A page with every one of the tools, which come toolset by toolset.
pub(super) fn page<'a>(tools: impl Iterator<Item = (Toolset, &'a ToolDefinition)>) -> String {
    let mut page = HEAD.to_owned();
    let mut heading = None;
    for (toolset, tool) in tools {
        if heading.replace(toolset) != Some(toolset) {
            let note = match toolset.is_default() {
                true => "",
                false => " (on request)",
            };
            // Writing to a string cannot fail.
            let _ = write!(page, "\n## {toolset}{note}\n");
        }
        page.push_str(&section(tool));
    }
    page
}

fn section(tool: &ToolDefinition) -> String {
    let permissions: Vec<&str> = tool.permissions().map(Permission::as_str).collect();
    let word = if permissions.len() == 1 {
        "Permission"
    } else {
        "Permissions"
    };
    let mut section = format!(
        "\n### {}\n\n{} {word}: {}.",
        tool.name,
        tool.description,
        quoted(&permissions)
    );
    if !tool.aliases.is_empty() {
        let _ = write!(section, " Older name: {}.", quoted(tool.aliases));
    }
    let elsewhere: Vec<&str> = tool.toolsets.iter().skip(1).map(|toolset| toolset.as_str()).collect();
    if !elsewhere.is_empty() {
        let _ = write!(section, " Also in {}.", quoted(&elsewhere));
    }
    section.push('\n');
    if let Some(properties) = members(&tool.input_schema) {
        section.push_str("\n| argument | type | |\n| --- | --- | --- |\n");
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        for (name, schema) in properties {
            let is_required = required.is_some_and(|names| names.iter().any(|other| other == name));
            let shown = match is_required {
                true => format!("**`{name}`**"),
                false => format!("`{name}`"),
            };
            let _ = writeln!(section, "| {shown} | {} | {} |", kind(schema), note(schema));
        }
    }
    if let Some(properties) = members(&tool.output_schema) {
        let names: Vec<&str> = properties.keys().map(String::as_str).collect();
        let _ = writeln!(section, "\nResult: {}.", quoted(&names));
    }
    section
}

/// The properties of a schema, if it has any.
fn members(schema: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let properties = schema.get("properties")?.as_object()?;
    (!properties.is_empty()).then_some(properties)
}

/// Short name of an argument's type.
fn kind(schema: &Value) -> String {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        let allowed: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        return quoted(&allowed);
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let choices = choices.iter().filter(|choice| choice["type"] != "null");
        return choices.map(kind).collect::<Vec<_>>().join(" or ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("array") => format!("array of {}", kind(&schema["items"])),
        Some("object") => match schema.as_object().and_then(members) {
            Some(properties) => {
                let member = |(name, schema): (&String, &Value)| format!("`{name}`: {}", kind(schema));
                let properties: Vec<String> = properties.iter().map(member).collect();
                format!("{{{}}}", properties.join(", "))
            }
            None => "object".to_owned(),
        },
        Some(other) => other.to_owned(),
        None => "any".to_owned(),
    }
}

/// Note on an argument: what its schema says beyond its type.
fn note(schema: &Value) -> String {
    let described = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let described = described.replace('|', "\\|").replace('\n', " ");
    match (schema.get("default"), described.is_empty()) {
        (Some(default), true) => format!("Default `{default}`"),
        (Some(default), false) => format!("{described}. Default `{default}`"),
        (None, _) => described,
    }
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
