//! Random values, and the digests by which they are known.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use crate::config::token::sha256;

/// Bytes of a secret.
const SECRET_LEN: usize = 32;

/// A random value that nobody can guess.
#[expect(clippy::expect_used, reason = "without randomness there are no secrets")]
pub(super) fn new_secret() -> String {
    let mut bytes = [0_u8; SECRET_LEN];
    getrandom::fill(&mut bytes).expect("the operating system supplies randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns whether a value looks like one that was made here.
pub(super) fn is_secret(text: &str) -> bool {
    URL_SAFE_NO_PAD
        .decode(text)
        .is_ok_and(|bytes| bytes.len() == SECRET_LEN)
}

/// The digest by which a secret is known.
pub(super) fn digest(secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(sha256(secret))
}

/// Compares in constant time.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}
