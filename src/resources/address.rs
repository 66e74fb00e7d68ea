//! The addresses of resources, taken apart and put together.

use percent_encoding::percent_decode_str;

use super::ResourceError;
use crate::types::{DOCUMENTS, NOTEBOOK_SCHEME, encoded};

pub(super) const LIST: &str = "notebook://list";
pub(super) const CURRENT: &str = "notebook://current";
pub(super) const ACTIVITY: &str = "notebook://activity";
const FILES: &str = "file:///notebooks/";
const SKILLS: &str = "skill://";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    List,
    Current,
    /// Activities of people and agents.
    Activity,
    Template(String),
    /// A file of a server.
    Document {
        server: String,
        path: String,
    },
    Skill(String),
    Notebook {
        session: String,
        /// A file's address names only the session.
        notebook: Option<String>,
        part: Part,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Srcmd,
    Json,
    Cells,
    Cell(String),
    /// An output of a cell, by its position among them.
    Output {
        cell: String,
        number: usize,
    },
    /// A cell by the name of its file.
    CellFile(String),
    Execution(String),
    /// The versions of a notebook.
    History,
    /// A notebook as it was at a version.
    Version(String),
    /// The difference between two versions; an empty one is the notebook as it is.
    Diff {
        from: String,
        to: String,
    },
    /// A notebook as its file is.
    Ipynb,
    /// A cell with the addresses of its outputs.
    CellDocument(String),
}

/// The name by which an address may mean a notebook, if nothing else is meant by it.
pub fn notebook_name(uri: &str) -> Option<String> {
    named(uri).map(|(name, _)| name)
}

/// A notebook by the name that somebody gave it, and what of it.
pub(super) fn named(uri: &str) -> Option<(String, Part)> {
    let parts = uri.strip_prefix(NOTEBOOK_SCHEME)?.split('/');
    let decoded = |part: &str| percent_decode_str(part).decode_utf8().map(String::from).ok();
    let parts: Vec<String> = parts.map(decoded).collect::<Option<_>>()?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (name, part) = match parts.as_slice() {
        ["" | "list" | "current" | "activity" | "templates", ..] => return None,
        [name] => (name, Part::Ipynb),
        [name, "cells", cell] if !cell.is_empty() => (name, Part::CellDocument((*cell).to_owned())),
        [name, "cells", cell, "outputs", number] if !cell.is_empty() => {
            let (cell, number) = ((*cell).to_owned(), number.parse().ok()?);
            (name, Part::Output { cell, number })
        }
        _ => return None,
    };
    Some(((*name).to_owned(), part))
}

impl Address {
    pub(super) fn parse(uri: &str) -> Result<Self, ResourceError> {
        let shown = || uri.chars().take(200).collect();
        let unknown = || ResourceError::Unknown { uri: shown() };
        if let Some(document) = uri.strip_prefix(DOCUMENTS) {
            return document_at(document).ok_or_else(unknown);
        }
        if let Some(skill) = uri.strip_prefix(SKILLS) {
            let name = skill.strip_suffix("/SKILL.md").ok_or_else(unknown)?;
            return Ok(Self::Skill(name.to_owned()));
        }
        let (is_file, rest) = match (uri.strip_prefix(NOTEBOOK_SCHEME), uri.strip_prefix(FILES)) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(ResourceError::Foreign { uri: shown() }),
        };
        let decoded = |part: &str| percent_decode_str(part).decode_utf8().map(String::from).ok();
        let parts: Option<Vec<String>> = rest.split('/').map(decoded).collect();
        let parts = parts.ok_or_else(unknown)?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        match parts.as_slice() {
            _ if parts[0].is_empty() => Err(unknown()),
            [session, rest @ ..] if is_file => Ok(Self::Notebook {
                session: (*session).to_owned(),
                notebook: None,
                part: file_part(rest).ok_or_else(unknown)?,
            }),
            ["list"] => Ok(Self::List),
            ["current"] => Ok(Self::Current),
            ["activity"] => Ok(Self::Activity),
            ["templates", name] => Ok(Self::Template((*name).to_owned())),
            ["list" | "current" | "activity" | "templates", ..] | [_] | [] => Err(unknown()),
            [session, notebook, format @ ..] => Ok(Self::Notebook {
                session: (*session).to_owned(),
                notebook: Some((*notebook).to_owned()),
                part: part(format)?,
            }),
        }
    }
}

/// The address of a file, whose path may have any number of parts.
fn document_at(rest: &str) -> Option<Address> {
    let (server, path) = rest.split_once('/')?;
    let decoded = |part: &str| percent_decode_str(part).decode_utf8().map(String::from).ok();
    let (server, path) = (decoded(server)?, decoded(path)?);
    (!server.is_empty() && !path.is_empty()).then_some(Address::Document { server, path })
}

