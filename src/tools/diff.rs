//! Differences of two texts, as unified diffs.

use std::time::Duration;

use similar::TextDiff;

/// Time limit for a fine diff, which could take forever on two long texts; a coarser one is good enough.
const TIMEOUT: Duration = Duration::from_millis(200);

/// The lines that differ, with some around them; empty if none do.
pub(super) fn unified(before: &str, after: &str, context: usize) -> String {
    let (mut before, mut after) = (before.to_owned(), after.to_owned());
    // The last line of a cell has no line break, which is no difference unless it is the only one.
    if before.trim_end_matches('\n') != after.trim_end_matches('\n') {
        for text in [&mut before, &mut after] {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
        }
    }
    let compared = TextDiff::configure().timeout(TIMEOUT).diff_lines(&before, &after);
    let mut unified = compared.unified_diff();
    unified.context_radius(context).to_string().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_the_lines_that_differ() {
        assert_eq!(
            unified("a\nb\nc", "a\nB\nc\nd", 3),
            "@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d"
        );
        assert_eq!(unified("a\nb\nc", "a\nB\nc", 0), "@@ -2 +2 @@\n-b\n+B");
        assert_eq!(unified("", "a", 3), "@@ -0,0 +1 @@\n+a");
        assert_eq!(unified("a", "a", 3), "");
        assert_eq!(
            unified("a", "a\n", 3),
            "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a"
        );
    }
}
