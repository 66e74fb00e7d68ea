//! Lists of the resources there are at the moment, and the shapes of all addresses.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{
    ResourceError, View,
    address::{ACTIVITY, CURRENT, LIST, template_uri},
    metadata::NotebookMetadata,
    read::members,
};
use crate::{skills::Skill, srcbook::templates};

/// Entries of one page.
const PAGE: usize = 200;

/// A resource as a list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub uri: String,
    pub name: String,
    pub description: String,
    pub mime_type: &'static str,
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The shape of addresses, with the names of what stands in them.
pub struct UriTemplate {
    pub template: &'static str,
    pub name: &'static str,
    pub description: &'static str,
    /// Media type, if it is the same for all.
    pub mime_type: Option<&'static str>,
}

/// Every shape that an address can have; those of notebooks by name only for who gives them names.
pub fn uri_templates(with_names: bool) -> impl Iterator<Item = &'static UriTemplate> {
    let named = NAMED.iter().filter(move |_| with_names);
    shapes().iter().chain(&OF_HISTORY).chain(named)
}

/// Shapes of addresses in which a notebook has the name that the caller gave it.
const NAMED: [UriTemplate; 3] = [
    UriTemplate {
        template: "notebook://{name}",
        name: "notebook-by-name",
        description: "A notebook in use, as nbformat JSON",
        mime_type: Some("application/x-ipynb+json"),
    },
    UriTemplate {
        template: "notebook://{name}/cells/{cell_id}",
        name: "notebook-cell-by-name",
        description: "A cell of a notebook in use, with the addresses of its outputs",
        mime_type: Some("application/json"),
    },
    UriTemplate {
        template: "notebook://{name}/cells/{cell_id}/outputs/{index}",
        name: "notebook-cell-output-by-name",
        description: "An output of a cell of a notebook in use",
        mime_type: None,
    },
];

/// Shapes of addresses about what happened to a notebook.
const OF_HISTORY: [UriTemplate; 3] = [
    UriTemplate {
        template: "notebook://{session_id}/{notebook_id}/history",
        name: "notebook-history",
        description: "The newest recorded versions of an open notebook",
        mime_type: Some("application/json"),
    },
    UriTemplate {
        template: "notebook://{session_id}/{notebook_id}/history/{version_id}",
        name: "notebook-version",
        description: "An open notebook as it was at a version, as nbformat JSON",
        mime_type: Some("application/json"),
    },
    UriTemplate {
        template: "notebook://{session_id}/{notebook_id}/diff/{from}..{to}",
        name: "notebook-diff",
        description: "What changed between two versions; without the second one, until now",
        mime_type: Some("text/x-diff"),
    },
];

fn shapes() -> &'static [UriTemplate] {
    const fn shape(
        template: &'static str,
        name: &'static str,
        description: &'static str,
        mime_type: Option<&'static str>,
    ) -> UriTemplate {
        UriTemplate {
            template,
            name,
            description,
            mime_type,
        }
    }
    const MARKDOWN: Option<&str> = Some("text/markdown");
    const JSON: Option<&str> = Some("application/json");
    const SHAPES: &[UriTemplate] = &[
        shape(
            "notebook://{session_id}/{notebook_id}",
            "notebook",
            "An open notebook as Srcbook markdown",
            MARKDOWN,
        ),
        shape(
            "notebook://{session_id}/{notebook_id}/srcmd",
            "notebook-srcmd",
            "An open notebook as Srcbook markdown",
            MARKDOWN,
        ),
        shape(
            "notebook://{session_id}/{notebook_id}/json",
            "notebook-json",
            "An open notebook as nbformat JSON, outputs included",
            JSON,
        ),
        shape(
            "notebook://{session_id}/{notebook_id}/cells",
            "notebook-cells",
            "The cells of an open notebook, outputs included",
            JSON,
        ),
        shape(
            "notebook://{session_id}/{notebook_id}/cells/{cell_id}",
            "notebook-cell",
            "The source of one cell",
            None,
        ),
        shape(
            "notebook://{session_id}/{notebook_id}/cells/{cell_id}/outputs/{number}",
            "notebook-output",
            "One output of a cell, whole; the first is 0",
            None,
        ),
        shape(
            "notebook://{session_id}/{notebook_id}/executions/{execution_id}",
            "notebook-execution",
            "What an execution in the notebook gave",
            JSON,
        ),
        shape(
            "notebook://templates/{name}",
            "notebook-template",
            "A template for create_notebook, as Srcbook markdown",
            MARKDOWN,
        ),
        shape(
            "file:///notebooks/{session_id}/notebook.src.md",
            "notebook-file",
            "An open notebook as a Srcbook file",
            MARKDOWN,
        ),
        shape(
            "file:///notebooks/{session_id}/notebook.ipynb",
            "notebook-ipynb-file",
            "An open notebook as a Jupyter file",
            JSON,
        ),
        shape(
            "file:///documents/{server}/{+path}",
            "document",
            "A file as it is, binary ones as bytes",
            None,
        ),
        shape(
            "file:///notebooks/{session_id}/cells/{filename}",
            "notebook-cell-file",
            "One cell as a source file, named after its id",
            None,
        ),
    ];
    SHAPES
}

