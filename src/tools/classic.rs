//! The vocabulary of ChengJiale150's jupyter-mcp-server: notebooks are connected under a name, cells are known by index, and answers
//! are text made for models. Faces over the operations of the other tools, with words of their own.

mod connect;
mod edit;
mod execute;
mod read;
mod restart;

use jupyter_client::without_ansi;
use serde_json::Value;

use super::{Effect, ToolDefinition, images::is_image};
use crate::types::{Permission, Toolset};

pub(super) fn tools() -> Vec<ToolDefinition> {
    use Effect::{Add, Change, Execute, Open, Read, Set};
    let classic = Toolset::Classic;
    vec![
        ToolDefinition::new(
            classic,
            "connect_notebook",
            "Connects a notebook and its kernel under a name. The FIRST step before all others.",
            Open,
            connect::connect_notebook,
        ),
        ToolDefinition::new(
            classic,
            "list_notebook",
            "Lists the connected notebooks with their servers and kernels.",
            Read,
            connect::list_notebook,
        ),
        ToolDefinition::new(
            classic,
            "restart_notebook",
            "Restarts a notebook's kernel: imports and variables are gone, cells and outputs stay.",
            Execute,
            restart::restart_notebook,
        ),
        ToolDefinition::new(
            classic,
            "read_notebook",
            "Reads the full sources of cells, without outputs.",
            Read,
            read::read_notebook,
        ),
        ToolDefinition::new(
            classic,
            "list_cell",
            "Lists cells: index, type, execution count and first line.",
            Read,
            read::list_cell,
        ),
        ToolDefinition::new(
            classic,
            "read_cell",
            "Reads a cell: source, execution count and outputs.",
            Read,
            read::read_cell,
        ),
        ToolDefinition::new(
            classic,
            "delete_cell",
            "Deletes a cell. Of several, delete the last first.",
            Change,
            edit::delete_cell,
        ),
        ToolDefinition::new(
            classic,
            "insert_cell",
            "Inserts a cell below or above a cell.",
            Add,
            edit::insert_cell,
        ),
        ToolDefinition::new(
            classic,
            "execute_cell",
            "Executes a code cell and returns its output. After `timeout` it goes on; get_execution shows the rest.",
            Execute,
            execute::execute_cell,
        ),
        ToolDefinition::new(
            classic,
            "overwrite_cell",
            "Replaces the source of a cell and returns the diff.",
            Set,
            edit::overwrite_cell,
        ),
        ToolDefinition::new(
            classic,
            "append_execute_code_cell",
            "Appends a code cell to the notebook, executes it and returns its output.",
            Execute,
            execute::append_execute_code_cell,
        )
        .also_needs(Permission::Write)
        .also_called(&["append_execute_cell"]),
        ToolDefinition::new(
            classic,
            "execute_temporary_code",
            "Executes code in the notebook's kernel without storing it: magics, debugging, looking at variables.",
            Execute,
            execute::execute_temporary_code,
        )
        .also_called(&["execute_temporary_cell"]),
    ]
}

/// The text that a model reads of an output whose images are attached.
fn output_text(output: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), without_ansi);
    match output.get("output_type").and_then(Value::as_str) {
        Some("stream") => output.get("text").map(text).unwrap_or_default(),
        Some("error") => {
            let lines = output.get("traceback").and_then(Value::as_array);
            let lines: Vec<String> = lines.into_iter().flatten().map(text).collect();
            lines.join("\n")
        }
        _ => {
            let data = output.get("data").and_then(Value::as_object);
            let shown = |mime: &str| is_image(mime) || ["text/markdown", "text/plain"].contains(&mime);
            let texts = data.into_iter().flatten().filter(|(mime, _)| shown(mime));
            let texts: Vec<String> = texts.map(|(_, value)| text(value)).collect();
            if texts.is_empty() {
                let kinds: Vec<&String> = data.into_iter().flat_map(|data| data.keys()).collect();
                return format!("[Unknown display data type: {kinds:?}]");
            }
            texts.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_told_in_words() {
        for (output, words) in [
            (
                json!({ "output_type": "stream", "text": "\u{1b}[31mred\u{1b}[0m\n" }),
                "red\n",
            ),
            (json!({ "output_type": "error", "traceback": ["a", "b"] }), "a\nb"),
            (
                json!({ "output_type": "display_data", "data": { "image/png": "[image 1 attached]", "text/plain": "<Figure>", "text/html": "<img>" } }),
                "[image 1 attached]\n<Figure>",
            ),
            (
                json!({ "output_type": "display_data", "data": { "application/json": {} } }),
                "[Unknown display data type: [\"application/json\"]]",
            ),
        ] {
            assert_eq!(output_text(&output), words);
        }
    }
}
