//! Replacement of text by exact match, and the reasons why it cannot be done: where the text is, or what may
//! have been meant.

use jupyter_client::counted;
use live_document::{Edit, SourceChange};
use similar::get_close_matches;

use super::{ToolError, text::cell::cut};

/// Number of places that are named, and characters of their lines.
const MAX_PLACES: usize = 8;
const MAX_LINE: usize = 200;
/// Number of lines that are named because they are similar, and how much they have to be so.
const MAX_SIMILAR: usize = 3;
const SIMILAR: f32 = 0.6;
/// Number of lines that are compared.
const MAX_COMPARED: usize = 5000;

/// A text and what is to stand in its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replacement<'a> {
    pub(super) old: &'a str,
    pub(super) new: &'a str,
    pub(super) all: bool,
}

impl Replacement<'_> {
    /// Refuses what would change nothing.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        match self.old == self.new {
            true => Err(ToolError::argument("new_text", "it is the same as `old_text`")),
            false => Ok(()),
        }
    }

    /// The edit of a cell, or of a text document.
    pub(super) fn edit(&self, cell: Option<String>) -> Edit {
        Edit::ReplaceText {
            cell,
            old: self.old.to_owned(),
            new: self.new.to_owned(),
            all: self.all,
        }
    }

    /// Number of places at which it was done.
    pub(super) fn count(&self, changes: &[SourceChange]) -> usize {
        let before = changes.first().and_then(|change| change.before.as_deref());
        match before {
            Some(before) if self.all && !self.old.is_empty() => before.matches(self.old).count(),
            before => usize::from(before.is_some()),
        }
    }
}

/// The lines, from 1, at which a text begins each time it is found; those that overlap too.
pub(super) fn found(text: &str, old: &str) -> Vec<usize> {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let (mut lines, mut line, mut from) = (Vec::new(), 1, 0);
    while !old.is_empty()
        && let Some(at) = text[from..].find(old)
    {
        let start = from + at;
        line += text[from..start].matches('\n').count();
        lines.push(line);
        line += text[start..start + step].matches('\n').count();
        from = start + step;
    }
    lines
}

/// Sentences on why a text was not replaced in another one, which is `named` so.
pub(super) fn explained(named: &str, text: &str, replacement: &Replacement<'_>) -> String {
    let old = replacement.old;
    if old.is_empty() {
        return format!(
            "empty, which stands for an empty text, and {named} has {}; give the text to replace",
            counted(text.lines().count(), "line")
        );
    }
    let found = found(text, old);
    if found.len() > 1 {
        let mut why = format!("found {} times in {named}", found.len());
        why.extend(found.iter().take(MAX_PLACES).map(|line| shown(text, *line)));
        if found.len() > MAX_PLACES {
            why = format!("{why}\n[{} more]", found.len() - MAX_PLACES);
        }
        return why + "\nGive more of the text around the one that is meant, or replace_all=true";
    }
    let (missing, lines) = (format!("not found in {named}"), white_space(text, old));
    if !lines.is_empty() {
        let ends = match text.contains("\r\n") && !old.contains("\r\n") && old.contains('\n') {
            true => " (lines end with \\r\\n there)",
            false => "",
        };
        let places: String = lines.iter().take(MAX_PLACES).map(|line| shown(text, *line)).collect();
        return format!("{missing}; it is there with other white space{ends}{places}");
    }
    let similar = similar(text, old);
    match (text.is_empty(), similar.is_empty()) {
        (true, _) => format!("{missing}, which is empty"),
        (_, true) => format!(
            "{missing}, and nothing like it ({})",
            counted(text.lines().count(), "line")
        ),
        (_, false) => {
            let places: String = similar.iter().map(|line| shown(text, *line)).collect();
            format!("{missing}; most like it{places}")
        }
    }
}

fn shown(text: &str, line: usize) -> String {
    let content = text.split('\n').nth(line - 1).unwrap_or_default();
    let content = cut(content.trim_end_matches('\r'), MAX_LINE);
    format!("\nline {line}: {content}")
}

/// The lines at which a text begins if white space is ignored.
fn white_space(text: &str, old: &str) -> Vec<usize> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = old.lines().map(words).skip_while(String::is_empty).collect();
    let lines: Vec<String> = text.lines().take(MAX_COMPARED).map(words).collect();
    let (Some(first), length) = (wanted.first(), wanted.len()) else {
        return Vec::new();
    };
    let places = lines.windows(length).enumerate().filter(|(_, window)| match length {
        1 => window[0].contains(first.as_str()),
        _ => {
            window[0].ends_with(first.as_str())
                && window[1..length - 1] == wanted[1..length - 1]
                && window[length - 1].starts_with(wanted[length - 1].as_str())
        }
    });
    places.map(|(place, _)| place + 1).collect()
}

/// The lines that are most like the first one of a text.
fn similar(text: &str, old: &str) -> Vec<usize> {
    let cut = |line: &str| cut(line.trim(), MAX_LINE);
    let Some(wanted) = old.lines().map(cut).find(|line| !line.is_empty()) else {
        return Vec::new();
    };
    let lines: Vec<String> = text.lines().take(MAX_COMPARED).map(cut).collect();
    let mut candidates: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|line| !line.is_empty())
        .collect();
    candidates.sort_unstable();
    candidates.dedup();
    let close = get_close_matches(wanted.as_str(), &candidates, MAX_SIMILAR, SIMILAR);
    let places = close
        .iter()
        .filter_map(|close| lines.iter().position(|line| line == *close));
    places.map(|place| place + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str, old: &str) -> String {
        let replacement = Replacement {
            old,
            new: "new",
            all: false,
        };
        explained("[0] abcdef", text, &replacement)
    }

    #[test]
    fn several_places_are_named_with_their_lines() {
        assert_eq!(
            why("x = 1\ny = 2\nx = 1  # again\n", "x = 1"),
            "found 2 times in [0] abcdef\nline 1: x = 1\nline 3: x = 1  # again\n\
             Give more of the text around the one that is meant, or replace_all=true"
        );
        assert_eq!(found("aaa\n\naa", "aa"), [1, 1, 3]);
        assert_eq!(found("🎉\n\n\n🎉", "\n\n"), [1, 2]);
        assert!(why(&"x\n".repeat(100), "x").contains("[92 more]"));
    }

    #[test]
    fn what_is_not_there_is_told_with_what_may_be_meant() {
        for (text, old, told) in [
            (
                "if x:\n\treturn  1",
                "    return 1",
                "other white space\nline 2: \treturn  1",
            ),
            ("a = 1\r\nb = 2\r\n", "a = 1\nb = 2", "\\r\\n there)\nline 1: a = 1"),
            (
                "total = sum(values)\nprint(total)",
                "total = sum(value)",
                "most like it\nline 1: total = sum(values)",
            ),
            ("x = 1", "something else entirely", "nothing like it (1 line)"),
            ("", "x", "not found in [0] abcdef, which is empty"),
            ("x", "", "give the text to replace"),
            ("caf\u{e9}()", "cafe\u{301}()", "line 1: caf\u{e9}()"),
        ] {
            let why = why(text, old);
            assert!(why.contains(told), "{old:?}: {why}");
        }
    }
}
