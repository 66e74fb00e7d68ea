//! Selection of the cells that a call means: ranges of positions, or ids.

use live_document::{CellOrder, EditError, Room};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{auth::Principal, tools::ToolError};

// A range of positions, or one cell by its id. Not a doc comment, which would be repeated in every schema.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tools) struct Range {
    start: Option<usize>,
    /// Exclusive
    end: Option<usize>,
    cell_id: Option<String>,
}

/// The positions of all ranges in the order given, among the cells of one moment: cells move at any
/// time, so a position of one moment must not be looked up in another.
pub(in crate::tools) fn positions(
    cells: &(impl CellOrder + ?Sized),
    ranges: &[Range],
    argument: &str,
) -> Result<Vec<usize>, ToolError> {
    if ranges.is_empty() {
        return Err(ToolError::argument(argument, "name at least one"));
    }
    let mut found = Vec::new();
    for (index, range) in ranges.iter().enumerate() {
        let named = |why: String| ToolError::argument(&format!("{argument}[{index}]"), why);
        found.extend(range.resolve(cells).map_err(named)?);
    }
    Ok(found)
}

// The cells that a call means beside those it names. Not a doc comment, which would be in the schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::tools) enum CellScope {
    #[default]
    Only,
    Above,
    Below,
}

impl CellScope {
    /// The positions that are meant; without ranges those of all cells.
    pub(in crate::tools) fn positions(
        self,
        cells: &(impl CellOrder + ?Sized),
        ranges: Option<&[Range]>,
    ) -> Result<Vec<usize>, ToolError> {
        let Some(ranges) = ranges else {
            return match self {
                Self::Only => Ok((0..cells.count()).collect()),
                Self::Above | Self::Below => {
                    let why = "needs `ranges` to name the cell; leave both out for all cells";
                    Err(ToolError::argument("scope", why))
                }
            };
        };
        let named = positions(cells, ranges, "ranges")?;
        let first = named.iter().copied().min().unwrap_or_default();
        match self {
            Self::Only => Ok(named),
            Self::Above if first == 0 => {
                let why = "there is no cell above cell 0; \"below\" runs it and all after it";
                Err(ToolError::argument("scope", why))
            }
            Self::Above => Ok((0..first).collect()),
            Self::Below => Ok((first..cells.count()).collect()),
        }
    }
}

/// The whole id of a cell that an argument names.
pub(in crate::tools) fn cell_named(room: &Room, argument: &str, named: &str) -> Result<String, ToolError> {
    let found = room.ids(|order| order.find(named).map(|position| vec![position]));
    let found = found.map_err(|why| ToolError::argument(argument, why.to_string()))?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// Refuses cells that a caller named by their positions at a revision after which others moved them.
pub(in crate::tools) fn check_positions(
    room: &Room,
    by_position: bool,
    cells: &[String],
    revision: Option<&str>,
    principal: &Principal,
) -> Result<(), ToolError> {
    let Some(revision) = revision.filter(|_| by_position) else {
        return Ok(());
    };
    let Some((first, by)) = room.moved_by_others(revision, &principal.id)? else {
        return Ok(());
    };
    let moved = cells
        .iter()
        .filter(|cell| room.position_of(cell).is_none_or(|position| position >= first));
    let moved: Vec<&str> = moved.map(String::as_str).collect();
    if moved.is_empty() {
        return Ok(());
    }
    let what = format!(
        "{by} inserted or removed cells since you read it, so positions from {first} on have shifted; you addressed {}",
        moved.join(", ")
    );
    Err(EditError::Stale { what }.into())
}

impl Range {
    pub(in crate::tools) fn one(index: usize) -> Self {
        Self::of(index..index.saturating_add(1))
    }

    /// From one position up to, and not including, another.
    pub(in crate::tools) fn of(positions: std::ops::Range<usize>) -> Self {
        Self {
            start: Some(positions.start),
            end: Some(positions.end),
            cell_id: None,
        }
    }

    pub(in crate::tools) fn cell(id: String) -> Self {
        Self {
            start: None,
            end: None,
            cell_id: Some(id),
        }
    }

    pub(in crate::tools) fn is_by_position(&self) -> bool {
        self.cell_id.is_none()
    }

    pub(in crate::tools) fn resolve(
        &self,
        cells: &(impl CellOrder + ?Sized),
    ) -> Result<std::ops::Range<usize>, String> {
        let count = cells.count();
        match (self.start, self.end, &self.cell_id) {
            (None, None, Some(id)) => {
                let position = cells.find(id).map_err(|why| why.to_string())?;
                Ok(position..position + 1)
            }
            (Some(start), end, None) => {
                let end = end.unwrap_or(start.saturating_add(1));
                if end <= start {
                    return Err(format!(
                        "`end` {end} must be greater than `start` {start}; it is exclusive"
                    ));
                }
                if end > count {
                    return Err(out_of_range(start, end, count));
                }
                Ok(start..end)
            }
            _ => Err("give either `start` (and `end`) or `cell_id`".to_owned()),
        }
    }
}

fn out_of_range(start: usize, end: usize, count: usize) -> String {
    let last = end - 1;
    let wanted = match start == last {
        true => format!("{start} is out of range"),
        false => format!("{start} to {last} is out of range"),
    };
    match count {
        0 => format!("{wanted}; the notebook has no cells"),
        1 => format!("{wanted}; the notebook has 1 cell, 0"),
        _ => format!("{wanted}; the notebook has {count} cells, 0 to {}", count - 1),
    }
}
