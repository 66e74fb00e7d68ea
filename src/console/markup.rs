//! Small pieces of pages that several of them have.

use std::time::SystemTime;

use maud::{Markup, html};

use super::desk::Desk;

/// Bytes of a diff or an output that are looked at; tools cut most earlier.
const MAX_SHOWN: usize = 200_000;

/// A form that does one thing.
pub(super) struct Button<'a> {
    /// Name of what is done.
    pub(super) action: &'a str,
    pub(super) label: &'a str,
    /// Object of the action, for people who cannot see where the button is.
    pub(super) about: &'a str,
    pub(super) fields: &'a [(&'a str, &'a str)],
    /// Question to whoever presses it, where that cannot be taken back.
    pub(super) confirm: Option<&'a str>,
    pub(super) class: &'a str,
}

impl Button<'_> {
    pub(super) fn markup(&self, desk: &Desk) -> Markup {
        html! {
            form.inline method="post" action={ (desk.root) "console/" (self.action) } data-confirm=[self.confirm] {
                (csrf(desk))
                @for (name, value) in self.fields {
                    input type="hidden" name=(name) value=(value);
                }
                button.(self.class) type="submit" data-key={ (self.action) ":" (self.fields.first().map_or("", |field| field.1)) } {
                    (self.label)
                    @if !self.about.is_empty() { span.hidden { " " (self.about) } }
                }
            }
        }
    }
}

/// The field that shows that a form is from a page of the session.
pub(super) fn csrf(desk: &Desk) -> Markup {
    html! { input type="hidden" name="csrf" value=(desk.visitor.session.csrf); }
}

/// A time, which the script shows as one's own clock has it.
pub(super) fn time(timestamp: &str) -> Markup {
    let shown = timestamp.get(..16).unwrap_or(timestamp).replace('T', " ");
    html! { time datetime=(timestamp) { (shown) " UTC" } }
}

/// The same of a moment.
pub(super) fn moment(time: SystemTime) -> Markup {
    self::time(&humantime::format_rfc3339_seconds(time).to_string())
}

/// A state in a word, with a sign that is told apart by its shape as well as by its colour.
pub(super) fn state(word: &str, tone: Tone) -> Markup {
    html! { span.state.(tone.class()) { (word) } }
}

/// Meaning of a state to the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Good,
    Busy,
    Waiting,
    Bad,
    Quiet,
}

impl Tone {
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Busy => "busy",
            Self::Waiting => "waiting",
            Self::Bad => "bad",
            Self::Quiet => "quiet",
        }
    }

    /// The tone of an execution's status.
    pub(super) fn of_execution(status: &str) -> Self {
        match status {
            "running" => Self::Busy,
            "queued" | "input_required" => Self::Waiting,
            "completed" => Self::Good,
            "failed" | "lost" => Self::Bad,
            _ => Self::Quiet,
        }
    }
}

/// The words for an execution's status.
pub(super) fn status_words(status: &str) -> String {
    status.replace('_', " ")
}

/// A unified diff, line by line. What is added and removed is said by its sign too, and read aloud.
pub(super) fn diff(unified: &str) -> Markup {
    let end = unified.floor_char_boundary(MAX_SHOWN);
    let place = |line| html! { @if let Some(line) = new_line(line).filter(|line| *line > 1) { span.place { "line " (line) "\n" } } };
    html! {
        div.diff role="group" aria-label="Changed lines" tabindex="0" {
            @for line in unified[..end].lines() {
                @match line.as_bytes().first() {
                    Some(b'+') => { ins { (line) "\n" } }
                    Some(b'-') => { del { (line) "\n" } }
                    Some(b'@') => { (place(line)) }
                    _ => { span { (line) "\n" } }
                }
            }
        }
    }
}

/// The line at which a part of a diff begins in the newer text, by its head: `@@ -3,4 +3,5 @@`.
fn new_line(head: &str) -> Option<usize> {
    let (_, new) = head.split_once(" +")?;
    let end = new.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(new.len());
    new[..end].parse().ok()
}

/// Text as a program put it out.
pub(super) fn output(text: &str, label: &str) -> Markup {
    html! { pre.output tabindex="0" aria-label=(label) data-tail { (text) } }
}

/// The folder of a path and its name.
pub(super) fn split(path: &str) -> (&str, &str) {
    match path.rfind('/') {
        Some(end) => path.split_at(end + 1),
        None => ("", path),
    }
}

/// A path with its name told apart.
pub(super) fn path(path: &str) -> Markup {
    let (folder, name) = split(path);
    html! { span.path { span.folder { (folder) } span.file { (name) } } }
}

/// A message in the place of what is not there.
pub(super) fn nothing(message: &str) -> Markup {
    html! { p.nothing { (message) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_says_where_its_parts_are() {
        let unified = "@@ -1,2 +1 @@\n-a\n b\n@@ -8 +7,2 @@\n+<c>\n";
        let shown = diff(unified).into_string();
        assert!(!shown.contains("@@") && !shown.contains("line 1"), "{shown}");
        for part in ["<del>-a\n</del>", "line 7", "<ins>+&lt;c&gt;\n</ins>"] {
            assert!(shown.contains(part), "no {part}: {shown}");
        }
    }
}
