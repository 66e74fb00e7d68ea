//! Entry points for what comes from a room, for the fuzz targets and, for a moment, for property tests. Only there in builds
//! for these.

use crate::core::{scan::scan, wire::Message};

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

/// An update of a document, as it is looked through before it is decoded. What passes is decoded behind a guard, which a
/// fuzzer would take for a panic.
pub fn update(data: &[u8]) {
    if let Ok(scanned) = scan(data) {
        assert!(scanned.update.len() <= data.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use yrs::{Doc, ReadTxn, StateVector, Text, Transact};

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
    }
}
