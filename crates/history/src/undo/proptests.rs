//! Undo under any interleaving of authors.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::{
    Cell, Content, VersionId,
    testing::{Log, cell, of_cells},
};

/// One edit of somebody, by numbers that are made to fit the document.
#[derive(Debug, Clone)]
enum Step {
    /// Characters at a position of a cell.
    Type {
        cell: usize,
        at: usize,
        count: usize,
    },
    /// Takes out characters that are its author's own, or nobody's if there are any.
    Erase {
        cell: usize,
        at: usize,
        count: usize,
    },
    Insert {
        at: usize,
    },
    /// Deletes a cell in which nobody else has written.
    Delete {
        cell: usize,
    },
    Move {
        cell: usize,
        to: usize,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let small = 0_usize..40;
    prop_oneof![
        5 => (small.clone(), small.clone(), 1_usize..5).prop_map(|(cell, at, count)| Step::Type { cell, at, count }),
        2 => (small.clone(), small.clone(), 1_usize..5).prop_map(|(cell, at, count)| Step::Erase { cell, at, count }),
        1 => small.clone().prop_map(|at| Step::Insert { at }),
        1 => small.clone().prop_map(|cell| Step::Delete { cell }),
        1 => (small.clone(), small).prop_map(|(cell, to)| Step::Move { cell, to }),
    ]
}

/// Every character of a test is another one, so that it is known whose it is: base ones are below the others.
struct Alphabet {
    next: [u32; AUTHORS.len()],
}

const AUTHORS: [&str; 3] = ["agent", "ana", "bob"];
const FIRST: [u32; 3] = [0x1_F300, 0x4E00, 0x0400];

impl Alphabet {
    fn take(&mut self, author: usize, count: usize) -> String {
        let first = self.next[author];
        self.next[author] += u32::try_from(count).expect("few");
        (first..self.next[author]).filter_map(char::from_u32).collect()
    }
}

fn author_of(character: char) -> Option<usize> {
    let code = u32::from(character);
    (0..AUTHORS.len()).find(|author| (FIRST[*author]..FIRST[*author] + 0x300).contains(&code))
}

/// Content after a step; none if it cannot be done.
fn step(content: &Content, author: usize, step: &Step, alphabet: &mut Alphabet) -> Option<Content> {
    let mut cells: Vec<Cell> = content.cells().iter().map(|cell| (**cell).clone()).collect();
    let pick = |number: usize, count: usize| (count > 0).then(|| number % count);
    match *step {
        Step::Type { cell, at, count } => {
            let cell = pick(cell, cells.len())?;
            let mut source: Vec<char> = cells[cell].source.chars().collect();
            let at = at % (source.len() + 1);
            source.splice(at..at, alphabet.take(author, count).chars());
            cells[cell].source = source.into_iter().collect::<String>().into();
        }
        Step::Erase { cell, at, count } => {
            let cell = pick(cell, cells.len())?;
            let source: Vec<char> = cells[cell].source.chars().collect();
            let at = pick(at, source.len())?;
            let may = |index: usize| {
                let in_range = (at..at + count).contains(&index);
                in_range && author_of(source[index]).is_none_or(|owner| owner == author)
            };
            let left: String = (0..source.len())
                .filter(|index| !may(*index))
                .map(|index| source[index])
                .collect();
            cells[cell].source = left.into();
        }
        Step::Insert { at } => {
            let source = alphabet.take(author, 3);
            let id = format!("{}{}", AUTHORS[author], alphabet.next[author]);
            cells.insert(at % (cells.len() + 1), cell(&id, &source));
        }
        Step::Delete { cell } => {
            let cell = pick(cell, cells.len())?;
            let is_own = |character: char| author_of(character).is_none_or(|owner| owner == author);
            // A cell of somebody else counts as theirs, also if it is empty.
            let others = AUTHORS
                .iter()
                .enumerate()
                .any(|(other, name)| other != author && cells[cell].id.starts_with(name));
            if others || !cells[cell].source.chars().all(is_own) {
                return None;
            }
            cells.remove(cell);
        }
        Step::Move { cell, to } => {
            let cell = pick(cell, cells.len())?;
            let moved = cells.remove(cell);
            cells.insert(to % (cells.len() + 1), moved);
        }
    }
    Some(of_cells(cells))
}

/// The log of some steps, and the versions of each author.
fn build(steps: &[(usize, Step)]) -> (Log, [Vec<VersionId>; 3]) {
    let mut log = Log::new(of_cells([
        cell("one", "abcdefgh"),
        cell("two", "ijkl\nmnop"),
        cell("three", ""),
        cell("four", "qrstuvwxyz"),
    ]));
    let mut alphabet = Alphabet { next: FIRST };
    let mut versions: [Vec<VersionId>; 3] = Default::default();
    for (author, one) in steps {
        if let Some(content) = step(&log.now, *author, one, &mut alphabet)
            && content != log.now
        {
            versions[*author].push(log.becomes(AUTHORS[*author], content));
        }
    }
    (log, versions)
}

fn characters(content: &Content) -> Vec<char> {
    content
        .cells()
        .iter()
        .flat_map(|cell| cell.source.chars().collect::<Vec<_>>())
        .collect()
}

fn sorted(mut characters: Vec<char>) -> Vec<char> {
    characters.sort_unstable();
    characters
}

fn is_subsequence(part: &[char], whole: &[char]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|wanted| rest.any(|character| character == wanted))
}

