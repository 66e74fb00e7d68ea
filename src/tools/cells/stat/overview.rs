//! Overview of a notebook: its sections, the cells that failed, and the outputs that may be outdated. Does no I/O.

use std::{collections::BTreeMap, time::SystemTime};

use live_document::{Cell, RunMark};
use serde::Serialize;
use serde_json::Value;

use crate::{
    tools::{lines::lines, text::cell::cut},
    types::joined_text,
};

const MAX_TITLE: usize = 80;
const MAX_EVALUE: usize = 200;

/// A cell, as far as it matters here.
#[derive(Debug, Default)]
pub(super) struct Glimpse {
    pub(super) id: Option<String>,
    pub(super) kind: String,
    /// Only that of markdown.
    pub(super) source: String,
    pub(super) count: Option<i64>,
    pub(super) error: Option<(String, String)>,
    pub(super) is_running: bool,
    pub(super) run: RunMark,
}

impl Glimpse {
    pub(super) fn of_cell(cell: Cell, run: RunMark) -> Self {
        Self {
            id: Some(cell.id),
            source: if cell.cell_type == "markdown" {
                cell.source
            } else {
                String::new()
            },
            kind: cell.cell_type,
            count: cell.execution_count.as_i64(),
            error: error_in(&cell.outputs),
            is_running: cell.execution_state == "running",
            run,
        }
    }

    /// A cell of a file.
    pub(super) fn of_json(cell: &Value) -> Self {
        let text = |member: &str| cell[member].as_str().map(str::to_owned);
        let kind = text("cell_type").unwrap_or_default();
        Self {
            id: text("id"),
            source: if kind == "markdown" {
                joined_text(&cell["source"])
            } else {
                String::new()
            },
            kind,
            count: cell["execution_count"].as_i64(),
            error: cell["outputs"].as_array().and_then(|outputs| error_in(outputs)),
            is_running: false,
            run: RunMark::default(),
        }
    }
}

fn error_in(outputs: &[Value]) -> Option<(String, String)> {
    let error = outputs.iter().rfind(|output| output["output_type"] == "error")?;
    let text = |member: &str| cut(error[member].as_str().unwrap_or_default(), MAX_EVALUE);
    Some((text("ename"), text("evalue")))
}

/// A heading and the cells that it stands over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Section {
    pub(super) level: usize,
    pub(super) title: String,
    pub(super) index: usize,
    pub(super) cell_id: Option<String>,
    /// The last cell before the next heading of this level or a higher one.
    pub(super) end_index: usize,
}

/// A cell that shows an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    pub(super) index: usize,
    pub(super) cell_id: Option<String>,
    pub(super) ename: String,
    pub(super) evalue: String,
}

/// A cell whose outputs may not be those that it would have now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Stale {
    pub(super) index: usize,
    pub(super) cell_id: Option<String>,
    pub(super) why: Vec<Why>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Why {
    /// Its source was changed since it ran.
    Edited,
    /// It ran before a cell that stands above it.
    OutOfOrder,
    /// It ran in a process of the kernel that is gone.
    KernelRestarted,
}

impl Why {
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Edited => "edited since run",
            Self::OutOfOrder => "ran before a cell above",
            Self::KernelRestarted => "kernel restarted since",
        }
    }
}

/// Time since which runs are seen, and the last time at which the kernel's process was seen to end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) since: Option<SystemTime>,
    pub(super) process_ended: Option<SystemTime>,
}

pub(super) fn sections(cells: &[Glimpse]) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.kind == "markdown") {
        for (level, title) in headings(&cell.source) {
            found.push(Section {
                level,
                title: cut(title, MAX_TITLE),
                index,
                cell_id: cell.id.clone(),
                end_index: cells.len() - 1,
            });
        }
    }
    for at in 0..found.len() {
        let (level, index) = (found[at].level, found[at].index);
        let next = found[at + 1..].iter().find(|next| next.level <= level);
        if let Some(next) = next {
            found[at].end_index = next.index.saturating_sub(1).max(index);
        }
    }
    found
}

/// The headings of a markdown text, not those in fenced code.
fn headings(source: &str) -> Vec<(usize, &str)> {
    let mut fence = None;
    let mut found = Vec::new();
    for line in lines(source) {
        let text = line.text.trim_start_matches(' ');
        let mark = ["```", "~~~"].into_iter().find(|mark| text.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => found.extend(heading(text)),
        }
    }
    found
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with([' ', '\t']);
    let title = title.trim().trim_end_matches('#').trim();
    (is_heading && !title.is_empty()).then_some((level, title))
}

pub(super) fn failures(cells: &[Glimpse]) -> Vec<Failure> {
    let failed = |(index, cell): (usize, &Glimpse)| {
        let (ename, evalue) = cell.error.clone()?;
        Some(Failure {
            index,
            cell_id: cell.id.clone(),
            ename,
            evalue,
        })
    };
    cells.iter().enumerate().filter_map(failed).collect()
}

