//! Searchable texts of a document: the text of a file, sources and outputs of a notebook. Does no I/O.

use jupyter_client::without_ansi;
use live_document::Cell;
use serde::Deserialize;
use serde_json::Value;

/// A document as it is searched.
pub(super) enum Texts {
    File(String),
    Notebook(Vec<CellTexts>),
}

pub(super) struct CellTexts {
    /// None in older files, where cells have none.
    pub(super) id: Option<String>,
    pub(super) source: String,
    pub(super) outputs: Vec<String>,
}

impl Texts {
    /// The texts of a file, if it is text at all.
    pub(super) fn of_file(bytes: Vec<u8>) -> Option<Self> {
        let text = String::from_utf8(bytes).ok()?;
        (!text.contains('\0')).then_some(Self::File(text))
    }

    /// The texts of a notebook's file; of images and other data nothing is kept.
    pub(super) fn of_notebook(bytes: &[u8]) -> Option<Self> {
        let notebook: FileNotebook = serde_json::from_slice(bytes).ok()?;
        let cells = notebook.cells.into_iter().map(|cell| CellTexts {
            id: cell.id,
            source: cell.source.joined(),
            outputs: cell.outputs.into_iter().map(FileOutput::text).collect(),
        });
        Some(Self::Notebook(cells.collect()))
    }

    pub(super) fn of_cells(cells: Vec<(usize, Cell)>) -> Self {
        let cells = cells.into_iter().map(|(_, cell)| CellTexts {
            id: Some(cell.id),
            source: cell.source,
            outputs: cell.outputs.into_iter().map(output_text).collect(),
        });
        Self::Notebook(cells.collect())
    }
}

#[derive(Deserialize)]
struct FileNotebook {
    #[serde(default)]
    cells: Vec<FileCell>,
}

#[derive(Deserialize)]
struct FileCell {
    id: Option<String>,
    #[serde(default)]
    source: Lines,
    #[serde(default)]
    outputs: Vec<FileOutput>,
}

#[derive(Deserialize, Default)]
struct FileOutput {
    #[serde(default)]
    text: Lines,
    #[serde(default)]
    data: FileData,
    #[serde(default)]
    ename: String,
    #[serde(default)]
    evalue: String,
    #[serde(default)]
    traceback: Vec<String>,
}

#[derive(Deserialize, Default)]
struct FileData {
    #[serde(rename = "text/plain", default)]
    plain: Lines,
    #[serde(rename = "text/markdown", default)]
    markdown: Lines,
}

/// A text as nbformat has it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    Whole(String),
    Split(Vec<String>),
}

impl Default for Lines {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl Lines {
    fn joined(self) -> String {
        match self {
            Self::Whole(text) => text,
            Self::Split(lines) => lines.concat(),
        }
    }
}

impl FileOutput {
    /// Text of the output as a person reads it.
    fn text(self) -> String {
        if !self.traceback.is_empty() {
            return without_ansi(&self.traceback.join("\n"));
        }
        if !self.ename.is_empty() {
            return format!("{}: {}", self.ename, self.evalue);
        }
        let texts = [
            self.text.joined(),
            self.data.plain.joined(),
            self.data.markdown.joined(),
        ];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        without_ansi(&texts.join("\n"))
    }
}

/// An output that is not like one has no text.
fn output_text(output: Value) -> String {
    serde_json::from_value(output).map(FileOutput::text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_has_sources_and_the_texts_of_outputs() {
        let file = br#"{"nbformat": 4, "cells": [
            {"id": "a", "cell_type": "code", "source": ["x\n", "y"], "outputs": [
                {"output_type": "stream", "name": "stdout", "text": ["1\n", "2"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["\u001b[31mE\u001b[0m: v"]}]},
            {"cell_type": "markdown", "source": "z"}]}"#;
        let Some(Texts::Notebook(cells)) = Texts::of_notebook(file) else {
            panic!("a notebook");
        };
        assert_eq!((cells[0].source.as_str(), cells[0].id.as_deref()), ("x\ny", Some("a")));
        assert_eq!(cells[0].outputs, ["1\n2", "<Figure>", "E: v"]);
        assert_eq!((cells[1].source.as_str(), cells[1].id.as_deref()), ("z", None));
        assert!(Texts::of_notebook(b"{").is_none());
    }

    #[test]
    fn what_is_not_text_is_not_searched() {
        assert!(Texts::of_file(vec![0xff, 0xfe]).is_none() && Texts::of_file(vec![b'a', 0]).is_none());
        assert!(Texts::of_file("é".into()).is_some());
    }
}
