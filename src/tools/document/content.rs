//! `get_document_content`: a text as it stands in its room, whole or by lines. Of a file that is too large for a room, as it
//! is on disk.

use std::{ops::Range, sync::Arc, time::Duration};

use jupyter_client::{DocPath, JupyterError, JupyterServer, counted, truncate};
use live_document::{
    Room, RoomError,
    pool::{Lease, PoolError},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{binary, line_scan::LineScan, text_room};
use crate::tools::{
    Call, ToolError,
    lines::{count_lines, lines, span},
    output::JsonObject,
    people::{PersonHere, people, people_line},
    text::{Describe, Page},
};

const DEFAULT_MAX_CONTENT: usize = 32_768;
/// The most that is read of a file that is not opened.
const MAX_BEGINNING: usize = 8 * 1024 * 1024;
/// The most that is looked through for lines of such a file, and how long.
const MAX_SCANNED: usize = 1024 * 1024 * 1024;
const SCAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Unit of `content_length` where nobody has counted the characters.
pub(in crate::tools) const BYTES: &str = "bytes";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    path: String,
    /// From 1
    start_line: Option<usize>,
    /// Included
    end_line: Option<usize>,
    /// Characters
    #[schemars(extend("default" = 32768))]
    max_content: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::tools) struct DocumentContent {
    content: String,
    /// Whether not all that was asked for is there
    pub(in crate::tools) truncated: bool,
    /// Of the whole document: characters, if `content_unit` says nothing else
    pub(in crate::tools) content_length: usize,
    revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::tools) content_unit: Option<&'static str>,
    /// Null in a file that is too large to be counted
    total_lines: Option<usize>,
    /// The first line of `content`
    start_line: usize,
    /// The last one
    end_line: usize,
    /// True if the caller can ask for lines
    #[serde(skip)]
    has_lines: bool,
    #[schemars(with = "Vec<JsonObject>")]
    people: Vec<PersonHere>,
}

pub(super) async fn get_document_content(call: Call, arguments: Arguments) -> Result<DocumentContent, ToolError> {
    let max = arguments.max_content.unwrap_or(DEFAULT_MAX_CONTENT);
    let (server, path) = (arguments.server.as_deref(), arguments.path.as_str());
    let wanted = LineRange::new(arguments.start_line, arguments.end_line)?;
    match (text_room(&call, server, path).await, wanted) {
        (Ok((_, _, room)), wanted) => lines_of_room(&call, &room, wanted.unwrap_or(LineRange::ALL), max),
        (Err(error), Some(wanted)) if is_too_large(&error) => {
            lines_of_file(call.server(server)?, &call.file(path)?, wanted, max).await
        }
        (Err(error), None) if is_too_large(&error) => Ok(DocumentContent {
            has_lines: true,
            ..beginning(call.server(server)?, &call.file(path)?, max).await?
        }),
        (Err(error), _) => Err(error),
    }
}

/// Returns whether a document is too large to be opened, so that only a part of it can be read.
fn is_too_large(error: &ToolError) -> bool {
    let is_large = |error: &JupyterError| matches!(error, JupyterError::LargeDocument { .. });
    matches!(error, ToolError::Pool(PoolError::Room(RoomError::Jupyter(why))) if is_large(why))
}

/// A text as it stands now, cut to `max` characters, and its room, unless it is too large to be opened.
pub(in crate::tools) async fn read(
    call: &Call,
    server: Option<&str>,
    path: &str,
    max: usize,
) -> Result<(Option<(Arc<JupyterServer>, Lease)>, DocumentContent), ToolError> {
    match text_room(call, server, path).await {
        Err(error) if is_too_large(&error) => {
            let content = beginning(call.server(server)?, &call.file(path)?, max).await?;
            Ok((None, content))
        }
        Err(error) => Err(error),
        Ok((server, _, room)) => {
            let content = content(call, &room, max);
            Ok((Some((server, room)), content))
        }
    }
}

/// The beginning of a text file that is too large to be opened, as it is on disk.
async fn beginning(server: &JupyterServer, path: &DocPath, max: usize) -> Result<DocumentContent, ToolError> {
    let file = server.document(path).await?;
    let beginning = Beginning::read(server, path, max).await?;
    let content = beginning.text.ok_or_else(|| binary::refusal(server.name(), &file))?;
    Ok(DocumentContent {
        truncated: true,
        start_line: 1,
        end_line: count_lines(&content),
        total_lines: None,
        content,
        ..unopened(file.size)
    })
}

/// Content of a file that is not opened: no edit can be checked against it.
fn unopened(size: Option<u64>) -> DocumentContent {
    DocumentContent {
        content: String::new(),
        truncated: false,
        content_length: usize::try_from(size.unwrap_or_default()).unwrap_or(usize::MAX),
        revision: String::new(),
        content_unit: Some(BYTES),
        total_lines: None,
        start_line: 1,
        end_line: 0,
        has_lines: false,
        people: Vec::new(),
    }
}

