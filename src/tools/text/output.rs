//! Outputs in words for a model.

use serde_json::Value;

/// Text of outputs for a model.
pub(in crate::tools) struct OutputText {
    pub(in crate::tools) text: String,
    pub(in crate::tools) is_cut: bool,
}

/// Outputs of a cell, within `max` bytes for all of them.
pub(in crate::tools) fn outputs_text(outputs: &[Value], max: usize) -> OutputText {
    let mut text = String::new();
    for output in outputs {
        text.push_str(&output.to_string());
        text.push('\n');
    }
    let is_cut = text.len() > max;
    text.truncate(text.floor_char_boundary(max));
    OutputText { text, is_cut }
}

/// One short line about an output.
pub(in crate::tools) fn output_line(output: &Value, max: usize) -> String {
    output.to_string().chars().take(max).collect()
}
