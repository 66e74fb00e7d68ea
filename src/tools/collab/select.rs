//! Selection of cells in this vocabulary: a range whose end is inclusive, or ids.

use live_document::Room;

use crate::tools::{
    ToolError,
    cells::{Range, positions},
};

/// Cells as a call names them.
pub(super) enum Selection<'a> {
    Range(std::ops::Range<usize>),
    Ids(&'a [String]),
}

impl<'a> Selection<'a> {
    pub(super) fn new(
        start_index: Option<usize>,
        end_index: Option<usize>,
        cell_ids: Option<&'a [String]>,
    ) -> Result<Self, ToolError> {
        match (start_index, end_index, cell_ids) {
            (Some(start), end, None | Some([])) => {
                let end = end.unwrap_or(start);
                if end < start {
                    let why = format!("{end} is before `start_index` {start}; it is inclusive");
                    return Err(ToolError::argument("end_index", why));
                }
                Ok(Self::Range(start..end.saturating_add(1)))
            }
            (None, None, Some([])) => Err(ToolError::argument("cell_ids", "name at least one cell")),
            (None, None, Some(ids)) => Ok(Self::Ids(ids)),
            _ => Err(ToolError::argument(
                "start_index",
                "give either `start_index` (and `end_index`, inclusive) or `cell_ids`",
            )),
        }
    }

    pub(super) fn count(&self) -> usize {
        match self {
            Self::Range(range) => range.len(),
            Self::Ids(ids) => ids.len(),
        }
    }

    pub(super) fn is_by_position(&self) -> bool {
        matches!(self, Self::Range(_))
    }

    /// The ids of the cells as they stand now.
    pub(super) fn ids(&self, room: &Room) -> Result<Vec<String>, ToolError> {
        room.ids(|order| match self {
            Self::Range(range) => {
                let argument = if range.start < order.count() {
                    "end_index"
                } else {
                    "start_index"
                };
                let resolved = Range::of(range.clone()).resolve(order);
                Ok(resolved.map_err(|why| ToolError::argument(argument, why))?.collect())
            }
            Self::Ids(ids) => {
                let ranges: Vec<Range> = ids.iter().cloned().map(Range::cell).collect();
                positions(order, &ranges, "cell_ids")
            }
        })
    }
}
