//! Text as a terminal shows it: a carriage return goes back to the start of the line, a backspace one
//! character, and what follows overwrites what is there. Progress bars rely on it.

/// Effect of a write on the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// Up to here, in bytes, the text is as it was.
    pub(crate) unchanged: usize,
    /// Text that stood after that.
    pub(crate) removed: String,
}

/// A text that grows at its end, and the place where the next character goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Terminal {
    text: String,
    /// In bytes, on the last line.
    cursor: usize,
}

impl Terminal {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Writes at the cursor.
    pub(crate) fn write(&mut self, new: &str) -> Written {
        if self.cursor == self.text.len() && !new.contains(['\r', '\u{8}']) {
            let unchanged = self.text.len();
            self.text.push_str(new);
            self.cursor = self.text.len();
            return Written {
                unchanged,
                removed: String::new(),
            };
        }
        let line_start = self.text.rfind('\n').map_or(0, |at| at + 1);
        let mut before = self.text.split_off(line_start);
        let mut line = TextLine::new(&before, self.cursor - line_start);
        for character in new.chars() {
            match character {
                '\n' => {
                    self.text.extend(line.characters.drain(..));
                    self.text.push('\n');
                    line.cursor = 0;
                }
                other => line.write(other),
            }
        }
        let current = self.text.len();
        self.text.extend(line.characters.iter());
        self.cursor = current
            + line.characters[..line.cursor]
                .iter()
                .map(|character| character.len_utf8())
                .sum::<usize>();
        let same = common_prefix(&before, &self.text[line_start..]);
        Written {
            unchanged: line_start + same,
            removed: before.split_off(same),
        }
    }
}

struct TextLine {
    characters: Vec<char>,
    cursor: usize,
}

impl TextLine {
    fn new(text: &str, cursor_byte: usize) -> Self {
        Self {
            characters: text.chars().collect(),
            cursor: text[..cursor_byte].chars().count(),
        }
    }

    fn write(&mut self, character: char) {
        match character {
            '\r' => self.cursor = 0,
            '\u{8}' => self.cursor = self.cursor.saturating_sub(1),
            other => {
                match self.characters.get_mut(self.cursor) {
                    Some(place) => *place = other,
                    None => self.characters.push(other),
                }
                self.cursor += 1;
            }
        }
    }
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.chars()
        .zip(b.chars())
        .take_while(|(a, b)| a == b)
        .map(|(character, _)| character.len_utf8())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(parts: &[&str]) -> String {
        let mut terminal = Terminal::default();
        for part in parts {
            let old = terminal.text().to_owned();
            let Written { unchanged, removed } = terminal.write(part);
            assert_eq!(
                old[..unchanged],
                terminal.text()[..unchanged],
                "it says truly what stayed"
            );
            assert_eq!(old[unchanged..], removed, "and what did not");
        }
        terminal.text().to_owned()
    }

    #[test]
    fn text_is_added() {
        assert_eq!(written(&["a\nb", "c\n"]), "a\nbc\n");
    }

    #[test]
    fn a_carriage_return_overwrites_the_line() {
        assert_eq!(written(&["log\n 10%\r 50%", "\r100%\n", "done"]), "log\n100%\ndone");
        assert_eq!(written(&["abc\rx"]), "xbc");
        assert_eq!(written(&["a\r\nb"]), "a\nb", "as Windows ends its lines");
        assert_eq!(
            written(&["abc\r"]),
            "abc",
            "nothing is gone before something is written"
        );
        assert_eq!(written(&["abc\r", "😀"]), "😀bc");
    }

    #[test]
    fn a_newline_after_a_return_keeps_the_line() {
        assert_eq!(written(&["abc\r", "\nd"]), "abc\nd");
    }

    #[test]
    fn a_backspace_stays_on_its_line() {
        assert_eq!(written(&["ab\u{8}c"]), "ac");
        assert_eq!(written(&["a\n\u{8}\u{8}b"]), "a\nb");
    }
}
