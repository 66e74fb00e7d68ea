//! The form in which deltas and contents are stored: a byte for the version of the format, one for the compression,
//! then JSON. What is read may be damaged.

use std::io::{Read, Write};

use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use serde::{Serialize, de::DeserializeOwned};

/// Most bytes that are decompressed; nothing that the gateway holds is larger.
pub const MAX_DECODED: usize = 256 * 1024 * 1024;

const FORMAT: u8 = 1;
const PLAIN: u8 = 0;
const DEFLATE: u8 = 1;
/// Less than this is not worth compressing.
const MIN_COMPRESSED: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("stored history has format {found}, which this gateway does not know; a newer one wrote it")]
    Format { found: u8 },
    #[error("stored history is damaged: {why}")]
    Malformed { why: String },
    #[error("stored history is damaged: it is larger than any document")]
    TooLarge,
    #[error("stored history is damaged: its hash does not match")]
    Hash,
}

impl DecodeError {
    pub(crate) fn malformed(why: &impl ToString) -> Self {
        Self::Malformed { why: why.to_string() }
    }
}

pub(crate) fn encode(value: &impl Serialize) -> Vec<u8> {
    pack(&serde_json::to_vec(value).unwrap_or_default())
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, DecodeError> {
    serde_json::from_slice(&unpack(bytes)?).map_err(|error| DecodeError::malformed(&error))
}

pub(crate) fn pack(plain: &[u8]) -> Vec<u8> {
    if plain.len() >= MIN_COMPRESSED
        && let Ok(packed) = deflate(plain)
        && packed.len() < plain.len()
    {
        return packed;
    }
    [&[FORMAT, PLAIN], plain].concat()
}

fn deflate(plain: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(vec![FORMAT, DEFLATE], Compression::default());
    encoder.write_all(plain)?;
    encoder.finish()
}

pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    match bytes {
        [FORMAT, PLAIN, plain @ ..] => Ok(plain.to_vec()),
        [FORMAT, DEFLATE, packed @ ..] => inflate(packed, MAX_DECODED),
        [FORMAT, ..] | [] => Err(DecodeError::malformed(&"it ends too early")),
        [found, ..] => Err(DecodeError::Format { found: *found }),
    }
}

fn inflate(packed: &[u8], limit: usize) -> Result<Vec<u8>, DecodeError> {
    let mut plain = Vec::new();
    DeflateDecoder::new(packed)
        .take(u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1))
        .read_to_end(&mut plain)
        .map_err(|error| DecodeError::malformed(&error))?;
    match plain.len() > limit {
        true => Err(DecodeError::TooLarge),
        false => Ok(plain),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_is_allowed_is_not_unpacked() {
        let packed = pack(&vec![b' '; 1 << 20]);
        assert!(packed.len() < 2000);
        assert_eq!(inflate(&packed[2..], (1 << 20) - 1), Err(DecodeError::TooLarge));
        assert!(inflate(&packed[2..], 1 << 20).is_ok());
    }

    #[test]
    fn small_things_are_kept_as_they_are() {
        assert_eq!(pack(b"{}"), b"\x01\x00{}");
        assert_eq!(unpack(&pack(b"{}")), Ok(b"{}".to_vec()));
        assert!(unpack(&[]).is_err() && unpack(&[FORMAT]).is_err() && unpack(&[FORMAT, 7, 0]).is_err());
        assert_eq!(unpack(&[9, 9]), Err(DecodeError::Format { found: 9 }));
    }
}