/// The cells that ran and are stale, of those that do not run now.
pub(super) fn stale(cells: &[Glimpse], seen: Seen) -> Vec<Stale> {
    let mut reasons: BTreeMap<usize, Vec<Why>> = BTreeMap::new();
    let restarted = ran_before_restart(cells, seen);
    let mut highest = i64::MIN;
    for (index, cell) in cells.iter().enumerate() {
        let Some(count) = cell.count.filter(|_| !cell.is_running) else {
            continue;
        };
        let mut why = Vec::new();
        if cell.run.is_edited {
            why.push(Why::Edited);
        }
        if restarted.contains(&index) {
            why.push(Why::KernelRestarted);
        } else {
            if count < highest {
                why.push(Why::OutOfOrder);
            }
            highest = highest.max(count);
        }
        if !why.is_empty() {
            reasons.insert(index, why);
        }
    }
    let stale = reasons.into_iter().map(|(index, why)| Stale {
        index,
        cell_id: cells[index].id.clone(),
        why,
    });
    stale.collect()
}

/// The cells that ran in an earlier process: before one was seen to end, or with a count that a later run had again.
fn ran_before_restart(cells: &[Glimpse], seen: Seen) -> Vec<usize> {
    let mut ran: Vec<(usize, i64, RunMark)> = cells
        .iter()
        .enumerate()
        .filter_map(|(index, cell)| Some((index, cell.count?, cell.run)))
        .collect();
    // The latest first, and last those that ran before anybody looked.
    ran.sort_by_key(|(_, _, run)| std::cmp::Reverse(run.began));
    let mut lowest = i64::MAX;
    let mut earlier = Vec::new();
    for (index, count, run) in ran {
        let began = run.began.map(|(_, at)| at).or(seen.since);
        let is_before = began
            .zip(seen.process_ended)
            .is_some_and(|(began, ended)| began < ended);
        if is_before || count >= lowest {
            earlier.push(index);
        } else if run.began.is_some() {
            lowest = lowest.min(count);
        }
    }
    earlier
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn markdown(source: &str) -> Glimpse {
        Glimpse {
            kind: "markdown".to_owned(),
            source: source.to_owned(),
            ..Glimpse::default()
        }
    }

    /// A code cell with its count, and when it was seen to run.
    fn code(count: i64, began: Option<u64>) -> Glimpse {
        let at = |revision| (revision, SystemTime::UNIX_EPOCH + Duration::from_secs(revision));
        Glimpse {
            kind: "code".to_owned(),
            count: Some(count),
            run: RunMark {
                began: began.map(at),
                is_edited: false,
            },
            ..Glimpse::default()
        }
    }

    fn whys(cells: &[Glimpse], seen: Seen) -> Vec<(usize, Vec<Why>)> {
        stale(cells, seen)
            .into_iter()
            .map(|cell| (cell.index, cell.why))
            .collect()
    }

    #[test]
    fn sections_end_before_the_next_of_their_level() {
        let cells = [
            markdown("# Title #\ntext\n## A"),
            code(1, None),
            markdown("```\n# no heading\n```\n#no\n####### no"),
            markdown("  ## B"),
            markdown("# End\r\n"),
        ];
        let found: Vec<_> = sections(&cells)
            .into_iter()
            .map(|section| (section.level, section.title, section.index, section.end_index))
            .collect();
        let expected = [(1, "Title", 0, 3), (2, "A", 0, 2), (2, "B", 3, 3), (1, "End", 4, 4)];
        assert_eq!(
            found,
            expected.map(|(level, title, index, end)| (level, title.to_owned(), index, end))
        );
    }

    #[test]
    fn a_cell_that_ran_before_one_above_it_is_stale() {
        let cells = [code(1, None), code(5, None), code(3, None), code(6, None)];
        assert_eq!(whys(&cells, Seen::default()), [(2, vec![Why::OutOfOrder])]);
    }

    #[test]
    fn counts_that_a_later_run_had_again_are_of_an_earlier_process() {
        let cells = [
            code(7, None),
            code(1, Some(9)),
            code(8, Some(3)),
            code(2, Some(10)),
            code(9, None),
        ];
        let restarted = vec![Why::KernelRestarted];
        assert_eq!(
            whys(&cells, Seen::default()),
            [(0, restarted.clone()), (2, restarted.clone()), (4, restarted)]
        );
    }

    #[test]
    fn what_ran_before_the_process_ended_is_of_an_earlier_one() {
        let at = |second| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(second));
        let cells = [code(1, Some(5)), code(2, Some(20)), code(3, None)];
        let seen = |since, ended| Seen {
            since: at(since),
            process_ended: at(ended),
        };
        let restarted = vec![Why::KernelRestarted];
        assert_eq!(
            whys(&cells, seen(1, 10)),
            [(0, restarted.clone()), (2, restarted.clone())]
        );
        let unknown = whys(&cells[2..], seen(15, 10));
        assert_eq!(unknown, [], "it may have run after");
        let mut edited = code(1, Some(2));
        edited.run.is_edited = true;
        assert_eq!(whys(&[edited], Seen::default()), [(0, vec![Why::Edited])]);
    }
}
