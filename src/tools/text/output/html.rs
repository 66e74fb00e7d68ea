//! HTML as text: blocks are lines, tables are aligned rows, scripts and styles are left out.

use jupyter_client::counted;

use super::{
    markup::{Token, Tokens, attribute, unescaped},
    media,
};

/// Elements that begin and end a line.
const BLOCKS: [&str; 24] = [
    "address",
    "article",
    "blockquote",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "p",
    "section",
    "summary",
    "ul",
];
/// Characters up to which columns are aligned.
const MAX_COLUMN: usize = 40;
/// Columns that one cell may span.
const MAX_SPAN: usize = 20;
/// Empty cells that stand in a table for cells that span several.
const MAX_FILLERS: usize = 10_000;

/// Rows and columns of a table, its headings left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// Shape of the first table of data in HTML.
pub(super) fn table_shape(html: &str) -> Option<Shape> {
    let (mut rows, mut columns, mut cells) = (0, 0, 0);
    for token in Tokens::of(html) {
        match token {
            Token::Open { name, .. } if name == "td" => {
                cells += 1;
                rows += usize::from(cells == 1);
                columns += usize::from(rows == 1);
            }
            Token::Open { name, .. } if name == "tr" => cells = 0,
            Token::Close { name } if name == "table" => break,
            _ => {}
        }
    }
    (rows > 0).then_some(Shape { rows, columns })
}

/// Text of HTML; empty if it has none.
pub(super) fn to_text(html: &str) -> String {
    let mut writer = Writer::default();
    for token in Tokens::of(html) {
        match token {
            Token::Text(text) => writer.write(&unescaped(text)),
            Token::Open { name, attributes } => writer.open(&name, attributes),
            Token::Close { name } => writer.close(&name),
        }
    }
    writer.finish()
}

#[derive(Default)]
struct Writer {
    text: String,
    table: Option<Table>,
    /// Number of tables around the current text.
    depth: usize,
    is_preformatted: bool,
    /// Element whose content is for browsers that cannot show it.
    fallback: Option<String>,
}

