//! Prompts, and the completion of arguments, as MCP describes them.

use rmcp::{
    ErrorData,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, GetPromptRequestParams, GetPromptResult,
        ListPromptsResult, Prompt, PromptArgument, PromptMessage, Reference, Role,
    },
};
use serde_json::Value;

use super::{Caller, Catalogue};
use crate::{
    prompts::{PromptError, prompt, prompts, usable},
    resources::{Known, View, uri_templates},
    tools::{Call, cite},
};

/// The prompts whose tools the caller has.
pub(super) fn list(has_tool: impl Fn(&str) -> bool) -> ListPromptsResult {
    let usable = prompts().iter().filter(|prompt| prompt.lacks(&has_tool).is_empty());
    let described = usable.map(|prompt| {
        let arguments = prompt.arguments.iter().map(|argument| {
            PromptArgument::new(argument.name)
                .with_description(argument.description)
                .with_required(argument.required)
        });
        Prompt::new(prompt.name, Some(prompt.description), Some(arguments.collect())).with_title(prompt.title)
    });
    ListPromptsResult::with_all_items(described.collect())
}

pub(super) async fn get(
    request: GetPromptRequestParams,
    catalogue: &Catalogue,
    caller: &Caller,
    call: &Call,
) -> Result<GetPromptResult, ErrorData> {
    let has_tool = |tool: &str| catalogue.is_visible(tool, caller);
    let prompt = usable(&request.name, has_tool, |lacking| catalogue.remedy(lacking, caller));
    let prompt = prompt.map_err(|error| refused(&error))?;
    let text_of = |value: Value| match value {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let given = request.arguments.unwrap_or_default().into_iter();
    let given = given.map(|(name, value)| (name, text_of(value))).collect();
    let given = prompt.checked(given).map_err(|error| refused(&error))?;
    let text = match prompt.text(&given) {
        Some(text) => text,
        None => {
            let value = |name: &str| given.get(name).map(String::as_str).unwrap_or_default();
            let cited = cite(call, value("prompt"), value("cell_indices"), value("notebook_name")).await;
            cited.map_err(|error| ErrorData::invalid_params(catalogue.advise(&error.to_string(), caller), None))?
        }
    };
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(prompt.description))
}

/// Completes an argument of a prompt, or a name that stands in the template of an address.
pub(super) async fn complete(
    request: CompleteRequestParams,
    has_tool: impl Fn(&str) -> bool,
    view: &View,
) -> Result<CompleteResult, ErrorData> {
    let name = request.argument.name.as_str();
    let is_known = match &request.r#ref {
        Reference::Prompt(reference) => {
            let prompt = prompt(&reference.name, has_tool).map_err(|error| refused(&error))?;
            prompt.arguments.iter().any(|argument| argument.name == name)
        }
        Reference::Resource(reference) => {
            let is_it = |template: &str| template == reference.uri;
            if !uri_templates(view.has_names()).any(|shape| is_it(shape.template)) {
                let message = format!(
                    "Unknown resource template: {}; see resources/templates/list",
                    reference.uri
                );
                return Err(ErrorData::invalid_params(message, None));
            }
            reference.uri.contains(&format!("{{{name}}}"))
        }
        _ => false,
    };
    if !is_known {
        let message = format!("`{name}` is not an argument that can be completed");
        return Err(ErrorData::invalid_params(message, None));
    }
    let known: Known = request
        .context
        .and_then(|context| context.arguments)
        .unwrap_or_default();
    let found = view.complete(name, &request.argument.value, &known).await;
    let (total, more) = (u32::try_from(found.total).ok(), found.total > found.values.len());
    CompletionInfo::with_pagination(found.values, total, more)
        .map(CompleteResult::new)
        .map_err(|problem| ErrorData::internal_error(problem, None))
}

fn refused(error: &PromptError) -> ErrorData {
    ErrorData::invalid_params(error.to_string(), None)
}
