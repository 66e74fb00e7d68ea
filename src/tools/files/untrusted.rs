//! Notebooks as callers hand them in, without what would run in the browser of whoever opens them: who may write need
//! not be one who may execute.

use serde_json::{Map, Value};

use crate::types::is_active_data;

/// Metadata by which JupyterLab knows that a cell may do everything.
const TRUSTED: &str = "trusted";
/// Metadata in which a notebook keeps the state of its widgets.
const WIDGETS: &str = "widgets";

/// Counts of what was left out of a notebook.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Disarmed {
    trusted: usize,
    outputs: usize,
    widgets: bool,
}

/// Leaves out of a notebook what runs where it is shown, and everything that says that it may.
pub(super) fn disarm(notebook: &mut Value) -> Disarmed {
    let mut left_out = Disarmed::default();
    if let Some(metadata) = notebook.get_mut("metadata").and_then(Value::as_object_mut) {
        left_out.widgets = metadata.remove(WIDGETS).is_some();
        left_out.trusted += usize::from(metadata.remove(TRUSTED).is_some());
    }
    let cells = notebook.get_mut("cells").and_then(Value::as_array_mut);
    for cell in cells.into_iter().flatten() {
        if let Some(metadata) = cell.get_mut("metadata").and_then(Value::as_object_mut) {
            left_out.trusted += usize::from(metadata.remove(TRUSTED).is_some());
        }
        if let Some(outputs) = cell.get_mut("outputs").and_then(Value::as_array_mut) {
            let before = outputs.len();
            let mut was_cut = 0;
            outputs.retain_mut(|output| keep(output, &mut was_cut));
            left_out.outputs += before - outputs.len() + was_cut;
        }
    }
    left_out
}

/// Removes active content from an output; returns whether anything is left.
fn keep(output: &mut Value, was_cut: &mut usize) -> bool {
    let Some(data) = output.get_mut("data").and_then(Value::as_object_mut) else {
        return true;
    };
    let before = data.len();
    let kept: Map<String, Value> = std::mem::take(data)
        .into_iter()
        .filter(|(mime, value)| !is_active_data(mime, value))
        .collect();
    *data = kept;
    let has_something = !data.is_empty() || before == 0;
    *was_cut += usize::from(has_something && data.len() < before);
    has_something
}

impl Disarmed {
    /// The sentence that tells of it, to be put behind another.
    pub(super) fn sentence(&self) -> String {
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let mut parts = Vec::new();
        if self.trusted > 0 {
            parts.push("the mark `trusted`".to_owned());
        }
        if self.outputs > 0 {
            parts.push(format!(
                "what could run in a browser of {} output{}",
                self.outputs,
                plural(self.outputs)
            ));
        }
        if self.widgets {
            parts.push("the state of widgets".to_owned());
        }
        match parts.as_slice() {
            [] => String::new(),
            parts => format!(
                ". Left out: {}; outputs that run come only from running the cells",
                parts.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_runs_goes_and_what_shows_stays() {
        let display = |data: Value| json!({ "output_type": "display_data", "data": data, "metadata": {} });
        let mut notebook = json!({
            "metadata": { "widgets": {}, "trusted": true, "kernelspec": { "name": "python3" } },
            "cells": [{
                "cell_type": "code",
                "metadata": { "trusted": true, "tags": ["a"] },
                "outputs": [
                    display(json!({ "text/html": "<script>x</script>", "text/plain": "table" })),
                    display(json!({ "application/javascript": "x" })),
                    display(json!({ "text/html": "<b>bold</b>" })),
                    { "output_type": "stream", "name": "stdout", "text": "<script>" },
                ],
            }],
        });
        let left_out = disarm(&mut notebook);
        assert_eq!(
            left_out,
            Disarmed {
                trusted: 2,
                outputs: 2,
                widgets: true
            }
        );
        assert_eq!(notebook["metadata"], json!({ "kernelspec": { "name": "python3" } }));
        let cell = &notebook["cells"][0];
        assert_eq!(cell["metadata"], json!({ "tags": ["a"] }));
        let outputs = cell["outputs"].as_array().expect("a list");
        assert_eq!(outputs.len(), 3);
        assert_eq!(outputs[0]["data"], json!({ "text/plain": "table" }));
        assert!(left_out.sentence().contains("2 outputs"), "{}", left_out.sentence());
        assert_eq!(disarm(&mut notebook).sentence(), "", "nothing is left to leave out");
    }
}
