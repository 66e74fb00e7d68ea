//! Writes of a run into its cell: its start, its outputs, its end. JupyterLab draws only certain shapes of such
//! changes correctly, so they are made here and nowhere else.

use std::sync::Arc;

use serde_json::Value;
use yrs::{Any, Array, ArrayPrelim, ArrayRef, Map, MapRef, Out, ReadTxn, Text, TextRef, TransactionMut};

use super::{Applied, Author, CellEntry, Document, OBSERVER, Selection, Transact};
use crate::core::notebook::{execution_count, output_prelim, text_of};

/// `execution_state` of a cell that runs or is queued, which JupyterLab shows as `[*]`.
const RUNNING: &str = "running";
const IDLE: &str = "idle";

/// A cell that is shown as queued, with the count that it had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedCell {
    pub id: String,
    pub execution_count: Option<i64>,
}

/// One change of a cell by the run that it is in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellWrite {
    /// The run begins: what an earlier one left goes.
    pub begin: bool,
    pub outputs: Option<OutputsChange>,
    /// The run has ended, with the kernel's count if it gave one.
    pub end: Option<RunEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    pub execution_count: Option<i64>,
}

/// A change at the end of a cell's outputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OutputsChange {
    /// Number of outputs of the cell if nobody else changed them.
    pub expected: usize,
    /// Number of them that stay, including the one that `tail` changes.
    pub keep: usize,
    pub tail: Option<StreamTail>,
    pub push: Vec<Value>,
}

/// Change at the end of the last output that stays, which is a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamTail {
    pub name: String,
    /// Number of UTF-16 units to remove from the end.
    pub cut: u32,
    pub append: String,
}

/// Result of a change of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputsWritten {
    /// Number of outputs of the cell now.
    pub length: usize,
    /// Somebody else had changed them, so that what is new was only added.
    pub detached: bool,
}

impl Document {
    /// Applies a write of a run; none if its cell is gone, or is no longer code: a file with outputs in a
    /// cell of another kind is no valid notebook.
    pub(crate) fn write_cell(
        &mut self,
        author: &Arc<str>,
        cell: &str,
        write: &CellWrite,
    ) -> Option<(Applied, Option<OutputsWritten>)> {
        let doc = self.begin();
        let mut txn = doc.transact_mut_with(OBSERVER);
        let map = self
            .map(&txn, cell)
            .filter(|map| text_of(map, &txn, "cell_type") == "code")?;
        if write.begin {
            clear(&map, &mut txn);
            trust(&map, &mut txn);
            self.selection = Some(Selection::of_run(cell));
        }
        let written = write
            .outputs
            .as_ref()
            .map(|change| change_outputs(&outputs_of(&map, &mut txn), &mut txn, change));
        // The count comes last of all, since JupyterLab takes any count as the end of a run.
        let state = match write.end {
            Some(end) => Some((end.execution_count, IDLE)),
            None => write.begin.then_some((None, RUNNING)),
        };
        if let Some((count, state)) = state {
            map.insert(&mut txn, "execution_count", count.map_or(Any::Null, Any::from));
            map.insert(&mut txn, "execution_state", state);
        }
        Some((self.finish(txn, &Author::Local(Arc::clone(author))), written))
    }

    /// The code cells among some that look neither queued nor running, with their counts.
    pub(crate) fn idle_cells(&self, cells: &[String]) -> Vec<QueuedCell> {
        let txn = self.doc.transact();
        let idle = |id: &String| {
            let map = self.map(&txn, id)?;
            let is_code = text_of(&map, &txn, "cell_type") == "code";
            let is_idle = is_code && text_of(&map, &txn, "execution_state") != RUNNING;
            is_idle.then(|| QueuedCell {
                id: id.clone(),
                execution_count: execution_count(&map, &txn).as_i64(),
            })
        };
        cells.iter().filter_map(idle).collect()
    }

    /// The cells that look queued or running, in their order.
    pub(crate) fn running_cells(&self) -> Vec<String> {
        let txn = self.doc.transact();
        let is_running = |entry: &&CellEntry| {
            let map = entry.hook.as_ref().and_then(|hook| hook.get(&txn));
            map.is_some_and(|map| text_of(&map, &txn, "execution_state") == RUNNING)
        };
        let running = self.order.iter().filter(is_running);
        running.map(|entry| entry.id.to_string()).collect()
    }

    /// Shows code cells as queued, as JupyterLab does with those that a person queued. Their outputs and counts stay until
    /// they run, since they may never do.
    pub(crate) fn mark_queued(&mut self, author: &Arc<str>, cells: &[QueuedCell]) -> Option<Applied> {
        let doc = self.begin();
        let mut txn = doc.transact_mut_with(OBSERVER);
        let mut is_changed = false;
        for cell in cells {
            let Some(map) = self.map(&txn, &cell.id) else { continue };
            map.insert(&mut txn, "execution_state", RUNNING);
            is_changed = true;
        }
        is_changed.then(|| self.finish(txn, &Author::Local(Arc::clone(author))))
    }

