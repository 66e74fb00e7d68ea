//! Owns the prompts, and the completion of their arguments.

use rmcp::{ErrorData, model::*};
use serde_json::Value;

use super::{
    ask::{self, answer},
    content::PNG,
};

pub(super) fn list() -> Vec<Prompt> {
    vec![
        prompt("test_simple_prompt", "Takes nothing", []),
        prompt(
            "test_prompt_with_arguments",
            "Repeats its two arguments",
            ["arg1", "arg2"],
        ),
        prompt(
            "test_prompt_with_embedded_resource",
            "Embeds the resource it is given",
            ["resourceUri"],
        ),
        prompt("test_prompt_with_image", "Contains an image", []),
        prompt(
            "test_input_required_result_prompt",
            "Asks for its context first (SEP-2322)",
            [],
        ),
    ]
}

fn prompt<const N: usize>(name: &str, description: &str, arguments: [&str; N]) -> Prompt {
    let arguments = arguments.map(|name| PromptArgument::new(name).with_required(true));
    let arguments = (N > 0).then(|| arguments.to_vec());
    Prompt::new(name, Some(description), arguments)
}

pub(super) fn get(request: GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let arg1 = required(&arguments, "arg1")?;
            let arg2 = required(&arguments, "arg2")?;
            vec![text(format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"))]
        }
        "test_prompt_with_embedded_resource" => embedded_resource(required(&arguments, "resourceUri")?),
        "test_prompt_with_image" => vec![
            PromptMessage::new(Role::User, ContentBlock::image(PNG, "image/png")),
            text("Please analyze the image above."),
        ],
        "test_input_required_result_prompt" => {
            return Ok(with_elicited_context(request.input_responses.as_ref()));
        }
        unknown => {
            let problem = format!("There is no prompt called {unknown}");
            return Err(ErrorData::invalid_params(problem, None));
        }
    };
    Ok(GetPromptResult::new(messages).into())
}

fn embedded_resource(uri: &str) -> Vec<PromptMessage> {
    let resource = ResourceContents::text("Embedded resource content for testing.", uri).with_mime_type("text/plain");
    vec![
        PromptMessage::new(Role::User, ContentBlock::resource(resource)),
        text("Please process the embedded resource above."),
    ]
}

/// The one prompt that asks before it answers.
fn with_elicited_context(responses: Option<&InputResponses>) -> GetPromptResponse {
    let context = answer(responses, "user_context").and_then(|form| ask::text_field(form, "context"));
    match context {
        Some(context) => GetPromptResult::new(vec![text(format!("Context: {context}"))]).into(),
        None => {
            let question = ask::text_question("What context should the prompt use?", "context");
            ask::single("user_context", question).into()
        }
    }
}

fn text(text: impl Into<String>) -> PromptMessage {
    PromptMessage::new_text(Role::User, text)
}

fn required<'a>(arguments: &'a JsonObject, name: &str) -> Result<&'a str, ErrorData> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| ErrorData::invalid_params(format!("The argument {name} is missing"), None))
}

/// Completes any prompt's argument from a few fixed words. Templates have nothing to complete.
pub(super) fn complete(request: &CompleteRequestParams) -> Vec<String> {
    let Reference::Prompt(_) = &request.r#ref else {
        return Vec::new();
    };
    ["paris", "park", "party", "test"]
        .into_iter()
        .filter(|word| word.starts_with(&request.argument.value))
        .map(str::to_owned)
        .collect()
}