fn part(format: &[&str]) -> Result<Part, ResourceError> {
    match format {
        [] | ["srcmd"] => Ok(Part::Srcmd),
        ["json"] => Ok(Part::Json),
        ["cells"] => Ok(Part::Cells),
        ["cells", cell] if !cell.is_empty() => Ok(Part::Cell((*cell).to_owned())),
        ["cells", cell, "outputs", number] if !cell.is_empty() && number.parse::<usize>().is_ok() => Ok(Part::Output {
            cell: (*cell).to_owned(),
            number: number.parse().unwrap_or_default(),
        }),
        ["executions", execution] if !execution.is_empty() => Ok(Part::Execution((*execution).to_owned())),
        ["history"] => Ok(Part::History),
        ["history", version] if !version.is_empty() => Ok(Part::Version((*version).to_owned())),
        ["diff", range] if range.split_once("..").is_some_and(|(from, _)| !from.is_empty()) => {
            let (from, to) = range.split_once("..").unwrap_or_default();
            let (from, to) = (from.to_owned(), to.to_owned());
            Ok(Part::Diff { from, to })
        }
        other => Err(ResourceError::Format {
            format: other.join("/").chars().take(200).collect(),
        }),
    }
}

fn file_part(file: &[&str]) -> Option<Part> {
    match file {
        ["notebook.src.md"] => Some(Part::Srcmd),
        ["notebook.ipynb"] => Some(Part::Json),
        ["cells", name] if !name.is_empty() => Some(Part::CellFile((*name).to_owned())),
        _ => None,
    }
}

pub(super) fn template_uri(name: &str) -> String {
    format!("{NOTEBOOK_SCHEME}templates/{}", encoded(name))
}

/// The address of a notebook, or of one of its cells, as a file.
pub(super) fn file_uri(session: &str, cell: Option<&str>) -> String {
    match cell {
        None => format!("{FILES}{}/notebook.src.md", encoded(session)),
        Some(name) => format!("{FILES}{}/cells/{}", encoded(session), encoded(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::document_uri;

    fn notebook(part: Part) -> Address {
        Address::Notebook {
            session: "s".to_owned(),
            notebook: Some("n".to_owned()),
            part,
        }
    }

    #[test]
    fn addresses_mean_what_the_scheme_says() {
        let parsed = |uri: &str| Address::parse(uri).unwrap();
        assert_eq!(parsed("notebook://list"), Address::List);
        assert_eq!(parsed("notebook://current"), Address::Current);
        assert_eq!(parsed("notebook://activity"), Address::Activity);
        assert_eq!(
            parsed("notebook://templates/mcts"),
            Address::Template("mcts".to_owned())
        );
        assert_eq!(parsed("notebook://s/n"), notebook(Part::Srcmd));
        assert_eq!(parsed("notebook://s/n/srcmd"), notebook(Part::Srcmd));
        assert_eq!(parsed("notebook://s/n/json"), notebook(Part::Json));
        assert_eq!(parsed("notebook://s/n/cells"), notebook(Part::Cells));
        assert_eq!(
            parsed("notebook://s/n/cells/a%20%2F"),
            notebook(Part::Cell("a /".to_owned()))
        );
        assert_eq!(
            parsed("notebook://s/n/executions/e"),
            notebook(Part::Execution("e".to_owned()))
        );
        assert_eq!(parsed("notebook://s/n/history"), notebook(Part::History));
        assert_eq!(
            parsed("notebook://s/n/history/v1"),
            notebook(Part::Version("v1".to_owned()))
        );
        for (range, to) in [("v1..v2", "v2"), ("v1..", "")] {
            let (from, to) = ("v1".to_owned(), to.to_owned());
            let diff = notebook(Part::Diff { from, to });
            assert_eq!(parsed(&format!("notebook://s/n/diff/{range}")), diff);
        }
        let output = Part::Output {
            cell: "a /".to_owned(),
            number: 2,
        };
        assert_eq!(parsed("notebook://s/n/cells/a%20%2F/outputs/2"), notebook(output));
        assert_eq!(encoded("a /ü"), "a%20%2F%C3%BC");
        let document = Address::Document {
            server: "lab".to_owned(),
            path: "a b/ü.png".to_owned(),
        };
        let uri = document_uri("lab", "a b/ü.png");
        assert_eq!(uri, "file:///documents/lab/a%20b/%C3%BC.png");
        assert_eq!(parsed(&uri), document);
    }

    #[test]
    fn anything_else_is_refused() {
        for uri in [
            "",
            "http://x",
            "notebook:/list",
            "notebook://",
            "notebook:///x",
            "notebook://list/x",
            "notebook://activity/x",
            "notebook://templates",
            "notebook://s",
            "notebook://s/n/pdf",
            "notebook://s/n/",
            "notebook://s/n/cells/",
            "notebook://s/n/cells/a/b",
            "notebook://s/n/executions",
            "notebook://s/n/history/",
            "notebook://s/n/diff/v1",
            "notebook://s/n/diff/..v1",
            "notebook://%ff/n",
            "file:///notebooks/s",
            "file:///notebooks/s/notebook.txt",
            "file:///etc/passwd",
            "file:///documents/",
            "file:///documents/lab",
            "file:///documents/lab/",
            "file:///documents//x",
            "file:///documents/lab/%ff",
        ] {
            assert!(Address::parse(uri).is_err(), "{uri}");
        }
    }
}
