//! Cells as JupyterLab expects them in the shared document, to read and to make.

use serde::{Deserialize, Serialize};
use serde_json::{Map as JsonMap, Value, json};
use yrs::{
    Any, Array, ArrayPrelim, GetString, In, Map, MapPrelim, MapRef, Out, ReadTxn, TextPrelim, TextRef, TransactionMut,
};

use super::{
    edit::NewCell,
    json::{from_json, shared_to_json, to_json},
};

/// A cell as it stands in the document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    pub id: String,
    pub cell_type: String,
    pub source: String,
    pub metadata: Value,
    /// Null for a cell that has not run, and absent from cells that cannot.
    pub execution_count: Value,
    pub outputs: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Value>,
    /// `execution_state` of the cell as Jupyter has it; empty where there is none.
    #[serde(skip)]
    pub execution_state: String,
}

pub(crate) fn read_cell(cell: &MapRef, txn: &impl ReadTxn) -> Cell {
    Cell {
        id: text_of(cell, txn, "id"),
        cell_type: text_of(cell, txn, "cell_type"),
        source: text_of(cell, txn, "source"),
        metadata: cell_metadata(cell, txn),
        execution_count: execution_count(cell, txn),
        outputs: outputs(cell, txn),
        attachments: cell
            .get(txn, "attachments")
            .map(|attachments| shared_to_json(&attachments, txn)),
        execution_state: text_of(cell, txn, "execution_state"),
    }
}

pub(crate) fn execution_count(cell: &MapRef, txn: &impl ReadTxn) -> Value {
    let count = cell.get(txn, "execution_count");
    count.map_or(Value::Null, |count| shared_to_json(&count, txn))
}

/// A cell in the form of a notebook's file.
pub(crate) fn file_cell(cell: &MapRef, txn: &impl ReadTxn, with_id: bool) -> Value {
    let read = read_cell(cell, txn);
    let is_code = read.cell_type == "code";
    let mut members = JsonMap::new();
    members.insert("cell_type".to_owned(), read.cell_type.into());
    if with_id {
        members.insert("id".to_owned(), read.id.into());
    }
    members.insert("metadata".to_owned(), read.metadata);
    members.insert("source".to_owned(), read.source.into());
    if is_code {
        members.insert("execution_count".to_owned(), read.execution_count);
        members.insert("outputs".to_owned(), read.outputs.into());
    }
    if let Some(attachments) = read.attachments {
        members.insert("attachments".to_owned(), attachments);
    }
    members.into()
}

/// A text member, whether it is shared text or, as some clients write it, a plain string.
pub(crate) fn text_of(cell: &MapRef, txn: &impl ReadTxn, key: &str) -> String {
    match cell.get(txn, key) {
        Some(Out::YText(text)) => text.get_string(txn),
        Some(Out::Any(Any::String(text))) => text.to_string(),
        _ => String::new(),
    }
}

pub(crate) fn source_of(cell: &MapRef, txn: &impl ReadTxn) -> Option<TextRef> {
    match cell.get(txn, "source") {
        Some(Out::YText(text)) => Some(text),
        _ => None,
    }
}

pub(crate) fn cell_metadata(cell: &MapRef, txn: &impl ReadTxn) -> Value {
    let mut metadata = cell
        .get(txn, "metadata")
        .map_or(json!({}), |metadata| shared_to_json(&metadata, txn));
    if let Value::Object(members) = &mut metadata {
        // Only live documents say whether a cell is trusted; files never do.
        members.remove("trusted");
    }
    metadata
}