impl Writer {
    fn open(&mut self, name: &str, attributes: &str) {
        match (name, &mut self.table) {
            ("table", None) => {
                self.end_line();
                self.table = Some(Table::default());
                self.depth = 1;
            }
            ("table", Some(_)) => self.depth += 1,
            ("tr", Some(table)) if self.depth == 1 => table.begin_row(),
            ("td" | "th", Some(table)) if self.depth == 1 => table.begin_cell(attributes),
            ("td" | "th" | "br", Some(_)) => self.write(" "),
            ("br", None) => self.text.push('\n'),
            ("li", _) => {
                self.end_line();
                self.write("- ");
            }
            ("pre", None) => {
                self.end_line();
                self.is_preformatted = true;
            }
            ("audio" | "video" | "source" | "img" | "iframe" | "embed", _) => {
                let around = self.fallback.take();
                if let Some(line) = embedded(name, attributes) {
                    self.write(&line);
                }
                let has_content = matches!(name, "audio" | "video" | "iframe") && !attributes.ends_with('/');
                self.fallback = around.or_else(|| has_content.then(|| name.to_owned()));
            }
            (name, _) if BLOCKS.contains(&name) => self.end_line(),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        self.fallback = self.fallback.take().filter(|element| element != name);
        match name {
            "table" if self.depth == 1 => self.end_table(),
            "table" => self.depth = self.depth.saturating_sub(1),
            "pre" => {
                self.is_preformatted = false;
                self.end_line();
            }
            "li" => self.end_line(),
            name if BLOCKS.contains(&name) => self.end_line(),
            _ => {}
        }
    }

    fn write(&mut self, text: &str) {
        match &mut self.table {
            _ if self.fallback.is_some() => {}
            Some(table) => table.write(text),
            None if self.is_preformatted => self.text.push_str(text),
            None => push_words(&mut self.text, text),
        }
    }

    fn end_line(&mut self) {
        match &mut self.table {
            Some(table) => table.write(" "),
            None => {
                let end = self.text.trim_end_matches(' ').len();
                self.text.truncate(end);
                if !self.text.is_empty() && !self.text.ends_with('\n') {
                    self.text.push('\n');
                }
            }
        }
    }

    fn end_table(&mut self) {
        self.depth = 0;
        if let Some(table) = self.table.take() {
            table.write_into(&mut self.text);
        }
    }

    fn finish(mut self) -> String {
        self.end_table();
        self.text.trim_matches('\n').trim_end().to_owned()
    }
}

/// Adds text with each run of white space as one space.
fn push_words(line: &mut String, text: &str) {
    let is_start = |line: &String| line.is_empty() || line.ends_with([' ', '\n']);
    if text.starts_with(char::is_whitespace) && !is_start(line) {
        line.push(' ');
    }
    for (number, word) in text.split_whitespace().enumerate() {
        if number > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    if text.ends_with(char::is_whitespace) && !is_start(line) {
        line.push(' ');
    }
}

/// Mention of what is embedded in HTML.
fn embedded(element: &str, attributes: &str) -> Option<String> {
    let source = attribute(attributes, "src").filter(|source| !source.is_empty());
    if let Some(media) = source.and_then(media::data_url_line) {
        return Some(format!("[{media}]"));
    }
    if let Some(document) = attribute(attributes, "srcdoc") {
        return Some(format!("[{element}, {}]", counted(document.len(), "byte")));
    }
    let named = attribute(attributes, "alt").filter(|alt| !alt.trim().is_empty());
    let named = named.or(source)?;
    let kind = if element == "img" { "image" } else { element };
    let shown: String = unescaped(named).chars().take(200).collect();
    Some(format!("[{kind} {shown}]"))
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    /// Rows below the current one that a cell above reaches into, by column.
    spans: Vec<usize>,
    fillers: usize,
    /// Text outside of the cells: the caption.
    caption: String,
}

impl Table {
    fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    fn begin_cell(&mut self, attributes: &str) {
        let span = |name: &str| {
            attribute(attributes, name)
                .and_then(|span| span.trim().parse::<usize>().ok())
                .unwrap_or(1)
        };
        let (width, height) = (span("colspan").clamp(1, MAX_SPAN), span("rowspan").max(1));
        if self.rows.is_empty() {
            self.begin_row();
        }
        let Some(row) = self.rows.last_mut() else { return };
        while self.fillers < MAX_FILLERS && self.spans.get(row.len()).is_some_and(|rows| *rows > 0) {
            self.spans[row.len()] -= 1;
            row.push(String::new());
            self.fillers += 1;
        }
        row.push(String::new());
        if height > 1 && row.len() <= MAX_FILLERS {
            self.spans.resize(self.spans.len().max(row.len()), 0);
            self.spans[row.len() - 1] = height - 1;
        }
        // Text goes into the last cell, so the empty ones of a wide cell come before it.
        for _ in 1..width {
            if self.fillers < MAX_FILLERS {
                row.push(String::new());
                self.fillers += 1;
            }
        }
    }

    fn write(&mut self, text: &str) {
        match self.rows.last_mut().map(|row| row.last_mut()) {
            Some(Some(cell)) => push_words(cell, text),
            Some(None) => {}
            None => push_words(&mut self.caption, text),
        }
    }

    fn write_into(self, text: &mut String) {
        let mut widths: Vec<usize> = Vec::new();
        for row in &self.rows {
            widths.resize(widths.len().max(row.len()), 0);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.trim().chars().count().min(MAX_COLUMN));
            }
        }
        let rows = self.rows.iter().map(|row| aligned(row, &widths));
        for line in [self.caption.trim().to_owned()].into_iter().chain(rows) {
            if !line.is_empty() {
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let cell = cell.trim();
        line.push_str(cell);
        let padding = width.saturating_sub(cell.chars().count()) + 2;
        line.extend(std::iter::repeat_n(' ', padding));
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_reads_as_text() {
        for (html, text) in [
            ("<h1>Hi</h1><p>a &lt; b<br>c</p>", "Hi\na < b\nc"),
            ("<style>p {}</style><script>1</script>", ""),
            ("one <b>two</b>\n   three", "one two three"),
            ("<ul><li>a<li>b</ul>", "- a\n- b"),
            ("<pre>a\n  b</pre>c", "a\n  b\nc"),
            (
                "<iframe src=\"https://example.org\"></iframe>",
                "[iframe https://example.org]",
            ),
            ("<img src='data:image/png;base64,AAAA'>", "[image/png, 3 bytes]"),
            ("<img src='x.png' alt='A cat'>", "[image A cat]"),
            ("<iframe srcdoc='<p>x'>Trust it</iframe>map", "[iframe, 4 bytes]map"),
            ("<video src='a.mp4'/>text", "[video a.mp4]text"),
            ("a < b & c", "a < b & c"),
        ] {
            assert_eq!(to_text(html), text, "{html}");
        }
    }

    #[test]
    fn tables_are_aligned_rows() {
        let table = "<table><caption>C</caption><tr><th>name</th><th>v</th></tr><tr><td>a<table><tr><td>x<td>y</table></td>\
                     <td>10</td></tr><tr><td>long one</td><td></td></tr></table>after";
        assert_eq!(to_text(table), "C\nname      v\na x y     10\nlong one\nafter");
        let spans = "<table><tr><td rowspan=2>a<td>1<tr><td>2<tr><td colspan=2>b<td>3</table>";
        assert_eq!(to_text(spans), "a  1\n   2\n   b  3");
        assert_eq!(table_shape(spans), Some(Shape { rows: 3, columns: 2 }));
        assert_eq!(table_shape("<p>none"), None);
    }

    #[test]
    fn spans_take_no_memory() {
        let html = format!(
            "<table>{}",
            "<tr><td rowspan=999999999999 colspan=99999>x".repeat(20_000)
        );
        assert!(to_text(&html).len() < 40 * html.len());
    }
}
