//! `search_documents`: text in notebooks and files, as they stand in open rooms, else as they are saved. Opens and starts
//! nothing. How many files are read, how much of them and for how long is limited, and the answer tells what was not.

mod pattern;
mod texts;

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream};
use jupyter_client::{DocPath, Document, DocumentKind, JupyterError, JupyterServer, counted};
use live_document::{RoomKind, ShortIds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};

use self::{
    pattern::Pattern,
    texts::{CellTexts, Texts},
};
use super::{Walk, file_type::has_type, walk::Found};
use crate::tools::{
    Call, ToolError,
    text::{Describe, Page},
};

const DEFAULT_MAX_RESULTS: usize = 50;
const MAX_RESULTS: usize = 1000;
/// Files that are searched, the nearest to the beginning of the tree first.
const MAX_FILES: usize = 1000;
const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;
/// A file that may or may not be text is read only up to this size.
const MAX_UNKNOWN_BYTES: u64 = 256 * 1024;
const MAX_BYTES: u64 = 128 * 1024 * 1024;
const MAX_TIME: Duration = Duration::from_secs(20);
/// Files that are read at the same time.
const PARALLEL_READS: usize = 4;
/// Files and directories that are named as not searched.
const MAX_SKIPPED: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Ignores case if all lower case
    query: String,
    /// Directory, file or glob (default: root)
    #[serde(default)]
    path: String,
    #[serde(default)]
    regex: bool,
    #[serde(default, rename = "where")]
    scope: Scope,
    #[schemars(extend("default" = 50))]
    max_results: Option<usize>,
    server: Option<String>,
}

