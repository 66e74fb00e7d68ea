//! Text that was written for a terminal: escape sequences, carriage returns and backspaces.

use std::{borrow::Cow, collections::VecDeque, iter::Peekable, str::Chars};

/// Rows above the last one that the cursor can return to, as on a small screen. Progress bars return over a few.
const SCREEN_ROWS: usize = 50;

/// Removes what steers a terminal: colours, cursor movements, titles and links.
pub fn without_ansi(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if !is_escape(character) {
            plain.push(character);
            continue;
        }
        skip_escape(character, &mut characters);
    }
    plain
}

/// Text as a terminal shows it at the end: carriage returns, backspaces and movements of the cursor carried out, other control
/// characters dropped. A progress bar leaves its last state.
pub fn as_shown(text: &str) -> Cow<'_, str> {
    if !text.as_bytes().windows(2).any(starts_control) && !text.ends_with(is_control) {
        return Cow::Borrowed(text);
    }
    let mut screen = Screen::default();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\n' => screen.line_feed(),
            '\r' => screen.column = 0,
            '\u{8}' => screen.column = screen.column.saturating_sub(1),
            escape if is_escape(escape) => {
                if let Some(sequence) = skip_escape(escape, &mut characters) {
                    screen.on_sequence(sequence);
                }
            }
            control if is_control(control) => {}
            character => screen.write(character),
        }
    }
    Cow::Owned(screen.into_text())
}

/// Returns whether a control character other than a line feed or a tab starts at the first of two bytes of UTF-8.
fn starts_control(bytes: &[u8]) -> bool {
    match bytes[0] {
        b'\n' | b'\t' => false,
        0xc2 => bytes[1] < 0xa0,
        byte => byte < 0x20 || byte == 0x7f,
    }
}

fn is_control(character: char) -> bool {
    character.is_control() && !matches!(character, '\n' | '\t')
}

/// Escape character, and what stands for it and the character after it in eight bits.
fn is_escape(character: char) -> bool {
    matches!(
        character,
        '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}' | '\u{9d}'..='\u{9f}'
    )
}

/// Control sequence ("CSI"): its first parameter and its command.
struct Sequence {
    parameter: Option<usize>,
    command: char,
}

/// Reads what follows an escape character to its end.
fn skip_escape(escape: char, characters: &mut Peekable<Chars<'_>>) -> Option<Sequence> {
    let kind = match escape {
        '\u{1b}' => characters.next_if(|kind| !is_control(*kind) && *kind != '\n')?,
        '\u{9b}' => '[',
        _ => ']',
    };
    match kind {
        '[' => return control_sequence(characters),
        ']' | 'P' | 'X' | '^' | '_' => skip_string(characters),
        // Choice of a character set: "ESC ( B".
        ' '..='/' => {
            while characters.next_if(|code| (' '..='/').contains(code)).is_some() {}
            characters.next_if(|code| ('0'..='~').contains(code));
        }
        _ => {}
    }
    None
}

