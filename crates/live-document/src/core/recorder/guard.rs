//! Detects that a document has suddenly lost most of its content.

use history::{Content, Delta, Operation};

use super::Loss;

/// Numbers of cells and characters whose loss is worth a warning.
const MIN_CELLS: usize = 3;
const MIN_CHARACTERS: usize = 200;
/// A loss leaves less than one part in this many.
const LEFT: usize = 5;

/// Amount of a document's content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) cells: usize,
    pub(super) characters: usize,
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn of(content: &Content) -> Self {
        let mut size = Self {
            cells: content.cells().len(),
            ..Self::default()
        };
        match content {
            Content::Text(text) => size.add(text),
            Content::Notebook(notebook) => notebook.cells.iter().for_each(|cell| size.add(&cell.source)),
        }
        size
    }

    fn add(&mut self, text: &str) {
        self.characters += text.chars().count();
        self.bytes += text.len();
    }

    fn remove(&mut self, text: &str) {
        self.characters = self.characters.saturating_sub(text.chars().count());
        self.bytes = self.bytes.saturating_sub(text.len());
    }

    /// The size after a delta.
    pub(super) fn after(mut self, delta: &Delta) -> Self {
        for operation in &delta.operations {
            match operation {
                Operation::Insert { cell, .. } => {
                    self.cells += 1;
                    self.add(&cell.source);
                }
                Operation::Delete { cell, .. } => {
                    self.cells = self.cells.saturating_sub(1);
                    self.remove(&cell.source);
                }
                Operation::Source { splices, .. } | Operation::Text { splices } => {
                    for splice in splices {
                        self.add(&splice.new);
                        self.remove(&splice.old);
                    }
                }
                _ => {}
            }
        }
        self
    }

    /// The loss if only this much is left, provided that most is gone.
    pub(super) fn loss_to(self, after: Self) -> Option<Loss> {
        let was_worth_something = self.cells >= MIN_CELLS || self.characters >= MIN_CHARACTERS;
        let is_lost = after.characters * LEFT < self.characters;
        (was_worth_something && is_lost).then_some(Loss {
            cells_before: self.cells,
            cells_after: after.cells,
            characters_before: self.characters,
            characters_after: after.characters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(cells: usize, characters: usize) -> Size {
        Size {
            cells,
            characters,
            bytes: characters,
        }
    }

    #[test]
    fn only_the_loss_of_most_of_something_is_one() {
        let cases = [
            (size(3, 30), size(1, 0), true),
            (size(3, 30), size(1, 5), true),
            (size(3, 30), size(3, 6), false),
            (size(2, 199), size(0, 0), false),
            (size(2, 200), size(1, 39), true),
            (size(2, 200), size(1, 40), false),
            (size(0, 1000), size(0, 0), true),
            (size(5, 0), size(0, 0), false),
            (size(100, 10_000), size(50, 5_000), false),
        ];
        for (before, after, expected) in cases {
            assert_eq!(before.loss_to(after).is_some(), expected, "{before:?} to {after:?}");
        }
    }
}