    /// Shows cells that were queued and will not run as they were before, unless somebody ran them meanwhile.
    pub(crate) fn unmark_queued(&mut self, author: &Arc<str>, cells: &[QueuedCell]) -> Option<Applied> {
        let doc = self.begin();
        let mut txn = doc.transact_mut_with(OBSERVER);
        let mut is_changed = false;
        for cell in cells {
            let Some(map) = self.map(&txn, &cell.id) else { continue };
            let is_queued = text_of(&map, &txn, "execution_state") == RUNNING
                && execution_count(&map, &txn).as_i64() == cell.execution_count;
            if is_queued {
                map.insert(&mut txn, "execution_state", IDLE);
                is_changed = true;
            }
        }
        is_changed.then(|| self.finish(txn, &Author::Local(Arc::clone(author))))
    }

    /// Removes the outputs of all cells; the ids of those that had any.
    pub(crate) fn clear_outputs(&mut self, author: &Arc<str>) -> (Applied, Vec<String>) {
        let mut cleared = Vec::new();
        let author = Author::Local(Arc::clone(author));
        let applied = self.editing(&[], |document| {
            document.change(&author, |document, txn| {
                for entry in document.order.iter() {
                    let map = entry.hook.as_ref().and_then(|hook| hook.get(txn));
                    if map.is_some_and(|map| clear_with_count(&map, txn)) {
                        cleared.push(entry.id.to_string());
                    }
                }
            })
        });
        (applied, cleared)
    }

    /// Removes the outputs and counts of cells that do not run.
    pub(super) fn clear_outputs_of(&self, txn: &mut TransactionMut<'_>, cells: &[String]) {
        for cell in cells {
            if let Some(map) = self.map(txn, cell)
                && text_of(&map, txn, "execution_state") != RUNNING
            {
                clear_with_count(&map, txn);
            }
        }
    }
}

/// Removes outputs and count of a code cell; returns whether it had any.
fn clear_with_count(cell: &MapRef, txn: &mut TransactionMut<'_>) -> bool {
    let Some(Out::YArray(outputs)) = cell.get(txn, "outputs") else {
        return false;
    };
    let length = outputs.len(txn);
    let is_counted = !execution_count(cell, txn).is_null();
    if length > 0 {
        outputs.remove_range(txn, 0, length);
    }
    if is_counted {
        cell.insert(txn, "execution_count", Any::Null);
    }
    length > 0 || is_counted
}

fn clear(cell: &MapRef, txn: &mut TransactionMut<'_>) {
    let outputs = outputs_of(cell, txn);
    let length = outputs.len(txn);
    if length > 0 {
        outputs.remove_range(txn, 0, length);
    }
}

/// Trusts a cell whose outputs are those of its run alone, as JupyterLab does when a person runs it.
fn trust(cell: &MapRef, txn: &mut TransactionMut<'_>) {
    if let Some(Out::YMap(metadata)) = cell.get(txn, "metadata")
        && !matches!(metadata.get(txn, "trusted"), Some(Out::Any(Any::Bool(true))))
    {
        metadata.insert(txn, "trusted", true);
    }
}

pub(super) fn outputs_of(cell: &MapRef, txn: &mut TransactionMut<'_>) -> ArrayRef {
    match cell.get(txn, "outputs") {
        Some(Out::YArray(outputs)) => outputs,
        // Some clients write a plain list, which nobody can add to.
        _ => cell.insert(txn, "outputs", ArrayPrelim::default()),
    }
}

fn change_outputs(outputs: &ArrayRef, txn: &mut TransactionMut<'_>, change: &OutputsChange) -> OutputsWritten {
    let length = outputs.len(txn);
    let tail = change
        .tail
        .as_ref()
        .map(|tail| (tail, stream_at(outputs, txn, change.keep)));
    let detached = length as usize != change.expected || matches!(tail, Some((_, None)));
    if !detached {
        let keep = u32::try_from(change.keep).unwrap_or(length).min(length);
        // JupyterLab does not draw an output that changes in its place, so it and all after it are made anew.
        if keep < length {
            outputs.remove_range(txn, keep, length - keep);
        }
    }
    match tail {
        Some((tail, Some(text))) if !detached => change_tail(&text, txn, tail),
        Some((tail, _)) if !tail.append.is_empty() => {
            let rest = serde_json::json!({ "output_type": "stream", "name": tail.name, "text": tail.append });
            outputs.push_back(txn, output_prelim(&rest));
        }
        _ => {}
    }
    for output in &change.push {
        outputs.push_back(txn, output_prelim(output));
    }
    OutputsWritten {
        length: outputs.len(txn) as usize,
        detached,
    }
}

fn stream_at(outputs: &ArrayRef, txn: &impl ReadTxn, keep: usize) -> Option<TextRef> {
    let index = u32::try_from(keep.checked_sub(1)?).ok()?;
    let Some(Out::YMap(output)) = outputs.get(txn, index) else {
        return None;
    };
    match output.get(txn, "text") {
        Some(Out::YText(text)) => Some(text),
        _ => None,
    }
}

fn change_tail(text: &TextRef, txn: &mut TransactionMut<'_>, tail: &StreamTail) {
    let length = text.len(txn);
    let cut = tail.cut.min(length);
    if cut > 0 {
        text.remove_range(txn, length - cut, cut);
    }
    if !tail.append.is_empty() {
        text.push(txn, &tail.append);
    }
}
