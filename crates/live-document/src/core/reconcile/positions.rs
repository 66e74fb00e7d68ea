//! Changes at positions of a text, which mean the text that the principal knows and move with what others did to it.

use super::{
    super::{
        Edit, EditError,
        document::Document,
        merge::{Change, Ties, put_into},
        refusal::Cause,
        splice::byte_of,
    },
    Known, Merged, Plan, Readable, Reconciler,
};

impl Reconciler<'_> {
    /// Plans changes at positions, which mean the text that the principal knows.
    pub(super) fn plan_splices(&self, edits: &[&Edit], plan: &mut Plan) -> Result<(), EditError> {
        let now = self.document.text();
        let as_asked = edits.iter().map(|edit| (*edit).clone());
        let reading = self.reading(&Readable::Text);
        let is_certain = self.options.force || self.options.if_revision.is_some();
        let Some(reading) = reading.filter(|_| !is_certain) else {
            let removes = |edit: &&Edit| matches!(edit, Edit::SpliceText { delete, .. } if *delete > 0);
            if !is_certain
                && edits.iter().any(removes)
                && let Some(author) = self.typing(&Readable::Text)
            {
                plan.refusals
                    .push(self.refusal(&Readable::Text, Cause::Typing, std::slice::from_ref(author)));
            }
            Document::check_positions(edits.iter().copied(), &now)?;
            plan.edits.extend(as_asked);
            if let Some(reading) = self.reading(&Readable::Text) {
                let known = self.readings.is_of(reading, &now).then(|| changed(&now, edits));
                plan.known.push(Known::after(reading, known));
            }
            return Ok(());
        };
        if self.readings.is_of(reading, &now) {
            Document::check_positions(edits.iter().copied(), &now)?;
            plan.edits.extend(as_asked);
            plan.known.push(Known::after(reading, Some(changed(&now, edits))));
            return Ok(());
        }
        let base = reading.text.as_deref();
        if edits.iter().all(|edit| matches!(edit, Edit::AppendText { .. })) {
            // The end is wherever it is by then.
            plan.edits.extend(as_asked);
            plan.known.push(Known {
                since: Some(reading.at.clone()),
                ..Known::after(reading, base.map(|base| changed(base, edits)))
            });
            return Ok(());
        }
        let by = self.others_since(&Readable::Text, reading);
        if let Some(base) = base {
            Document::check_positions(edits.iter().copied(), base)?;
        }
        match base.map(|base| (base, put_into(base, &now, exact_changes(base, edits), Ties::OursLast))) {
            Some((base, Ok(splices))) => {
                let appended = edits.iter().filter(|edit| matches!(edit, Edit::AppendText { .. }));
                plan.edits.extend(appended.map(|edit| (*edit).clone()));
                plan.edits.push(Edit::Splice { cell: None, splices });
                plan.merged.push(Merged {
                    cell: None,
                    by: by.iter().map(self.name).collect(),
                });
                plan.known.push(Known {
                    since: Some(reading.at.clone()),
                    ..Known::after(reading, Some(changed(base, edits)))
                });
            }
            Some((_, Err(_))) => plan.refusals.push(self.refusal(&Readable::Text, Cause::SamePlace, &by)),
            None => plan.refusals.push(self.refusal(&Readable::Text, Cause::Changed, &by)),
        }
        Ok(())
    }
}

/// The changes at positions of a text, in order.
fn exact_changes(base: &str, edits: &[&Edit]) -> Vec<Change> {
    let mut changes: Vec<Change> = edits
        .iter()
        .filter_map(|edit| match edit {
            Edit::SpliceText {
                position,
                delete,
                insert,
            } => {
                let start = byte_of(base, *position)?;
                let end = start + byte_of(&base[start..], *delete)?;
                Some(Change::exact(start..end, insert))
            }
            _ => None,
        })
        .collect();
    // What is put before a place comes before what is taken away from there.
    changes.sort_by_key(|change| (change.old.start, change.old.end));
    changes
}

/// A text after changes at its positions.
fn changed(base: &str, edits: &[&Edit]) -> String {
    let (mut text, mut at) = (String::with_capacity(base.len()), 0);
    for change in exact_changes(base, edits) {
        text.push_str(&base[at..change.old.start]);
        text.push_str(&change.new);
        at = change.old.end;
    }
    text.push_str(&base[at..]);
    for edit in edits {
        if let Edit::AppendText { text: appended } = edit {
            text.push_str(appended);
        }
    }
    text
}