/// The first characters of a file.
pub(in crate::tools) struct Beginning {
    /// The text; none if the file is not text.
    pub(in crate::tools) text: Option<String>,
}

impl Beginning {
    /// Returns whether it is text and not empty.
    pub(in crate::tools) fn has_text(&self) -> bool {
        self.text.as_ref().is_some_and(|text| !text.is_empty())
    }

    pub(in crate::tools) async fn read(server: &JupyterServer, path: &DocPath, max: usize) -> Result<Self, ToolError> {
        // A character has four bytes at most.
        let bytes = max.saturating_mul(4).clamp(4, MAX_BEGINNING);
        let text = cut_text(server.beginning(path, bytes).await?);
        Ok(Self {
            text: text.map(|text| whole_lines(&text, max).0.to_owned()),
        })
    }
}

/// The text of bytes of which the last may be a part of a character.
fn cut_text(mut bytes: Vec<u8>) -> Option<String> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}

fn content(call: &Call, room: &Room, max: usize) -> DocumentContent {
    let (revision, text) = room.text();
    let is_whole = text.chars().count() <= max;
    room.record_text(&call.principal().id, &revision, &text, is_whole);
    let total_lines = Some(count_lines(&text));
    let cut = truncate(text, max);
    DocumentContent {
        truncated: cut.truncated,
        content_length: cut.full_length,
        revision,
        content_unit: None,
        total_lines,
        start_line: 1,
        end_line: count_lines(&cut.text),
        content: cut.text,
        has_lines: false,
        people: people(room),
    }
}

/// Lines that a caller asks for, from 1, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineRange {
    start: usize,
    end: Option<usize>,
}

impl LineRange {
    const ALL: Self = Self { start: 1, end: None };

    /// None if all are meant.
    fn new(start: Option<usize>, end: Option<usize>) -> Result<Option<Self>, ToolError> {
        let first = start.unwrap_or(1);
        if first == 0 {
            return Err(ToolError::argument("start_line", "lines are counted from 1"));
        }
        if let Some(end) = end.filter(|end| *end < first) {
            let why = format!("{end} is before start_line {first}; both lines are included");
            return Err(ToolError::argument("end_line", why));
        }
        let is_given = start.is_some() || end.is_some();
        Ok(is_given.then_some(Self { start: first, end }))
    }

    /// Refuses lines that are not there. An empty text can be read from its beginning.
    fn check(self, total: usize) -> Result<(), ToolError> {
        let has = match total {
            0 => "the document is empty (total_lines 0)".to_owned(),
            total => format!("the document has {} (total_lines {total})", counted(total, "line")),
        };
        let (argument, line) = match self.end {
            _ if self.start > total.max(1) => ("start_line", self.start),
            Some(end) if end > total => ("end_line", end),
            _ => return Ok(()),
        };
        Err(ToolError::argument(
            argument,
            format!("{line} is behind the last line; {has}"),
        ))
    }

    /// By number from 0.
    fn indices(self) -> Range<usize> {
        self.start - 1..self.end.unwrap_or(usize::MAX)
    }
}

fn lines_of_room(call: &Call, room: &Room, wanted: LineRange, max: usize) -> Result<DocumentContent, ToolError> {
    let (revision, text) = room.text();
    let total = count_lines(&text);
    wanted.check(total)?;
    let part = &text[span(&text, wanted.indices())];
    let (content, truncated) = whole_lines(part, max);
    let is_whole = content.len() == text.len();
    room.record_text(&call.principal().id, &revision, &text, is_whole);
    Ok(DocumentContent {
        content_length: text.chars().count(),
        revision,
        content_unit: None,
        total_lines: Some(total),
        start_line: wanted.start,
        end_line: wanted.start + count_lines(content) - usize::from(!content.is_empty()),
        content: content.to_owned(),
        has_lines: true,
        truncated,
        people: people(room),
    })
}

/// Lines of a file that is too large to be opened, as it is on disk.
async fn lines_of_file(
    server: &JupyterServer,
    path: &DocPath,
    wanted: LineRange,
    max: usize,
) -> Result<DocumentContent, ToolError> {
    let file = server.document(path).await?;
    let max_kept = max.saturating_mul(4).clamp(4, MAX_BEGINNING);
    let mut scan = LineScan::new(wanted.indices(), max_kept, MAX_SCANNED);
    let is_whole = server
        .read_through(path, SCAN_TIMEOUT, |chunk| scan.take(chunk))
        .await?;
    let (seen, is_cut) = (scan.lines(), scan.is_cut());
    if is_whole {
        wanted.check(seen)?;
    } else if wanted.start > seen {
        let megabytes = MAX_SCANNED / 1024 / 1024;
        let why = format!(
            "not among the first {seen} lines, {megabytes} MB, which is all that is read; code that runs can read more"
        );
        return Err(ToolError::argument("start_line", why));
    }
    let text = cut_text(scan.into_kept()).ok_or_else(|| binary::refusal(server.name(), &file))?;
    let (content, is_shortened) = whole_lines(&text, max);
    let is_unseen = !is_whole && wanted.end.is_none_or(|end| end > seen);
    Ok(DocumentContent {
        total_lines: is_whole.then_some(seen),
        start_line: wanted.start,
        end_line: wanted.start + count_lines(content) - usize::from(!content.is_empty()),
        content: content.to_owned(),
        truncated: is_cut || is_shortened || is_unseen,
        has_lines: true,
        ..unopened(file.size)
    })
}

