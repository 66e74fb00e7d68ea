//! Copies of documents: the content to copy, and what is taken over from a copy.

use std::sync::Arc;

use crate::{
    Activity, DocumentContent, Edited, Room, RoomError, TakeOver,
    core::{
        EditError,
        awareness::Cursors,
        change_log::Author,
        refusal::{Cause, Refusal, Refused},
        state::{Origin, State},
        three_way::{Clash, Conflict, advanced, combine},
    },
};

/// Outcome of taking over a copy.
pub struct TakenOver {
    pub edited: Edited,
    /// The base of what is left of the copy.
    pub base: DocumentContent,
    /// The cells in which lines stand in both versions; nothing for a text.
    pub doubled: Vec<Option<String>>,
}

impl Room {
    /// Returns whether it is a fork, which has no file.
    pub fn is_fork(&self) -> bool {
        self.0.fork.is_some()
    }

    /// The fork's id, if it is one.
    pub fn fork_id(&self) -> Option<&str> {
        self.0.fork.as_ref().map(|fork| &*fork.id)
    }

    /// Everything that the document holds.
    pub fn whole_content(&self) -> DocumentContent {
        self.0.read().document.content()
    }

    /// Makes this the content of the document, touching only what differs, and waits until the server has it.
    pub async fn set_content(&self, author: &Arc<str>, content: DocumentContent) -> Result<Edited, RoomError> {
        self.connected().await?;
        let (ticket, edited) = {
            let mut state = self.0.write();
            self.accepts(&state)?;
            let (ticket, edited, _) = self.apply_content(&mut state, author, content, None)?;
            (ticket, edited)
        };
        self.acknowledged(ticket, edited).await
    }

    /// Takes over what was made of a copy, as the smallest edit in one transaction, and waits until the server has it.
    pub async fn take_over(
        &self,
        author: &Arc<str>,
        name: &str,
        tool: Option<&str>,
        copy: TakeOver<'_>,
    ) -> Result<TakenOver, RoomError> {
        self.wait_for_file_check().await;
        self.connected().await?;
        let (ticket, edited, doubled) = {
            let mut state = self.0.write();
            self.accepts(&state)?;
            self.can_be_saved(&state)?;
            state.names.record(Author::Local(Arc::clone(author)), name);
            let combination = combine(&copy, &state.document.content())
                .map_err(|conflicts| refused(&state, author, &conflicts))
                .inspect_err(|error| self.record_refused(&state, author, error))?;
            let (ticket, edited, cursors) = self.apply_content(&mut state, author, combination.content, tool)?;
            self.show(&mut state, author, name, Activity::Editing, cursors);
            (ticket, edited, combination.doubled)
        };
        Ok(TakenOver {
            edited: self.acknowledged(ticket, edited).await?,
            base: advanced(&copy),
            doubled,
        })
    }

    fn apply_content(
        &self,
        state: &mut State,
        author: &Arc<str>,
        content: DocumentContent,
        tool: Option<&str>,
    ) -> Result<(super::Acknowledgement, Edited, Option<Cursors>), RoomError> {
        let edits = [content.into_edit()];
        let touched = state.document.touched_by(&edits);
        let mut applied = state
            .document
            .by_tool(tool, |document| document.apply_local(author, &edits))?;
        let cursors = applied.cursors.take();
        let (ticket, revision) = self.dispatch(state, applied, Origin::Caller);
        let edited = Edited {
            revision,
            acknowledged: false,
            merged: Vec::new(),
            changes: state.document.changes_since(touched),
        };
        Ok((ticket, edited, cursors))
    }
}

/// The refusal of a copy that does not fit, with what stands there now and who changed it.
fn refused(state: &State, author: &Arc<str>, conflicts: &[Conflict]) -> EditError {
    let me = Author::Local(Arc::clone(author));
    let document = &state.document;
    let refusals = conflicts.iter().map(|conflict| {
        let cause = match conflict.clash {
            Clash::SamePlace => Cause::ForkSamePlace,
            Clash::Properties => Cause::ForkProperties,
            Clash::DeletedInCopy => Cause::ForkDeleted,
            Clash::DeletedMeanwhile => Cause::GoneMeanwhile,
        };
        let cell = conflict.cell.as_deref();
        let by = match cell {
            Some(cell) => document.log().cell_changed_by_others(cell, 0, &me),
            None => document.log().whole_changed_by_others(0, &me),
        };
        let by = by.iter().map(|other| state.names.of(other)).collect();
        let text = match cell {
            Some(cell) => document.source(cell).unwrap_or_default(),
            None => document.text(),
        };
        Refusal::new(cell, cause, by, &text)
    });
    EditError::Refused(Box::new(Refused::new(refusals.collect(), document.revision())))
}
