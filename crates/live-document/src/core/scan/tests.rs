//! Updates as yrs makes them are taken as they are; what would harm it is not.

use crate::core::clock::Clock;
use proptest::prelude::*;
use yrs::{
    Any, Array, ArrayPrelim, Doc, In, Map, MapPrelim, MapRef, Out, ReadTxn, StateVector, Text, TextPrelim, Transact,
    Update,
    updates::{decoder::Decode, encoder::Encode},
};

use super::{
    super::{RoomKind, depths::Depths, document::Document},
    *,
};

/// Depths at which the process was seen to end, and beyond.
const DEPTHS: [usize; 2] = [8_000, 100_000];

fn put(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).expect("7 bits") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("7 bits"));
}

fn put_text(bytes: &mut Vec<u8>, text: &[u8]) {
    put(bytes, text.len());
    bytes.extend(text);
}

/// An update of one block in the root `cells`.
fn update(kind: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![1, 1, 7, 0, kind, 1];
    put_text(&mut bytes, b"cells");
    bytes.extend(content);
    bytes.push(0);
    bytes
}

fn json(depth: usize) -> Vec<u8> {
    let mut text = vec![];
    put_text(
        &mut text,
        format!("{}{}", "[".repeat(depth), "]".repeat(depth)).as_bytes(),
    );
    text
}

fn nested_any(depth: usize) -> Vec<u8> {
    [[117_u8, 1].repeat(depth - 1), vec![117, 0]].concat()
}

/// A map in a map in a map, as one update or as many.
fn maps(levels: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..levels).map(|level| {
        let mut block = vec![TYPE];
        match level {
            0 => {
                block.push(1);
                put_text(&mut block, b"cells");
            }
            _ => {
                block.extend([0, 7]);
                put(&mut block, level - 1);
            }
        }
        block.push(1);
        block
    })
}

fn in_one(levels: usize) -> Vec<u8> {
    let mut bytes = vec![1];
    put(&mut bytes, levels);
    bytes.extend([7, 0]);
    bytes.extend(maps(levels).flatten());
    bytes.push(0);
    bytes
}

fn in_many(levels: usize) -> impl Iterator<Item = Vec<u8>> {
    maps(levels).enumerate().map(|(clock, block)| {
        let mut bytes = vec![1, 1, 7];
        put(&mut bytes, clock);
        bytes.extend(block);
        bytes.push(0);
        bytes
    })
}

/// Returns whether yrs can decode and drop an update on a stack smaller than that of any thread here.
fn is_harmless(update: Vec<u8>) -> bool {
    let work = move || {
        let Ok(update) = Update::decode_v1(&update) else {
            return false;
        };
        let doc = Doc::new();
        let applied = doc.transact_mut().apply_update(update).is_ok();
        let cells = doc.get_or_insert_array("cells");
        let mut txn = doc.transact_mut();
        let length = cells.len(&txn);
        cells.remove_range(&mut txn, 0, length);
        drop(txn);
        applied
    };
    let thread = std::thread::Builder::new().stack_size(1024 * 1024).spawn(work);
    thread.expect("a thread").join().expect("no panic")
}

#[test]
fn values_of_every_kind_are_measured() {
    let string = |text: &[u8]| {
        let mut bytes = vec![];
        put_text(&mut bytes, text);
        bytes
    };
    let of_kind = |kind: u8, depth: usize| match kind {
        ANY => update(ANY, &[vec![1], nested_any(depth)].concat()),
        EMBED => update(EMBED, &json(depth)),
        FORMAT => update(FORMAT, &[string(b"bold"), json(depth)].concat()),
        _ => update(DOC, &[string(b"guid"), nested_any(depth)].concat()),
    };
    for kind in [ANY, EMBED, FORMAT, DOC] {
        let taken = of_kind(kind, MAX_NESTING - 1);
        scan(&taken).unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert!(is_harmless(taken), "{kind}");
        assert_eq!(scan(&of_kind(kind, MAX_NESTING + 1)), Err(Excess::Nesting), "{kind}");
        for depth in DEPTHS {
            assert_eq!(scan(&of_kind(kind, depth)), Err(Excess::Nesting), "{kind}, {depth}");
        }
    }
    let members = [vec![1, 118, 1, 1, b'a'], [118, 1, 1, b'a'].repeat(8_000), vec![126]].concat();
    assert_eq!(scan(&update(ANY, &members)), Err(Excess::Nesting));
}

