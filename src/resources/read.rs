//! Reading: from an address to its content, out of the memory of an open room.

use jupyter_client::NewDocument;
use live_document::{Activity, SourceShown, pool::OpenRoom};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    Opened, ResourceError, View,
    address::{Address, Part},
    cells::Cells,
    metadata::NotebookMetadata,
    sanitize::sanitized_notebook,
};
use crate::{
    skills::Skill,
    srcbook::{render, template},
};

/// The length at which a cell's first line is long enough to be its name.
const MAX_NAME: usize = 60;

/// Content of a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    Text(String),
    /// Bytes as base64.
    Blob(String),
}

/// One form of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    pub uri: String,
    pub mime_type: String,
    pub body: Body,
    /// Its name, its description, and what is known of it.
    pub metadata: Map<String, Value>,
}

impl View {
    /// A resource in every form that it has: one, but for outputs.
    pub async fn read(&self, uri: &str) -> Result<Vec<Contents>, ResourceError> {
        let address = self.address(uri)?;
        self.require_read()?;
        let forms = match address {
            Address::List => vec![in_text(self.read_list().await)],
            Address::Activity => vec![in_text(self.read_activity().await)],
            Address::Template(name) => vec![in_text(read_template(&name)?)],
            Address::Document { server, path } => vec![self.read_document(&server, &path).await?],
            Address::Skill(name) => vec![in_text(read_skill(self.skill(&name)?))],
            Address::Current => {
                let opened = self.current().ok_or(ResourceError::NoCurrent)?;
                self.read_part(uri, opened, &Part::Srcmd).await?
            }
            Address::Notebook {
                session,
                notebook,
                part,
            } => {
                let opened = self.notebook(&session, notebook.as_deref());
                self.read_part(uri, opened.ok_or(ResourceError::NOTEBOOK)?, &part)
                    .await?
            }
        };
        let contents = forms.into_iter().map(|(mime_type, body, metadata)| Contents {
            uri: uri.to_owned(),
            mime_type,
            body,
            metadata,
        });
        Ok(contents.collect())
    }

    async fn read_list(&self) -> Read {
        let runs = self.runs_by_notebook().await;
        let described = |open: &OpenRoom| NotebookMetadata::of(open, runs.as_ref());
        let notebooks: Vec<NotebookMetadata> = self.notebooks().iter().map(described).collect();
        let summaries: Vec<_> = notebooks.iter().map(NotebookMetadata::summary).collect();
        let metadata = named(
            "Active Notebooks",
            "List of all active notebooks in the system",
            Map::new(),
        );
        ("application/json", pretty(&summaries), metadata)
    }

    async fn read_part(&self, uri: &str, opened: Opened, part: &Part) -> Result<Vec<ReadBody>, ResourceError> {
        // What is in memory while the line is down may be old.
        opened.room.connected().await?;
        let reader = &self.principal;
        opened.room.show_activity(&reader.id, &reader.name, Activity::Reading);
        if let Part::History | Part::Version(_) | Part::Diff { .. } = part {
            return Ok(vec![in_text(self.read_history(&opened, part).await?)]);
        }
        let runs = self.runs_by_notebook().await;
        let described = NotebookMetadata::of(&opened.open, runs.as_ref());
        let cells = Cells::of(&opened);
        let position = match part {
            Part::Cell(id) | Part::CellDocument(id) | Part::Output { cell: id, .. } => cells.position(id),
            Part::CellFile(name) => cells.position_of_file(name),
            _ => None,
        };
        if let Part::Output { number, .. } = part {
            return cells.read_output(position.ok_or(ResourceError::CELL)?, *number);
        }
        self.record_shown(&opened, &cells, part, position);
        let read = match part {
            Part::Cell(_) | Part::CellFile(_) | Part::Output { .. } => {
                read_cell(&cells, position.ok_or(ResourceError::CELL)?, &described)
            }
            Part::Srcmd => {
                let metadata = named(&described.name(), &described.description(), members(&described));
                ("text/markdown", render(&cells.into_book(described.title())), metadata)
            }
            Part::CellDocument(_) => {
                let position = position.ok_or(ResourceError::CELL)?;
                ("application/json", pretty(&cells.document(position, uri)), Map::new())
            }
            Part::Json | Part::Ipynb => {
                let content = match opened.room.content() {
                    NewDocument::Notebook(notebook) => sanitized_notebook(notebook),
                    _ => Value::Null,
                };
                let metadata = named(&described.name(), &described.description(), members(&described));
                let mime_type = match part {
                    Part::Ipynb => "application/x-ipynb+json",
                    _ => "application/json",
                };
                (mime_type, pretty(&content), metadata)
            }
            Part::Cells => {
                let metadata = named(
                    "Notebook Cells",
                    "Individual cells from the notebook",
                    members(&described),
                );
                ("application/json", pretty(&cells.to_json()), metadata)
            }
            Part::Execution(id) => self.read_execution(&opened, id).await?,
            Part::History | Part::Version(_) | Part::Diff { .. } => self.read_history(&opened, part).await?,
        };
        Ok(vec![in_text(read)])
    }
}