fn refs(ids: &[VersionId]) -> Vec<&VersionId> {
    ids.iter().collect()
}

/// The characters of the base that others than an author took out.
fn erased_by_others(log: &Log, author: usize) -> HashSet<char> {
    let mut content = log.base.clone();
    let mut erased = HashSet::new();
    for version in &log.versions {
        let next = version.delta.apply(&content).expect("it fits");
        if !version.author.is_principal(AUTHORS[author]) {
            let left: HashSet<char> = characters(&next).into_iter().collect();
            erased.extend(
                characters(&content)
                    .into_iter()
                    .filter(|character| !left.contains(character)),
            );
            let gone = log
                .base
                .cells()
                .iter()
                .filter(|cell| next.cell(&cell.id).is_none() && content.cell(&cell.id).is_some());
            erased.extend(gone.flat_map(|cell| cell.source.chars()));
        }
        content = next;
    }
    erased
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Nobody touches characters that others wrote, so that what is left is known: what the others wrote, and of the base
    /// what they left.
    #[test]
    fn undoing_all_of_one_author_leaves_exactly_what_the_others_did(
        steps in prop::collection::vec((0_usize..3, any_step()), 1..40),
        author in 0_usize..3,
    ) {
        let (mut log, versions) = build(&steps);
        let before = log.now.clone();
        let others = |character: &char| author_of(*character) != Some(author);
        let of_others: Vec<char> = characters(&before).into_iter().filter(others).collect();
        let erased = erased_by_others(&log, author);
        let undo = log.undo(AUTHORS[author], &refs(&versions[author]));

        let left = characters(&log.now);
        let base_left = characters(&log.base).into_iter().filter(|character| !erased.contains(character));
        let written = of_others.iter().copied().filter(|character| author_of(*character).is_some());
        prop_assert_eq!(sorted(left), sorted(base_left.chain(written).collect()));
        for cell in log.now.cells() {
            let source: Vec<char> = cell.source.chars().collect();
            if let Some(earlier) = before.cell(&cell.id) {
                let kept: Vec<char> = earlier.source.chars().filter(others).collect();
                prop_assert!(is_subsequence(&kept, &source), "the order stays: {:?} {:?}", kept, source);
            }
            if let Some(first) = log.base.cell(&cell.id) {
                let kept: Vec<char> = first.source.chars().filter(|character| !erased.contains(character)).collect();
                prop_assert!(is_subsequence(&kept, &source), "the order comes back: {:?} {:?}", kept, source);
            }
        }

        log.undo(AUTHORS[author], &[&undo]);
        prop_assert_eq!(&log.now, &before, "a redo brings everything back");
    }

    #[test]
    fn undo_in_any_grouping_is_the_same(
        steps in prop::collection::vec((0_usize..2, any_step()), 1..30),
        groups in prop::collection::vec(0_usize..4, 30),
    ) {
        let (mut at_once, versions) = build(&steps);
        at_once.undo("agent", &refs(&versions[0]));
        let (mut grouped, _) = build(&steps);
        for group in 0..4 {
            let numbered = versions[0].iter().zip(&groups);
            let chosen: Vec<&VersionId> = numbered.filter(|(_, of)| **of == group).map(|(id, _)| id).collect();
            if !chosen.is_empty() {
                grouped.undo("agent", &chosen);
            }
        }
        prop_assert_eq!(&grouped.now, &at_once.now);
    }

    /// Everybody undoes and redoes between edits, in any order, whoever's characters are touched.
    #[test]
    fn undos_between_edits_never_fail_and_come_back(
        steps in prop::collection::vec((0_usize..3, any_step(), 0_usize..4, 0_usize..60), 1..40),
    ) {
        let (mut log, _) = build(&[]);
        let mut alphabet = Alphabet { next: FIRST };
        for (author, one, kind, number) in &steps {
            if *kind == 0 && !log.versions.is_empty() {
                let undone = log.versions[number % log.versions.len()].id.clone();
                let before = log.now.clone();
                let was_active = log.versions.iter().all(|version| !version.undoes.contains(&undone));
                let undo = log.undo(AUTHORS[*author], &[&undone]);
                if was_active {
                    log.undo(AUTHORS[*author], &[&undo]);
                    prop_assert_eq!(&log.now, &before);
                    log.undo(AUTHORS[*author], &[&log.versions.last().expect("one").id.clone()]);
                }
            } else if let Some(content) = step(&log.now, *author, one, &mut alphabet) {
                log.becomes(AUTHORS[*author], content);
            }
            let ids: Vec<&str> = log.now.cells().iter().map(|cell| &*cell.id).collect();
            prop_assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "each id once");
        }
    }
}
