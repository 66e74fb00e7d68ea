//! Forks that a call works in: the one that it names, or that to which the edits of a reviewed caller go.

use std::sync::Arc;

use jupyter_client::{DocPath, JupyterServer};
use live_document::{Activity, Room, RoomKind, pool::Lease};
use store::ForkRecord;

use super::Call;
use crate::{
    forks::{Forks, NewForkOf, Root},
    tools::{ChoiceReply, Effect, ToolError, advice::advise},
    types::Permission,
};

impl Call {
    pub(in crate::tools) fn forks(&self) -> &Forks {
        &self.services.forks
    }

    /// Sets the fork to work in.
    pub(in crate::tools) fn in_fork(mut self, fork_id: Option<String>) -> Self {
        self.fork = fork_id.map(Into::into);
        self
    }

    /// Sets whether edits of the caller have to be accepted by somebody else. Nobody can take back what a tenant demands.
    pub fn reviewed(mut self, wanted: bool) -> Self {
        self.is_reviewed = wanted || self.principal.tenant.review_required;
        self
    }

    pub(in crate::tools) fn is_reviewed(&self) -> bool {
        self.is_reviewed
    }

    /// Returns whether the caller may take a fork over without asking anybody: nobody under review accepts their own changes, and
    /// of others under review only admins do.
    pub(in crate::tools) fn accepts(&self, fork: &ForkRecord) -> bool {
        !self.is_reviewed || self.is_admin() && *fork.principal != *self.principal.id
    }

    fn is_admin(&self) -> bool {
        self.principal.permissions().contains(Permission::Admin)
    }

    /// Marks the call as a repetition of one that asked the client's person to choose, by that version of the form.
    pub fn choosing(mut self, choice: ChoiceReply, version: &str) -> Self {
        self.choice = Some((choice, version.to_owned()));
        self
    }

    /// Choice of the client's person, if an earlier call asked with this version of the form.
    pub(in crate::tools) fn choice(&self, version: &str) -> Option<&ChoiceReply> {
        let (choice, chosen_in) = self.choice.as_ref()?;
        (chosen_in == version).then_some(choice)
    }

    /// The room of a document, or of a fork, if it is open. A fork that the call names is opened.
    pub(in crate::tools) async fn open_room(
        &self,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
    ) -> Result<Option<Lease>, ToolError> {
        match self.fork_room(server, path, kind).await? {
            Some(fork) => Ok(Some(fork)),
            None => Ok(self.pool().lease_open(server.name(), path, kind)),
        }
    }

    /// The room in which the call works, if it is open already.
    pub(in crate::tools) fn present_room(&self, server: &str, path: &DocPath, kind: RoomKind) -> Option<Room> {
        let forked = self.forked.lock();
        match forked.iter().find(|room| room.is_at(path)) {
            Some(fork) => Some(fork.clone()),
            None => self.pool().find(server, path, kind).map(|open| open.room),
        }
    }

    /// Returns whether the call names a fork.
    pub(in crate::tools) fn names_fork(&self) -> bool {
        self.fork.is_some()
    }

    /// The fork that the call names.
    pub(in crate::tools) fn named_fork(&self) -> Option<&str> {
        self.fork.as_deref()
    }

    /// The room of the fork that the call works in, if it works in one.
    pub(super) async fn fork_room(
        &self,
        server: &Arc<JupyterServer>,
        path: &DocPath,
        kind: RoomKind,
    ) -> Result<Option<Lease>, ToolError> {
        let account = self.account();
        let root = Root {
            kind,
            ..Root::of(server, path, &account)
        };
        let Some(record) = self.fork_of(root).await? else {
            return Ok(None);
        };
        let fork = self.forks().lease(root, &record).await?;
        self.forks().catch_up(root, &fork).await?;
        fork.show_activity(&self.principal.id, &self.principal.name, Activity::Reading);
        let mut forked = self.forked.lock();
        if !forked.iter().any(|room| room.fork_id() == Some(&record.fork_id)) {
            forked.push(Room::clone(&fork));
            let told = advise(self, &fork_line(&record, path));
            self.notices.lock().push(told);
        }
        drop(forked);
        Ok(Some(fork))
    }

    async fn fork_of(&self, root: Root<'_>) -> Result<Option<ForkRecord>, ToolError> {
        let only_reads = matches!(self.effect, None | Some(Effect::Read | Effect::Open));
        if let Some(fork_id) = &self.fork {
            let fork = self.forks().find(root, fork_id).await?;
            // What somebody may accept they must not have written.
            if self.is_reviewed && !only_reads && self.accepts(&fork) {
                let what = format!("fork {fork_id} is not yours, and you may accept its changes");
                return Err(ToolError::Reviewed { what });
            }
            return Ok(Some(fork));
        }
        if !self.is_reviewed {
            return Ok(None);
        }
        Ok(match only_reads {
            true => self.forks().review_of(root, &self.principal.id).await?,
            false => Some(self.forks().ensure_review(root, self.review_fork(root.path)).await?),
        })
    }

    fn review_fork(&self, path: &DocPath) -> NewForkOf<'_> {
        NewForkOf {
            title: format!("Review: {}", self.principal.name),
            description: format!("Edits of {path} by {}, to be accepted by a person", self.principal.name),
            synchronize: true,
            principal: &self.principal.id,
            author_name: &self.principal.name,
            is_review: true,
        }
    }

    /// Stores the changes of the call in forks, before it is answered.
    pub(in crate::tools) async fn save_forks(&self) {
        if matches!(self.effect, None | Some(Effect::Read | Effect::Open)) {
            return;
        }
        let forked = self.forked.lock().clone();
        for fork in forked {
            if let Err(error) = self.forks().save(&fork).await {
                let path = fork.info().path;
                let notice = format!(
                    "The fork of {path} is not on disk, and is lost if the gateway and Jupyter restart: {error}"
                );
                self.notices.lock().push(notice);
            }
        }
    }

    /// Refuses what cannot wait in a fork until somebody accepts it.
    pub(in crate::tools) fn require_unreviewed(&self, what: &str) -> Result<(), ToolError> {
        match self.is_reviewed {
            true => Err(ToolError::Reviewed { what: what.to_owned() }),
            false => Ok(()),
        }
    }
}

/// A line that tells that an answer is about a fork.
fn fork_line(fork: &ForkRecord, path: &DocPath) -> String {
    let id = &fork.fork_id;
    match fork.is_review {
        true => format!(
            "Under review: this is your fork {id} of {path}; a person accepts its changes with merge_document_fork."
        ),
        false => format!("This is fork {id} of {path}; the document itself is unchanged until merge_document_fork."),
    }
}
