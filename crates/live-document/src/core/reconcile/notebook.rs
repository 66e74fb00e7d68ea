//! A whole notebook that a principal sends, merged cell by cell into what stands there now.

use std::collections::HashSet;

use serde_json::Value;

use super::{Known, Merged, Plan, Readable, Reconciler, merge};
use crate::{Edit, NewCell};

impl Reconciler<'_> {
    pub(super) fn set_notebook(&self, metadata: &Value, sent: &[NewCell], plan: &mut Plan) {
        let order = Known::now(Readable::Order, &ids(sent.iter().map(|cell| cell.id.as_str())));
        let is_certain = self.options.force || self.options.if_revision.is_some();
        let cells = match is_certain {
            true => {
                plan.known.extend(
                    sent.iter()
                        .map(|cell| Known::now(Readable::cell(&cell.id), &cell.source)),
                );
                sent.to_vec()
            }
            false => self.merged_cells(sent, plan),
        };
        plan.known.push(order);
        plan.edits.push(Edit::SetNotebook {
            metadata: metadata.clone(),
            cells,
        });
    }

    fn merged_cells(&self, sent: &[NewCell], plan: &mut Plan) -> Vec<NewCell> {
        let now = self.document.ids();
        let base = self.reading(&Readable::Order).and_then(|reading| reading.text.clone());
        let known: HashSet<&str> = base.iter().flat_map(|base| base.lines()).collect();
        let there: HashSet<&str> = now.iter().copied().collect();
        let mut cells = Vec::with_capacity(sent.len());
        for cell in sent {
            let is_there = there.contains(cell.id.as_str());
            if !is_there && known.contains(cell.id.as_str()) && self.is_as_read(cell) {
                // Somebody deleted it, and the principal did nothing to it.
                continue;
            }
            let mut merged = cell.clone();
            if is_there {
                merged.source = self.merged_source(cell, plan);
            } else {
                plan.known.push(Known::now(Readable::cell(&cell.id), &cell.source));
            }
            cells.push(merged);
        }
        self.keep_new_cells(&now, &known, base.is_some(), sent, &mut cells, plan);
        cells
    }

    fn merged_source(&self, cell: &NewCell, plan: &mut Plan) -> String {
        match self.set(&Readable::cell(&cell.id), &cell.source, plan) {
            Some(splices) => merge::apply(&self.document.source(&cell.id).unwrap_or_default(), &splices),
            None => cell.source.clone(),
        }
    }

    fn is_as_read(&self, cell: &NewCell) -> bool {
        let reading = self.reading(&Readable::cell(&cell.id));
        reading.is_none_or(|reading| self.readings.is_of(reading, &cell.source))
    }

    /// Keeps cells that others have added since the principal read the notebook, behind those that they are behind now. Others
    /// that are not sent are to be deleted.
    fn keep_new_cells(
        &self,
        now: &[&str],
        known: &HashSet<&str>,
        has_read: bool,
        sent: &[NewCell],
        cells: &mut Vec<NewCell>,
        plan: &mut Plan,
    ) {
        let sent: HashSet<&str> = sent.iter().map(|cell| cell.id.as_str()).collect();
        let mut before: Option<&str> = None;
        for id in now {
            if !sent.contains(id) {
                let is_new = has_read && !known.contains(id) && self.reading(&Readable::cell(id)).is_none();
                match self.document.cell(id).filter(|_| is_new) {
                    Some(cell) => {
                        let behind = before.and_then(|before| cells.iter().position(|cell| cell.id == before));
                        cells.insert(behind.map_or(0, |at| at + 1), NewCell::from(&cell));
                        plan.merged.push(self.merged_with(id));
                    }
                    None => {
                        plan.refusals.extend(self.refuse_deletion(id));
                        continue;
                    }
                }
            }
            before = Some(id);
        }
    }

    fn merged_with(&self, id: &str) -> Merged {
        let by = self.document.log().cell_changed_by_others(id, 0, &self.me());
        Merged {
            cell: Some(id.to_owned()),
            by: by.iter().map(self.name).collect(),
        }
    }
}

fn ids<'a>(ids: impl Iterator<Item = &'a str>) -> String {
    ids.collect::<Vec<_>>().join("\n")
}
