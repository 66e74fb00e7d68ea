//! `get_user_cursors` and `update_cursor_position`.

use std::fmt;

use live_document::{Cursor, CursorRange, Participant, Position, Room, RoomKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::timestamp;
use crate::tools::{
    Call, ToolError,
    cells::cell_named,
    text::{Describe, Page},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CursorsArguments {
    document_path: String,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct UserCursors {
    document_path: String,
    cursors: Vec<UserCursor>,
    /// Users who are in the document and whose cursor is in no text
    without_cursor: Vec<String>,
    /// Since when the gateway hears who is in the document
    listening_since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct UserCursor {
    user_id: String,
    name: String,
    is_agent: bool,
    color: String,
    cell_id: Option<String>,
    cell_index: Option<usize>,
    line: usize,
    column: usize,
    position: Place,
    selection: Option<SelectedPlaces>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
struct Place {
    line: usize,
    column: usize,
}

#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
struct SelectedPlaces {
    start: Place,
    end: Place,
}

impl From<&Cursor> for Place {
    fn from(cursor: &Cursor) -> Self {
        Self {
            // Lines count from 0 in this vocabulary.
            line: cursor.line.saturating_sub(1),
            column: cursor.column,
        }
    }
}

impl UserCursor {
    fn new(participant: &Participant, range: &CursorRange) -> Self {
        let user = &participant.user;
        let (anchor, head) = (Place::from(&range.anchor), Place::from(&range.head));
        let (cell_index, cell_id) = range.head.cell.clone().unzip();
        Self {
            user_id: user.id.clone(),
            name: user.name.clone(),
            is_agent: user.is_agent,
            color: user.color.clone(),
            cell_id,
            cell_index,
            line: head.line,
            column: head.column,
            position: head,
            selection: (anchor != head).then_some(SelectedPlaces {
                start: anchor.min(head),
                end: anchor.max(head),
            }),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl fmt::Display for UserCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_agent { "agent" } else { "person" };
        write!(f, "{} ({kind}): ", self.name)?;
        if let (Some(index), Some(id)) = (self.cell_index, &self.cell_id) {
            write!(f, "cell {index} ({id}), ")?;
        }
        write!(f, "line {}, column {}", self.line, self.column)?;
        match &self.selection {
            Some(SelectedPlaces { start, end }) => write!(f, ", selected {start} to {end}"),
            None => Ok(()),
        }
    }
}

impl Describe for UserCursors {
    fn describe(&self, page: &mut Page) {
        match self.cursors.is_empty() {
            true => page.line(format!("No cursors are known in {}", self.document_path)),
            false => page.line(format!("Cursors in {} (lines and columns from 0)", self.document_path)),
        };
        page.items(&self.cursors);
        if !self.without_cursor.is_empty() {
            page.line(format!("Here without a cursor: {}", self.without_cursor.join(", ")));
        }
        if let Some(note) = self.note {
            page.line(note);
        }
    }
}

/// Time within which everybody who is in a document has sent a state.
const AWARENESS_ROUND: std::time::Duration = std::time::Duration::from_secs(20);

pub(super) async fn get_user_cursors(call: Call, arguments: CursorsArguments) -> Result<UserCursors, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.document_path)?;
    let room = call.room(server, &path, RoomKind::of(&path)).await?;
    let participants = room.participants();
    let mut cursors: Vec<UserCursor> = Vec::new();
    let mut without_cursor: Vec<String> = Vec::new();
    for participant in &participants {
        let primary = participant.cursors.iter().find(|range| range.is_primary);
        // The main cursor comes first; others may hold what is selected.
        let others = participant.cursors.iter().filter(|range| !range.is_primary);
        let shown: Vec<UserCursor> = primary
            .into_iter()
            .chain(others)
            .map(|range| UserCursor::new(participant, range))
            .collect();
        match shown.is_empty() {
            true => without_cursor.push(participant.user.name.clone()),
            false => cursors.extend(shown),
        }
    }
    cursors.sort_by(|one, other| {
        (one.is_agent, &one.name, one.cell_index).cmp(&(other.is_agent, &other.name, other.cell_index))
    });
    without_cursor.sort();
    let since = room.listening_since();
    let is_young = since.elapsed().is_ok_and(|elapsed| elapsed < AWARENESS_ROUND);
    Ok(UserCursors {
        document_path: path.to_string(),
        cursors,
        without_cursor,
        listening_since: timestamp(since),
        note: is_young.then_some(
            "The document was opened here just now: who was in it before is heard when they next move, within about 15 seconds.",
        ),
    })
}

// A place in a text. Not a doc comment, which would be repeated in every schema.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlaceArgument {
    /// 0-based
    line: i64,
    /// 0-based, in characters
    column: i64,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SelectionArgument {
    /// Default: the position
    start: Option<PlaceArgument>,
    /// Default: the position
    end: Option<PlaceArgument>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateArguments {
    document_path: String,
    position: PlaceArgument,
    selection: Option<SelectionArgument>,
    /// In a notebook; default: where your cursor is, or the only cell
    cell_id: Option<String>,
    /// Instead of cell_id
    cell_index: Option<usize>,
    server: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct CursorUpdated {
    success: bool,
    document_path: String,
    cell_id: Option<String>,
    cell_index: Option<usize>,
    position: Place,
    selection: Option<SelectedPlaces>,
    message: String,
}

crate::tools::text::described_by!(message: CursorUpdated);

pub(super) async fn update_cursor_position(call: Call, arguments: UpdateArguments) -> Result<CursorUpdated, ToolError> {
    let server = call.server(arguments.server.as_deref())?;
    let path = call.file(&arguments.document_path)?;
    let position = place("position", arguments.position)?;
    let selection = match arguments.selection {
        Some(SelectionArgument { start, end }) => {
            let start = start.map(|start| place("selection.start", start)).transpose()?;
            let end = end.map(|end| place("selection.end", end)).transpose()?;
            (start.is_some() || end.is_some()).then(|| (start.unwrap_or(position), end.unwrap_or(position)))
        }
        None => None,
    };
    let room = call.room(server, &path, RoomKind::of(&path)).await?;
    let cell = cell(&call, &room, &arguments)?;
    let principal = call.principal();
    let shown = room
        .point(&principal.id, &principal.name, cell.as_deref(), position, selection)
        .map_err(|why| ToolError::argument("position", why.to_string()))?;
    let cell_index = cell.as_deref().and_then(|cell| room.position_of(cell));
    let of_cell = cell_index.map(|index| format!(" of cell {index}")).unwrap_or_default();
    let message = match shown {
        true => format!(
            "Your cursor is at line {}, column {}{of_cell} of {path}",
            position.line, position.column
        ),
        false => {
            "You are offline, so nobody sees your cursor; set_user_presence(status=\"online\") shows you".to_owned()
        }
    };
    let place = |position: Position| Place {
        line: position.line,
        column: position.column,
    };
    Ok(CursorUpdated {
        success: shown,
        document_path: path.to_string(),
        cell_id: cell,
        cell_index,
        position: place(position),
        selection: selection.map(|(start, end)| SelectedPlaces {
            start: place(start),
            end: place(end),
        }),
        message,
    })
}

fn place(argument: &str, given: PlaceArgument) -> Result<Position, ToolError> {
    let number = |member: &str, value: i64| {
        let why = || format!("{value} is out of range; lines and columns count from 0");
        usize::try_from(value).map_err(|_| ToolError::argument(&format!("{argument}.{member}"), why()))
    };
    Ok(Position {
        line: number("line", given.line)?,
        column: number("column", given.column)?,
    })
}

/// The cell that is meant, in a notebook.
fn cell(call: &Call, room: &Room, arguments: &UpdateArguments) -> Result<Option<String>, ToolError> {
    if room.info().kind == RoomKind::Text {
        return match (&arguments.cell_id, arguments.cell_index) {
            (None, None) => Ok(None),
            _ => Err(ToolError::argument(
                "cell_id",
                "a text document has no cells; leave it out",
            )),
        };
    }
    let count = room.cell_count();
    let at = |index: usize| {
        room.ids(|_| Ok::<_, ToolError>(vec![index]))
            .map(|ids| ids.into_iter().next())
    };
    match (&arguments.cell_id, arguments.cell_index) {
        (Some(_), Some(_)) => Err(ToolError::argument(
            "cell_index",
            "give either `cell_id` or `cell_index`",
        )),
        (Some(named), None) => cell_named(room, "cell_id", named).map(Some),
        (None, Some(index)) if index < count => at(index),
        (None, Some(index)) => {
            let why = match count {
                0 => "the notebook has no cells".to_owned(),
                _ => format!("{index} is out of range; valid indices are 0 to {}", count - 1),
            };
            Err(ToolError::argument("cell_index", why))
        }
        (None, None) => {
            let own = room
                .cell_of(&call.principal().id)
                .filter(|cell| room.position_of(cell).is_some());
            match own {
                Some(cell) => Ok(Some(cell)),
                None if count == 1 => at(0),
                None => {
                    let some = room.ids(|order| Ok::<_, ToolError>((0..order.count().min(10)).collect()))?;
                    let why = format!(
                        "name the cell, or its cell_index; the notebook has {count}: {}",
                        some.join(", ")
                    );
                    Err(ToolError::argument("cell_id", why))
                }
            }
        }
    }
}
