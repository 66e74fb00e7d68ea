//! `run_notebook`: a copy of a notebook, from top to bottom, in a fresh kernel that ends with it.

mod parameters;
mod report;

use std::sync::Arc;

use executor::{CopiedCell, Execution, Keep, NotebookCopy};
use jupyter_client::{Content, DocPath, JupyterServer, Kernelspec, NewDocument};
use live_document::RoomKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) use self::report::{Difference, differences, report};
use self::{
    parameters::{INJECTED, RAISES, has_place, has_tag, inject},
    report::{NotebookRun, members},
};
use super::{
    FoundExecution,
    result::{is_failure, place},
    resumed_execution,
    wait::{Disconnect, wait, wait_duration},
};
use crate::{
    tools::{Call, OpenExecution, ToolError, kernel::kernelspec, notebook::require_notebook_name, output::ToolReply},
    types::{Permission, joined_text},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Variables to set, after the cell tagged `parameters`
    parameters: Option<Map<String, Value>>,
    /// Default: the notebook's
    kernel_name: Option<String>,
    /// Seconds to wait before it answers `running`
    timeout: Option<f64>,
    /// Keep the copy: a path, or true
    keep: Option<KeepArgument>,
    #[serde(default)]
    on_disconnect: Disconnect,
    server: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum KeepArgument {
    Wanted(bool),
    At(String),
}

pub(super) async fn run_notebook(call: Call, arguments: Arguments) -> Result<ToolReply<NotebookRun>, ToolError> {
    let (waits, disconnect) = (
        wait_duration(&call, "timeout", arguments.timeout)?,
        arguments.on_disconnect,
    );
    let found = match resumed_execution(&call).await? {
        Some(found) => found,
        None => FoundExecution::Live(start(&call, arguments).await?),
    };
    if let FoundExecution::Live(execution) = &found {
        if !call.only_shows_execution() {
            wait(&call, execution, waits, disconnect).await;
        }
        call.add_notices_of(execution);
    }
    let mut snapshot = found.snapshot(&call);
    place(&call, &mut snapshot);
    let open = (!snapshot.status.is_finished()).then(|| OpenExecution {
        id: snapshot.execution_id.clone(),
        question: snapshot.question.clone(),
    });
    let is_failure = is_failure(snapshot.status);
    let text = report(&call, &snapshot);
    Ok(ToolReply {
        is_failure,
        open,
        ..ToolReply::told(text, members(&call, snapshot))
    })
}

async fn start(call: &Call, arguments: Arguments) -> Result<Arc<Execution>, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    let keep = match arguments.keep {
        None | Some(KeepArgument::Wanted(false)) => None,
        Some(wanted) => Some(keep(call, &server, &path, wanted).await?),
    };
    let mut notebook = content(call, &server, &path).await?;
    let spec = spec_of(&server, &notebook, arguments.kernel_name.as_deref()).await?;
    let originals = notebook["cells"].clone();
    let injected = match arguments.parameters.filter(|parameters| !parameters.is_empty()) {
        Some(parameters) => Some(inject(&mut notebook, &parameters, &spec.language)?),
        None => None,
    };
    if injected.is_some() && !has_place(&originals) {
        call.add_notice(format!(
            "No cell of '{path}' has the tag `parameters`: they were set before the first cell, and cells that assign the \
             same names override them."
        ));
    }
    let copy = NotebookCopy {
        cells: copied_cells(&notebook, &originals, injected),
        notebook: without_outputs(notebook),
        kernel_name: spec.name,
        keep,
    };
    if call.has_rules() {
        let cells = copy.cells.iter();
        let code = cells.map(|cell| (format!("cell {}", cell.index), cell.source.clone()));
        let code: Vec<_> = code.collect();
        Box::pin(call.approve_code(&server, Some(&path), &code)).await?;
    }
    Ok(call.engine().run_copy(&call.claim(), &server, &path, copy).await?)
}

/// Path at which the copy is to be kept, if that is free and the caller may write there.
async fn keep(call: &Call, server: &JupyterServer, path: &DocPath, wanted: KeepArgument) -> Result<Keep, ToolError> {
    call.principal().require(Permission::Write)?;
    match wanted {
        KeepArgument::At(at) => {
            let at = call.file(&at)?;
            require_notebook_name("keep", &at)?;
            if server.exists(&at).await? {
                let why = format!("{at:?} already exists, and is never overwritten; choose another path, or true");
                return Err(ToolError::argument("keep", why));
            }
            Ok(Keep {
                path: at,
                may_be_renamed: false,
            })
        }
        KeepArgument::Wanted(_) => {
            let stem = path.as_str().strip_suffix(".ipynb").unwrap_or(path.as_str());
            Ok(Keep {
                path: call.file(&format!("{stem}-run.ipynb"))?,
                may_be_renamed: true,
            })
        }
    }
}

/// The notebook as it stands now, what is not saved yet included.
async fn content(call: &Call, server: &JupyterServer, path: &DocPath) -> Result<Value, ToolError> {
    if let Some(open) = call.pool().find(server.name(), path, RoomKind::Notebook)
        && let NewDocument::Notebook(notebook) = open.room.content()
    {
        return Ok(notebook);
    }
    match server.document_with_content(path).await?.into_content() {
        Content::Notebook(notebook) => Ok(notebook),
        _ => Err(ToolError::argument("path", format!("{path:?} is not a notebook"))),
    }
}

/// The kernel that is wanted, or that the notebook says it is written for, or the server's default.
async fn spec_of(server: &JupyterServer, notebook: &Value, wanted: Option<&str>) -> Result<Kernelspec, ToolError> {
    let own = notebook.pointer("/metadata/kernelspec/name").and_then(Value::as_str);
    if let Some(name) = wanted.or(own).filter(|name| !name.is_empty()) {
        return kernelspec(server, name).await;
    }
    let specs = server.kernelspecs().await?;
    let default = specs.into_iter().find(|spec| spec.is_default);
    default.ok_or_else(|| ToolError::argument("kernel_name", "the server has no default kernel; name one"))
}

/// The code cells of a copy. Of the original's they have the ids and positions, and the outputs of those that were run.
fn copied_cells(copy: &Value, originals: &Value, injected: Option<(usize, bool)>) -> Vec<CopiedCell> {
    let cells = copy["cells"].as_array().map(Vec::as_slice).unwrap_or_default();
    let code = cells.iter().enumerate().filter(|(_, cell)| cell["cell_type"] == "code");
    code.map(|(position, cell)| {
        let (is_injected, index) = match injected {
            Some((at, _)) if at == position => (true, position),
            Some((at, false)) if at < position => (false, position - 1),
            _ => (false, position),
        };
        let original = &originals[index];
        let outputs = original["outputs"].as_array().filter(|_| !is_injected);
        let has_run = !original["execution_count"].is_null() || outputs.is_some_and(|outputs| !outputs.is_empty());
        let own_id = original["id"].as_str().unwrap_or_default();
        CopiedCell {
            cell_id: if is_injected { INJECTED } else { own_id }.to_owned(),
            index,
            position,
            source: joined_text(&cell["source"]),
            may_raise: has_tag(cell, RAISES),
            expected: outputs.filter(|_| has_run).cloned(),
        }
    })
    .collect()
}

/// The notebook as it is before anything of it ran.
fn without_outputs(mut notebook: Value) -> Value {
    for cell in notebook["cells"].as_array_mut().into_iter().flatten() {
        if cell["cell_type"] == "code" {
            (cell["outputs"], cell["execution_count"]) = (Value::Array(Vec::new()), Value::Null);
        }
    }
    notebook
}
