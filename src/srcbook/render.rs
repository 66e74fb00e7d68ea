//! From cells to markdown.

use serde::Serialize;

use super::{
    BookCell, BookCellKind,
    cell::{Book, Header, Marker},
    fence::{Fences, fenced, heading, underlines},
    names::{Nameable, file_names},
};

/// The whole file. It has one heading of the first level, and parses back into the same cells.
pub fn render(book: &Book) -> String {
    let mut header = Header {
        language: book.language.clone(),
        ..Header::default()
    };
    let mut blocks = Vec::with_capacity(book.cells.len() + 2);
    let names = file_names(&book.cells.iter().map(nameable).collect::<Vec<_>>(), &book.language);
    let mut cells = book.cells.iter().zip(&names);
    // A first cell that is titled needs no other title in front of it.
    if let Some(first) = book.cells.first().filter(|cell| is_titled(cell)) {
        let (text, marker) = markdown(first, true);
        header.cell = Some(marker);
        blocks.push(text);
        cells.next();
    } else {
        header.untitled = true;
        blocks.push(format!("# {}", one_line(&book.title)));
    }
    blocks.insert(0, format!("<!-- srcbook:{} -->", hidden(&header)));
    blocks.extend(cells.map(|(cell, name)| block(cell, name, &book.language)));
    blocks.join("\n\n") + "\n"
}

fn nameable(cell: &BookCell) -> Nameable<'_> {
    Nameable::new(cell.kind, cell.id.as_deref(), Some(&cell.metadata))
}

fn block(cell: &BookCell, name: &str, language: &str) -> String {
    match cell.kind {
        BookCellKind::Code => {
            let info = format!("{} {}", info_word(language), hidden(&marker(cell)));
            format!("###### {name}\n\n{}", fenced(info.trim_start(), &cell.source))
        }
        BookCellKind::Raw => {
            let text = fenced("raw", &cell.source);
            format!("<!-- cell:{} -->\n\n{text}", hidden(&marker(cell)))
        }
        BookCellKind::Markdown => {
            let (text, marker) = markdown(cell, false);
            format!("<!-- cell:{} -->\n\n{text}", hidden(&marker))
        }
    }
}

/// Code says what it is by its fence.
fn marker(cell: &BookCell) -> Marker {
    let kind = match cell.kind {
        BookCellKind::Code => BookCellKind::Markdown,
        other => other,
    };
    Marker {
        id: cell.id.clone(),
        kind,
        metadata: cell.metadata.clone(),
        ..Marker::default()
    }
}

/// The text of a markdown cell with nothing in it that Srcbook would take for something else.
fn markdown(cell: &BookCell, titled: bool) -> (String, Marker) {
    let mut marker = marker(cell);
    let mut fences = Fences::default();
    let mut lines = Vec::new();
    for (number, line) in cell.source.split('\n').enumerate() {
        let in_block = fences.line(line);
        match disguised(line, in_block).filter(|_| !(titled && number == 0)) {
            Some(changed) => {
                marker.was.insert(number.to_string(), line.into());
                lines.push(changed);
            }
            None => lines.push(line.to_owned()),
        }
    }
    if let Some(closing) = fences.closing() {
        marker.closed = true;
        lines.push(closing);
    }
    (lines.join("\n"), marker)
}

/// A line that cannot be misunderstood, if this one can.
pub(super) fn disguised(line: &str, in_block: bool) -> Option<String> {
    if ["<!-- cell:", "<!-- srcbook:"]
        .iter()
        .any(|start| line.starts_with(start))
    {
        return Some(line.replacen("<!-- ", "<!--  ", 1));
    }
    match heading(line).filter(|_| !in_block) {
        Some((1, _)) => Some(line.replacen('#', "##", 1)),
        Some((6, _)) => Some(line.replacen('#', "", 1)),
        _ if !in_block && underlines(line) => Some(line.replace('=', "-")),
        _ => None,
    }
}

fn is_titled(cell: &BookCell) -> bool {
    let first = cell.source.split('\n').next().unwrap_or_default();
    cell.kind == BookCellKind::Markdown && heading(first).is_some_and(|(level, text)| level == 1 && !text.is_empty())
}

/// JSON that can end neither a comment nor the first line of a fenced block.
fn hidden(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .unwrap_or_else(|_| "{}".to_owned())
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('`', "\\u0060")
}

/// The language as the first word after a fence.
fn info_word(language: &str) -> String {
    let allowed = |character: &char| character.is_alphanumeric() || "+-#._".contains(*character);
    language.chars().filter(allowed).collect()
}

fn one_line(title: &str) -> String {
    let words: Vec<&str> = title.split_whitespace().collect();
    match words.is_empty() {
        true => "Notebook".to_owned(),
        false => words.join(" "),
    }
}
