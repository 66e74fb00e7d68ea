//! Owns how bearer tokens are made, hashed and written into a configuration.

use sha2::{Digest, Sha256};

/// Prefix of tokens that a gateway generates.
pub const TOKEN_PREFIX: &str = "jmg_";

/// A new bearer token with 256 bits of randomness.
///
/// # Panics
/// If the operating system supplies no randomness: there is no safe token to hand out then.
#[expect(clippy::expect_used, reason = "a guessable token would be worse than none")]
pub fn new_token() -> String {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).expect("the operating system supplies randomness");
    format!("{TOKEN_PREFIX}{}", hex(&bytes))
}

/// The hash by which a bearer token is known.
pub fn sha256(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// The hash under which a bearer token is configured, in lower-case hexadecimal digits.
pub fn sha256_hex(token: &str) -> String {
    hex(&sha256(token))
}

/// Reads such digits back.
pub fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0_u8; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

/// The TOML to paste into the configuration for a token of that hash.
pub fn token_toml(name: &str, sha256: &str) -> String {
    let name = toml::Value::from(name);
    format!(
        "[[auth.tokens]]\n\
         name = {name}\n\
         tenant = \"default\"  # the name of one of your [[tenants]]\n\
         sha256 = \"{sha256}\"\n\
         permissions = [\"read\", \"write\", \"execute\"]\n\
         paths = [\"**\"]\n"
    )
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
