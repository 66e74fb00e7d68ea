//! Advice in failures, for callers who do not see all tools: only what is listed for them is named. Layers below
//! know what would help, and not who asks.

use std::{collections::HashMap, sync::LazyLock};

use super::{Call, ToolDefinition, catalogue};

/// Tools of other vocabularies that do what the first one does.
const EQUIVALENTS: &[(&str, &[&str])] = &[
    ("connect_notebook", &["use_notebook"]),
    ("restart_nb_kernel", &["restart_notebook"]),
    ("read_nb_cells", &["read_cell", "get_notebook"]),
    ("get_document_content", &["get_document"]),
];

/// All tools by name, of which some have several.
static TOOLS: LazyLock<HashMap<&'static str, Vec<ToolDefinition>>> = LazyLock::new(|| {
    let mut tools: HashMap<_, Vec<_>> = HashMap::new();
    for tool in catalogue() {
        tools.entry(tool.name).or_default().push(tool);
    }
    tools
});

/// A message, worded for this call's caller.
pub(super) fn advise(call: &Call, message: &str) -> String {
    let granted = call.principal().permissions();
    advice_for(message, |tool| {
        let is_listed = |tool: &ToolDefinition| {
            let is_offered = tool.toolsets.iter().any(|toolset| call.offers(*toolset));
            is_offered && tool.is_for(call.principal()) && tool.permissions().all(|needed| granted.contains(needed))
        };
        Some(TOOLS.get(tool)?.iter().any(is_listed))
    })
}

/// The message with other names for tools that are not listed, and without clauses about those that have no other.
/// `is_listed` knows nothing of what is not a tool.
pub fn advice_for(message: &str, is_listed: impl Fn(&str) -> Option<bool>) -> String {
    let clauses = clauses(message).into_iter().enumerate();
    let fitting = clauses.filter_map(|(index, clause)| {
        let renamed = renamed(clause, &is_listed);
        // The report of what happened is always kept.
        renamed.or_else(|| (index == 0).then(|| clause.to_owned()))
    });
    fitting.collect::<Vec<_>>().join("; ")
}

/// The parts of a message between semicolons. What stands in quotes is somebody's name for something.
fn clauses(message: &str) -> Vec<&str> {
    let (mut clauses, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (at, character) in message.char_indices() {
        match character {
            '"' if !is_escaped => is_quoted = !is_quoted,
            ';' if !is_quoted && message[at..].starts_with("; ") => {
                clauses.push(&message[start..at]);
                start = at + 2;
            }
            _ => {}
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    clauses.push(&message[start..]);
    clauses
}

/// A clause whose every tool is listed, under the names that are; none if one of them has no such name.
fn renamed(clause: &str, is_listed: &impl Fn(&str) -> Option<bool>) -> Option<String> {
    let (mut renamed, mut is_quoted) = (String::with_capacity(clause.len()), false);
    for word in clause.split_inclusive(|character: char| !character.is_ascii_alphanumeric() && character != '_') {
        let name = word.trim_end_matches(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        let shown = match is_listed(name).filter(|_| !is_quoted) {
            Some(false) => equivalent(name, is_listed)?,
            _ => name,
        };
        renamed.push_str(shown);
        renamed.push_str(&word[name.len()..]);
        is_quoted ^= word[name.len()..].contains('"');
    }
    Some(renamed)
}

fn equivalent(tool: &str, is_listed: &impl Fn(&str) -> Option<bool>) -> Option<&'static str> {
    let (_, others) = EQUIVALENTS.iter().find(|(name, _)| *name == tool)?;
    others.iter().copied().find(|other| is_listed(other) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Toolset;

    #[test]
    fn only_what_is_listed_is_advised() {
        let listed = ["restart_notebook", "get_execution"];
        let unlisted = ["restart_nb_kernel", "list_documents", "cancel_execution"];
        let is_listed = |tool: &str| match (listed.contains(&tool), unlisted.contains(&tool)) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        };
        for (message, shown) in [
            ("it failed", "it failed"),
            (
                "it died; restart it with restart_nb_kernel",
                "it died; restart it with restart_notebook",
            ),
            (
                "\"a\" does not exist; list_documents shows what does",
                "\"a\" does not exist",
            ),
            (
                "it runs; get_execution waits; try later",
                "it runs; get_execution waits; try later",
            ),
            (
                "\"a; list_documents\" is open; end it with `cancel_execution`; try later",
                "\"a; list_documents\" is open; try later",
            ),
            ("call list_documents first", "call list_documents first"),
        ] {
            assert_eq!(advice_for(message, is_listed), shown);
        }
    }

    /// Checks what a model reads before it calls anything.
    #[test]
    fn descriptions_name_only_tools_of_the_same_toolset() {
        for toolset in Toolset::ALL {
            let tools: Vec<&ToolDefinition> = TOOLS
                .values()
                .flatten()
                .filter(|tool| tool.toolsets.contains(&toolset))
                .collect();
            for tool in &tools {
                let told = format!(
                    "{} {}",
                    tool.description,
                    serde_json::Value::from(tool.input_schema.clone())
                );
                let words = told.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
                for named in words.filter(|word| TOOLS.contains_key(word)) {
                    let is_listed = tools.iter().any(|other| other.name == named);
                    assert!(is_listed, "{} of {toolset} names {named}", tool.name);
                }
            }
        }
    }
}
