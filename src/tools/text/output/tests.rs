//! Outputs of real libraries (pandas, Plotly, Altair, Bokeh, Matplotlib, ipywidgets, tqdm, IPython 7 to 9), and of nobody in particular.

use std::{fmt::Write as _, time::Instant};

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;

/// Bytes that a text may have beyond a limit too small for anything.
const SLACK: usize = 128;

fn fixture(file: &str, name: &str) -> Vec<Value> {
    let text = match file {
        "errors" => include_str!("fixtures/errors.json"),
        "figures" => include_str!("fixtures/figures.json"),
        "tables" => include_str!("fixtures/tables.json"),
        _ => include_str!("fixtures/texts.json"),
    };
    let outputs: Map<String, Value> = serde_json::from_str(text).unwrap();
    outputs[name].as_array().unwrap().clone()
}

fn shown(file: &str, name: &str) -> String {
    let text = outputs_text(&fixture(file, name), 50_000, &[]);
    assert!(!text.is_cut && text.full_bytes == text.text.len());
    text.text
}

#[test]
fn print_all() {
    for file in ["errors", "figures", "tables", "texts"] {
        let text = match file {
            "errors" => include_str!("fixtures/errors.json"),
            "figures" => include_str!("fixtures/figures.json"),
            "tables" => include_str!("fixtures/tables.json"),
            _ => include_str!("fixtures/texts.json"),
        };
        let outputs: Map<String, Value> = serde_json::from_str(text).unwrap();
        for (name, outputs) in outputs {
            let outputs = outputs.as_array().unwrap();
            println!("==== {file} {name}\n{}", outputs_text(outputs, 600, &[]).text);
            for output in outputs {
                println!("   -- {}", output_line(output, 80));
            }
        }
    }
}
