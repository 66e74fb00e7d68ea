//! From markdown to cells: what this crate wrote, and what people and Srcbook write.

use serde_json::Value;

use super::{
    BookCell, BookCellKind,
    cell::{Book, Header, Marker},
    fence::{self, Fences, heading},
    render::disguised,
};

/// Any text is a notebook; what has no meaning to Srcbook is markdown.
pub fn parse(text: &str) -> Book {
    let lines: Vec<&str> = text.split('\n').collect();
    let title = lines
        .iter()
        .find_map(|line| heading(line).filter(|(level, _)| *level == 1));
    let mut parser = Parser {
        lines: &lines,
        fences: Fences::default(),
        text: Text::Unmarked,
        start: 0,
        headed: false,
        book: Book {
            title: title.map(|(_, text)| text.to_owned()).unwrap_or_default(),
            language: String::new(),
            cells: Vec::new(),
        },
    };
    let mut at = 0;
    while at < lines.len() {
        at = parser.line(at);
    }
    parser.end_text(lines.len());
    parser.book
}

struct Parser<'a> {
    lines: &'a [&'a str],
    fences: Fences,
    /// State of the markdown being read, and where it starts.
    text: Text,
    start: usize,
    headed: bool,
    book: Book,
}

enum Text {
    /// Between cells, or by somebody who marks no cells.
    Unmarked,
    Cell(Marker),
    /// A title that no cell has.
    Title,
}

impl Parser<'_> {
    /// Takes in a line, or a whole block that starts there, and says where to go on.
    fn line(&mut self, at: usize) -> usize {
        let line = self.lines[at];
        if let Some(header) = comment::<Header>(line, "srcbook").filter(|_| !self.headed) {
            self.end_text(at);
            self.headed = true;
            self.book.language = header.language;
            let text = match header.cell {
                Some(marker) => Text::Cell(marker),
                None if header.untitled => Text::Title,
                None => Text::Unmarked,
            };
            return self.begin_text(text, at + 1);
        }
        if let Some(marker) = comment::<Marker>(line, "cell") {
            self.end_text(at);
            if marker.kind == BookCellKind::Raw
                && let Some((_, source, end)) = fence::block(self.lines, at + 1)
            {
                self.push(marker, BookCellKind::Raw, source);
                return self.begin_text(Text::Unmarked, end);
            }
            return self.begin_text(Text::Cell(marker), at + 1);
        }
        if let Some((marker, source, end)) = self.code(at).filter(|_| !self.fences.is_open()) {
            self.end_text(at);
            self.push(marker, BookCellKind::Code, source);
            return self.begin_text(Text::Unmarked, end);
        }
        self.fences.line(line);
        at + 1
    }

    fn begin_text(&mut self, text: Text, start: usize) -> usize {
        (self.text, self.start) = (text, start);
        self.fences = Fences::default();
        start
    }

    fn end_text(&mut self, end: usize) {
        let body = &self.lines[self.start.min(end)..end];
        match std::mem::replace(&mut self.text, Text::Unmarked) {
            Text::Title => {}
            Text::Unmarked => {
                let source = body.join("\n").trim().to_owned();
                if !source.is_empty() {
                    self.push(Marker::default(), BookCellKind::Markdown, source);
                }
            }
            Text::Cell(mut marker) => {
                let mut lines: Vec<String> = match body {
                    // As it was written; anything else was edited by hand, and says nothing by its blank lines.
                    ["", inner @ .., ""] if !inner.is_empty() => inner.iter().map(|&line| line.to_owned()).collect(),
                    _ => body.join("\n").trim().lines().map(str::to_owned).collect(),
                };
                restore(&mut lines, &mut marker);
                let kind = marker.kind;
                self.push(marker, kind, lines.join("\n"));
            }
        }
    }

    /// A code cell: a heading of the sixth level and the block below it.
    fn code(&self, at: usize) -> Option<(Marker, String, usize)> {
        let (_, name) = heading(self.lines[at]).filter(|(level, _)| *level == 6)?;
        let (info, source, end) = fence::block(self.lines, at + 1)?;
        let said = info
            .find('{')
            .and_then(|start| serde_json::from_str(&info[start..]).ok());
        let marker = said.unwrap_or_else(|| Marker {
            metadata: [("filename".to_owned(), Value::from(name))].into_iter().collect(),
            ..Marker::default()
        });
        Some((marker, source, end))
    }

    fn push(&mut self, marker: Marker, kind: BookCellKind, source: String) {
        self.book.cells.push(BookCell {
            id: marker.id,
            kind,
            source,
            metadata: marker.metadata,
        });
    }
}

/// Undoes what was done to a cell's lines when it was written, except to lines that somebody edited since.
fn restore(lines: &mut Vec<String>, marker: &mut Marker) {
    if marker.closed {
        lines.pop();
    }
    for (number, original) in std::mem::take(&mut marker.was) {
        let line = number.parse::<usize>().ok().and_then(|number| lines.get_mut(number));
        if let (Some(line), Value::String(original)) = (line, original)
            && disguised(&original, false).as_deref() == Some(line)
        {
            *line = original;
        }
    }
}

/// The content of a comment of this name, if the line is one.
fn comment<T: serde::de::DeserializeOwned>(line: &str, name: &str) -> Option<T> {
    let json = line.strip_prefix("<!-- ")?.strip_prefix(name)?.strip_prefix(':')?;
    serde_json::from_str(json.trim_end().strip_suffix("-->")?).ok()
}