/// Parameters, up to the letter that says what is done with them.
fn control_sequence(characters: &mut Peekable<Chars<'_>>) -> Option<Sequence> {
    let mut parameter: Option<usize> = None;
    let mut is_first = true;
    while let Some(code) = characters.next_if(|code| (' '..='?').contains(code)) {
        match code.to_digit(10) {
            Some(digit) if is_first => {
                let before = parameter.unwrap_or_default().saturating_mul(10);
                parameter = Some(before.saturating_add(digit as usize));
            }
            _ => is_first = false,
        }
    }
    let command = characters.next_if(|code| ('@'..='~').contains(code))?;
    Some(Sequence { parameter, command })
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

/// The last rows of a text that is being written, and the cursor in them.
#[derive(Default)]
struct Screen {
    /// Rows that the cursor cannot return to.
    scrolled: String,
    rows: VecDeque<Vec<char>>,
    row: usize,
    column: usize,
}

impl Screen {
    fn line_feed(&mut self) {
        // A row exists as soon as something is written or the cursor leaves it.
        self.current_row();
        self.row += 1;
        self.column = 0;
        if self.row > SCREEN_ROWS {
            if let Some(row) = self.rows.pop_front() {
                self.scrolled.extend(row);
                self.scrolled.push('\n');
            }
            self.row -= 1;
        }
        self.current_row();
    }

    fn write(&mut self, character: char) {
        let column = self.column;
        let row = self.current_row();
        if let Some(place) = row.get_mut(column) {
            *place = character;
            self.column = column + 1;
            return;
        }
        // The cursor may stand right of what is written; one space says so and costs no memory.
        if column > row.len() {
            row.push(' ');
        }
        row.push(character);
        self.column = row.len();
    }

    fn on_sequence(&mut self, sequence: Sequence) {
        let count = sequence.parameter.unwrap_or(1).max(1);
        match (sequence.command, sequence.parameter) {
            ('A', _) => self.row = self.row.saturating_sub(count),
            ('B', _) => self.row = self.row.saturating_add(count).min(self.rows.len().saturating_sub(1)),
            ('C', _) => self.column = self.column.saturating_add(count),
            ('D', _) => self.column = self.column.saturating_sub(count),
            ('G', _) => self.column = count - 1,
            ('K', None | Some(0)) => {
                let column = self.column;
                self.current_row().truncate(column);
            }
            ('K', Some(2)) => self.current_row().clear(),
            _ => {}
        }
    }

    fn current_row(&mut self) -> &mut Vec<char> {
        if self.row >= self.rows.len() {
            self.row = self.rows.len();
            self.rows.push_back(Vec::new());
        }
        &mut self.rows[self.row]
    }

    fn into_text(self) -> String {
        let mut text = self.scrolled;
        for (number, row) in self.rows.into_iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            text.extend(row);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_removed_whole() {
        for (text, plain) in [
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}]8;;http://x.test\u{1b}\\link\u{1b}]8;;\u{1b}\\.", "link."),
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{9b}31mred", "red"),
            ("\u{90}settings\u{9c}text", "text"),
            ("\u{1b}(B\u{1b}[mplain", "plain"),
            ("\u{1b}[?25lhidden\u{1b}[?25h", "hidden"),
            ("\u{1b}]0;without an end\nnext line", "\nnext line"),
            ("\u{1b}[\nnext line", "\nnext line"),
            ("at the end\u{1b}", "at the end"),
        ] {
            assert_eq!(without_ansi(text), plain);
        }
    }

    #[test]
    fn text_is_as_a_terminal_shows_it() {
        for (text, shown) in [
            ("plain\ttext\nwith °é\n", "plain\ttext\nwith °é\n"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("  0%|  |\r 50%|# |\r100%|##|\n", "100%|##|\n"),
            ("a long line\rshort", "shortg line"),
            ("a long line\r\u{1b}[Kshort", "short"),
            ("a long line\u{1b}[2K\rshort", "short"),
            ("typo\u{8}\u{8}ed", "tyed"),
            ("kept\u{8}\u{8}", "kept"),
            ("waiting\r", "waiting"),
            ("outer 1\ninner 9\u{1b}[A\router 2\n", "outer 2\ninner 9"),
            ("a\u{7}\u{0}b\u{c}\u{85}", "ab"),
            ("x\u{1b}[99999999999999999999999Cy", "x y"),
            ("\u{1b}[31mred\u{1b}[0m\n", "red\n"),
            ("end\u{1b}", "end"),
            ("\u{1b}[5B\u{1b}[5A\n", "\n"),
            ("", ""),
        ] {
            assert_eq!(as_shown(text), shown, "{text:?}");
        }
    }

    #[test]
    fn long_text_keeps_every_line() {
        let lines: String = (0..1000).map(|number| format!("{number}\r\n")).collect();
        assert_eq!(as_shown(&lines), lines.replace('\r', ""));
    }
}
