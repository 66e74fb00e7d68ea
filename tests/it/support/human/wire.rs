//! Frames of Jupyter's rooms, as a browser writes and reads them.

use serde_json::Value;

pub(super) fn sync(step: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0, step];
    put(&mut frame, payload.len() as u64);
    frame.extend(payload);
    frame
}

pub(super) fn presence(client: u64, clock: u64, state: &Value) -> Vec<u8> {
    let (mut inner, state) = (vec![1], state.to_string());
    for value in [client, clock, state.len() as u64] {
        put(&mut inner, value);
    }
    inner.extend(state.bytes());
    let mut frame = vec![1];
    put(&mut frame, inner.len() as u64);
    frame.extend(inner);
    frame
}

fn put(bytes: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7f).expect("7 bits");
        value >>= 7;
        bytes.push(if value > 0 { low | 0x80 } else { low });
        if value == 0 {
            return;
        }
    }
}

pub(super) fn number(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a whole number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

pub(super) fn buffer<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::try_from(number(bytes)).expect("a length");
    let (buffer, rest) = bytes.split_at(length);
    *bytes = rest;
    buffer
}
