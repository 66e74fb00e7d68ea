//! `delete_document`: a file, or a directory with all that is in it, and the kernels of what is gone.

use std::collections::HashSet;

use jupyter_client::{DocPath, DocumentKind, JupyterError, JupyterServer, NotebookSession, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Walk, manage::require_contents};
use crate::tools::text::described_by;
use crate::tools::{Call, ToolError};

/// Number up to which the content of a directory is counted.
const MAX_COUNTED: usize = 10_000;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// Directories with all that is in them
    #[serde(default)]
    recursive: bool,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Deleted {
    message: String,
    path: String,
    /// How many documents and directories were in it
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_inside: Option<usize>,
    /// Kernels of what was deleted
    #[serde(skip_serializing_if = "is_zero")]
    ended_kernels: usize,
}

described_by!(message: Deleted);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

pub(super) async fn delete_document(call: Call, arguments: Arguments) -> Result<Deleted, ToolError> {
    call.require_unreviewed("nothing is deleted")?;
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.path)?;
    require_contents(&call, server, &path, &[&path]).await?;
    let is_directory = server.document(&path).await?.kind == DocumentKind::Directory;
    let inside = match is_directory {
        true => Some(Inside::count(&call, server, &path).await?),
        false => None,
    };
    if let Some(inside) = inside
        .as_ref()
        .filter(|inside| inside.count > 0 && !arguments.recursive)
    {
        let why = format!("{path:?} is a directory with {inside} in it; recursive=true deletes it with all of them");
        return Err(ToolError::argument("path", why));
    }
    call.pool().settle(server.name(), &path).await;
    server.delete(&path).await?;
    call.pool().deleted(server.name(), &path).await;
    let ended_kernels = end_kernels(server, &path).await;
    let mut message = format!("Successfully deleted document at '{path}'");
    if let Some(inside) = inside.as_ref().filter(|inside| inside.count > 0) {
        message = format!("Successfully deleted directory at '{path}' with {inside} in it");
    }
    let message = match ended_kernels {
        0 => message,
        1 => message + "; its kernel was ended",
        count => format!("{message}; {count} kernels were ended"),
    };
    Ok(Deleted {
        message,
        path: path.to_string(),
        deleted_inside: inside.map(|inside| inside.count),
        ended_kernels,
    })
}

/// Content of a directory, at every depth.
struct Inside {
    count: usize,
    /// True if there is more than was counted.
    is_more: bool,
}

impl Inside {
    async fn count(call: &Call, server: &JupyterServer, path: &DocPath) -> Result<Self, ToolError> {
        let mut walk = Walk::below(path.clone());
        walk.max_found = MAX_COUNTED;
        let found = walk.find(call, server, |_| true).await?;
        Ok(Self {
            count: found.documents.len(),
            is_more: found.truncated || !found.skipped.is_empty(),
        })
    }
}

impl std::fmt::Display for Inside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let more = if self.is_more { "at least " } else { "" };
        write!(f, "{more}{}", counted(self.count, "document"))
    }
}

/// Ends the kernels of notebooks that are gone, and says how many. One that another document uses too goes on.
async fn end_kernels(server: &JupyterServer, path: &DocPath) -> usize {
    let ended = async {
        let sessions = server.sessions().await?;
        let is_gone = |session: &&NotebookSession| session.doc_path().is_some_and(|of| of.moved(path, path).is_some());
        let (gone, other): (Vec<_>, Vec<_>) = sessions.iter().partition(is_gone);
        let used: HashSet<&str> = other.iter().map(|session| session.kernel.id.as_str()).collect();
        let kernels: HashSet<&str> = gone.iter().map(|session| session.kernel.id.as_str()).collect();
        let kernels: Vec<&&str> = kernels.difference(&used).collect();
        for kernel in &kernels {
            server.shutdown_kernel(kernel).await?;
        }
        Ok::<_, JupyterError>(kernels.len())
    };
    ended.await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the kernels of a deleted document could not be ended");
        0
    })
}
