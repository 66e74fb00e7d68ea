//! The document that a call about history names, open or not.

use std::sync::Arc;

use history::Content;
use jupyter_client::{DocPath, JupyterServer, RoomKind};
use live_document::pool::Lease;

use crate::{
    forks::{ForkError, Root},
    history::{HistoryError, Subject},
    tools::{Call, ToolError},
};

/// A document on a server.
pub(super) struct Place {
    pub(super) server: Arc<JupyterServer>,
    pub(super) path: DocPath,
}

/// A content that a call names, and the words for it.
pub(super) struct Named {
    pub(super) content: Content,
    pub(super) label: String,
}

impl Place {
    pub(super) fn of(call: &Call, server: Option<&str>, path: &str) -> Result<Self, ToolError> {
        Ok(Self {
            server: Arc::clone(call.server(server)?),
            path: call.file(path)?,
        })
    }

    /// Its history, or that of the fork which the call names. No room is opened.
    pub(super) async fn subject(&self, call: &Call) -> Result<Subject, ToolError> {
        let history = call.history()?;
        if let Some(fork_id) = call.named_fork() {
            let account = call.account();
            let root = Root::of(&self.server, &self.path, &account);
            let fork = call.forks().find(root, fork_id).await?;
            return self.subject_fork(call, &fork.fork_id).await;
        }
        match history.subject(self.server.name(), &self.path).await {
            Err(nothing @ HistoryError::Nothing { .. }) => {
                // It may have been renamed while nobody looked.
                let Ok(file_id) = self.server.file_id_of(&self.path).await else {
                    return Err(nothing.into());
                };
                history.note_path(self.server.name(), &file_id, &self.path).await?;
                Ok(history.subject(self.server.name(), &self.path).await?)
            }
            found => Ok(found?),
        }
    }

    /// The history of one of its forks.
    pub(super) async fn subject_fork(&self, call: &Call, fork_id: &str) -> Result<Subject, ToolError> {
        let history = call.history()?;
        Ok(history.subject_fork(self.server.name(), &self.path, fork_id).await?)
    }

    pub(super) async fn room(&self, call: &Call) -> Result<Lease, ToolError> {
        call.room(&self.server, &self.path, RoomKind::of(&self.path)).await
    }

    /// The document as it stands now. It is opened if it is not.
    pub(super) async fn now(&self, call: &Call) -> Result<Named, ToolError> {
        let room = self.room(call).await?;
        let read = room.content_for_history();
        Ok(Named {
            content: read.content,
            label: format!("now (revision {})", read.revision),
        })
    }

    /// A fork of the document as it stands now; none if there is none of that name.
    async fn fork(&self, call: &Call, name: &str) -> Result<Option<Named>, ToolError> {
        let account = call.account();
        match call
            .forks()
            .room(Root::of(&self.server, &self.path, &account), name)
            .await
        {
            Ok(room) => Ok(Some(Named {
                content: room.content_for_history().content,
                label: format!("fork {name}"),
            })),
            Err(ForkError::Unknown { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The content that a name stands for: a version, a revision or a fork.
    pub(super) async fn named(&self, call: &Call, subject: &Subject, name: &str) -> Result<Named, ToolError> {
        let found = call.history()?.named(subject, name).await;
        let pool = call.pool();
        match (
            found,
            pool.lease_open(self.server.name(), &self.path, RoomKind::of(&self.path)),
        ) {
            // What people typed a moment ago is no version yet.
            (Err(HistoryError::Unknown { .. }), Some(room)) if room.revision() == name => self.now(call).await,
            (Err(unknown @ HistoryError::Unknown { .. }), _) => {
                let fork = self.fork(call, name).await?;
                fork.ok_or_else(|| unknown.into())
            }
            (found, _) => {
                let (version, content) = found?;
                let by = version.author();
                Ok(Named {
                    content,
                    label: format!("{} ({by})", version.id),
                })
            }
        }
    }
}
