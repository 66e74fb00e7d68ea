//! Refusal of an edit because of somebody else's work: who did what to which cell, and the current content.

use std::fmt::{self, Write};

use jupyter_client::{counted, truncate};

/// Characters that are shown of one text, and of all texts of a refusal.
const MAX_SHOWN: usize = 2000;
const MAX_SHOWN_IN_ALL: usize = 6000;

/// An edit of which nothing was done, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    pub refusals: Vec<Refusal>,
    /// The revision of what is shown.
    pub revision: String,
    /// The call that shows whole what was only shown in part, if there is one.
    pub read_whole: Option<String>,
}

/// One place that conflicts with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// None for a text document.
    pub cell: Option<String>,
    pub cause: Cause,
    /// The names of those who changed it or are in it.
    pub by: Vec<String>,
    /// Current text, cut if it is long.
    pub text: String,
    pub is_whole: bool,
    /// Length of all of it, in code points.
    pub length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It changed after the revision that the call named.
    Revision,
    /// Both changed the same place.
    SamePlace,
    /// It changed, and would be deleted.
    Changed,
    /// Somebody typed in what the caller has not read.
    Typing,
    /// Somebody is in what the caller has not read.
    Present,
    /// Somebody is in a cell that would be made anew, where their next letters would be lost.
    Remade,
    /// The caller was shown only a part.
    Part,
    /// A fork changed the same place.
    ForkSamePlace,
    /// A fork changed the same kind, metadata or attachments.
    ForkProperties,
    /// A fork deleted what others changed.
    ForkDeleted,
    /// Others deleted what a fork changed.
    GoneMeanwhile,
}

impl Cause {
    /// Returns whether it refuses a fork, and not an edit.
    fn is_of_fork(self) -> bool {
        matches!(
            self,
            Self::ForkSamePlace | Self::ForkProperties | Self::ForkDeleted | Self::GoneMeanwhile
        )
    }
}

impl Refusal {
    pub(crate) fn new(cell: Option<&str>, cause: Cause, by: Vec<String>, text: &str) -> Self {
        Self {
            cell: cell.map(str::to_owned),
            cause,
            by,
            text: text.to_owned(),
            is_whole: true,
            length: text.chars().count(),
        }
    }

    fn subject(&self) -> String {
        match &self.cell {
            Some(cell) => format!("cell {cell}"),
            None => "the text".to_owned(),
        }
    }

    fn reason(&self) -> String {
        let (who, it) = (names(&self.by), self.subject());
        match self.cause {
            Cause::Revision => format!("{who} changed {it} after the revision that you named"),
            Cause::SamePlace => format!("{who} changed the same place in {it} since you read it"),
            Cause::Changed => format!("{who} changed {it} since you read it"),
            Cause::ForkSamePlace => format!("{who} and the fork changed the same place in {it}"),
            Cause::ForkProperties => {
                format!("{who} and the fork changed the same kind, metadata or attachments of {it}")
            }
            Cause::ForkDeleted => format!("the fork deleted {it}, which {who} changed since"),
            Cause::GoneMeanwhile => format!("the fork changed {it}, which was deleted since"),
            Cause::Typing => format!("{who} typed in {it} less than a minute ago, and you have not read it"),
            Cause::Present if self.by.len() > 1 => format!("{who} are in {it}, and you have not read it"),
            Cause::Present => format!("{who} is in {it}, and you have not read it"),
            Cause::Remade if self.by.len() > 1 => {
                format!("{who} are in {it}, and what they type while it is put in its new place would be lost")
            }
            Cause::Remade => {
                format!("{who} is in {it}, and what they type while it is put in its new place would be lost")
            }
            Cause::Part => format!(
                "you were shown only part of {it}, which has {}; the rest would be deleted",
                counted(self.length, "character")
            ),
        }
    }
}

