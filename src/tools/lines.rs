//! Lines of texts, as editors count them: `\n`, `\r\n` and `\r` end one, no other character does. The end of the last line may
//! be missing, and behind the end of a text there is no further line.

use std::ops::Range;

/// A line of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'t> {
    /// Without its end.
    pub(super) text: &'t str,
    /// Position of the first byte after its end.
    pub(super) next: usize,
}

/// The lines of a text, in order.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let end = match &rest.as_bytes()[length..] {
            [b'\r', b'\n', ..] => 2,
            [] => 0,
            _ => 1,
        };
        start += length + end;
        Some(Line {
            text: &rest[..length],
            next: start,
        })
    })
}

pub(super) fn count_lines(text: &str) -> usize {
    lines(text).count()
}

/// The bytes of some lines, by number from 0, with their ends. Lines that are not there have none.
pub(super) fn span(text: &str, wanted: Range<usize>) -> Range<usize> {
    let mut ends = std::iter::once(0).chain(lines(text).map(|line| line.next));
    let start = ends.by_ref().nth(wanted.start).unwrap_or(text.len());
    let end = match wanted.len() {
        0 => start,
        count => ends.nth(count - 1).unwrap_or(text.len()),
    };
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        lines(text).map(|line| line.text).collect()
    }

    #[test]
    fn only_line_feeds_and_carriage_returns_end_a_line() {
        assert_eq!(all(""), [""; 0]);
        assert_eq!(all("\n"), [""]);
        assert_eq!(all("a"), ["a"]);
        assert_eq!(all("a\n"), ["a"]);
        assert_eq!(all("a\r\nb\rc\nd"), ["a", "b", "c", "d"]);
        assert_eq!(all("\r\r\n\n"), ["", "", ""]);
        assert_eq!(all("é\u{2028}x\u{85}y\u{0b}z\n漢"), ["é\u{2028}x\u{85}y\u{0b}z", "漢"]);
    }

    #[test]
    fn spans_have_the_ends_of_their_lines() {
        let text = "a\r\nbé\nc";
        assert_eq!(&text[span(text, 0..1)], "a\r\n");
        assert_eq!(&text[span(text, 1..3)], "bé\nc");
        assert_eq!(&text[span(text, 2..9)], "c");
        assert_eq!((span(text, 1..1), span(text, 5..6)), (3..3, 8..8));
    }
}