/// As a server says it that keeps a deep value in its history after it was replaced.
#[test]
fn a_deep_value_that_is_deleted_is_left_out() {
    // Two values in one block, then another value after them.
    let deep = |depth| [vec![HAS_ORIGIN | ANY, 7, 0, 2], nested_any(depth), vec![126]].concat();
    let after = [vec![HAS_ORIGIN | ANY, 7, 2, 1, 119], vec![5], b"after".to_vec()].concat();
    let with = |depth: usize, deleted: &[u8]| {
        let first = [vec![ANY, 1, 5], b"cells".to_vec(), vec![1, 119, 6], b"before".to_vec()].concat();
        [vec![1, 3, 7, 0], first, deep(depth), after.clone(), deleted.to_vec()].concat()
    };
    for depth in [MAX_NESTING - 1, MAX_NESTING + 1, 100_000] {
        for deleted in [
            &[1, 7, 1, 1, 2][..],
            &[1, 7, 2, 2, 1, 1, 1],
            &[2, 8, 1, 0, 9, 7, 1, 0, 3],
        ] {
            let said = with(depth, deleted);
            let mut document = Document::new(RoomKind::Notebook, Clock::default());
            document.apply_remote(&said).expect("nothing deep is left");
            let scanned = scan(&said).expect("readable");
            assert!(scanned.update.len() < 100, "{depth} {deleted:?}");
            assert!(is_harmless(scanned.update.into_owned()));
        }
    }
    let fresh = Doc::new();
    let said = with(8_000, &[1, 7, 1, 1, 2]);
    let taken = scan(&said).expect("readable").update;
    let update = Update::decode_v1(&taken).expect("readable");
    fresh.transact_mut().apply_update(update).expect("it fits");
    let left = fresh.get_or_insert_array("cells");
    let txn = fresh.transact();
    let left: Vec<String> = left.iter(&txn).map(|value| value.to_string(&txn)).collect();
    assert_eq!(left, ["before", "after"]);
    for deleted in [&[0][..], &[1, 7, 1, 1, 1], &[1, 7, 1, 2, 1], &[1, 8, 1, 1, 2]] {
        assert_eq!(scan(&with(8_000, deleted)), Err(Excess::Nesting), "{deleted:?}");
    }
}

#[test]
fn shared_types_in_each_other_are_measured_in_one_update_and_in_many() {
    for levels in DEPTHS {
        let mut document = Document::new(RoomKind::Notebook, Clock::default());
        let refused = document.apply_remote(&in_one(levels)).expect_err("too deep");
        assert_eq!(refused.to_string(), Excess::Nesting.to_string());
    }
    let mut document = Document::new(RoomKind::Notebook, Clock::default());
    let mut applied = in_many(100_000).map(|update| document.apply_remote(&update));
    assert_eq!(applied.by_ref().take_while(Result::is_ok).count(), MAX_NESTING);
    assert!(is_harmless(in_one(MAX_NESTING)));
}

#[test]
fn what_waits_for_its_parent_is_measured_when_that_comes() {
    // The levels of an even number come first, in the wrong order; then those that hold them together.
    let levels: Vec<Vec<u8>> = in_many(2 * MAX_NESTING).collect();
    let mut depths = Depths::default();
    let mut admit = |level: usize| depths.admit(scan(&levels[level]).expect("readable").blocks);
    for level in (0..levels.len()).rev().filter(|level| level % 2 == 1) {
        admit(level).expect("nothing is known of it");
    }
    let refused: Vec<Excess> = (0..levels.len())
        .step_by(2)
        .filter_map(|level| admit(level).err())
        .collect();
    assert!(refused.contains(&Excess::Nesting), "{refused:?}");

    let endless: Vec<u8> = {
        let mut bytes = vec![1];
        put(&mut bytes, 20_000);
        bytes.extend([7, 0]);
        // Each beside something of a client that never says anything.
        bytes.extend([HAS_ORIGIN | DELETED, 9, 9, 1].repeat(20_000));
        bytes.push(0);
        bytes
    };
    assert_eq!(
        Depths::default().admit(scan(&endless).expect("readable").blocks),
        Err(Excess::Waiting)
    );
}

#[test]
fn a_block_cannot_be_in_two_depths() {
    let mut depths = Depths::default();
    depths
        .admit(scan(&in_one(3)).expect("readable").blocks)
        .expect("shallow");
    // The third map once more, in the document itself.
    let mut again = vec![1, 1, 7, 2, TYPE, 1];
    put_text(&mut again, b"cells");
    again.extend([1, 0]);
    assert_eq!(
        depths.admit(scan(&again).expect("readable").blocks),
        Err(Excess::Contradiction)
    );
}

#[test]
fn what_is_declared_must_be_there() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    for bytes in [
        &huge[..],
        &[&[1][..], &huge].concat(),
        &update(ANY, &huge),
        &update(ANY, &[&[1, 117][..], &huge].concat()),
        &update(ANY, &[&[1, 118][..], &huge].concat()),
        &update(JSON, &huge),
        &update(STRING, &huge),
        &[&[0][..], &huge].concat(),
        &[&[0, 1, 1][..], &huge].concat(),
        // A clock and a length that together overflow.
        &[&[0, 1, 1, 1][..], &huge, &huge].concat(),
    ] {
        assert!(matches!(scan(bytes), Err(Excess::Malformed(_))), "{bytes:?}");
    }
    assert!(check_vector(&huge).is_err());
    assert!(check_vector(&StateVector::default().encode_v1()).is_ok());
    let mut empty = vec![];
    put(&mut empty, 100_000);
    for client in 0..100_000 {
        empty.push(0);
        put(&mut empty, client);
        empty.push(0);
    }
    empty.push(0);
    assert!(matches!(scan(&empty), Err(Excess::Malformed(_))), "yrs would recurse");
}

