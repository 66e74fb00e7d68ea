//! `assign_nb_kernel`, and giving a notebook another kernel.

use std::{sync::Arc, time::Duration};

use jupyter_client::{DocPath, JupyterError, JupyterServer, Kernelspec, NotebookSession, kernel::greet};
use live_document::RoomKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use crate::tools::text::described_by;
use crate::{
    tools::{Call, ToolError, notebook::require_notebook_name},
    types::Permission,
};

/// Time that a new kernel may take before the call returns without its answer.
const KERNEL_READY_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    kernel_name: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Assigned {
    message: String,
    kernel_assigned: bool,
    kernel_name: String,
}

described_by!(message: Assigned);

pub(super) async fn assign_nb_kernel(call: Call, arguments: Arguments) -> Result<Assigned, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let path = call.file(&arguments.path)?;
    require_notebook_name("path", &path)?;
    server.document(&path).await?;
    let session = give_kernel(&call, &server, &path, &arguments.kernel_name).await?;
    // Whoever looks at its state next should not find it starting for ever.
    let _ = timeout(KERNEL_READY_TIMEOUT, greet(server, &session.kernel.id)).await;
    Ok(Assigned {
        message: format!(
            "Successfully assigned kernel '{}' to notebook '{path}'",
            arguments.kernel_name
        ),
        kernel_assigned: true,
        kernel_name: arguments.kernel_name,
    })
}

/// Starts a kernel of this name for a notebook, in place of the one that it has; the notebook says so from then on.
pub(super) async fn give_kernel(
    call: &Call,
    server: &Arc<JupyterServer>,
    path: &DocPath,
    name: &str,
) -> Result<NotebookSession, ToolError> {
    call.principal().require(Permission::Write)?;
    let spec = kernelspec(server, name).await?;
    // Opened first: a notebook that cannot be opened must not lose the kernel that it has.
    let room = call.room(server, path, RoomKind::Notebook).await?;
    let did = format!("gave the notebook another kernel ({name})");
    call.engine().leave_kernel(server, path, call.actor(), &did).await;
    let session = match server.session_of(path).await? {
        Some(session) => server.change_kernel(&session.id, name).await?,
        None => server.start_session(path, Some(name)).await?,
    };
    server.record_starter(&session.kernel.id, &call.starter());
    let described = json!({ "name": spec.name, "display_name": spec.display_name, "language": spec.language });
    room.set_kernelspec(&call.principal().id, &described)?;
    Ok(session)
}

/// The kernelspec of this name.
pub(in crate::tools) async fn kernelspec(server: &JupyterServer, name: &str) -> Result<Kernelspec, ToolError> {
    let specs = server.kernelspecs().await?;
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let unknown = JupyterError::UnknownKernelspec {
        server: server.name().to_owned(),
        name: name.chars().take(100).collect(),
        available: names.join(", "),
    };
    specs
        .into_iter()
        .find(|spec| spec.name == name)
        .ok_or_else(|| unknown.into())
}
