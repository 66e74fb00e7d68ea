//! Entry points for what comes from a room, for the fuzz targets and, for a moment, for property tests. Only there in builds
//! for these.

use std::time::{Duration, Instant, SystemTime};

use jupyter_client::{DocPath, RoomKind};

use crate::core::{clock::Clock, document::Document, life::Input, scan::scan, state::State, wire::Message};

/// Frames after which a room is given up.
const MAX_FRAMES: usize = 64;

/// A frame of a room, with the update in it.
pub fn room_frame(data: &[u8]) {
    match Message::decode(data) {
        Ok(Some(Message::SyncStep2(bytes) | Message::Update(bytes))) => update(&bytes),
        Ok(Some(message)) => {
            let encoded = message.encode();
            assert_eq!(Message::decode(&encoded), Ok(Some(message)));
        }
        Ok(None) | Err(_) => {}
    }
}

/// An update of a document, as it is looked through before it is decoded.
pub fn update(data: &[u8]) {
    if let Ok(scanned) = scan(data) {
        assert!(scanned.update.len() <= data.len());
    }
}

/// Frames of a room, each behind two bytes that tell its length, as an open notebook takes them in, until it is closed on account
/// of one. What it has become is read after each. What yrs panics over is caught, as in a gateway: a fuzzer must not take that
/// for a crash.
pub fn room(data: &[u8]) {
    let document = Document::new(RoomKind::Notebook, Clock::new(Instant::now(), SystemTime::now()));
    let Ok(path) = DocPath::parse("n.ipynb") else { return };
    let mut now = document.clock().now();
    let mut state = State::new(document, path, "file".to_owned(), "session".to_owned());
    let mut rest = data;
    for _ in 0..MAX_FRAMES {
        let Some((length, tail)) = rest.split_first_chunk() else {
            return;
        };
        let (frame, tail) = tail.split_at(usize::from(u16::from_le_bytes(*length)).min(tail.len()));
        rest = tail;
        now += Duration::from_millis(10);
        state.on(Input::Frame(frame), now);
        if state.has_no_connection() {
            return;
        }
        state.on(Input::Flush, now);
        state.on(Input::Tick, now);
        let document = &state.document;
        assert_eq!(document.cell_count(), document.ids().len());
        let cells = document.cells(0..document.cell_count());
        assert!(cells.len() <= document.cell_count());
        let _ = (document.notebook(), document.read_content(), document.revision());
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use proptest::prelude::*;
    use yrs::{Array, Doc, Map, MapPrelim, ReadTxn, StateVector, Text, TextPrelim, Transact};

    use crate::core::wire::Message;

    /// Frames of a room as [`super::room`] reads them.
    fn behind_lengths(frames: &[Vec<u8>]) -> Vec<u8> {
        let frame = |frame: &Vec<u8>| [&u16::try_from(frame.len()).unwrap().to_le_bytes()[..], frame].concat();
        frames.iter().map(frame).collect::<Vec<_>>().concat()
    }

    /// A notebook with cells of these sources, in one update for each.
    fn notebook(sources: &[String]) -> Vec<Vec<u8>> {
        let doc = Doc::with_client_id(1);
        let (cells, meta) = (doc.get_or_insert_array("cells"), doc.get_or_insert_map("meta"));
        let mut updates = Vec::new();
        for (index, source) in sources.iter().enumerate() {
            let mut txn = doc.transact_mut();
            meta.insert(&mut txn, "nbformat", 4.0);
            let cell = MapPrelim::from([
                ("id".to_owned(), yrs::In::Any(format!("c{index}").into())),
                ("cell_type".to_owned(), yrs::In::Any("code".into())),
                ("source".to_owned(), TextPrelim::new(source.as_str()).into()),
                ("metadata".to_owned(), MapPrelim::default().into()),
            ]);
            cells.insert(&mut txn, 0, cell);
            updates.push(txn.encode_update_v1());
        }
        updates
    }

    fn updates(updates: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let frame = |update: &Vec<u8>| Message::Update(update.clone()).encode();
        updates.iter().map(frame).collect()
    }

    type Target = fn(&[u8]);

    #[test]
    fn what_was_found_before_is_no_panic() {
        let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
        let targets: [(&str, Target); 3] = [
            ("room_frame", super::room_frame),
            ("document_update", super::update),
            ("room", super::room),
        ];
        for (target, run) in targets {
            for seed in fs::read_dir(seeds.join(target)).unwrap() {
                run(&fs::read(seed.unwrap().path()).unwrap());
            }
        }
    }

    #[test]
    fn a_room_takes_in_what_it_is_told() {
        let sources = ["a".to_owned(), "b".to_owned()];
        super::room(&behind_lengths(&updates(&notebook(&sources))));
    }

    proptest! {
        #[test]
        fn no_frame_is_a_panic(mut data in prop::collection::vec(any::<u8>(), 0..300), tag in 0_u8..4, step in 0_u8..4) {
            super::room_frame(&data);
            super::update(&data);
            data.splice(0..0, [tag, step]);
            super::room_frame(&data);
        }

        #[test]
        fn an_update_that_was_damaged_on_its_way_is_no_panic(text in ".{0,40}", at: prop::sample::Index, byte: u8) {
            let doc = Doc::new();
            doc.get_or_insert_text("source").insert(&mut doc.transact_mut(), 0, &text);
            let mut update = doc.transact().encode_state_as_update_v1(&StateVector::default());
            let at = at.index(update.len());
            update[at] = byte;
            super::update(&update);
        }

        #[test]
        fn no_damage_to_what_a_room_says_is_a_panic(
            sources in prop::collection::vec(".{0,12}", 1..5),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        ) {
            let mut data = behind_lengths(&updates(&notebook(&sources)));
            for (at, byte) in damage {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::room(&data);
        }
    }
}
