//! Versions and differences in the words of answers.

use std::{fmt, time::SystemTime};

use history::{Difference, Part, Status};
use serde::Serialize;

use super::Version;

/// A version as answers have it.
#[derive(Debug, Clone, Serialize)]
pub struct ToldVersion {
    pub version_id: String,
    pub timestamp: String,
    pub author: String,
    pub tool: Option<String>,
    pub summary: String,
    pub size: i64,
    pub revision: Option<String>,
    pub kind: &'static str,
    pub is_undone: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undoes: Vec<String>,
}

impl From<Version> for ToldVersion {
    fn from(version: Version) -> Self {
        Self {
            timestamp: timestamp(version.time),
            author: version.author(),
            version_id: version.id.to_string(),
            tool: version.tool,
            summary: version.summary,
            size: version.size,
            revision: version.revision,
            kind: version.kind.as_str(),
            is_undone: version.is_undone,
            undoes: version.undoes.iter().map(ToString::to_string).collect(),
        }
    }
}

impl fmt::Display for ToldVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.timestamp.get(..19).unwrap_or(&self.timestamp);
        write!(f, "{} {time}Z {}", self.version_id, self.author)?;
        if let Some(tool) = &self.tool {
            write!(f, ", {tool}")?;
        }
        write!(f, ": {}; {} bytes", self.summary, self.size)?;
        if let Some(revision) = &self.revision {
            write!(f, ", revision {revision}")?;
        }
        match self.is_undone {
            true => write!(f, " (undone)"),
            false => Ok(()),
        }
    }
}

/// A time as answers have it.
pub fn timestamp(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// A difference of a cell or a text, with a line that says which and what.
pub fn difference_text(difference: &Difference, unified: &str) -> String {
    let status = match difference.status {
        Status::Changed => "changed",
        Status::Inserted => "inserted",
        Status::Deleted => "deleted",
        Status::Moved => "moved",
    };
    let head = match (&difference.cell_id, difference.index) {
        (Some(id), Some(index)) => format!("[{index}] {id} {status}"),
        (Some(id), None) => format!("{id} {status}"),
        (None, _) if unified.is_empty() => "notebook".to_owned(),
        (None, _) => String::new(),
    };
    let parts: Vec<&str> = difference.parts.iter().map(|part| word(*part)).collect();
    let head = match parts.is_empty() {
        true => head,
        false => format!("{head} ({} differ)", parts.join(", ")),
    };
    let lines = [head.as_str(), unified].into_iter().filter(|part| !part.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn word(part: Part) -> &'static str {
    match part {
        Part::Kind => "type",
        Part::Metadata => "metadata",
        Part::Attachments => "attachments",
        Part::Outputs => "outputs",
    }
}
