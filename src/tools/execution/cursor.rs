//! Cursor in the outputs of an execution: the end of those in one answer, so that the next one continues there. It is all
//! that is needed for that: nothing is remembered between calls, and whoever takes long or never comes back costs nothing.

use std::{
    fmt,
    hash::{DefaultHasher, Hasher},
    str::FromStr,
};

use serde_json::Value;

use executor::CellSnapshot;

/// Note for outputs that were told already and are not there as they were.
pub(super) const CHANGED_NOTE: &str =
    "What an earlier answer showed was cleared or rewritten since; the outputs are shown from the start.";

/// End of the outputs that were told: in the cell that put out something last, which of its outputs, and how many characters
/// of it. Digests tell whether what comes before is still the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cursor {
    cell: usize,
    outputs: usize,
    /// Characters of the last output, if it is a stream.
    characters: usize,
    /// Characters of its whole lines: the last line of a stream is often written again, by progress bars for one.
    in_lines: usize,
    cells_before: u32,
    to_end: u32,
    to_line: u32,
}

impl Cursor {
    /// The end of what there is.
    pub(super) fn of(cells: &[CellSnapshot]) -> Self {
        let cell = cells.iter().rposition(|cell| !cell.outputs.is_empty()).unwrap_or(0);
        let outputs = cells.get(cell).map_or(&[][..], |cell| &cell.outputs);
        let text = outputs.last().and_then(stream_text).unwrap_or_default();
        let line = text.rfind('\n').map_or(0, |at| at + 1);
        let mut cursor = Self {
            cell,
            outputs: outputs.len(),
            characters: text.chars().count(),
            in_lines: text[..line].chars().count(),
            cells_before: digest_of_cells(&cells[..cell.min(cells.len())]),
            to_end: 0,
            to_line: 0,
        };
        cursor.to_end = cursor.digest(outputs, cursor.characters).unwrap_or_default();
        cursor.to_line = cursor.digest(outputs, cursor.in_lines).unwrap_or_default();
        cursor
    }

    /// The cell that put out something last, by its position in the execution.
    pub(super) fn cell(&self) -> usize {
        self.cell
    }

    /// Removes what was told already. False if that is not there any more as it was, and nothing was removed.
    pub(super) fn skip_shown(&self, cells: &mut [CellSnapshot]) -> bool {
        let Some((before, rest)) = cells.split_at_mut_checked(self.cell) else {
            return false;
        };
        let Some(current) = rest.first_mut() else {
            return self.outputs == 0;
        };
        let told = [(self.characters, self.to_end), (self.in_lines, self.to_line)];
        let same = |(characters, digest): &(usize, u32)| self.digest(&current.outputs, *characters) == Some(*digest);
        let Some((characters, _)) = told.into_iter().find(same) else {
            return false;
        };
        if digest_of_cells(before) != self.cells_before {
            return false;
        }
        for cell in before {
            cell.outputs.clear();
        }
        self.skip_in(&mut current.outputs, characters);
        true
    }

    fn skip_in(&self, outputs: &mut Vec<Value>, characters: usize) {
        let Some(last) = self.outputs.checked_sub(1) else {
            return;
        };
        let rest = outputs
            .get(last)
            .and_then(stream_text)
            .map(|text| after(text, characters));
        let rest = rest.filter(|rest| !rest.is_empty()).map(str::to_owned);
        match (rest, outputs.get_mut(last)) {
            (Some(rest), Some(output)) => {
                output["text"] = rest.into();
                outputs.drain(..last);
            }
            _ => drop(outputs.drain(..self.outputs)),
        }
    }

    /// A digest of outputs up to so many characters of the last one that was told, if there are as many.
    fn digest(&self, outputs: &[Value], characters: usize) -> Option<u32> {
        let mut hasher = DefaultHasher::new();
        let told = outputs.get(..self.outputs)?;
        if let Some((last, whole)) = told.split_last() {
            for output in whole {
                hasher.write(output.to_string().as_bytes());
            }
            match stream_text(last) {
                Some(text) => {
                    hasher.write(last.get("name").and_then(Value::as_str).unwrap_or_default().as_bytes());
                    hasher.write(before(text, characters)?.as_bytes());
                }
                None => hasher.write(last.to_string().as_bytes()),
            }
        }
        Some(short(&hasher))
    }
}

fn digest_of_cells(cells: &[CellSnapshot]) -> u32 {
    let mut hasher = DefaultHasher::new();
    for output in cells.iter().flat_map(|cell| &cell.outputs) {
        hasher.write(output.to_string().as_bytes());
    }
    short(&hasher)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "half of a digest is enough to tell a change"
)]
fn short(hasher: &DefaultHasher) -> u32 {
    hasher.finish() as u32
}

