//! The document that a call about history names, open or not.

use std::{sync::Arc, time::SystemTime};

use history::Content;
use jupyter_client::{DocPath, JupyterServer, RoomKind};
use live_document::pool::Lease;

use crate::{
    forks::{ForkError, Root},
    history::{Before, Filter, History, HistoryError, Listing, Subject, Version},
    tools::{Call, ToolError},
};

/// A document on a server.
pub(super) struct Place {
    pub(super) server: Arc<JupyterServer>,
    pub(super) path: DocPath,
}

/// The histories in which a call finds versions.
pub(super) struct Subjects {
    /// That of what the call works in.
    subject: Subject,
    /// If that is a fork under review: that of the document up to when the fork was made of it.
    before: Option<(SystemTime, Subject)>,
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

    /// Its history, or that of the fork which the call names, or in which the edits of its caller wait for review. No room is
    /// opened.
    pub(super) async fn subjects(&self, call: &Call) -> Result<Subjects, ToolError> {
        let account = call.account();
        let root = Root::of(&self.server, &self.path, &account);
        if let Some(fork_id) = call.named_fork() {
            let fork = call.forks().find(root, fork_id).await?;
            return Ok(Subjects {
                subject: self.subject_fork(call, &fork.fork_id).await?,
                before: None,
            });
        }
        let review = match call.is_reviewed() {
            true => call.forks().review_of(root, &call.principal().id).await?,
            false => None,
        };
        Ok(match review {
            Some(fork) => Subjects {
                subject: self.subject_fork(call, &fork.fork_id).await?,
                before: self.subject(call).await.ok().map(|subject| (fork.created_at, subject)),
            },
            None => Subjects {
                subject: self.subject(call).await?,
                before: None,
            },
        })
    }

    /// The history of the document itself.
    async fn subject(&self, call: &Call) -> Result<Subject, ToolError> {
        let history = call.history()?;
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
    pub(super) async fn named(&self, call: &Call, subjects: &Subjects, name: &str) -> Result<Named, ToolError> {
        let found = subjects.named(call.history()?, name).await;
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

impl Subjects {
    /// That of what the call works in.
    pub(super) fn latest(&self) -> &Subject {
        &self.subject
    }

    /// A version of one of them with its content, and the history that has it.
    pub(super) async fn version(
        &self,
        history: &History,
        id: &str,
    ) -> Result<(&Subject, Version, Content), HistoryError> {
        let unknown = match history.version(&self.subject, id).await {
            Err(unknown @ HistoryError::Unknown { .. }) => unknown,
            found => return found.map(|(version, content)| (&self.subject, version, content)),
        };
        let Some((_, before)) = &self.before else {
            return Err(unknown);
        };
        match history.version(before, id).await {
            Err(HistoryError::Unknown { .. }) => Err(unknown),
            found => found.map(|(version, content)| (before, version, content)),
        }
    }

    /// A version by its id or its revision, with its content.
    async fn named(&self, history: &History, name: &str) -> Result<(Version, Content), HistoryError> {
        let unknown = match history.named(&self.subject, name).await {
            Err(unknown @ HistoryError::Unknown { .. }) => unknown,
            found => return found,
        };
        let Some((_, before)) = &self.before else {
            return Err(unknown);
        };
        match history.named(before, name).await {
            Err(HistoryError::Unknown { .. }) => Err(unknown),
            found => found,
        }
    }

    /// Versions, the newest first: those of a fork under review, and then those of its document from before.
    pub(super) async fn list(&self, history: &History, filter: &Filter) -> Result<Listing, HistoryError> {
        let listed = history.list(&self.subject, filter).await;
        let Some((made, before)) = &self.before else {
            return listed;
        };
        let mut listing = match listed {
            Err(HistoryError::Unknown { .. }) => return history.list(before, filter).await,
            listed => listed?,
        };
        if listing.has_more {
            return Ok(listing);
        }
        let until = match filter.before {
            Some(Before::Time(time)) => time.min(*made),
            _ => *made,
        };
        let left = filter.limit - listing.versions.len();
        let older = Filter {
            limit: left.max(1),
            author: filter.author.clone(),
            before: Some(Before::Time(until)),
        };
        let mut older = history.list(before, &older).await?;
        listing.has_more = older.has_more || older.versions.len() > left;
        listing.since = older.since.or(listing.since);
        listing.versions.extend(older.versions.drain(..).take(left));
        Ok(listing)
    }
}