pub(crate) fn outputs(cell: &MapRef, txn: &impl ReadTxn) -> Vec<Value> {
    match cell.get(txn, "outputs") {
        Some(Out::YArray(outputs)) => outputs.iter(txn).map(|output| shared_to_json(&output, txn)).collect(),
        Some(Out::Any(Any::Array(outputs))) => outputs.iter().map(to_json).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether an output of the cell is an error; reads only the type of each.
pub(crate) fn has_error(cell: &MapRef, txn: &impl ReadTxn) -> bool {
    let is_error = |kind: Option<&Any>| matches!(kind, Some(Any::String(kind)) if &**kind == "error");
    let plain = |output: &Any| matches!(output, Any::Map(members) if is_error(members.get("output_type")));
    match cell.get(txn, "outputs") {
        Some(Out::YArray(outputs)) => outputs.iter(txn).any(|output| match output {
            Out::YMap(members) => text_of(&members, txn, "output_type") == "error",
            Out::Any(output) => plain(&output),
            _ => false,
        }),
        Some(Out::Any(Any::Array(outputs))) => outputs.iter().any(plain),
        _ => false,
    }
}

/// A new cell, with shared types where JupyterLab has them.
pub(crate) fn prelim(cell: &NewCell) -> MapPrelim {
    let is_code = cell.kind == super::CellKind::Code;
    let mut members: Vec<(String, In)> = vec![
        ("id".to_owned(), In::from(cell.id.as_str())),
        ("cell_type".to_owned(), In::from(cell.kind.as_str())),
        ("source".to_owned(), In::from(TextPrelim::new(cell.source.as_str()))),
        (
            "metadata".to_owned(),
            metadata_prelim(&cell.metadata, is_code && cell.trusted),
        ),
    ];
    if is_code {
        let outputs: ArrayPrelim = cell.outputs.iter().map(output_prelim).collect();
        members.push(("outputs".to_owned(), In::from(outputs)));
        members.push((
            "execution_count".to_owned(),
            In::Any(cell.execution_count.map_or(Any::Null, Any::from)),
        ));
    }
    if let Some(attachments) = &cell.attachments {
        members.push(("attachments".to_owned(), In::Any(from_json(attachments))));
    }
    members.into_iter().collect()
}

/// Changes a notebook's metadata, member by member, and returns what it was if it was different.
pub(crate) fn set_metadata(meta: &MapRef, txn: &mut TransactionMut<'_>, new: &Value) -> Option<Value> {
    let old = notebook_metadata(meta, txn);
    if old == *new {
        return None;
    }
    let empty = JsonMap::new();
    let (before, after) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    let shared = meta
        .get(txn, "metadata")
        .and_then(|metadata| metadata.cast::<MapRef>().ok());
    let shared = shared.unwrap_or_else(|| meta.insert(txn, "metadata", MapPrelim::default()));
    for key in before.keys().filter(|&key| !after.contains_key(key)) {
        shared.remove(txn, key);
    }
    for (key, value) in after.iter().filter(|&(key, value)| before.get(key) != Some(value)) {
        shared.insert(txn, key.as_str(), from_json(value));
    }
    Some(old)
}

pub(crate) fn notebook_metadata(meta: &MapRef, txn: &impl ReadTxn) -> Value {
    meta.get(txn, "metadata")
        .map_or_else(|| json!({}), |metadata| shared_to_json(&metadata, txn))
}

fn metadata_prelim(metadata: &Value, trusted: bool) -> In {
    let empty = JsonMap::new();
    let members = metadata.as_object().unwrap_or(&empty);
    let mut prelim: MapPrelim = members
        .iter()
        .map(|(key, value)| (key.clone(), In::Any(from_json(value))))
        .collect();
    if trusted {
        // As in a cell that a person makes; without it JupyterLab never runs scripts of its outputs.
        prelim.insert("trusted".into(), In::Any(Any::Bool(true)));
    }
    In::from(prelim)
}

/// An output; the text of a stream is shared text, since it grows.
pub(crate) fn output_prelim(output: &Value) -> In {
    let Some(members) = output.as_object() else {
        return In::Any(from_json(output));
    };
    let is_stream = members.get("output_type").is_some_and(|kind| kind == "stream");
    let member = |(key, value): (&String, &Value)| {
        let shared = match value {
            Value::String(text) if is_stream && key == "text" => In::from(TextPrelim::new(text.as_str())),
            plain => In::Any(from_json(plain)),
        };
        (key.clone(), shared)
    };
    In::from(members.iter().map(member).collect::<MapPrelim>())
}