impl View {
    /// Notes which sources the principal is shown.
    fn record_shown(&self, opened: &Opened, cells: &Cells, part: &Part, position: Option<usize>) {
        let shown = match (part, position) {
            (Part::Srcmd | Part::Json | Part::Ipynb | Part::Cells, _) => {
                let ids = cells.cells.iter().map(|cell| cell.id.as_str());
                opened.room.record_order(&self.principal.id, &cells.revision, ids);
                &cells.cells[..]
            }
            (_, Some(position)) => &cells.cells[position..=position],
            (_, None) => &[],
        };
        let shown = shown.iter().map(|cell| SourceShown {
            cell: &cell.id,
            source: Some(&cell.source),
        });
        opened.room.record_shown(&self.principal.id, &cells.revision, shown);
    }
}

pub(super) type Read = (&'static str, String, Map<String, Value>);
/// One form of a resource, which may be of any type.
pub(super) type ReadBody = (String, Body, Map<String, Value>);

fn in_text((mime_type, text, metadata): Read) -> ReadBody {
    (mime_type.to_owned(), Body::Text(text), metadata)
}

fn read_template(name: &str) -> Result<Read, ResourceError> {
    let template = template(name).ok_or(ResourceError::TEMPLATE)?;
    let mut metadata = Map::new();
    metadata.insert("pattern".to_owned(), template.name.into());
    metadata.insert("cellCount".to_owned(), template.book().cells.len().into());
    let metadata = named(template.title, template.description, metadata);
    Ok(("text/markdown", template.text.to_owned(), metadata))
}

fn read_skill(skill: &Skill) -> Read {
    let metadata = named(skill.name, skill.description(), Map::new());
    ("text/markdown", skill.text.to_owned(), metadata)
}

fn read_cell(cells: &Cells, position: usize, described: &NotebookMetadata) -> Read {
    let cell = &cells.cells[position];
    let first = cell.source.lines().find(|line| !line.trim().is_empty());
    let shown = first
        .unwrap_or("(empty)")
        .trim_matches(|character| "# \t\r".contains(character));
    let name = format!("Cell: {}", shown.chars().take(MAX_NAME).collect::<String>());
    let description = format!(
        "{} cell {} of {} in {}",
        cell.cell_type,
        position + 1,
        cells.cells.len(),
        described.path()
    );
    let known = cells.metadata_of(position);
    let mut metadata = named(&name, &description, members(&known));
    metadata.insert("fileUri".to_owned(), described.cell_file_uri(&known.filename).into());
    (cells.mime_type(position), cell.source.clone(), metadata)
}

pub(super) fn named(name: &str, description: &str, mut metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("description".to_owned(), description.into());
    metadata
}

/// The members of a plain struct, which always serialises to an object.
pub(super) fn members(value: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(value) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

pub(super) fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}
