//! Costs of recording. Run by hand: `cargo test --release -p live-document recording_ -- --ignored --nocapture`.

use std::{sync::Arc, time::Instant};

use jupyter_client::DocPath;
use serde_json::json;

use super::testing::Memory;
use crate::core::{CellKind, Edit, NewCell, RoomKind, clock::Clock, document::Document, state::State};

fn document(cells: usize) -> Document {
    let mut document = Document::new(RoomKind::Notebook, Clock::default());
    let cell = |number: usize| NewCell {
        id: format!("{number:08}-0000-4000-8000-000000000000"),
        outputs: vec![json!({ "output_type": "stream", "name": "stdout", "text": "result\n".repeat(30) })],
        ..NewCell::new(
            CellKind::Code,
            format!("value_{number} = compute(table, {number})\n").repeat(5),
        )
    };
    let cells = (0..cells).map(cell).collect();
    document
        .apply_local(&"x".into(), &[Edit::AppendCells { cells }])
        .expect("valid");
    let mut received = Document::new(RoomKind::Notebook, Clock::default());
    received
        .apply_remote(&document.diff(&yrs::StateVector::default()))
        .expect("valid");
    received
}

fn state(cells: usize) -> State {
    let path = DocPath::parse("a.ipynb").expect("a path");
    State::new(document(cells), path, String::new(), String::new())
}

/// Microseconds per edit: the smallest of several rounds.
fn edits(state: &mut State, cells: usize) -> u128 {
    let author: Arc<str> = "ana".into();
    let rounds = (0..5).map(|round| {
        let began = Instant::now();
        for number in 0..100 {
            let cell = format!("{:08}-0000-4000-8000-000000000000", (number * 37) % cells);
            let source = state.document.source(&cell).expect("a cell") + &format!("# {round}\n");
            let applied = state.document.apply_local(&author, &[Edit::SetSource { cell, source }]);
            std::hint::black_box(applied.expect("valid"));
            state.tell_versions();
        }
        began.elapsed().as_micros() / 100
    });
    rounds.min().unwrap_or_default()
}

fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = status
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .expect("a number");
    pages * 4096
}

#[test]
#[ignore = "measures, and checks nothing"]
fn recording_costs() {
    for cells in [500, 5_000] {
        let mut plain = state(cells);
        let without = edits(&mut plain, cells);
        let mut recorded = state(cells);
        let began = Instant::now();
        let memory = Memory::of(&mut recorded);
        let opening = began.elapsed();
        let with = edits(&mut recorded, cells);
        let bytes: usize = memory.told(|told| told.versions.iter().map(|version| version.delta.encode().len()).sum());
        let count = memory.told(|told| told.versions.len());
        println!(
            "{cells} cells: edit {without} us without, {with} us with; opening {opening:?}; {count} deltas of {bytes} bytes"
        );
    }
}

/// Run it twice, with and without `RECORD=1`: what was freed before would spoil the second figure.
#[test]
#[ignore = "measures, and checks nothing"]
fn recording_memory() {
    let few = 40;
    let begin = resident();
    let mut states: Vec<State> = (0..few).map(|_| state(500)).collect();
    if std::env::var_os("RECORD").is_some() {
        for state in &mut states {
            state.document.start_recording();
        }
    }
    println!("500 cells: {} bytes each", (resident() - begin) / few);
}

#[test]
fn what_cells_say_alike_takes_the_memory_of_one() {
    let mut server = Document::new(RoomKind::Notebook, Clock::default());
    let cell = |_| NewCell {
        metadata: serde_json::json!({ "tags": ["a"] }),
        ..NewCell::new(CellKind::Code, "x")
    };
    let cells = (0..20).map(cell).collect();
    let append = [Edit::AppendCells { cells }];
    server.apply_local(&"server".into(), &append).expect("valid");
    let (content, _) = server.read_content();
    let places = content.cells().iter().map(|cell| cell.metadata.as_str().as_ptr());
    let places: std::collections::HashSet<*const u8> = places.collect();
    assert_eq!((content.cells().len(), places.len()), (20, 1));
}