impl Refused {
    /// Cuts the shown texts to what a model can be expected to read.
    pub(crate) fn new(mut refusals: Vec<Refusal>, revision: String) -> Self {
        let mut left = MAX_SHOWN_IN_ALL;
        for refusal in &mut refusals {
            let max = match refusal.cause {
                Cause::Part | Cause::Remade => 0,
                _ => MAX_SHOWN.min(left),
            };
            let cut = truncate(std::mem::take(&mut refusal.text), max);
            left -= cut.text.chars().count();
            (refusal.text, refusal.is_whole) = (cut.text, !cut.truncated);
        }
        Self {
            refusals,
            revision,
            read_whole: None,
        }
    }

    /// Refusal of something that was only shown in part, if there is one.
    pub fn part(&self) -> Option<&Refusal> {
        self.refusals.iter().find(|refusal| refusal.cause == Cause::Part)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("nothing was changed: ")?;
        for (index, refusal) in self.refusals.iter().enumerate() {
            if index > 0 {
                formatter.write_char('\n')?;
            }
            formatter.write_str(&refusal.reason())?;
            if matches!(refusal.cause, Cause::Part | Cause::GoneMeanwhile) {
                formatter.write_str(if refusal.cause == Cause::Part { "" } else { "." })?;
                continue;
            }
            match (refusal.text.is_empty(), refusal.length) {
                (_, 0) => formatter.write_str(". It is empty now.")?,
                (true, _) => formatter.write_char('.')?,
                (false, _) => write!(formatter, ". It is now:\n```\n{}\n```", refusal.text)?,
            }
        }
        if self.refusals.iter().any(|refusal| refusal.cause.is_of_fork()) {
            return formatter.write_str(
                "\nChange the fork so that it fits, merge other cells with cell_ids, or pass force: true to take over what the fork has.",
            );
        }
        match (self.part(), &self.read_whole) {
            (Some(_), Some(call)) => write!(formatter, "\nRead it whole with {call} first")?,
            (Some(_), None) => formatter.write_str("\nRead it whole first")?,
            (None, _) => write!(
                formatter,
                "\nRepeat the edit on what is there now (revision {})",
                self.revision
            )?,
        }
        formatter.write_str(", or pass force: true to do it anyway.")
    }
}

/// Names in a sentence, each once.
pub(crate) fn names(names: &[String]) -> String {
    let mut seen: Vec<&str> = Vec::new();
    for name in names {
        if !seen.contains(&name.as_str()) {
            seen.push(name);
        }
    }
    match seen.as_slice() {
        [] => "somebody else".to_owned(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_who_did_what_and_what_stands_there() {
        let refusal = Refusal::new(Some("c1"), Cause::SamePlace, vec!["Ida".to_owned(); 2], "x = 3");
        let refused = Refused::new(vec![refusal], "r-1".to_owned());
        assert_eq!(
            refused.to_string(),
            "nothing was changed: Ida changed the same place in cell c1 since you read it. It is now:\n```\nx = 3\n```\n\
             Repeat the edit on what is there now (revision r-1), or pass force: true to do it anyway."
        );
        let part = Refusal::new(None, Cause::Part, Vec::new(), &"x".repeat(5000));
        let mut refused = Refused::new(vec![part], "r-1".to_owned());
        refused.read_whole = Some("get_document_content(max_content=5000)".to_owned());
        assert_eq!(
            refused.to_string(),
            "nothing was changed: you were shown only part of the text, which has 5000 characters; the rest would be \
             deleted\nRead it whole with get_document_content(max_content=5000) first, or pass force: true to do it \
             anyway."
        );
    }

    #[test]
    fn what_is_shown_is_bounded() {
        let refusal = |cell: &str| Refusal::new(Some(cell), Cause::Changed, Vec::new(), &"é".repeat(5000));
        let refused = Refused::new(
            (0..100).map(|number| refusal(&number.to_string())).collect(),
            String::new(),
        );
        assert!(refused.refusals.iter().all(|refusal| !refusal.is_whole));
        assert!(refused.to_string().chars().count() < 20_000);
        assert!(
            refused
                .to_string()
                .contains("somebody else changed cell 99 since you read it")
        );
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        let listed = |all: &[&str]| names(&all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(listed(&["Ida", "Bo", "Ida", "Cy"]), "Ida, Bo and Cy");
    }
}
