//! Cutting text to a length, and to what can be read. Lengths count Unicode code points, as every position in the contract does.

/// Appended where text was cut, so that a reader of the text alone can see it.
const MARK: &str = "\n\n...[CONTENT TRUNCATED]";

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

/// Removes terminal colours and cursor movements.
pub fn without_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        if characters.next() == Some('[') {
            for code in characters.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&code) {
                    break;
                }
            }
        }
    }
    plain
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
}
