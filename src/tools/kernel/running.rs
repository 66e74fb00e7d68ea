//! `list_kernels` and `shutdown_kernel`: the kernels that run, with or without a notebook.

use std::{fmt, sync::Arc};

use jupyter_client::{DocPath, JupyterServer, NotebookSession, RunningKernel, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::{Block, Call, ToolError, output::ToolReply};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct RunningKernels {
    kernels: Vec<KernelLine>,
}

#[derive(Serialize, JsonSchema)]
struct KernelLine {
    kernel_id: String,
    name: String,
    state: String,
    path: Option<String>,
    last_activity: Option<String>,
    /// The agent for whom the gateway started it; null if somebody else did, or before the gateway's own start
    started_by: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShutdownArguments {
    path: Option<String>,
    /// Instead of path
    kernel_id: Option<String>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct ShutDown {
    message: String,
    kernel_shut_down: bool,
    kernel_id: Option<String>,
}

pub(super) async fn list_kernels(call: Call, arguments: ListArguments) -> Result<ToolReply<RunningKernels>, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let (kernels, sessions) = tokio::try_join!(server.kernels(), server.sessions())?;
    let visible = kernels.into_iter().filter_map(|kernel| {
        let used = UsedKernel::new(kernel, &sessions);
        used.is_visible_to(&call, server).then(|| used.line(&call, server))
    });
    let kernels: Vec<KernelLine> = visible.collect();
    let text = match kernels.len() {
        0 => format!("No kernels run on {}.", server.name()),
        count => {
            let lines: Vec<String> = kernels.iter().map(ToString::to_string).collect();
            format!(
                "{} on {}\n{}",
                counted(count, "kernel"),
                server.name(),
                lines.join("\n")
            )
        }
    };
    Ok(ToolReply::in_blocks(
        vec![Block::Text(text)],
        RunningKernels { kernels },
    ))
}

pub(super) async fn shutdown_kernel(
    call: Call,
    arguments: ShutdownArguments,
) -> Result<ToolReply<ShutDown>, ToolError> {
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let used = match (&arguments.path, &arguments.kernel_id) {
        (Some(path), None) => {
            let path = call.file(path)?;
            match server.kernel_of(&path).await? {
                Some(kernel) => UsedKernel::new(kernel, &server.sessions().await?),
                None => {
                    server.document(&path).await?;
                    let message = format!("No kernel runs for '{path}', so there is nothing to shut down");
                    return Ok(answer(message, None));
                }
            }
        }
        (None, Some(id)) => visible_kernel(&call, &server, id).await?,
        _ => return Err(ToolError::argument("path", "give either `path` or `kernel_id`")),
    };
    used.shut_down(&call, &server).await?;
    let kernel = used.kernel;
    let of = match used.paths.as_slice() {
        [] => String::new(),
        paths => {
            let seen = paths.iter().filter(|path| call.sees(path.as_str(), false));
            let names: Vec<String> = seen.map(|path| format!("'{path}'")).collect();
            format!(" of {}", names.join(", "))
        }
    };
    let message = format!("Shut down the {} kernel{of}; its variables are gone", kernel.name);
    Ok(answer(message, Some(kernel.id)))
}

fn answer(message: String, kernel_id: Option<String>) -> ToolReply<ShutDown> {
    let text = vec![Block::Text(message.clone())];
    let value = ShutDown {
        message,
        kernel_shut_down: kernel_id.is_some(),
        kernel_id,
    };
    ToolReply::in_blocks(text, value)
}

/// A kernel by its id, unless it is one that the caller may not know of.
pub(in crate::tools) async fn visible_kernel(
    call: &Call,
    server: &JupyterServer,
    id: &str,
) -> Result<UsedKernel, ToolError> {
    let (kernels, sessions) = tokio::try_join!(server.kernels(), server.sessions())?;
    let found = kernels.into_iter().find(|kernel| kernel.id == id);
    let used = found.map(|kernel| UsedKernel::new(kernel, &sessions));
    used.filter(|used| used.is_visible_to(call, server)).ok_or_else(|| {
        let id: String = id.chars().take(100).collect();
        let why = format!(
            "no kernel {id:?} runs on `{}`; list_kernels shows those that do",
            server.name()
        );
        ToolError::argument("kernel_id", why)
    })
}

/// A kernel with the sessions that use it.
pub(in crate::tools) struct UsedKernel {
    pub(in crate::tools) kernel: RunningKernel,
    sessions: Vec<NotebookSession>,
    /// The documents of these.
    pub(in crate::tools) paths: Vec<DocPath>,
}

impl UsedKernel {
    pub(in crate::tools) fn new(kernel: RunningKernel, sessions: &[NotebookSession]) -> Self {
        let own = sessions.iter().filter(|session| session.kernel.id == kernel.id);
        let sessions: Vec<NotebookSession> = own.cloned().collect();
        let of_documents = sessions.iter().filter(|session| !session.is_private());
        Self {
            paths: of_documents.filter_map(NotebookSession::doc_path).collect(),
            kernel,
            sessions,
        }
    }

    /// Returns whether the caller may see it: by a document that they may read, as its owner, or, if it belongs to
    /// nothing else, as one who may read everything.
    pub(in crate::tools) fn is_visible_to(&self, call: &Call, server: &JupyterServer) -> bool {
        if !self.paths.is_empty() {
            return self.paths.iter().any(|path| call.sees(path.as_str(), false));
        }
        if self.sessions.iter().any(NotebookSession::is_private) {
            let starter = server.starter_of(&self.kernel.id);
            return starter.is_some_and(|starter| starter.id == call.principal().id);
        }
        call.principal().require_tree(&DocPath::root()).is_ok()
    }

    fn line(&self, call: &Call, server: &JupyterServer) -> KernelLine {
        let path = self.paths.iter().find(|path| call.sees(path.as_str(), false));
        // Jupyter says idle of a kernel whose variables somebody looks at while a cell runs.
        let is_ours = |path: &DocPath| call.engine().busy_with(server.name(), path) > 0;
        let state = match self.kernel.execution_state.as_str() {
            "idle" if self.paths.iter().any(is_ours) => "busy",
            state => state,
        };
        KernelLine {
            kernel_id: self.kernel.id.clone(),
            name: self.kernel.name.clone(),
            state: state.to_owned(),
            path: path.map(ToString::to_string),
            last_activity: self.kernel.last_activity.clone(),
            started_by: server.starter_of(&self.kernel.id).map(|starter| starter.name),
        }
    }

    /// Ends the kernel. What runs there is cancelled first, and whoever ran something there is told who did it.
    async fn shut_down(&self, call: &Call, server: &JupyterServer) -> Result<(), ToolError> {
        let (engine, did) = (call.engine(), "shut down the kernel");
        for path in &self.paths {
            engine.leave_kernel(server, path, call.actor(), did).await;
        }
        engine
            .leave_kernel_by_id(server, &self.kernel.id, call.actor(), did)
            .await;
        for session in &self.sessions {
            server.end_session(session).await?;
        }
        Ok(server.shutdown_kernel(&self.kernel.id).await?)
    }
}

impl fmt::Display for KernelLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kernel_id, name, state, ..
        } = self;
        let path = self.path.as_deref().unwrap_or("no notebook");
        write!(f, "{kernel_id} {name} {state}: {path}")?;
        if let Some(at) = &self.last_activity {
            // Jupyter tells microseconds.
            let seconds = at.split_once('.').map_or(at.as_str(), |(seconds, _)| seconds);
            write!(f, ", last active {}Z", seconds.trim_end_matches('Z'))?;
        }
        if let Some(by) = &self.started_by {
            write!(f, ", started by agent {by}")?;
        }
        Ok(())
    }
}