/// Parts of notebooks that are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    Source,
    Outputs,
    All,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Matches {
    matches: Vec<Match>,
    files_searched: usize,
    /// Whether there may be more
    truncated: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
struct Match {
    path: String,
    /// Null in text files
    cell_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
    #[serde(rename = "where")]
    part: Part,
    /// Of the output, from 0
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<usize>,
    line: usize,
    text: String,
    #[serde(skip)]
    short_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Part {
    Source,
    Output,
}

pub(super) async fn search_documents(call: Call, arguments: Arguments) -> Result<Matches, ToolError> {
    let deadline = Instant::now() + MAX_TIME;
    let search = Search {
        pattern: Pattern::new(&arguments.query, arguments.regex)?,
        scope: arguments.scope,
        max_results: max_results(arguments.max_results)?,
    };
    let server = Arc::clone(call.server(arguments.server.as_deref())?);
    let finding = find(&call, &server, arguments.path.trim(), arguments.scope);
    let Ok(found) = timeout_at(deadline, finding).await else {
        let why = format!(
            "its directories could not be listed within {} s; name a smaller directory",
            MAX_TIME.as_secs()
        );
        return Err(ToolError::argument("path", why));
    };
    let found = found?;
    let plan = Plan::new(found);
    Ok(Arc::new(search).run(&call, &server, plan, deadline).await)
}

fn max_results(wanted: Option<usize>) -> Result<usize, ToolError> {
    match wanted.unwrap_or(DEFAULT_MAX_RESULTS) {
        wanted @ 1..=MAX_RESULTS => Ok(wanted),
        wanted => {
            let why = format!("{wanted} is not between 1 and {MAX_RESULTS}");
            Err(ToolError::argument("max_results", why))
        }
    }
}

/// The documents that a path means: one file, all below a directory, or those that match a glob.
async fn find(call: &Call, server: &Arc<JupyterServer>, path: &str, scope: Scope) -> Result<Found, ToolError> {
    let mut walk = match (DocPath::parse(path), path.contains(['*', '?', '[', '{'])) {
        (Ok(root), _) if root.is_root() => Walk::below(call.directory(None)?),
        (Ok(named), is_glob) => {
            if !call.sees(named.as_str(), true) && !is_glob {
                call.file(path)?;
            }
            match server.document(&named).await {
                Ok(document) if document.kind == DocumentKind::Directory => Walk::below(call.directory(Some(path))?),
                Ok(document) => {
                    call.file(path)?;
                    return Ok(Found::one(document));
                }
                // Characters of globs may stand in names.
                Err(JupyterError::NotFound { .. }) if is_glob => Walk::matching(call, "path", path)?,
                Err(error) => return Err(error.into()),
            }
        }
        (Err(_), true) => Walk::matching(call, "path", path)?,
        (Err(error), false) => return Err(error.into()),
    };
    walk.enters = |directory| !is_unwanted(&directory.name);
    walk.max_found = MAX_FILES;
    let picks = |document: &Document| is_searched(document, scope);
    walk.find(call, server, picks).await
}

/// Returns whether a directory is hidden, or has dependencies or generated files.
fn is_unwanted(name: &str) -> bool {
    name.starts_with('.') || ["node_modules", "__pycache__", "site-packages"].contains(&name)
}

fn is_searched(document: &Document, scope: Scope) -> bool {
    if document.kind != DocumentKind::File || scope == Scope::Outputs {
        return document.kind == DocumentKind::Notebook;
    }
    let is_small = document.size.is_some_and(|size| size <= MAX_UNKNOWN_BYTES);
    has_type(document, "text") || document.mimetype.is_none() && is_small
}

/// The files that are searched, and what is not.
struct Plan {
    files: Vec<(DocPath, DocumentKind)>,
    skipped: Skipped,
    truncated: bool,
}

/// Files that are not searched, and why.
#[derive(Default)]
struct Skipped {
    named: Vec<String>,
    more: usize,
}

impl Skipped {
    fn add(&mut self, what: String) {
        match self.named.len() < MAX_SKIPPED {
            true => self.named.push(what),
            false => self.more += 1,
        }
    }

    fn into_named(mut self) -> Vec<String> {
        if self.more > 0 {
            self.named.push(format!("{} more", self.more));
        }
        self.named
    }
}

impl Plan {
    fn new(found: Found) -> Self {
        const MEGABYTE: u64 = 1024 * 1024;
        let mut skipped = Skipped::default();
        found.skipped.into_iter().for_each(|directory| skipped.add(directory));
        let (mut files, mut bytes, mut truncated) = (Vec::new(), 0, found.truncated);
        if truncated {
            skipped.add(format!(
                "what is beyond {MAX_FILES} files or deep in the tree; name a smaller directory"
            ));
        }
        for document in found.documents {
            let size = document.size.unwrap_or_default();
            let Ok(path) = DocPath::parse_file(&document.path) else {
                continue;
            };
            if size > MAX_FILE_BYTES {
                let (megabytes, limit) = (size / MEGABYTE, MAX_FILE_BYTES / MEGABYTE);
                skipped.add(format!(
                    "{path}: {megabytes} MB, limit {limit} MB; code that runs can search it"
                ));
            } else if bytes + size > MAX_BYTES {
                truncated = true;
                let limit = MAX_BYTES / MEGABYTE;
                skipped.add(format!(
                    "{path}: after {limit} MB of other files; name a smaller directory"
                ));
            } else {
                bytes += size;
                files.push((path, document.kind));
            }
        }
        Self {
            files,
            skipped,
            truncated,
        }
    }
}

struct Search {
    pattern: Pattern,
    scope: Scope,
    max_results: usize,
}

impl Search {
    /// Searches file after file, a few of which are read at the same time, until there are enough matches.
    async fn run(self: Arc<Self>, call: &Call, server: &Arc<JupyterServer>, plan: Plan, deadline: Instant) -> Matches {
        let Plan {
            files,
            mut skipped,
            mut truncated,
        } = plan;
        let count = files.len();
        let reads = files.into_iter().map(|(path, kind)| {
            let search = Arc::clone(&self);
            async move { search.search_file(call, server, path, kind).await }
        });
        let mut reads = stream::iter(reads).buffered(PARALLEL_READS);
        let (mut matches, mut searched) = (Vec::new(), 0);
        while matches.len() <= self.max_results {
            match timeout_at(deadline, reads.next()).await {
                Ok(Some(Ok(found))) => {
                    searched += 1;
                    matches.extend(found);
                }
                Ok(Some(Err(why))) => why.into_iter().for_each(|why| skipped.add(why)),
                Ok(None) => break,
                Err(_) => {
                    truncated = true;
                    let seconds = MAX_TIME.as_secs();
                    skipped.add(format!(
                        "{} of {}, since {seconds} s were over; name a smaller directory",
                        count - searched,
                        counted(count, "file")
                    ));
                    break;
                }
            }
        }
        truncated |= matches.len() > self.max_results;
        matches.truncate(self.max_results);
        Matches {
            matches,
            files_searched: searched,
            truncated,
            skipped: skipped.into_named(),
        }
    }

    /// The matches in a file, or the reason why it was not searched, unless that is expected.
    async fn search_file(
        self: Arc<Self>,
        call: &Call,
        server: &Arc<JupyterServer>,
        path: DocPath,
        kind: DocumentKind,
    ) -> Result<Vec<Match>, Option<String>> {
        let open = match call.names_fork() {
            true => call
                .open_room(server, &path, RoomKind::of(&path))
                .await
                .map_err(|error| Some(format!("{path}: {error}")))?,
            false => call.pool().lease_open(server.name(), &path, RoomKind::of(&path)),
        };
        let texts = match open {
            Some(room) if kind == DocumentKind::Notebook => {
                let all = room.cells(|order| Ok::<_, ToolError>((0..order.count()).collect()));
                Ok(Texts::of_cells(all.map(|looked| looked.cells).unwrap_or_default()))
            }
            Some(room) => Ok(Texts::File(room.text().1)),
            None => {
                let limit = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
                let read = server.beginning(&path, limit).await;
                Err(read.map_err(|error| Some(format!("{path}: {error}")))?)
            }
        };
        // So that a large file keeps no other task waiting.
        let searching = tokio::task::spawn_blocking(move || {
            let texts = match (texts, kind) {
                (Ok(texts), _) => texts,
                (Err(bytes), DocumentKind::Notebook) => {
                    Texts::of_notebook(&bytes).ok_or_else(|| Some(format!("{path}: no valid notebook")))?
                }
                // Most files of unknown types are not text, which is not worth reporting.
                (Err(bytes), _) => Texts::of_file(bytes).ok_or(None)?,
            };
            Ok(self.search_texts(&path, &texts))
        });
        searching.await.unwrap_or(Err(None))
    }

    fn search_texts(&self, path: &DocPath, texts: &Texts) -> Vec<Match> {
        // One more, by which it is known that there are more.
        let max = self.max_results + 1;
        match texts {
            Texts::File(_) if self.scope == Scope::Outputs => Vec::new(),
            Texts::File(text) => self.matches(path, text, None, max),
            Texts::Notebook(cells) => {
                let short_ids = ShortIds::of(cells.iter().filter_map(|cell| cell.id.as_deref()));
                let mut found = Vec::new();
                for (index, cell) in cells.iter().enumerate() {
                    if found.len() >= max {
                        break;
                    }
                    found.extend(self.search_cell(path, index, cell, &short_ids));
                }
                found
            }
        }
    }

    fn search_cell(&self, path: &DocPath, index: usize, cell: &CellTexts, short_ids: &ShortIds) -> Vec<Match> {
        let source = (self.scope != Scope::Outputs).then_some((None, &cell.source));
        let outputs = cell
            .outputs
            .iter()
            .enumerate()
            .map(|(output, text)| (Some(output), text));
        let outputs = outputs.filter(|_| self.scope != Scope::Source);
        let mut found = Vec::new();
        for (output, text) in source.into_iter().chain(outputs) {
            let place = (index, cell.id.as_deref(), output);
            found.extend(self.matches(path, text, Some(place), self.max_results + 1));
        }
        for one in &mut found {
            one.short_id = one.cell_id.as_deref().map(|id| short_ids.get(id).to_owned());
        }
        found
    }

    /// The matches in a text of a file, or of a cell by its index, its id and the number of its output.
    fn matches(
        &self,
        path: &DocPath,
        text: &str,
        cell: Option<(usize, Option<&str>, Option<usize>)>,
        max: usize,
    ) -> Vec<Match> {
        let (index, cell_id, output) = cell.map_or((None, None, None), |(index, id, output)| (Some(index), id, output));
        let hits = self.pattern.find(text, max).into_iter();
        hits.map(|hit| Match {
            path: path.to_string(),
            cell_id: cell_id.map(str::to_owned),
            index,
            part: if output.is_some() { Part::Output } else { Part::Source },
            output,
            line: hit.line,
            text: hit.text,
            short_id: None,
        })
        .collect()
    }
}

impl Describe for Matches {
    fn describe(&self, page: &mut Page) {
        let files = self.matches.chunk_by(|a, b| a.path == b.path).count();
        let many = counted(self.matches.len(), "matching line");
        let searched = counted(self.files_searched, "file");
        page.line(match files {
            0 => format!("No match in {searched}"),
            files => format!("{many} in {files} of {searched}"),
        });
        let mut told = 0;
        for file in self.matches.chunk_by(|a, b| a.path == b.path) {
            let path = &file[0].path;
            if page.items([path]) == 0 {
                break;
            }
            let added = page.items(file.iter().map(Match::to_line));
            told += added;
            if added < file.len() {
                break;
            }
        }
        if told < self.matches.len() {
            let left = self.matches.len() - told;
            page.line(format_args!("[{left} more: narrow the query or the path]"));
        } else if self.truncated && self.skipped.is_empty() {
            page.line(format_args!(
                "[there are more: max_results={}, or narrow the query]",
                2 * told
            ));
        }
        for skipped in &self.skipped {
            page.line(format_args!("[not searched: {skipped}]"));
        }
    }
}

impl Match {
    /// `[3] 9c1fa2:12: text` in a notebook, `12: text` in a file.
    fn to_line(&self) -> String {
        let (line, text) = (self.line, &self.text);
        let Some(index) = self.index else {
            return format!("{line}: {text}");
        };
        let id = self.short_id.as_ref().map_or_else(String::new, |id| format!(" {id}"));
        let output = if self.part == Part::Output { " output" } else { "" };
        format!("[{index}]{id}{output}:{line}: {text}")
    }
}
