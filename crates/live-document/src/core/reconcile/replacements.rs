//! Replacements of parts of a text. They are found in the current text, so that nobody's typing is in their way; what the
//! principal has read changes with them.

use super::{
    super::{Edit, EditError, matches::replacing, merge::apply},
    Known, Plan, Readable, Reconciler,
};

impl Reconciler<'_> {
    pub(super) fn replace(
        &self,
        cell: Option<&str>,
        (old, new): (&str, &str),
        all: bool,
        plan: &mut Plan,
    ) -> Result<(), EditError> {
        let subject = cell.map_or(Readable::Text, Readable::cell);
        let now = self.now(&subject);
        let splices = replacing(&now, old, new, all)?;
        if let Some(reading) = self.reading(&subject) {
            let is_current = self.readings.is_of(reading, &now);
            let replaced = |text: &str| Some(apply(text, &replacing(text, old, new, all).ok()?));
            let known = match is_current {
                true => Some(apply(&now, &splices)),
                // It is as good as read in what it knows, if it is there too.
                false => reading
                    .text
                    .as_deref()
                    .map(|text| replaced(text).unwrap_or_else(|| text.to_owned())),
            };
            plan.known.push(Known {
                subject,
                text: known,
                is_whole: reading.is_whole,
                since: (!is_current).then(|| reading.at.clone()),
            });
        }
        plan.edits.push(Edit::Splice {
            cell: cell.map(str::to_owned),
            splices,
        });
        Ok(())
    }
}
