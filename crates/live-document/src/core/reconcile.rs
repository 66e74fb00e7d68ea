//! Edits of a principal, adapted to the current content so that nobody's typing is lost: setting a whole text means a
//! change of what the principal last read, and is merged; an edit that cannot be merged is refused. Does no I/O.

mod notebook;
mod positions;
mod replacements;

use std::{fmt, sync::Arc};

use super::{
    CellKind, Edit, EditError, EditOptions,
    change_log::{Author, Moment},
    document::Document,
    merge::{self, merge},
    readings::{Readable, Reading, Readings},
    refusal::{Cause, Refusal, Refused, names},
    splice::Splice,
};

/// Context in which a principal's edits are reconciled with the work of others.
pub(crate) struct Reconciler<'a> {
    pub(crate) document: &'a Document,
    pub(crate) readings: &'a Readings,
    pub(crate) principal: &'a Arc<str>,
    pub(crate) options: EditOptions<'a>,
    /// Display name of an author.
    pub(crate) name: &'a dyn Fn(&Author) -> String,
    /// The names of the people whose cursor is in a cell.
    pub(crate) present: &'a dyn Fn(&str) -> Vec<String>,
}

/// Edits that fit the current content.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) edits: Vec<Edit>,
    pub(crate) merged: Vec<Merged>,
    /// Knowledge of the principal when they are done.
    pub(crate) known: Vec<Known>,
    refusals: Vec<Refusal>,
}

/// A text that was merged with the work of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// None for a text document.
    pub cell: Option<String>,
    /// Names of those whose work it was.
    pub by: Vec<String>,
}

impl fmt::Display for Merged {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = names(&self.by);
        match &self.cell {
            Some(cell) => write!(formatter, "Merged with changes by {by} in cell {cell}")?,
            None => write!(formatter, "Merged with changes by {by}")?,
        }
        formatter.write_str(" that you have not read.")
    }
}

/// Knowledge of a principal about something after its edit.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) subject: Readable,
    /// Text that it believes to be there; `None` if it cannot tell any more.
    pub(crate) text: Option<String>,
    pub(crate) is_whole: bool,
    /// Revision since which it does not know what others did; none means since now.
    pub(crate) since: Option<Moment>,
}

/// Resolution of a whole text that a principal sends.
enum Resolution {
    AsAsked,
    Merged(Vec<Splice>, Vec<String>),
    Refused(Refusal),
}

