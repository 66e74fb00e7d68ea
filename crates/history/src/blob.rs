//! Outputs of cells, which are kept apart from contents by their hash: the same ones are kept once.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::encoding::{self, DecodeError};

/// Outputs of a cell with more bytes of JSON are not kept.
pub const MAX_OUTPUTS: usize = 256 * 1024;

/// The SHA-256 of something that is kept apart. Its text is hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

/// Outputs of a cell, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Outputs {
    /// There are none.
    #[default]
    #[serde(rename = "n")]
    None,
    /// They are kept as a [`Blob`].
    #[serde(rename = "k")]
    Kept(Hash),
    /// There are some that are too large to be kept, or that were never looked at.
    #[serde(rename = "o")]
    Omitted,
}

/// Outputs of a cell: the JSON of nbformat's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub hash: Hash,
    pub json: Arc<str>,
}

impl Blob {
    pub fn new(json: impl Into<Arc<str>>) -> Self {
        let json = json.into();
        let hash = Hash::of(json.as_bytes());
        Self { hash, json }
    }

    /// Outputs as a content mentions them, and what is to be kept of them.
    pub fn of(outputs: &[Value]) -> (Outputs, Option<Self>) {
        if outputs.is_empty() {
            return (Outputs::None, None);
        }
        match serde_json::to_string(outputs) {
            Ok(json) if json.len() <= MAX_OUTPUTS => {
                let blob = Self::new(json);
                (Outputs::Kept(blob.hash), Some(blob))
            }
            _ => (Outputs::Omitted, None),
        }
    }

    /// The outputs as nbformat has them.
    pub fn outputs(&self) -> Vec<Value> {
        serde_json::from_str(&self.json).unwrap_or_default()
    }

    /// The form in which it is stored.
    pub fn encode(&self) -> Vec<u8> {
        encoding::pack(self.json.as_bytes())
    }

    /// Reads what [`Self::encode`] made, which must have this hash.
    pub fn decode(hash: Hash, bytes: &[u8]) -> Result<Self, DecodeError> {
        let json = String::from_utf8(encoding::unpack(bytes)?).map_err(|error| DecodeError::malformed(&error))?;
        let blob = Self::new(json);
        match blob.hash == hash {
            true => Ok(blob),
            false => Err(DecodeError::Hash),
        }
    }
}

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Hash {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl TryFrom<&[u8]> for Hash {
    type Error = DecodeError;

    fn try_from(bytes: &[u8]) -> Result<Self, DecodeError> {
        bytes.try_into().map(Self).map_err(|_| DecodeError::Hash)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for Hash {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(DecodeError::Hash);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(DecodeError::Hash);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).unwrap_or_default();
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Hash {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn outputs_are_kept_by_their_hash_unless_they_are_large() {
        assert_eq!(Blob::of(&[]), (Outputs::None, None));
        let outputs = [json!({ "output_type": "stream", "name": "stdout", "text": "1\n" })];
        let (mentioned, blob) = Blob::of(&outputs);
        let blob = blob.expect("something to keep");
        assert_eq!(
            (mentioned, blob.outputs().as_slice()),
            (Outputs::Kept(blob.hash), outputs.as_slice())
        );
        assert_eq!(Blob::decode(blob.hash, &blob.encode()), Ok(blob.clone()));
        assert_eq!(Blob::decode(Hash::of(b""), &blob.encode()), Err(DecodeError::Hash));
        let large = json!({ "text": "x".repeat(MAX_OUTPUTS) });
        assert_eq!(Blob::of(&[large]), (Outputs::Omitted, None));
    }

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = Hash::of(b"x");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(Hash::try_from(hash.as_bytes().as_slice()), Ok(hash));
        for wrong in ["", "0g", &"é".repeat(32), &"0".repeat(63)] {
            assert_eq!(wrong.parse::<Hash>(), Err(DecodeError::Hash));
        }
    }
}
