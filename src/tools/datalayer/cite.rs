//! The prompt `jupyter_cite`: cells of a notebook, and what is to be done about them.

use std::{collections::BTreeSet, fmt::Write};

use live_document::{CellsRead, SourceShown};

use super::{
    read::heading,
    target::{find, notebook_name},
};
use crate::{
    tools::{Call, ToolError},
    types::Permission,
};

/// The text of the prompt. Cells are listed as in `0-2,4` or `3-`; an empty name means the active notebook.
pub async fn cite(call: &Call, prompt: &str, cells: &str, name: &str) -> Result<String, ToolError> {
    call.principal().require(Permission::Read)?;
    let name = notebook_name(call, Some(name))?;
    let notebook = find(call, Some(&name)).await?;
    let CellsRead {
        revision, cells: cited, ..
    } = notebook
        .room
        .cells(|order| Ok::<_, ToolError>(positions(cells, order.count())?.into_iter().collect()))?;
    let shown = cited.iter().map(|(_, cell)| SourceShown {
        cell: &cell.id,
        source: Some(&cell.source),
    });
    notebook.room.record_shown(&call.principal().id, &revision, shown);
    let indices: Vec<usize> = cited.iter().map(|(index, _)| *index).collect();
    let mut text = format!("USER Cite cells {indices:?} from notebook {name}, here are the cells:\n");
    let short = notebook.room.short_ids();
    for (index, cell) in &cited {
        // A string takes everything.
        let _ = writeln!(text, "{}\n{}", heading(*index, cell, &short), cell.source);
    }
    let _ = write!(
        text,
        "=====End of Cited Cells=====\nUSER's Instruction are follow: {prompt}"
    );
    Ok(text)
}

/// The positions that a list such as `0-2,4` means, each once, in order.
fn positions(list: &str, count: usize) -> Result<BTreeSet<usize>, ToolError> {
    let invalid = |why: String| ToolError::argument("cell_indices", why);
    let index = |text: &str| {
        let index = text.trim().parse::<usize>();
        let index =
            index.map_err(|_| invalid(format!("{text:?} is no index; write them as in 0,1,2 or 0-2,4 or 3-")))?;
        match index < count {
            true => Ok(index),
            false => Err(invalid(format!(
                "{index} is out of range; the notebook has {count} cells"
            ))),
        }
    };
    let mut found = BTreeSet::new();
    for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        match part.split_once('-') {
            None => {
                found.insert(index(part)?);
            }
            Some((start, "")) => found.extend(index(start)?..count),
            Some((start, end)) => {
                let (start, end) = (index(start)?, index(end)?);
                if end < start {
                    return Err(invalid(format!("{part:?} ends before it begins")));
                }
                found.extend(start..=end);
            }
        }
    }
    match found.is_empty() {
        true => Err(invalid("name at least one cell, as in 0,1,2 or 0-2,4 or 3-".to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cells_are_read() {
        let read = |list: &str| positions(list, 6).map(|found| found.into_iter().collect::<Vec<_>>());
        assert_eq!(read("0,1,2"), Ok(vec![0, 1, 2]));
        assert_eq!(read(" 4 , 0-2,1"), Ok(vec![0, 1, 2, 4]));
        assert_eq!(read("3-"), Ok(vec![3, 4, 5]));
        for list in ["", " , ", "x", "-1", "2-1", "6", "0-6", "1.5", "1-2-3"] {
            assert!(read(list).is_err(), "{list}");
        }
    }
}
