//! Notebooks as files: made for a test, and judged after it.

use std::{collections::HashSet, path::Path};

use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellView {
    pub id: String,
    pub cell_type: String,
    pub source: String,
}

/// A notebook of code cells with the ids `c0`, `c1`, ...
pub fn notebook(sources: &[&str]) -> String {
    let cell = |(index, source): (usize, &&str)| json!({ "id": format!("c{index}"), "cell_type": "code", "source": source, "metadata": {}, "outputs": [], "execution_count": null });
    let cells: Vec<Value> = sources.iter().enumerate().map(cell).collect();
    json!({ "cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 }).to_string()
}

/// The cells of a notebook on disk, which must be valid; `None` while it is being written.
pub fn cells_on_disk(file: &Path) -> Option<Vec<CellView>> {
    let cells: Vec<CellView> = whole_cells_on_disk(file)?.iter().map(valid_cell).collect();
    let ids: HashSet<&str> = cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids.len(), cells.len(), "every cell is there once");
    Some(cells)
}

/// The cells of a notebook on disk with all that the file has of them.
pub fn whole_cells_on_disk(file: &Path) -> Option<Vec<Value>> {
    let notebook: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    assert_eq!(notebook["nbformat"], 4);
    let cells = notebook["cells"].as_array().expect("cells").clone();
    for cell in &cells {
        valid_cell(cell);
    }
    Some(cells)
}

fn valid_cell(cell: &Value) -> CellView {
    let cell_type = text(&cell["cell_type"]);
    let mut keys: Vec<&str> = cell.as_object().expect("a cell").keys().map(String::as_str).collect();
    keys.sort_unstable();
    let code = ["cell_type", "execution_count", "id", "metadata", "outputs", "source"];
    let expected: &[&str] = if cell_type == "code" {
        &code
    } else {
        &["cell_type", "id", "metadata", "source"]
    };
    assert_eq!(keys, expected, "nothing is missing and nothing leaked into the file");
    let id = text(&cell["id"]);
    let is_id_character = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    assert!(
        (1..=64).contains(&id.len()) && id.chars().all(is_id_character),
        "{id:?}"
    );
    CellView {
        id,
        cell_type,
        source: text(&cell["source"]),
    }
}

/// The sources of the cells of a notebook on disk, of any format; `None` while it is being written.
pub fn sources_on_disk(file: &Path) -> Option<Vec<String>> {
    let notebook: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    let cells = notebook["cells"].as_array().expect("cells");
    Some(cells.iter().map(|cell| text(&cell["source"])).collect())
}

/// A notebook in an older format, in which cells have no ids.
pub fn without_ids(notebook: &str, minor: u32) -> String {
    let mut notebook: Value = serde_json::from_str(notebook).expect("a notebook");
    notebook["nbformat_minor"] = minor.into();
    for cell in notebook["cells"].as_array_mut().expect("cells") {
        cell.as_object_mut().expect("a cell").remove("id");
    }
    notebook.to_string()
}

fn text(value: &Value) -> String {
    match value {
        Value::Array(lines) => lines.iter().map(|line| line.as_str().expect("a line")).collect(),
        other => other.as_str().expect("a text").to_owned(),
    }
}