/// Something that somebody does in a document.
#[derive(Debug, Clone)]
enum Act {
    Insert(u32, String),
    Remove(u32),
    Type(u32, String),
    Value(u32, u8),
    Nest(u32),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0..9_u32, ".{0,6}").prop_map(|(at, text)| Act::Insert(at, text)),
        (0..9_u32).prop_map(Act::Remove),
        (0..9_u32, ".{1,6}").prop_map(|(at, text)| Act::Type(at, text)),
        (0..9_u32, 0..9_u8).prop_map(|(at, depth)| Act::Value(at, depth)),
        (0..9_u32).prop_map(Act::Nest),
    ]
}

/// Does it, and returns the update.
fn perform(doc: &Doc, act: &Act) -> Vec<u8> {
    let cells = doc.get_or_insert_array("cells");
    let mut txn = doc.transact_mut();
    let length = cells.len(&txn);
    let cell = |txn: &yrs::TransactionMut<'_>, at: u32| match cells.get(txn, at.min(length.saturating_sub(1))) {
        Some(Out::YMap(map)) => Some(map),
        _ => None,
    };
    match act {
        Act::Insert(at, text) => {
            let cell = MapPrelim::from([
                ("id".to_owned(), In::from(text.as_str())),
                ("source".to_owned(), In::from(TextPrelim::new(text.as_str()))),
                ("outputs".to_owned(), In::from(ArrayPrelim::default())),
            ]);
            cells.insert(&mut txn, (*at).min(length), cell);
        }
        Act::Remove(at) if length > 0 => cells.remove(&mut txn, (*at).min(length - 1)),
        Act::Remove(_) => {}
        Act::Type(at, text) => {
            if let Some(Out::YText(source)) = cell(&txn, *at).and_then(|cell| cell.get(&txn, "source")) {
                source.insert(&mut txn, 0, text);
                source.insert_embed(&mut txn, 0, Any::from(true));
                let bold = yrs::types::Attrs::from([("bold".into(), Any::from(true))]);
                source.format(&mut txn, 0, 1, bold);
            }
        }
        Act::Value(at, depth) => {
            if let Some(cell) = cell(&txn, *at) {
                let nested = (0..*depth).fold(Any::from(1), |value, _| Any::from(vec![value]));
                let all = [nested, Any::Null, Any::from(2.5), Any::from("x"), Any::from(i64::MAX)];
                cell.insert(&mut txn, "value", Any::from(all.to_vec()));
            }
        }
        Act::Nest(at) => {
            if let Some(cell) = cell(&txn, *at) {
                let _: MapRef = cell.insert(&mut txn, "nested", MapPrelim::from([("a".to_owned(), In::from(1))]));
            }
        }
    }
    txn.encode_update_v1()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_yrs_writes_is_taken(acts in proptest::collection::vec((0..3_usize, act()), 1..40), sync in 1..5_usize) {
        let docs: Vec<Doc> = (1..=3).map(|client| {
            let mut options = yrs::Options::with_client_id(yrs::block::ClientID::new(client));
            options.offset_kind = yrs::OffsetKind::Utf16;
            Doc::with_options(options)
        }).collect();
        let mut depths = Depths::default();
        for (step, (who, act)) in acts.iter().enumerate() {
            let update = perform(&docs[*who], act);
            depths.admit(scan(&update).expect("readable").blocks).expect("shallow");
            if step % sync == 0 {
                for doc in &docs {
                    for other in &docs {
                        let vector = doc.transact().state_vector();
                        let lacks = other.transact().encode_diff_v1(&vector);
                        depths.admit(scan(&lacks).expect("readable").blocks).expect("shallow");
                        doc.transact_mut().apply_update(Update::decode_v1(&lacks).expect("readable")).expect("fits");
                    }
                }
            }
        }
        for doc in &docs {
            let whole = doc.transact().encode_diff_v1(&StateVector::default());
            let mut fresh = Document::new(RoomKind::Notebook, Clock::default());
            prop_assert!(fresh.apply_remote(&whole).is_ok());
            for end in 0..whole.len() {
                let _ = scan(&whole[..end]);
            }
        }
    }

    #[test]
    fn any_bytes_are_survived_and_what_is_taken_can_be_decoded(bytes in proptest::collection::vec(any_byte(), 0..60)) {
        if scan(&bytes).is_ok() {
            let mut document = Document::new(RoomKind::Notebook, Clock::default());
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| document.apply_remote(&bytes)));
        }
    }
}

/// Mostly bytes that mean something.
fn any_byte() -> impl Strategy<Value = u8> {
    prop_oneof![0..12_u8, 0..12_u8, 116..128_u8, any::<u8>()]
}
