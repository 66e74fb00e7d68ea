//! Proof keys of clients (RFC 7636), of which only S256 counts.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

use super::secrets::{digest, is_same};

/// The challenge of a verifier.
pub(super) fn challenge(verifier: &str) -> String {
    digest(verifier)
}

/// Returns whether a challenge can be one of S256.
pub(super) fn is_challenge(challenge: &str) -> bool {
    URL_SAFE_NO_PAD.decode(challenge).is_ok_and(|bytes| bytes.len() == 32)
}

/// Returns whether a verifier is the one of a challenge.
pub(super) fn is_verified(verifier: &str, challenged: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let is_well_formed = (43..=128).contains(&verifier.len()) && verifier.bytes().all(is_allowed);
    is_well_formed && is_same(&challenge(verifier), challenged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenged = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert!(is_challenge(challenged) && is_verified(verifier, challenged));
        assert!(!is_verified(challenged, challenged), "plain");
        assert!(!is_verified("", challenged) && !is_verified(&verifier.repeat(3), challenged));
        assert!(!is_challenge("") && !is_challenge(&verifier[1..]) && !is_challenge("not base64 at all"));
    }
}
