//! A text from which nothing is ever removed.

use super::register::{By, counts};
use crate::{Splice, Unfitting, text};

/// The characters of a text, visible or not, in their order.
#[derive(Debug, Clone, Default)]
pub(super) struct Sequence {
    spans: Vec<Span>,
}

/// Characters with the same past.
#[derive(Debug, Clone)]
struct Span {
    text: String,
    characters: usize,
    inserted: By,
    deleted: Vec<By>,
}

impl Span {
    fn new(text: &str, inserted: By) -> Self {
        Self {
            characters: text.chars().count(),
            text: text.to_owned(),
            inserted,
            deleted: Vec::new(),
        }
    }

    fn is_visible(&self, active: &[bool]) -> bool {
        counts(self.inserted, active) && !self.deleted.iter().any(|by| counts(*by, active))
    }

    /// Cuts it in two; the second part is returned.
    fn split(&mut self, at: usize) -> Self {
        let byte = text::byte_of(&self.text, at).unwrap_or(self.text.len());
        let rest = self.text.split_off(byte);
        let characters = std::mem::replace(&mut self.characters, at) - at;
        Self {
            text: rest,
            characters,
            inserted: self.inserted,
            deleted: self.deleted.clone(),
        }
    }
}

impl Sequence {
    pub(super) fn new(text: &str, inserted: By) -> Self {
        let mut spans = Vec::new();
        if !text.is_empty() {
            spans.push(Span::new(text, inserted));
        }
        Self { spans }
    }

    pub(super) fn text(&self, active: &[bool]) -> String {
        let visible = self.spans.iter().filter(|span| span.is_visible(active));
        visible.map(|span| span.text.as_str()).collect()
    }

    /// Returns whether something is visible that was inserted by a version after another.
    pub(super) fn shows_later_than(&self, version: Option<usize>, active: &[bool]) -> bool {
        let is_later = |span: &&Span| span.inserted.is_some() && span.inserted > version;
        self.spans.iter().filter(is_later).any(|span| span.is_visible(active))
    }

    /// Does splices whose positions count what was visible before them.
    pub(super) fn splice(&mut self, splices: &[Splice], by: By, active: &[bool]) -> Result<(), Unfitting> {
        // From the end to the beginning, so that the positions of what is still to be done stay true.
        let mut end = usize::MAX;
        for splice in splices.iter().rev() {
            let length = splice.old.chars().count();
            if splice.at.checked_add(length).is_none_or(|after| after > end) {
                return Err(Unfitting::new("changes of a text overlap"));
            }
            end = splice.at;
            let after = self.delete(splice.at, &splice.old, by, active)?;
            if !splice.new.is_empty() {
                self.spans.insert(after, Span::new(&splice.new, by));
            }
        }
        Ok(())
    }

    /// Marks visible characters as deleted. Returns the place after them; where nothing is deleted, the one right after the
    /// visible character before.
    fn delete(&mut self, at: usize, old: &str, by: By, active: &[bool]) -> Result<usize, Unfitting> {
        let mut index = self.seek(at, active)?;
        let mut rest = old;
        while !rest.is_empty() {
            let span = self.spans.get_mut(index).ok_or_else(another_text)?;
            if !span.is_visible(active) {
                index += 1;
                continue;
            }
            let wanted = rest.chars().count();
            let tail = (span.characters > wanted).then(|| span.split(wanted));
            rest = rest.strip_prefix(span.text.as_str()).ok_or_else(another_text)?;
            span.deleted.push(by);
            index += 1;
            if let Some(tail) = tail {
                self.spans.insert(index, tail);
            }
        }
        Ok(index)
    }

    /// The index of the span that begins right after so many visible characters, made if need be.
    fn seek(&mut self, at: usize, active: &[bool]) -> Result<usize, Unfitting> {
        let mut before = 0;
        let mut index = 0;
        while before < at {
            let span = self.spans.get_mut(index).ok_or_else(another_text)?;
            if span.is_visible(active) {
                if before + span.characters > at {
                    let tail = span.split(at - before);
                    self.spans.insert(index + 1, tail);
                    return Ok(index + 1);
                }
                before += span.characters;
            }
            index += 1;
        }
        Ok(index)
    }

    /// The splices that lead to the text with other versions active.
    pub(super) fn splices(&self, now: &[bool], then: &[bool]) -> Vec<Splice> {
        let mut builder = text::Builder::default();
        for span in &self.spans {
            match (span.is_visible(now), span.is_visible(then)) {
                (true, true) => builder.keep(span.characters),
                (true, false) => builder.delete_text(&span.text),
                (false, true) => builder.insert(&span.text),
                (false, false) => {}
            }
        }
        builder.finish()
    }
}

fn another_text() -> Unfitting {
    Unfitting::new("a text is another one")
}
