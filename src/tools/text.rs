//! The text of answers, which models read: short, plain, and within a budget.

pub(in crate::tools) mod cell;
pub(in crate::tools) mod output;
pub(in crate::tools) mod run;

use std::fmt::{Display, Write};

/// Bytes that are kept for the line that tells what was left out.
const RESERVE: usize = 200;

/// A text that is written line by line until its budget is used up.
pub(in crate::tools) struct Page {
    text: String,
    max: usize,
}

impl Page {
    /// An empty text of at most `max` bytes.
    pub(in crate::tools) fn new(max: usize) -> Self {
        Self {
            text: String::new(),
            max,
        }
    }

    /// Adds a line.
    pub(in crate::tools) fn line(&mut self, line: impl Display) -> &mut Self {
        self.end_line();
        // A string takes everything.
        let _ = write!(self.text, "{line}");
        self
    }

    /// Adds lines as they are. An empty text adds nothing.
    pub(in crate::tools) fn block(&mut self, text: &str) -> &mut Self {
        if !text.is_empty() {
            self.line(text.strip_suffix('\n').unwrap_or(text));
        }
        self
    }

    /// Number of bytes there are for more lines, beside what tells what was left out.
    pub(in crate::tools) fn room(&self) -> usize {
        self.max.saturating_sub(self.text.len() + RESERVE)
    }

    /// Adds each item as lines of its own, as long as there is room. Returns how many were added.
    pub(in crate::tools) fn items<T: Display>(&mut self, items: impl IntoIterator<Item = T>) -> usize {
        let mut added = 0;
        for item in items {
            let line = item.to_string();
            if line.len() >= self.room() {
                break;
            }
            self.line(line);
            added += 1;
        }
        added
    }

    pub(in crate::tools) fn into_text(self) -> String {
        self.text
    }

    fn end_line(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }
}

/// Result of a tool in words for a model.
pub(in crate::tools) trait Describe {
    fn describe(&self, page: &mut Page);
}

/// Describes results by one of their members, which is a sentence.
macro_rules! described_by {
    ($member:ident: $($result:ty),+) => {
        $(impl $crate::tools::text::Describe for $result {
            fn describe(&self, page: &mut $crate::tools::text::Page) {
                page.line(&self.$member);
            }
        })+
    };
}

pub(in crate::tools) use described_by;
