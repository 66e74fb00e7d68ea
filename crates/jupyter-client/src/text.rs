//! Cutting text to a length. Lengths count Unicode code points, as every position in the contract does.

/// Appended where text was cut, so that a reader of the text alone can see it.
const MARK: &str = "\n\n...[CONTENT TRUNCATED]";

/// Less than this of a text says nothing.
const MIN_KEPT: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncated {
    pub text: String,
    pub truncated: bool,
    /// The length before cutting, in code points.
    pub full_length: usize,
}

/// Cuts `text` to at most `max` code points, the mark included. Where the mark would not fit, the
/// text is only cut, and the flag says so.
pub fn truncate(text: impl Into<String>, max: usize) -> Truncated {
    let text = text.into();
    let full_length = text.chars().count();
    if full_length <= max {
        return Truncated {
            text,
            truncated: false,
            full_length,
        };
    }
    let (keep, mark) = match max.checked_sub(MARK.len()) {
        Some(keep) => (keep, MARK),
        None => (max, ""),
    };
    let mut cut: String = text.chars().take(keep).collect();
    cut.push_str(mark);
    Truncated {
        text: cut,
        truncated: true,
        full_length,
    }
}

/// Cuts the middle out of a text of more than `max` code points. A line in its place says how much is missing, and `hint` how to
/// get it, if there is room for that. Never returns an empty text for one that is not.
pub fn cut_middle(text: impl Into<String>, max: usize, hint: &str) -> Truncated {
    let text = text.into();
    let full_length = text.chars().count();
    if full_length <= max {
        return Truncated {
            text,
            truncated: false,
            full_length,
        };
    }
    let hinted = gap(full_length, hint);
    let hint = if hinted.len() <= max / 4 { hint } else { "" };
    // No gap is longer than that of the whole text.
    let kept = max.saturating_sub(gap(full_length, hint).chars().count() + 2);
    let text = match kept < MIN_KEPT {
        true => gap(full_length, ""),
        false => with_gap(&text, kept, full_length, hint),
    };
    Truncated {
        text,
        truncated: true,
        full_length,
    }
}

/// The beginning and the end of a text, the end being the longer one: it has what is newest. They end and begin with a line
/// where that costs little.
fn with_gap(text: &str, kept: usize, full_length: usize, hint: &str) -> String {
    let (first, last) = (kept / 3, kept - kept / 3);
    let position = |characters: usize| text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    let (head_end, tail_start) = (position(first), position(full_length - last));
    let line_end = text[..head_end].rfind('\n').map(|at| at + 1);
    let head_end = line_end.filter(|at| *at >= head_end / 2).unwrap_or(head_end);
    let line_start = text[tail_start..].find('\n').map(|at| tail_start + at + 1);
    let is_near = |at: &usize| at - tail_start <= (text.len() - tail_start) / 2;
    let tail_start = line_start.filter(is_near).unwrap_or(tail_start);
    let (head, tail) = (&text[..head_end], &text[tail_start..]);
    let gap = gap(text[head_end..tail_start].chars().count(), hint);
    let line_break = if head.is_empty() || head.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{head}{line_break}{gap}\n{tail}")
}

fn gap(characters: usize, hint: &str) -> String {
    let characters = counted(characters, "character");
    match hint {
        "" => format!("[{characters} left out]"),
        hint => format!("[{characters} left out; {hint}]"),
    }
}

/// A number of things: "1 cell", "2 cells".
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_text_is_left_alone() {
        assert_eq!(
            truncate("añ🎉", 3),
            Truncated {
                text: "añ🎉".into(),
                truncated: false,
                full_length: 3
            }
        );
    }

    #[test]
    fn long_text_is_cut_between_code_points_and_marked() {
        let text = "🎉".repeat(100);
        let cut = truncate(&text, 50);
        assert_eq!(cut.text.chars().count(), 50);
        assert!(cut.truncated && cut.text.ends_with(MARK) && cut.full_length == 100);
        assert_eq!(truncate(&text, 2).text, "🎉🎉");
    }

    #[test]
    fn the_middle_of_a_long_text_is_cut_out_and_counted() {
        let long = "🎉".repeat(3000) + "\n";
        for max in [50, 100, 2000, 3000] {
            let cut = cut_middle(&long, max, "ask for more");
            assert!((max - 3..=max).contains(&cut.text.chars().count()), "{}", cut.text);
            assert!(cut.truncated && cut.full_length == 3001 && cut.text.ends_with("🎉\n"));
            let kept = cut.text.matches('🎉').count();
            let gap = format!("{} characters left out", 3000 - kept);
            assert!(cut.text.starts_with('🎉') && cut.text.contains(&gap), "{}", cut.text);
            assert_eq!(cut.text.contains("ask for more"), max >= 200);
        }
        assert_eq!(cut_middle(&long, 3001, "").text, long);
        for max in [0, 1, 30] {
            assert_eq!(cut_middle(&long, max, "").text, "[3001 characters left out]");
        }
    }

    #[test]
    fn lines_are_whole_around_what_is_cut_out() {
        let lines: String = (0..1000).map(|n| format!("epoch {n}\n")).collect();
        let cut = cut_middle(&lines, 500, "");
        assert!(cut.text.chars().count() <= 500, "{}", cut.text);
        let mut shown = cut.text.lines();
        assert!(shown.all(|line| line.starts_with("epoch ") || line.ends_with(" left out]")));
        assert!(cut.text.starts_with("epoch 0\n") && cut.text.ends_with("epoch 998\nepoch 999\n"));
    }
}
