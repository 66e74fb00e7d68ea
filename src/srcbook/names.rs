//! The names of cells as files. No two cells of a notebook share one.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{BookCellKind, extension};

/// Parts that a cell's name is made of.
#[derive(Debug, Clone, Copy)]
pub struct Nameable<'a> {
    pub kind: BookCellKind,
    pub id: Option<&'a str>,
    /// The name that the cell gives itself.
    pub filename: Option<&'a str>,
}

impl<'a> Nameable<'a> {
    pub fn new(kind: BookCellKind, id: Option<&'a str>, metadata: Option<&'a Map<String, Value>>) -> Self {
        let filename = metadata.and_then(|metadata| metadata.get("filename")?.as_str());
        Self { kind, id, filename }
    }
}

/// The names of all cells, in their order. A name made of an id always means the cell with that id, so that a cell
/// may not give it to itself; among code cells that call themselves the same, the first one is called so.
pub fn file_names(cells: &[Nameable<'_>], language: &str) -> Vec<String> {
    let mut taken = HashSet::with_capacity(2 * cells.len());
    let mut names: Vec<String> = cells
        .iter()
        .enumerate()
        .map(|(index, cell)| by_id(cell, index, language, &mut taken))
        .collect();
    for (cell, name) in cells.iter().zip(&mut names) {
        let own = cell
            .filename
            .filter(|own| cell.kind == BookCellKind::Code && is_plain(own));
        if let Some(own) = own.filter(|own| !taken.contains(*own)) {
            taken.insert(own.to_owned());
            own.clone_into(name);
        }
    }
    names
}

/// Ids are unique in a valid notebook; in one that is not, a number tells the cells apart.
fn by_id(cell: &Nameable<'_>, index: usize, language: &str, taken: &mut HashSet<String>) -> String {
    let (stem, extension) = match cell.kind {
        BookCellKind::Code => (cell.id.filter(|id| is_plain(id)), extension(language)),
        BookCellKind::Markdown => (cell.id, "md"),
        BookCellKind::Raw => (cell.id, "txt"),
    };
    let stem = stem.map_or_else(|| format!("cell-{}", index + 1), str::to_owned);
    let mut name = format!("{stem}.{extension}");
    let mut number = 2;
    while !taken.insert(name.clone()) {
        name = format!("{stem}-{number}.{extension}");
        number += 1;
    }
    name
}

/// Returns whether a name can be part of a heading, and has no special meaning in Srcbook.
fn is_plain(name: &str) -> bool {
    let allowed = |character: char| character.is_alphanumeric() || "-_. ".contains(character);
    (1..=100).contains(&name.len()) && name.chars().all(allowed) && name.trim() == name && name != "package.json"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<'a>(id: &'a str, filename: Option<&'a str>) -> Nameable<'a> {
        Nameable {
            kind: BookCellKind::Code,
            id: Some(id),
            filename,
        }
    }

    #[test]
    fn the_first_cell_of_a_name_has_it() {
        let cells = [
            code("c0", Some("a.py")),
            code("c1", Some("a.py")),
            code("c2", Some("c3.py")),
            code("c3", None),
            code("c3", None),
            code("no/name", Some("../b.py")),
            code("c6", Some("c6.py")),
        ];
        let names = file_names(&cells, "python");
        let expected = ["a.py", "c1.py", "c2.py", "c3.py", "c3-2.py", "cell-6.py", "c6.py"];
        assert_eq!(names, expected);
    }

    #[test]
    fn only_code_has_a_name_of_its_own() {
        let text = Nameable {
            kind: BookCellKind::Markdown,
            ..code("m", Some("a.py"))
        };
        let raw = Nameable {
            kind: BookCellKind::Raw,
            id: None,
            filename: None,
        };
        assert_eq!(
            file_names(&[text, raw, code("c", Some("a.py"))], "python"),
            ["m.md", "cell-2.txt", "a.py"]
        );
    }
}
