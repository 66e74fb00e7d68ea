//! Cutting text to a length, and to what can be read. Lengths count Unicode code points, as every position in the contract does.

use std::{iter::Peekable, str::Chars};

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

/// Removes what steers a terminal: colours, cursor movements, titles and links.
pub fn without_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let kind = match character {
            '\u{1b}' => characters.next(),
            // The same in one character.
            '\u{9b}' => Some('['),
            '\u{9d}' => Some(']'),
            _ => {
                plain.push(character);
                continue;
            }
        };
        match kind {
            Some('[') => skip_sequence(&mut characters),
            Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut characters),
            _ => {}
        }
    }
    plain
}

/// Parameters, up to the letter that says what is done with them.
fn skip_sequence(characters: &mut Peekable<Chars<'_>>) {
    for code in characters {
        if ('\u{40}'..='\u{7e}').contains(&code) {
            break;
        }
    }
}

/// A text for the terminal itself. One that has no end must not take the lines after it along.
fn skip_string(characters: &mut Peekable<Chars<'_>>) {
    while let Some(code) = characters.next_if(|code| *code != '\n') {
        match code {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                characters.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
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
    fn what_steers_a_terminal_is_removed_whole() {
        for (text, plain) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]8;;http://x.test\u{1b}\\link\u{1b}]8;;\u{1b}\\.", "link."),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]0;without an end\nnext line", "\nnext line"),
            ("at the end\u{1b}", "at the end"),
        ] {
            assert_eq!(without_ansi(text), plain);
        }
    }
}
