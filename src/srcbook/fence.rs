//! Fenced blocks and headings, as far as CommonMark's rules for them matter here.

/// Follows a text line by line and knows whether it is inside a fenced block.
#[derive(Debug, Default)]
pub(super) struct Fences {
    open: Option<(char, usize)>,
}

impl Fences {
    /// Takes in a line; returns whether it belongs to a block, its first and last line included.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let Some(open) = self.open else {
            self.open = opening(line).map(|(mark, count, _)| (mark, count));
            return self.open.is_some();
        };
        if is_closing(line, open) {
            self.open = None;
        }
        true
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The line that would close the block.
    pub(super) fn closing(&self) -> Option<String> {
        self.open.map(|(mark, count)| mark.to_string().repeat(count))
    }
}

/// The mark of a fence, how often it stands there, and what follows it.
fn opening(line: &str) -> Option<(char, usize, &str)> {
    let body = unindented(line)?;
    let mark = body.chars().next().filter(|mark| "`~".contains(*mark))?;
    let info = body.trim_start_matches(mark);
    let count = body.len() - info.len();
    (count >= 3 && !(mark == '`' && info.contains('`'))).then(|| (mark, count, info.trim()))
}

fn is_closing(line: &str, (mark, least): (char, usize)) -> bool {
    unindented(line).is_some_and(|body| {
        let rest = body.trim_start_matches(mark);
        body.len() - rest.len() >= least && rest.trim().is_empty()
    })
}

/// Deeper than three spaces it is code and nothing else.
fn unindented(line: &str) -> Option<&str> {
    let body = line.trim_start_matches(' ');
    (line.len() - body.len() <= 3).then_some(body)
}

/// A whole block: what stands after the fence, its text, and the line after it.
pub(super) fn block<'a>(lines: &[&'a str], start: usize) -> Option<(&'a str, String, usize)> {
    let first = (start..lines.len()).find(|line| !lines[*line].trim().is_empty())?;
    let (mark, count, info) = opening(lines[first])?;
    let body = &lines[first + 1..];
    let length = body.iter().position(|line| is_closing(line, (mark, count)))?;
    Some((info, body[..length].join("\n"), first + length + 2))
}

/// A text in a block whose fence is longer than any run of backticks in it.
pub(super) fn fenced(info: &str, text: &str) -> String {
    let longest = text.split(|character| character != '`').map(str::len).max();
    let fence = "`".repeat((longest.unwrap_or_default() + 1).max(3));
    format!("{fence}{info}\n{text}\n{fence}")
}

/// The level of a heading and its text, if the line is one.
pub(super) fn heading(line: &str) -> Option<(usize, &str)> {
    let body = unindented(line)?;
    let rest = body.trim_start_matches('#');
    let level = body.len() - rest.len();
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t', '\r']));
    is_heading.then(|| (level, rest.trim()))
}

/// Returns whether the line makes the one before it a heading of the first level.
pub(super) fn underlines(line: &str) -> bool {
    unindented(line).is_some_and(|body| {
        let body = body.trim_end();
        !body.is_empty() && body.chars().all(|character| character == '=')
    })
}
