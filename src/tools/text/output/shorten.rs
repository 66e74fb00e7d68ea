//! Long text within a number of bytes: its beginning and its end, and between them how much is left out.

use jupyter_client::counted;

/// Less than this of a text says nothing.
const MIN_KEPT: usize = 24;

/// Text of at most `max` bytes, of which `head` in a hundred are its beginning. Where that has no room for some of the text, only a line that
/// says how much there is. `unit` is what a line is: a line, or a row.
pub(super) fn shortened(text: &str, max: usize, head: usize, unit: &str) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let whole = gap(text, unit);
    // No gap is longer than that of the whole text, but that one has no line breaks around.
    let kept = max.saturating_sub(whole.len().max(gap_of_bytes(text.len()).len()) + 2);
    if kept < MIN_KEPT {
        return whole;
    }
    let first = kept / 100 * head + kept % 100 * head / 100;
    let head_end = line_end_before(text, first);
    let tail_start = line_start_after(text, text.len() - (kept - first));
    let (head, between, tail) = (&text[..head_end], &text[head_end..tail_start], &text[tail_start..]);
    let is_whole = (head.is_empty() || head.ends_with('\n')) && (tail.is_empty() || text[..tail_start].ends_with('\n'));
    let gap = if is_whole {
        gap(between, unit)
    } else {
        gap_of_bytes(between.len())
    };
    let before = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let after = if tail.is_empty() { "" } else { "\n" };
    format!("{head}{before}{gap}{after}{tail}")
}

/// End of the last line that ends before a position, where that costs little.
fn line_end_before(text: &str, position: usize) -> usize {
    let position = text.floor_char_boundary(position);
    let line_end = text[..position].rfind('\n').map(|at| at + 1);
    line_end.filter(|at| *at >= position / 2).unwrap_or(position)
}

/// Start of the first line that starts after a position, where that costs little.
fn line_start_after(text: &str, position: usize) -> usize {
    let position = text.ceil_char_boundary(position);
    if text[..position].ends_with('\n') {
        return position;
    }
    let line_start = text[position..].find('\n').map(|at| position + at + 1);
    let is_near = |at: &usize| at - position <= (text.len() - position) / 2;
    line_start.filter(is_near).unwrap_or(position)
}

fn gap(text: &str, unit: &str) -> String {
    match text.lines().count() {
        0 | 1 => gap_of_bytes(text.len()),
        lines => format!("[{}, {} left out]", counted(lines, unit), counted(text.len(), "byte")),
    }
}

fn gap_of_bytes(bytes: usize) -> String {
    format!("[{} left out]", counted(bytes, "byte"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_are_whole_around_what_is_left_out() {
        let lines: String = (0..1000).map(|number| format!("epoch {number}\n")).collect();
        let short = shortened(&lines, 200, 33, "line");
        assert!(
            short.len() <= 200 && short.starts_with("epoch 0\nepoch 1\n") && short.ends_with("epoch 999\n"),
            "{short}"
        );
        assert!(short.contains("[983 lines, "), "{short}");
        assert!(
            short
                .lines()
                .all(|line| line.starts_with("epoch ") || line.ends_with(" left out]")),
            "{short}"
        );
        assert_eq!(shortened(&lines, 10, 33, "row"), "[1000 rows, 9890 bytes left out]");
        assert_eq!(shortened(&lines, usize::MAX, 33, "line"), lines);
    }

    #[test]
    fn long_lines_are_cut_inside() {
        let short = shortened(&"x".repeat(1000), 100, 33, "line");
        assert!(short.len() <= 100 && short.contains("\n[9"), "{short}");
        assert!(shortened(&"x".repeat(1000), 100, 100, "line").ends_with(" bytes left out]"));
    }

    proptest! {
        #[test]
        fn any_limit_is_kept(text in "(\\PC|\n){0,400}", max in 0..500_usize, head in 0..=100_usize) {
            let short = shortened(&text, max, head, "line");
            prop_assert!(short.len() <= max.max(64), "{} of {max}", short.len());
            prop_assert!(text.len() <= max || short.contains(" left out]"));
            prop_assert!(text.is_empty() || !short.is_empty());
        }
    }
}
