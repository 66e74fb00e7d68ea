//! Readings of principals in a room, and the check of their edits against them.

use std::sync::Arc;

use crate::{
    Edit, EditError, EditOptions, Person, Room,
    core::{
        readings::Readable,
        reconcile::{Known, Reconciler},
        state::State,
    },
};

/// A source as a principal was shown it.
#[derive(Debug, Clone, Copy)]
pub struct SourceShown<'a> {
    pub cell: &'a str,
    /// None if only a part of it was shown.
    pub source: Option<&'a str>,
}

impl Room {
    /// Refuses cells that somebody other than `author` changed since a revision.
    pub fn check_unchanged(&self, author: &Arc<str>, cells: &[String], revision: &str) -> Result<(), EditError> {
        let state = self.0.read();
        let edits = [Edit::DeleteCells { cells: cells.to_vec() }];
        let checked = self.reconcile(&state, author, EditOptions::default(), |reconciler| {
            reconciler.refuse_stale(revision, &edits)
        });
        checked.inspect_err(|error| self.record_refused(&state, author, error))
    }

    /// Refuses the deletion of cells in which somebody has typed what `author` has not read.
    pub fn check_deletable(
        &self,
        author: &Arc<str>,
        cells: &[String],
        options: EditOptions<'_>,
    ) -> Result<(), EditError> {
        let state = self.0.read();
        let edits = [Edit::DeleteCells { cells: cells.to_vec() }];
        let checked = self.reconcile(&state, author, options, |reconciler| reconciler.plan(&edits).map(drop));
        checked.inspect_err(|error| self.record_refused(&state, author, error))
    }

    /// The people who are known to be in the document, agents left aside.
    pub fn people(&self) -> Vec<Person> {
        self.0.read().people()
    }

    /// Records what a principal was shown of cells at a revision.
    pub fn record_shown<'s>(
        &self,
        principal: &Arc<str>,
        revision: &str,
        shown: impl IntoIterator<Item = SourceShown<'s>>,
    ) {
        let state = self.0.read();
        let mut readings = self.0.readings.lock();
        let now = state.document.log().moment(revision);
        for SourceShown { cell, source } in shown {
            match source {
                Some(source) => readings.record(principal, Readable::cell(cell), source, true, now.clone()),
                None => {
                    let source = state.document.source(cell).unwrap_or_default();
                    readings.record(principal, Readable::cell(cell), &source, false, now.clone());
                }
            }
        }
    }

    /// Records that a principal was shown which cells there are.
    pub fn record_order<'s>(&self, principal: &Arc<str>, revision: &str, cells: impl IntoIterator<Item = &'s str>) {
        let ids: Vec<&str> = cells.into_iter().collect();
        let now = self.0.read().document.log().moment(revision);
        self.0
            .readings
            .lock()
            .record(principal, Readable::Order, &ids.join("\n"), true, now);
    }

    /// Records that a principal was shown this text of a document, or a part of it.
    pub fn record_text(&self, principal: &Arc<str>, revision: &str, text: &str, is_whole: bool) {
        let now = self.0.read().document.log().moment(revision);
        self.0
            .readings
            .lock()
            .record(principal, Readable::Text, text, is_whole, now);
    }

    /// Works with the edits of a principal beside what is known of others.
    pub(crate) fn reconcile<T>(
        &self,
        state: &State,
        author: &Arc<str>,
        options: EditOptions<'_>,
        work: impl FnOnce(&Reconciler<'_>) -> T,
    ) -> T {
        let readings = self.0.readings.lock();
        let reconciler = Reconciler {
            document: &state.document,
            readings: &readings,
            principal: author,
            options,
            name: &|other| state.names.of(other),
            present: &|cell| state.people_in(cell),
        };
        work(&reconciler)
    }

    /// Records the texts that a refusal shows as read.
    pub(crate) fn record_refused(&self, state: &State, author: &Arc<str>, error: &EditError) {
        let EditError::Refused(refused) = error else { return };
        let mut readings = self.0.readings.lock();
        let now = state.document.log().now();
        for refusal in refused.refusals.iter().filter(|refusal| refusal.is_whole) {
            let subject = refusal.cell.as_deref().map_or(Readable::Text, Readable::cell);
            readings.record(author, subject, &refusal.text, true, now.clone());
        }
    }

    /// Records what a principal knows by having written it.
    pub(crate) fn record_known(&self, state: &State, author: &Arc<str>, known: Vec<Known>) {
        let mut readings = self.0.readings.lock();
        for Known {
            subject,
            text,
            is_whole,
            since,
        } in known
        {
            let since = since.unwrap_or_else(|| state.document.log().now());
            match text {
                Some(text) => readings.record(author, subject, &text, is_whole, since),
                None => readings.forget(author, &subject),
            }
        }
    }
}