impl View {
    /// The resources that the principal may read, a page at a time. Somebody without the permission to read
    /// sees none.
    pub async fn list(&self, cursor: Option<&str>) -> Result<Page, ResourceError> {
        let after = cursor.map(decode).transpose()?;
        let mut keyed = self.entries().await;
        keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
        // Cursors are keys rather than counts, so that a page stays right while notebooks open and close.
        if let Some(after) = after {
            keyed.retain(|(key, _)| *key > after);
        }
        let more = keyed.len() > PAGE;
        keyed.truncate(PAGE);
        let next = keyed.last().filter(|_| more).map(|(key, _)| encode(key));
        let entries = keyed.into_iter().map(|(_, entry)| entry).collect();
        Ok(Page { entries, next })
    }

    async fn entries(&self) -> Vec<(String, Entry)> {
        if !self.may_read() {
            return Vec::new();
        }
        let runs = self.runs_by_notebook().await;
        let notebooks = self.notebooks();
        let mut entries = vec![
            ("0".to_owned(), list_entry(notebooks.len())),
            ("0/activity".to_owned(), activity_entry()),
        ];
        if let Some(current) = self.current_room() {
            let described = NotebookMetadata::of(&current, runs.as_ref());
            let mut entry = notebook_entry(&described);
            CURRENT.clone_into(&mut entry.uri);
            entry.name = format!("Current Notebook: {}", described.path());
            entries.push(("1".to_owned(), entry));
        }
        for open in &notebooks {
            let described = NotebookMetadata::of(open, runs.as_ref());
            let key = format!("2/{}/{}/{}", open.server, open.info.path, open.info.session_id);
            let cells = cells_entry(&described);
            entries.push((key.clone(), notebook_entry(&described)));
            entries.push((format!("{key}/cells"), cells));
        }
        entries.extend(template_entries());
        entries.extend(self.skills().iter().map(skill_entry));
        entries
    }
}

fn list_entry(count: usize) -> Entry {
    Entry {
        uri: LIST.to_owned(),
        name: "Active Notebooks".to_owned(),
        description: format!("{count} active notebooks"),
        mime_type: "application/json",
        metadata: None,
    }
}

fn activity_entry() -> Entry {
    Entry {
        uri: ACTIVITY.to_owned(),
        name: "Activity".to_owned(),
        description: "What people and agents did lately, mentions of you included, the newest first".to_owned(),
        mime_type: "application/json",
        metadata: None,
    }
}

fn notebook_entry(described: &NotebookMetadata) -> Entry {
    Entry {
        uri: described.uri(),
        name: described.name(),
        description: described.description(),
        mime_type: "text/markdown",
        metadata: Some(members(described)),
    }
}

fn cells_entry(described: &NotebookMetadata) -> Entry {
    Entry {
        uri: format!("{}/cells", described.uri()),
        name: format!("{} Cells", described.name()),
        description: format!("{} cells", described.cell_count()),
        mime_type: "application/json",
        metadata: None,
    }
}

fn template_entries() -> impl Iterator<Item = (String, Entry)> {
    templates().iter().enumerate().map(|(index, template)| {
        let entry = Entry {
            uri: template_uri(template.name),
            name: format!("Template: {}", template.name),
            description: template.description.to_owned(),
            mime_type: "text/markdown",
            metadata: None,
        };
        (format!("3/{index}"), entry)
    })
}

fn skill_entry(skill: &Skill) -> (String, Entry) {
    let entry = Entry {
        uri: skill.uri(),
        name: skill.name.to_owned(),
        description: skill.description().to_owned(),
        mime_type: "text/markdown",
        metadata: None,
    };
    (format!("4/{}", skill.name), entry)
}

fn encode(key: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(key)
}

fn decode(cursor: &str) -> Result<String, ResourceError> {
    let bytes = BASE64_URL_SAFE_NO_PAD
        .decode(cursor)
        .map_err(|_| ResourceError::Cursor)?;
    let key = String::from_utf8(bytes).map_err(|_| ResourceError::Cursor)?;
    Some(key)
        .filter(|key| key.starts_with(['0', '1', '2', '3', '4']))
        .ok_or(ResourceError::Cursor)
}
