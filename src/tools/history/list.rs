//! `get_document_history`.

use std::{collections::BTreeSet, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

use super::subject::{Place, Subjects};
use crate::{
    history::{Before, Filter, Listing, ToldVersion, timestamp},
    tools::{
        Call, ToolError,
        output::JsonObject,
        text::{Describe, Page},
    },
};

const MAX_LIMIT: usize = 1000;
/// Longest time for the server to tell that it has a timeline of its own.
const TIMELINE_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    #[serde(default = "default_limit")]
    limit: usize,
    author: Option<String>,
    /// version_id or time
    before: Option<String>,
    server: Option<String>,
}

fn default_limit() -> usize {
    10
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DocumentHistory {
    path: String,
    #[schemars(with = "Vec<JsonObject>")]
    versions: Vec<ToldVersion>,
    has_more: bool,
    recorded_since: Option<String>,
    note: Option<String>,
}

pub(super) async fn get_document_history(call: Call, arguments: Arguments) -> Result<DocumentHistory, ToolError> {
    let place = Place::of(&call, arguments.server.as_deref(), &arguments.path)?;
    let filter = filter(&arguments)?;
    let subjects = place.subjects(&call).await?;
    let listing = subjects.list(call.history()?, &filter).await?;
    if let (Some(author), true) = (&filter.author, listing.versions.is_empty()) {
        refuse_unknown(&call, &subjects, author).await?;
    }
    let has_timeline = timeout(TIMELINE_PATIENCE, place.server.has_timeline())
        .await
        .unwrap_or(false);
    Ok(DocumentHistory {
        path: place.path.to_string(),
        note: note(&listing, has_timeline),
        has_more: listing.has_more,
        recorded_since: listing.since.map(timestamp),
        versions: listing.versions.into_iter().map(ToldVersion::from).collect(),
    })
}

fn filter(arguments: &Arguments) -> Result<Filter, ToolError> {
    if !(1..=MAX_LIMIT).contains(&arguments.limit) {
        return Err(ToolError::argument("limit", format!("must be from 1 to {MAX_LIMIT}")));
    }
    Ok(Filter {
        limit: arguments.limit,
        author: arguments.author.clone(),
        before: arguments.before.as_deref().map(before).transpose()?,
    })
}

/// Refuses somebody who made none of a document's versions, naming who did.
async fn refuse_unknown(call: &Call, subjects: &Subjects, author: &str) -> Result<(), ToolError> {
    let all = Filter {
        limit: MAX_LIMIT,
        author: None,
        before: None,
    };
    let listing = subjects.list(call.history()?, &all).await?;
    let is_known = listing.versions.iter().any(|version| version.is_by(author));
    if is_known || listing.has_more || listing.failure.is_some() {
        return Ok(());
    }
    let authors = listing.versions.iter().flat_map(|version| &version.authors);
    let authors: BTreeSet<&str> = authors.map(String::as_str).collect();
    let authors = authors.into_iter().collect::<Vec<_>>().join(", ");
    let why = format!("nobody of that name made a version of it; its authors are {authors}");
    Err(ToolError::argument("author", why))
}

fn before(moment: &str) -> Result<Before, ToolError> {
    let moment = moment.trim();
    if moment.starts_with('v') {
        return Ok(Before::Version(moment.to_owned()));
    }
    let time = humantime::parse_rfc3339_weak(moment.strip_suffix("+00:00").unwrap_or(moment));
    time.map(Before::Time).map_err(|_| {
        let why = "must be a version_id, or a time in UTC such as 2026-01-31T12:00:00Z";
        ToolError::argument("before", why)
    })
}

fn note(listing: &Listing, has_timeline: bool) -> Option<String> {
    let mut notes = Vec::new();
    if let Some(why) = &listing.failure {
        notes.push(format!("Older versions cannot be shown now: {why}."));
    }
    if listing.lost > 0 {
        notes.push(format!(
            "{} could not be kept since the gateway was started.",
            jupyter_client::counted(usize::try_from(listing.lost).unwrap_or(usize::MAX), "version")
        ));
    }
    if has_timeline && !listing.has_more {
        notes.push("JupyterLab's own timeline (File menu) may reach further back.".to_owned());
    }
    (!notes.is_empty()).then(|| notes.join(" "))
}

impl Describe for DocumentHistory {
    fn describe(&self, page: &mut Page) {
        if self.versions.is_empty() {
            page.line(format!("No such versions of {}", self.path));
        }
        let shown = page.items(&self.versions);
        if let Some(last) = shown.checked_sub(1).map(|last| &self.versions[last])
            && (self.has_more || shown < self.versions.len())
        {
            page.line(format!("Older ones: before=\"{}\"", last.version_id));
        } else if let Some(since) = &self.recorded_since {
            page.line(format!("Recorded since {since}"));
        }
        if let Some(note) = &self.note {
            page.line(note);
        }
    }
}