impl Reconciler<'_> {
    pub(crate) fn plan(&self, edits: &[Edit]) -> Result<Plan, EditError> {
        self.document.check(edits)?;
        if let Some(given) = self.options.if_revision {
            self.refuse_stale(given, edits)?;
        }
        let mut plan = Plan::default();
        let (splices, others): (Vec<&Edit>, Vec<&Edit>) = edits
            .iter()
            .partition(|edit| matches!(edit, Edit::SpliceText { .. } | Edit::AppendText { .. }));
        for edit in others {
            self.plan_one(edit, &mut plan)?;
        }
        if !splices.is_empty() {
            self.plan_splices(&splices, &mut plan)?;
        }
        match plan.refusals.is_empty() {
            true => Ok(plan),
            false => Err(self.refused(plan.refusals)),
        }
    }

    /// Refuses what others changed since a revision.
    pub(crate) fn refuse_stale(&self, given: &str, edits: &[Edit]) -> Result<(), EditError> {
        let stale = self.document.changed_since(given, edits, &self.me())?;
        if self.options.force || stale.is_empty() {
            return Ok(());
        }
        if stale.cells.is_empty() && self.document.is_notebook() {
            let what = format!(
                "{} inserted or removed cells since you read it",
                self.names(&stale.whole)
            );
            return Err(EditError::Stale { what });
        }
        let mut refusals: Vec<Refusal> = stale
            .cells
            .iter()
            .map(|(cell, by)| self.refusal(&Readable::cell(cell), Cause::Revision, by))
            .collect();
        if refusals.is_empty() {
            refusals.push(self.refusal(&Readable::Text, Cause::Revision, &stale.whole));
        }
        Err(self.refused(refusals))
    }

    fn plan_one(&self, edit: &Edit, plan: &mut Plan) -> Result<(), EditError> {
        match edit {
            Edit::SetSource { cell, source } => {
                let splices = self.set(&Readable::cell(cell), source, plan);
                plan.edits.push(match splices {
                    Some(splices) => Edit::Splice {
                        cell: Some(cell.clone()),
                        splices,
                    },
                    None => edit.clone(),
                });
            }
            Edit::SetText { text } => {
                let splices = self.set(&Readable::Text, text, plan);
                plan.edits.push(match splices {
                    Some(splices) => Edit::Splice { cell: None, splices },
                    None => edit.clone(),
                });
            }
            Edit::SetKind {
                cell,
                kind,
                source: Some(source),
            } => {
                plan.refusals.extend(self.refuse_other_kind(cell, *kind));
                let splices = self.set(&Readable::cell(cell), source, plan);
                let now = self.document.source(cell).unwrap_or_default();
                plan.edits.push(Edit::SetKind {
                    cell: cell.clone(),
                    kind: *kind,
                    source: Some(splices.map_or_else(|| source.clone(), |splices| merge::apply(&now, &splices))),
                });
            }
            Edit::DeleteCells { cells } => {
                plan.refusals
                    .extend(cells.iter().filter_map(|cell| self.refuse_deletion(cell)));
                plan.edits.push(edit.clone());
            }
            // Nobody asked for this by name, so the cell stays where a person is at it.
            Edit::DeleteBlank { cell } => {
                if self.refuse_deletion(cell).is_none() {
                    plan.edits.push(edit.clone());
                }
            }
            Edit::SetNotebook { metadata, cells } => self.set_notebook(metadata, cells, plan),
            Edit::MoveCells { cells, before } => {
                let moved = self.document.reordered(cells, before.as_deref()).remade;
                plan.refusals
                    .extend(moved.iter().filter_map(|cell| self.refuse_remaking(cell)));
                plan.edits.push(edit.clone());
            }
            Edit::InsertCells { cells, .. }
            | Edit::InsertBefore { cells, .. }
            | Edit::InsertAfter { cells, .. }
            | Edit::AppendCells { cells } => {
                plan.known.extend(
                    cells
                        .iter()
                        .map(|cell| Known::now(Readable::cell(&cell.id), &cell.source)),
                );
                plan.edits.push(edit.clone());
            }
            Edit::SetKind {
                cell,
                kind,
                source: None,
            } => {
                plan.refusals.extend(self.refuse_other_kind(cell, *kind));
                plan.edits.push(edit.clone());
            }
            Edit::ReplaceText { cell, old, new, all } => self.replace(cell.as_deref(), (old, new), *all, plan)?,
            Edit::Splice { .. } | Edit::ClearOutputs { .. } => plan.edits.push(edit.clone()),
            // Those are planned together.
            Edit::SpliceText { .. } | Edit::AppendText { .. } => {}
        }
        Ok(())
    }

    /// Plans that a text is to become what the principal sends. Returns the splices if that is merged.
    fn set(&self, subject: &Readable, sent: &str, plan: &mut Plan) -> Option<Vec<Splice>> {
        let mut known = Known::now(subject.clone(), sent);
        let splices = match self.resolve(subject, sent) {
            Resolution::AsAsked => None,
            Resolution::Merged(splices, by) => {
                // It still does not know what they did.
                known.since = self.reading(subject).map(|reading| reading.at.clone());
                plan.merged.push(Merged {
                    cell: cell_of(subject),
                    by,
                });
                Some(splices)
            }
            Resolution::Refused(refusal) => {
                plan.refusals.push(refusal);
                None
            }
        };
        plan.known.push(known);
        splices
    }

    fn resolve(&self, subject: &Readable, sent: &str) -> Resolution {
        let now = self.now(subject);
        if self.options.force || now == sent {
            return Resolution::AsAsked;
        }
        let Some(reading) = self.reading(subject) else {
            return match self.typing(subject).filter(|_| self.options.if_revision.is_none()) {
                Some(author) => Resolution::Refused(self.refusal(subject, Cause::Typing, std::slice::from_ref(author))),
                None => Resolution::AsAsked,
            };
        };
        if !reading.is_whole {
            return Resolution::Refused(self.refusal(subject, Cause::Part, &[]));
        }
        // Nobody else changed it since the revision that the call names.
        if self.options.if_revision.is_some() || self.readings.is_of(reading, &now) {
            return Resolution::AsAsked;
        }
        let by = self.others_since(subject, reading);
        match reading.text.as_ref().map(|base| merge(base, &now, sent)) {
            Some(Ok(splices)) => Resolution::Merged(splices, by.iter().map(self.name).collect()),
            Some(Err(_)) => Resolution::Refused(self.refusal(subject, Cause::SamePlace, &by)),
            None => Resolution::Refused(self.refusal(subject, Cause::Changed, &by)),
        }
    }

    fn refuse_deletion(&self, cell: &str) -> Option<Refusal> {
        let subject = Readable::cell(cell);
        let now = self.now(&subject);
        if self.options.force {
            return None;
        }
        let Some(reading) = self.reading(&subject) else {
            if let Some(author) = self.typing(&subject) {
                return Some(self.refusal(&subject, Cause::Typing, std::slice::from_ref(author)));
            }
            let present = (self.present)(cell);
            let is_unread = !present.is_empty() && !now.is_empty();
            return is_unread.then(|| Refusal::new(Some(cell), Cause::Present, present, &now));
        };
        let by = self.others_since(&subject, reading);
        let is_changed = match reading.is_whole {
            true => !self.readings.is_of(reading, &now),
            false => !by.is_empty(),
        };
        is_changed.then(|| self.refusal(&subject, Cause::Changed, &by))
    }

    /// Refuses to change the kind of a cell, which makes it anew.
    fn refuse_other_kind(&self, cell: &str, kind: CellKind) -> Option<Refusal> {
        let is_same = self
            .document
            .cell(cell)
            .is_some_and(|cell| cell.cell_type == kind.as_str());
        self.refuse_remaking(cell).filter(|_| !is_same)
    }

    /// Refuses to replace a cell that a person is in: Yjs knows no moves, so that what they type before
    /// they receive the change is lost with the old one.
    fn refuse_remaking(&self, cell: &str) -> Option<Refusal> {
        if self.options.force {
            return None;
        }
        let mut by = (self.present)(cell);
        if by.is_empty() {
            by.extend(self.document.log().just_typed_in(cell).map(self.name));
        }
        let now = self.document.source(cell).unwrap_or_default();
        (!by.is_empty()).then(|| Refusal::new(Some(cell), Cause::Remade, by, &now))
    }

    fn me(&self) -> Author {
        Author::Local(Arc::clone(self.principal))
    }

    fn reading(&self, subject: &Readable) -> Option<&Reading> {
        self.readings.get(self.principal, subject)
    }

    fn now(&self, subject: &Readable) -> String {
        match subject {
            Readable::Cell(id) => self.document.source(id).unwrap_or_default(),
            Readable::Text => self.document.text(),
            Readable::Order => self.document.ids().join("\n"),
        }
    }

    fn typing(&self, subject: &Readable) -> Option<&Author> {
        match subject {
            Readable::Cell(id) => self.document.log().typing_in(id),
            Readable::Text | Readable::Order => self.document.log().typing_in_text(),
        }
    }

    fn others_since(&self, subject: &Readable, reading: &Reading) -> Vec<Author> {
        let log = self.document.log();
        let Some(since) = log.revision_of(&reading.at) else {
            return Vec::new();
        };
        match subject {
            Readable::Cell(id) => log.cell_changed_by_others(id, since, &self.me()),
            Readable::Text | Readable::Order => log.whole_changed_by_others(since, &self.me()),
        }
    }

    fn refusal(&self, subject: &Readable, cause: Cause, by: &[Author]) -> Refusal {
        let by = by.iter().map(self.name).collect();
        Refusal::new(cell_of(subject).as_deref(), cause, by, &self.now(subject))
    }

    fn refused(&self, refusals: Vec<Refusal>) -> EditError {
        EditError::Refused(Box::new(Refused::new(refusals, self.document.revision())))
    }

    fn names(&self, authors: &[Author]) -> String {
        names(&authors.iter().map(self.name).collect::<Vec<_>>())
    }
}

impl Known {
    fn now(subject: Readable, text: &str) -> Self {
        Self {
            subject,
            text: Some(text.to_owned()),
            is_whole: true,
            since: None,
        }
    }

    /// Knowledge of a text after parts of it were changed.
    fn after(reading: &Reading, text: Option<String>) -> Self {
        Self {
            subject: Readable::Text,
            text,
            is_whole: reading.is_whole,
            since: None,
        }
    }
}

fn cell_of(subject: &Readable) -> Option<String> {
    match subject {
        Readable::Cell(id) => Some(id.to_string()),
        Readable::Text | Readable::Order => None,
    }
}

#[cfg(test)]
mod tests;
