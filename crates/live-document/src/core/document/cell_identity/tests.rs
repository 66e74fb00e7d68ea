//! Cells before and after a restart, as a restarted Jupyter mixes them up.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Cells by who made them, their ids and their sources.
fn placed(cells: &[(u32, &str, &str)]) -> Vec<Placed> {
    let cell = |(place, (clock, id, source)): (usize, &(u32, &str, &str))| Placed {
        place,
        made: Some((1, *clock)),
        cell: Cell {
            id: (*id).to_owned(),
            cell_type: "code".to_owned(),
            source: (*source).to_owned(),
            metadata: json!({}),
            execution_count: Value::Null,
            outputs: Vec::new(),
            attachments: None,
            execution_state: String::new(),
        },
    };
    cells.iter().enumerate().map(cell).collect()
}

/// The ids and sources that there are in the end.
fn after(held: &[Placed], now: &[Placed], came: FileAge, without_ids: bool) -> Vec<(String, String)> {
    let repairs = identify_cells(held, now, came, without_ids);
    let ids: HashMap<usize, String> = repairs.ids.into_iter().collect();
    now.iter()
        .filter(|placed| !repairs.superfluous.contains(&placed.place))
        .map(|placed| {
            let id = ids.get(&placed.place).unwrap_or(&placed.cell.id);
            (id.clone(), placed.cell.source.clone())
        })
        .collect()
}

#[track_caller]
fn assert_after(before: &[(u32, &str, &str)], now: &[(u32, &str, &str)], came: FileAge, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> = expected
        .iter()
        .map(|(id, source)| ((*id).to_owned(), (*source).to_owned()))
        .collect();
    assert_eq!(after(&placed(before), &placed(now), came, false), expected);
}

#[test]
fn a_cell_that_came_once_more_is_there_once() {
    let held = [(1, "a", "1")];
    let duplicated = [(9, "a", "1"), (1, "a", "1")];
    assert_after(&held, &duplicated, FileAge::Stale, &[("a", "1")]);
    assert_after(&held, &duplicated, FileAge::MaybeNewer, &[("a", "1")]);
    let changed = [(9, "a", "file"), (1, "a", "1")];
    assert_after(&held, &changed, FileAge::Stale, &[("a", "1")]);
    assert_after(&held, &changed, FileAge::MaybeNewer, &[("a", "file")]);
}

#[test]
fn a_cell_that_got_another_id_gets_its_own_back() {
    let held = [(1, "a", "1")];
    assert_after(&held, &[(1, "u", "1")], FileAge::MaybeNewer, &[("a", "1")]);
    assert_after(
        &held,
        &[(1, "u", "1"), (9, "a", "1")],
        FileAge::MaybeNewer,
        &[("a", "1")],
    );
    assert_after(&held, &[(9, "u", "1")], FileAge::MaybeNewer, &[("a", "1")]);
    // Of two with one id it is not known which is to have it.
    let same = [(1, "a", "1"), (2, "a", "2")];
    assert_after(
        &same,
        &[(1, "a", "1"), (2, "u", "2")],
        FileAge::MaybeNewer,
        &[("a", "1"), ("u", "2")],
    );
}

#[test]
fn a_copy_under_another_id_goes_only_if_nobody_can_have_made_it() {
    let (held, now) = ([(1, "a", "1")], [(1, "a", "1"), (9, "u", "1")]);
    assert_after(&held, &now, FileAge::Stale, &[("a", "1")]);
    assert_after(&held, &now, FileAge::MaybeNewer, &[("a", "1"), ("u", "1")]);
    let (held, now) = ([(1, "a", "")], [(1, "a", ""), (9, "u", "")]);
    assert_after(&held, &now, FileAge::Stale, &[("a", ""), ("u", "")]);
}

#[test]
fn cells_without_ids_are_known_by_their_content_and_their_neighbours() {
    let held = placed(&[(1, "a", "1"), (2, "b", "2"), (3, "c", "1"), (4, "d", "4")]);
    let now = placed(&[
        (9, "p", "1"),
        (10, "q", "changed"),
        (11, "r", "1"),
        (12, "s", "4"),
        (13, "t", "new"),
    ]);
    let ids = |cells: Vec<(String, String)>| cells.into_iter().map(|(id, _)| id).collect::<Vec<_>>();
    assert_eq!(
        ids(after(&held, &now, FileAge::MaybeNewer, true)),
        ["a", "b", "c", "d", "t"]
    );
    assert_eq!(
        ids(after(&held, &now, FileAge::MaybeNewer, false)),
        ["a", "q", "c", "d", "t"]
    );
}

/// Possible treatment of a cell by a restarted server.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Stays,
    CameAgain,
    Renamed,
    RenamedAndCameAgain,
    CopiedUnderAnotherId,
    MadeAnewUnderAnotherId,
    Gone,
}

proptest! {
    #[test]
    fn every_cell_is_there_at_most_once_and_under_its_id(outcomes in prop::collection::vec(prop::sample::select(vec![
        Outcome::Stays,
        Outcome::CameAgain,
        Outcome::Renamed,
        Outcome::RenamedAndCameAgain,
        Outcome::CopiedUnderAnotherId,
        Outcome::MadeAnewUnderAnotherId,
        Outcome::Gone,
    ]), 0..12), others in 0..3_u32) {
        let ids: Vec<(u32, String)> = (0..).zip(0..outcomes.len()).map(|(clock, place)| (clock, format!("c{place}"))).collect();
        let held: Vec<(u32, &str, &str)> = ids.iter().map(|(clock, id)| (*clock, id.as_str(), id.as_str())).collect();
        let new_ids: Vec<String> = ids.iter().map(|(_, id)| format!("new {id}")).collect();
        let mut now = Vec::new();
        for (((clock, id, source), new_id), outcome) in held.iter().copied().zip(&new_ids).zip(&outcomes) {
            let (known, again, other) = ((clock, id, source), (clock + 100, id, source), (clock + 200, new_id.as_str(), source));
            let renamed = (clock, new_id.as_str(), source);
            match outcome {
                Outcome::Stays => now.push(known),
                Outcome::CameAgain => now.extend([again, known]),
                Outcome::Renamed => now.push(renamed),
                Outcome::RenamedAndCameAgain => now.extend([again, renamed]),
                Outcome::CopiedUnderAnotherId => now.extend([known, other]),
                Outcome::MadeAnewUnderAnotherId => now.push(other),
                Outcome::Gone => {}
            }
        }
        let strangers: Vec<String> = (0..others).map(|number| format!("somebody's {number}")).collect();
        now.extend((1000..).zip(&strangers).map(|(clock, id)| (clock, id.as_str(), id.as_str())));
        let stays = |(_, outcome): &(&(u32, String), &Outcome)| !matches!(outcome, Outcome::Gone);
        let expected: Vec<&String> = ids.iter().zip(&outcomes).filter(stays).map(|((_, id), _)| id).chain(&strangers).collect();
        let result = after(&placed(&held), &placed(&now), FileAge::Stale, false);
        prop_assert!(result.iter().all(|(id, source)| id == source), "{result:?}");
        prop_assert_eq!(result.iter().map(|(id, _)| id).collect::<Vec<_>>(), expected);
    }
}