fn stream_text(output: &Value) -> Option<&str> {
    let is_stream = output.get("output_type").is_some_and(|kind| kind == "stream");
    output.get("text").filter(|_| is_stream)?.as_str()
}

fn before(text: &str, characters: usize) -> Option<&str> {
    let mut ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    ends.nth(characters).map(|end| &text[..end])
}

fn after(text: &str, characters: usize) -> &str {
    before(text, characters).map_or("", |told| &text[told.len()..])
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cell,
            outputs,
            characters,
            in_lines,
            cells_before,
            to_end,
            to_line,
        } = self;
        write!(f, "{cell}.{outputs}.{characters}.{cells_before:x}.{to_end:x}")?;
        // Mostly what was told ends with a line.
        match in_lines == characters {
            true => Ok(()),
            false => write!(f, ".{in_lines}.{to_line:x}"),
        }
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let parts: Vec<&str> = text.trim().split('.').collect();
        let (cell, outputs, characters, cells_before, to_end, in_lines, to_line) = match parts[..] {
            [cell, outputs, characters, before, end] => (cell, outputs, characters, before, end, characters, end),
            [cell, outputs, characters, before, end, in_lines, line] => {
                (cell, outputs, characters, before, end, in_lines, line)
            }
            _ => return Err(()),
        };
        let count = |part: &str| part.parse::<usize>().map_err(drop);
        let digest = |part: &str| u32::from_str_radix(part, 16).map_err(drop);
        Ok(Self {
            cell: count(cell)?,
            outputs: count(outputs)?,
            characters: count(characters)?,
            in_lines: count(in_lines)?,
            cells_before: digest(cells_before)?,
            to_end: digest(to_end)?,
            to_line: digest(to_line)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use store::ExecutionStatus;

    fn cell(outputs: &[Value]) -> CellSnapshot {
        CellSnapshot {
            cell_id: String::new(),
            index: 0,
            status: ExecutionStatus::Running,
            execution_count: None,
            outputs: outputs.to_vec(),
            missing: 0,
            differs: None,
        }
    }

    fn out(text: &str) -> Value {
        json!({ "output_type": "stream", "name": "stdout", "text": text })
    }

    fn value(text: &str) -> Value {
        json!({ "output_type": "execute_result", "data": { "text/plain": text } })
    }

    /// Outputs that are told after an answer; `None` if what it told is not there any more.
    fn shown_after(earlier: &[&[Value]], now: &[&[Value]]) -> Option<Vec<Vec<Value>>> {
        let cells = |all: &[&[Value]]| all.iter().map(|outputs| cell(outputs)).collect::<Vec<_>>();
        let cursor: Cursor = Cursor::of(&cells(earlier)).to_string().parse().expect("a cursor");
        let mut now = cells(now);
        cursor
            .skip_shown(&mut now)
            .then(|| now.into_iter().map(|cell| cell.outputs).collect())
    }

    #[test]
    fn only_what_came_since_is_told() {
        for (earlier, now, new) in [
            (&[][..], &[out("a")][..], &[out("a")][..]),
            (&[out("a\n")], &[out("a\n")], &[]),
            (&[out("é\n")], &[out("é\nb")], &[out("b")]),
            (&[out("a")], &[out("ab")], &[out("b")]),
            (
                &[out("a\n50%")],
                &[out("a\n60%"), value("1")],
                &[out("60%"), value("1")],
            ),
            (&[out("a"), value("1")], &[out("a"), value("1"), out("b")], &[out("b")]),
        ] {
            assert_eq!(
                shown_after(&[earlier], &[now]),
                Some(vec![new.to_vec()]),
                "{earlier:?} {now:?}"
            );
        }
        let (first, second) = ([out("a")], [out("b\n")]);
        assert_eq!(
            shown_after(&[&first, &[]], &[&first, &second]),
            Some(vec![vec![], second.to_vec()])
        );
    }

    #[test]
    fn what_was_cleared_or_rewritten_is_told_from_the_start() {
        for (earlier, now) in [
            (&[out("a\nb\n")][..], &[out("c\n")][..]),
            (&[out("a\nb\n")], &[]),
            (&[value("1")], &[value("2")]),
            (&[out("a\n"), value("1")], &[out("a\n")]),
        ] {
            assert_eq!(shown_after(&[earlier], &[now]), None, "{earlier:?} {now:?}");
        }
        let (first, second) = ([value("1")], [out("b\n")]);
        assert_eq!(shown_after(&[&first, &second], &[&[value("2")], &second]), None);
        assert_eq!(shown_after(&[&first, &second], &[&first]), None);
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        for text in ["", "0", "1.2.3.4.x", "-1.0.0.0.0", "0.0.0.0.0.0", "0.0.0.0.0.0.0.0"] {
            assert_eq!(text.parse::<Cursor>(), Err(()), "{text}");
        }
    }
}