/// The first lines of a text with at most `max` characters, or the beginning of the first one; and whether there is more.
fn whole_lines(text: &str, max: usize) -> (&str, bool) {
    let Some((limit, _)) = text.char_indices().nth(max) else {
        return (text, false);
    };
    let fitting = lines(text)
        .map(|line| line.next)
        .take_while(|next| *next <= limit)
        .last();
    (&text[..fitting.unwrap_or(limit)], true)
}

impl Describe for DocumentContent {
    fn describe(&self, page: &mut Page) {
        let (start, end) = (self.start_line, self.end_line);
        let unit = self.content_unit.unwrap_or("characters");
        let size = format!("{} {unit}", self.content_length);
        let is_whole = self.total_lines == Some(end) && start == 1 && !self.truncated;
        let facts = match self.total_lines {
            Some(total) if is_whole => format!("{}, {size}", counted(total, "line")),
            Some(total) => format!("lines {start}-{end} of {total}, {size}"),
            None => format!("lines {start}-{end} of {size}"),
        };
        let revision = Some(format!("revision {}", self.revision)).filter(|_| !self.revision.is_empty());
        let facts = [Some(facts), revision, people_line(&self.people)];
        let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        page.line(facts);
        let (shown, is_cut) = fitting(&self.content, page.room());
        page.block(shown);
        if self.has_lines && (is_cut || self.truncated) {
            let told = count_lines(shown);
            let is_broken = !shown.ends_with(['\n', '\r']) && (is_cut || start + told <= end + 1 && self.truncated);
            let next = start + told - usize::from(is_broken && told > 1);
            page.line(format_args!("[more: start_line={next}]"));
        }
    }
}

/// The whole lines that fit into a number of bytes.
fn fitting(text: &str, room: usize) -> (&str, bool) {
    if text.len() <= room {
        return (text, false);
    }
    let limit = text.floor_char_boundary(room);
    let fitting = lines(text)
        .map(|line| line.next)
        .take_while(|next| *next <= limit)
        .last();
    (&text[..fitting.unwrap_or(limit)], true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_checked() {
        let range = |start, end| LineRange::new(start, end).map_err(|error| error.to_string());
        assert_eq!(range(None, None), Ok(None));
        assert!(range(Some(0), None).is_err_and(|why| why.contains("from 1")));
        assert!(range(Some(3), Some(2)).is_err_and(|why| why.contains("before start_line 3")));
        let check = |start, end, total| {
            let range = LineRange { start, end };
            range.check(total).map_err(|error| error.to_string())
        };
        assert_eq!(check(1, None, 0), Ok(()));
        assert_eq!(check(2, Some(3), 3), Ok(()));
        assert!(check(4, None, 3).is_err_and(|why| why.contains("`start_line`") && why.contains("total_lines 3")));
        assert!(check(1, Some(4), 3).is_err_and(|why| why.contains("`end_line`")));
        assert!(check(1, Some(1), 0).is_err_and(|why| why.contains("empty")));
    }

    #[test]
    fn lines_are_cut_between_them_if_possible() {
        assert_eq!(whole_lines("aé\nbb\n", 6), ("aé\nbb\n", false));
        assert_eq!(whole_lines("aé\nbb\n", 5), ("aé\n", true));
        assert_eq!(whole_lines("aéaa", 2), ("aé", true));
        assert_eq!(whole_lines("", 0), ("", false));
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_line() {
        let told = |content: &str, truncated: bool, total: usize, max: usize| {
            let content = DocumentContent {
                content: content.to_owned(),
                truncated,
                total_lines: Some(total),
                start_line: 5,
                end_line: 4 + count_lines(content),
                revision: "r-1".to_owned(),
                content_unit: None,
                has_lines: true,
                ..unopened(Some(9))
            };
            let mut page = Page::new(max);
            content.describe(&mut page);
            page.into_text()
        };
        assert_eq!(
            told("a\nb\n", false, 9, 1000),
            "lines 5-6 of 9, 9 characters, revision r-1\na\nb"
        );
        assert!(told("a\nb\n", true, 9, 1000).ends_with("a\nb\n[more: start_line=7]"));
        assert!(told("a\nbb", true, 9, 1000).ends_with("a\nbb\n[more: start_line=6]"));
        assert!(told("aaaaaaa\nbbbbbbb\n", false, 9, 256).ends_with("aaaaaaa\n[more: start_line=6]"));
        assert!(
            told("\n\nx", false, 9, 1000).ends_with("r-1\n\n\nx"),
            "empty lines stay"
        );
    }
}
