//! `batch_delete_notebook_cells`.

use jupyter_client::counted;
use live_document::Room;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{cells::Changed, run_options, select::Selection};
use crate::tools::{
    Call, ToolError,
    cells::{Exec, Notebook, delete_cells, execute_and_delete, run_reply, wants_exec},
    output::ToolReply,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    start_index: Option<usize>,
    /// Inclusive
    end_index: Option<usize>,
    cell_ids: Option<Vec<String>>,
    #[schemars(extend("default" = true))]
    exec: Option<bool>,
    /// Seconds to wait
    #[schemars(extend("default" = 30))]
    timeout: Option<f64>,
    /// Refuse if changed since
    if_revision: Option<String>,
    #[serde(default)]
    force: bool,
    server: Option<String>,
}

pub(super) async fn batch_delete_notebook_cells(
    call: Call,
    arguments: Arguments,
) -> Result<ToolReply<Changed>, ToolError> {
    let options = run_options(&call, arguments.timeout)?;
    let exec = wants_exec(&call, arguments.exec)?;
    let selection = Selection::new(
        arguments.start_index,
        arguments.end_index,
        arguments.cell_ids.as_deref(),
    )?;
    let at = Notebook {
        server: arguments.server.as_deref(),
        path: &arguments.path,
        if_revision: arguments.if_revision.as_deref(),
        force: arguments.force,
    };
    let by_position = selection.is_by_position();
    let choose = |room: &Room| selection.ids(room);
    let (result, change) = match exec {
        Exec::Wanted => execute_and_delete(&call, at, options, by_position, choose).await?,
        Exec::Unwanted | Exec::Forbidden => (None, Some(delete_cells(&call, at, by_position, choose).await?)),
    };
    let done = match &change {
        Some(change) if exec == Exec::Forbidden => format!(
            "Deleted {} from notebook, {}",
            counted(change.cell_ids.len(), "cell"),
            Exec::FORBIDDEN
        ),
        Some(change) => format!("Deleted {} from notebook", counted(change.cell_ids.len(), "cell")),
        None if result.as_ref().is_some_and(|result| !result.status.is_finished()) => {
            "Nothing was deleted yet, since cells are executed before; delete them with exec=false".to_owned()
        }
        None => "Nothing was deleted, since not all cells were executed; delete them with exec=false".to_owned(),
    };
    Ok(match result {
        Some(result) => {
            let text = change.as_ref().map(|change| change.text.clone());
            run_reply(result, |run, message| Changed::new(&message(&done), change, Some(run))).after(text)
        }
        None => {
            let text = change.as_ref().map(|change| change.text.clone()).unwrap_or_default();
            ToolReply::told(text, Changed::new(&done, change, None))
        }
    })
}
