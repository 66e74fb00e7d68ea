//! `list_kernels`, and the kernels that calls name.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterServer, kernel::greet};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Duration, timeout};

use super::{
    answer::{TableAnswer, table},
    target::current_server,
};
use crate::{
    tools::{
        Call, ToolError,
        kernel::{UsedKernel, start_kernel, visible_kernel},
        named::Notebook,
        output::ToolReply,
    },
    types::Permission,
};

/// The word that asks for a kernel in the place of an id.
const NEW: &str = "NEW";
/// Time that a kernel may take to answer before the call returns without that.
const KERNEL_READY_TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

pub(super) async fn list_kernels(call: Call, _: NoArguments) -> Result<ToolReply<TableAnswer>, ToolError> {
    let server = current_server(&call)?;
    let (kernels, sessions, specs) = tokio::try_join!(server.kernels(), server.sessions(), server.kernelspecs())?;
    let used = kernels.into_iter().map(|kernel| UsedKernel::new(kernel, &sessions));
    let rows = used.filter(|used| used.is_visible_to(&call, &server)).map(|used| {
        let kernel = used.kernel;
        let spec = specs.iter().find(|spec| spec.name == kernel.name);
        let unknown = || "unknown".to_owned();
        let connections = kernel.connections.map_or_else(unknown, |count| count.to_string());
        vec![
            kernel.id,
            kernel.name,
            spec.map_or_else(unknown, |spec| spec.display_name.clone()),
            spec.map_or_else(unknown, |spec| spec.language.clone()),
            kernel.execution_state,
            connections,
            kernel.last_activity.as_deref().map_or_else(unknown, plain_time),
            // It may hold secrets, and says nothing that code could not ask for.
            unknown(),
        ]
    });
    Ok(table(
        "kernels.list",
        "",
        &[
            "ID",
            "Name",
            "Display_Name",
            "Language",
            "State",
            "Connections",
            "Last_Activity",
            "Environment",
        ],
        rows.collect(),
        "No kernels found on the Jupyter server.",
    ))
}

/// A time of Jupyter's, to the second.
pub(super) fn plain_time(time: &str) -> String {
    time.chars()
        .take("2026-01-01T00:00:00".len())
        .collect::<String>()
        .replace('T', " ")
}

/// Kernel that a call wants for a notebook.
pub(super) enum KernelChoice {
    /// The one that it has, or the one that it is written for.
    Own,
    /// One that nobody has used.
    New,
    /// One that runs, by its id.
    Running(String),
}

impl KernelChoice {
    /// Reads what a call says. What is no kernel of the notebook's own needs the permission to execute.
    pub(super) fn parse(call: &Call, kernel_id: Option<&str>) -> Result<Self, ToolError> {
        let Some(id) = kernel_id.map(str::trim).filter(|id| !id.is_empty()) else {
            return Ok(Self::Own);
        };
        call.principal().require(Permission::Execute)?;
        Ok(match id.eq_ignore_ascii_case(NEW) {
            true => Self::New,
            false => Self::Running(id.to_owned()),
        })
    }

    /// The same, if the kernel runs and the caller may know of it.
    pub(super) async fn find(self, call: &Call, server: &JupyterServer) -> Result<Self, ToolError> {
        if let Self::Running(id) = &self {
            visible_kernel(call, server, id).await?;
        }
        Ok(self)
    }
}

/// Gives a notebook the kernel that a call wants, and says which it has. A notebook without one can still be read.
pub(super) async fn choose_kernel(
    call: &Call,
    notebook: &Notebook,
    choice: &KernelChoice,
) -> Result<String, ToolError> {
    let Notebook { server, path, room } = notebook;
    let session = server.session_of(path).await?;
    match (choice, session) {
        (KernelChoice::Running(id), Some(session)) if session.kernel.id == *id => {
            Ok(format!("Connected to kernel '{id}', which the notebook has already."))
        }
        (KernelChoice::Running(id), session) => {
            let did = "gave the notebook another kernel";
            call.engine().leave_kernel(server, path, call.actor(), did).await;
            let ended = match &session {
                Some(session) => format!(" The notebook's kernel '{}' ended.", session.kernel.id),
                None => String::new(),
            };
            server.bind_kernel(path, session.as_ref(), id).await?;
            Ok(format!("Connected to kernel '{id}'.{ended}"))
        }
        (KernelChoice::New, Some(session)) => {
            let why = format!(
                "the notebook has kernel '{}', which everybody who has it open shares; restart_notebook clears its state, and \
                 leaving `kernel_id` out uses it",
                session.kernel.id
            );
            Err(ToolError::argument("kernel_id", why))
        }
        (KernelChoice::Own, Some(session)) => Ok(format!("Connected to kernel '{}'.", session.kernel.id)),
        (KernelChoice::Own, None) if call.principal().require(Permission::Execute).is_err() => {
            Ok("No kernel runs for the notebook.".to_owned())
        }
        (KernelChoice::Own | KernelChoice::New, None) => match start_kernel(call, server, path, room).await {
            Ok(kernel) => {
                // Whoever looks at its state next should not find it starting for ever.
                let _ = timeout(KERNEL_READY_TIMEOUT, greet(Arc::clone(server), &kernel.id)).await;
                Ok(format!("Connected to kernel '{}'.", kernel.id))
            }
            Err(error) if matches!(choice, KernelChoice::Own) => Ok(format!("The kernel cannot be started: {error}")),
            Err(error) => Err(error),
        },
    }
}

/// The path under which code for a kernel is queued: that of its notebook, or of a session that is made for a kernel which
/// belongs to nothing.
pub(super) async fn path_of_kernel(call: &Call, server: &JupyterServer, id: &str) -> Result<DocPath, ToolError> {
    let used = visible_kernel(call, server, id).await?;
    if let Some(path) = used.paths.iter().find(|path| call.principal().may_touch(path)) {
        // A notebook that has two sessions runs in the one that people have.
        return match server.kernel_of(path).await? {
            Some(kernel) if kernel.id == used.kernel.id => Ok(path.clone()),
            _ => Err(ToolError::argument(
                "kernel_id",
                format!("'{path}' has another kernel by now; list_kernels shows which"),
            )),
        };
    }
    let path = DocPath::parse_file(&format!("kernel-{}", used.kernel.id))?;
    server.bind_kernel(&path, None, &used.kernel.id).await?;
    Ok(path)
}
