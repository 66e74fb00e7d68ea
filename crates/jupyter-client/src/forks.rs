//! Fork rooms: copies of an open document that Jupyter keeps in memory, and that JupyterLab lists.

use std::collections::BTreeMap;

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{JupyterError, JupyterServer};

/// A fork as the server lists it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ForkInfo {
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub synchronize: bool,
}

/// Title and description of a new fork, and whether changes of the document flow into it.
#[derive(Debug, Clone, Copy)]
pub struct NewFork<'a> {
    pub title: &'a str,
    pub description: &'a str,
    pub synchronize: bool,
}

#[derive(Deserialize)]
struct Created {
    fork_roomid: String,
}

impl JupyterServer {
    /// The forks of a document, by the ids of their rooms; none if the server knows no forks.
    pub async fn forks(&self, root_room: &str) -> Result<Option<BTreeMap<String, ForkInfo>>, JupyterError> {
        let request = self.request(Method::GET, &address(root_room));
        match self.json(request, root_room).await {
            Ok(forks) => Ok(Some(forks)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a fork of a document whose room is open, and returns the id of the fork's room.
    pub async fn create_fork(&self, root_room: &str, fork: NewFork<'_>) -> Result<String, JupyterError> {
        let request = self.request(Method::PUT, &address(root_room)).json(&json!({
            "title": fork.title,
            "description": fork.description,
            "synchronize": fork.synchronize,
        }));
        let created: Created = self.json(request, root_room).await?;
        Ok(created.fork_roomid)
    }

    /// Removes a fork, and merges nothing. Whether there was one.
    pub async fn delete_fork(&self, fork_room: &str) -> Result<bool, JupyterError> {
        // Without `merge` the server forgets the fork and keeps its room.
        let request = self
            .request(Method::DELETE, &address(fork_room))
            .query(&[("merge", "false")]);
        match self.send(request, fork_room).await {
            Ok(_) => Ok(true),
            Err(error) if is_missing(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The address of a room's forks. The colons of a room's id must stay as they are.
fn address(room: &str) -> String {
    format!("api/collaboration/fork/{room}")
}

/// Returns whether there is nothing at an address; servers say so as JSON or as a page.
fn is_missing(error: &JupyterError) -> bool {
    matches!(
        error,
        JupyterError::NotFound { .. } | JupyterError::NotJupyter { status: 404, .. }
    )
}
