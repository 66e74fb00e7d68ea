//! Frames of Python's tracebacks, as IPython 7 to 9 and Python itself write them.

use super::one_line_indented;

/// Line in the place of code that IPython cannot find.
const NO_SOURCE: &str = "Could not get source";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A cell, or a file of the user's.
    Own,
    /// Name of the library.
    Library(String),
    /// No frame: IPython's word about frames it left out.
    Note,
}

pub(super) struct Frame<'a> {
    pub(super) place: Place,
    pub(super) head: String,
    /// Lines of code with their numbers; an arrow is before the one that ran.
    pub(super) body: Vec<&'a str>,
}

impl Frame<'_> {
    /// Frame whose head a line is.
    pub(super) fn headed(line: &str) -> Option<Self> {
        let line = line.trim();
        let (place, head) = cell_head(line).or_else(|| file_head(line))?;
        Some(Self {
            place,
            head: one_line_indented(&head),
            body: Vec::new(),
        })
    }

    /// Returns whether it is a call of the same line, as in a recursion.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let arrow = |frame: &Self| {
            frame
                .body
                .iter()
                .find(|line| is_arrow(line))
                .copied()
                .map(str::to_owned)
        };
        self.place == Place::Own && self.place == other.place && self.head == other.head && arrow(self) == arrow(other)
    }

    /// The head and the code that ran, with a line before and after it in the user's own code.
    pub(super) fn lines(&self) -> Vec<String> {
        let is_code = |line: &&&str| {
            let code = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
            !code.trim().is_empty() && !line.contains(NO_SOURCE)
        };
        let body = &self.body;
        let around = usize::from(self.place == Place::Own);
        let shown = match body.iter().position(|line| is_arrow(line)) {
            Some(at) => &body[at.saturating_sub(around)..(at + 1 + around).min(body.len())],
            // A syntax error has its line and a caret below it.
            None => &body[..body.len().min(2 + around)],
        };
        let code = shown.iter().filter(is_code).map(|line| one_line_indented(line));
        [self.head.clone()].into_iter().chain(code).collect()
    }
}

fn is_arrow(line: &str) -> bool {
    let after = line.trim_start().trim_start_matches('-');
    line.trim_start().starts_with('-') && after.starts_with('>')
}

fn cell_head(line: &str) -> Option<(Place, String)> {
    if line.starts_with("[... skipping") || (line.starts_with("... last ") && line.contains(" frames repeated")) {
        return Some((Place::Note, line.to_owned()));
    }
    let starts = ["Cell In[", "Cell In [", "Input In [", "In [", "Input "];
    let is_cell = starts.iter().any(|start| line.starts_with(start));
    if is_cell {
        return Some((Place::Own, line.to_owned()));
    }
    let file = line.strip_prefix("File ").unwrap_or(line).trim_start_matches('"');
    let number = file.strip_prefix("<ipython-input-")?;
    let (number, rest) = number.split_once('-')?;
    let (_, rest) = rest.split_once('>')?;
    Some((Place::Own, format!("In [{number}]{}", rest.trim_start_matches('"'))))
}

fn file_head(line: &str) -> Option<(Place, String)> {
    let is_file = line.starts_with("File ") && (line.contains(':') || line.contains(", line "));
    // IPython 7: "~/lib/python3.7/site-packages/pandas/core/frame.py in __getitem__(self, key)".
    let ends = [".py in ", ".pyx in ", ".pxi in "];
    let is_bare = line.starts_with(['/', '~']) || line.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_old_file = is_bare && ends.iter().any(|end| line.contains(end));
    if !is_file && !is_old_file {
        return None;
    }
    let path = line
        .strip_prefix("File ")
        .unwrap_or(line)
        .replace('"', "")
        .replace('\\', "/");
    // A cell has a file of its own there, which is named by a hash.
    if path.contains("/ipykernel_") {
        let place = path.split_once(".py").map_or("", |(_, place)| place);
        return Some((Place::Own, format!("Cell{place}")));
    }
    Some(match library(&path) {
        Some((name, head)) => (Place::Library(name), head),
        None => (Place::Own, path),
    })
}

/// Name of the library that a file belongs to, and its path there.
fn library(path: &str) -> Option<(String, String)> {
    let named = |inside: &str| {
        let end = inside
            .find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
            .unwrap_or(inside.len());
        (inside[..end].to_owned(), inside.to_owned())
    };
    for folder in ["site-packages/", "dist-packages/"] {
        if let Some((_, inside)) = path.split_once(folder) {
            return Some(named(inside));
        }
    }
    for folder in ["/lib/python3", "/Lib/"] {
        if let Some((_, inside)) = path.split_once(folder) {
            let inside = if folder == "/Lib/" {
                inside
            } else {
                inside.split_once('/')?.1
            };
            return Some(named(inside));
        }
    }
    if let Some(frozen) = path.strip_prefix("<frozen ") {
        return Some(named(frozen));
    }
    if path.starts_with('<') {
        return Some(("python".to_owned(), path.to_owned()));
    }
    // Compiled code knows its path in the library only.
    let is_compiled = path.contains(".pyx") || path.contains(".pxi");
    (is_compiled && !path.starts_with(['/', '~'])).then(|| named(path))
}
