//! Edits that were acknowledged and then taken out of the document, because somebody wrote its file from outside
//! before they were in it. Jupyter makes the document the same as the file and tells nobody whose work that was.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use super::{
    super::edit_journal::{Entry, JournaledEdit, Subject},
    Document, Splice, splice,
};

/// An edit of something that is not there any more, and its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Discarded {
    pub(crate) author: Arc<str>,
    pub(crate) subject: Subject,
}

impl Document {
    /// Takes the unsaved edits that are gone, each with its author.
    pub(crate) fn take_discarded(&mut self) -> Vec<Discarded> {
        let mut latest: HashMap<Subject, &JournaledEdit> = HashMap::new();
        let mut gone = HashSet::new();
        let mut told = HashSet::new();
        let mut discarded = Vec::new();
        for entry in self.journal.latest_first() {
            for (subject, is_gone) in self.losses(entry) {
                // What was done last to the same cell says how it should be now.
                let is_lost = match latest.get(&subject) {
                    None => is_gone,
                    Some(latest) => self.has_lost(&subject, &entry.done, latest),
                };
                if is_gone && !latest.contains_key(&subject) {
                    gone.insert(subject.clone());
                }
                latest.entry(subject.clone()).or_insert(&entry.done);
                if is_lost {
                    told.insert(entry.number);
                    let author = entry.author.clone();
                    discarded.extend(author.map(|author| Discarded { author, subject }));
                }
            }
        }
        if !gone.is_empty() {
            self.journal.discard(&gone);
        }
        self.journal.mark_told(&told);
        discarded.reverse();
        discarded
    }

    /// Returns whether an edit is gone although the latest edit of the same subject left it there.
    fn has_lost(&self, subject: &Subject, edit: &JournaledEdit, latest: &JournaledEdit) -> bool {
        if matches!(latest, JournaledEdit::Deleted { .. }) {
            return false;
        }
        let Some(now) = self.text_of(subject) else {
            return matches!(subject, Subject::Cell(_));
        };
        let (Some((old, new)), Some(latest)) = (edit.texts(), latest.text_after(subject)) else {
            return false;
        };
        let is_out = |splice: &Splice| latest.contains(&splice.insert) && !now.contains(&splice.insert);
        splice::between(old, new).iter().any(is_out)
    }

    /// Subjects of an edit, each with whether the edit is gone from there.
    fn losses(&self, entry: &Entry) -> Vec<(Subject, bool)> {
        let cell = |id: &str| Subject::Cell(id.to_owned());
        match &entry.done {
            JournaledEdit::Inserted { cells, .. } => {
                let ids = cells.iter().map(|cell| &cell.id).chain(&entry.removed);
                ids.map(|id| (cell(id), self.position_of(id).is_none())).collect()
            }
            JournaledEdit::Changed { cell: id, old, new } => {
                let now = self.source(id);
                vec![(cell(id), !now.is_some_and(|now| is_still_there(old, new, &now)))]
            }
            JournaledEdit::Deleted { cell: id, .. } => vec![(cell(id), self.position_of(id).is_some())],
            // The cells are there, if in another order.
            JournaledEdit::Moved { .. } => Vec::new(),
            JournaledEdit::TextChanged { old, new } => vec![(Subject::Text, !is_still_there(old, new, &self.text()))],
            JournaledEdit::MetadataChanged { new, .. } => vec![(Subject::Metadata, self.metadata() != *new)],
        }
    }
}

/// Returns whether a text still has what a change put into it, whatever else was done to it.
pub(super) fn is_still_there(old: &str, new: &str, now: &str) -> bool {
    now == new
        || now != old
            && splice::between(old, new)
                .iter()
                .all(|splice| now.contains(&splice.insert))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_there_whatever_others_typed_beside_it() {
        assert!(is_still_there("x = 1", "x = 2", "x = 2"));
        assert!(is_still_there("a\nb", "a\nmore\nb", "a!\nmore\nb"));
        assert!(!is_still_there("a\nb", "a\nmore\nb", "a\nb"));
        assert!(!is_still_there("a\nb", "a\nmore\nb", "from outside"));
        assert!(!is_still_there("a\nb", "a", "a\nb"));
    }
}
