//! Encryption of what the store keeps for a login: logins under way, and tokens of the upstream provider. The key is
//! derived from a secret of the config, so that it survives restarts and replicas that share the config share it.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Salt},
};
use serde::{Serialize, de::DeserializeOwned};

/// Tells this key from others that are derived from the same secret.
const SALT: &[u8] = b"jupyter-mcp-gateway";
const PURPOSE: &[u8] = b"oauth store";

/// Seals and opens values under one key.
pub(super) struct Sealer(LessSafeKey);

impl Sealer {
    #[expect(
        clippy::expect_used,
        reason = "the key that is asked for has a length that can be derived"
    )]
    pub(super) fn new(secret: &str) -> Self {
        let derived = Salt::new(HKDF_SHA256, SALT).extract(secret.as_bytes());
        let info = [PURPOSE];
        let key = derived
            .expand(&info, &AES_256_GCM)
            .expect("BUG: a key of another length");
        Self(LessSafeKey::new(UnboundKey::from(key)))
    }

    /// Seals a value, which opens only under the same name.
    #[expect(clippy::expect_used, reason = "without randomness there are no secrets")]
    pub(super) fn seal(&self, name: &str, value: &impl Serialize) -> Option<String> {
        let mut body = serde_json::to_vec(value).ok()?;
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).expect("the operating system supplies randomness");
        let sealing = Nonce::assume_unique_for_key(nonce);
        self.0
            .seal_in_place_append_tag(sealing, Aad::from(name), &mut body)
            .ok()?;
        Some(URL_SAFE_NO_PAD.encode([nonce.as_slice(), &body].concat()))
    }

    /// Opens what was sealed under a name. `None` if it was changed, or sealed under another name or key.
    pub(super) fn open<T: DeserializeOwned>(&self, name: &str, sealed: &str) -> Option<T> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, body) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.0.open_in_place(nonce, Aad::from(name), body).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_under_its_name_and_key_alone() {
        let sealer = Sealer::new("a secret");
        let sealed = sealer.seal("grant", &"token").expect("sealed");
        assert!(!sealed.contains("token"));
        assert_ne!(sealer.seal("grant", &"token"), Some(sealed.clone()));
        let again = Sealer::new("a secret");
        assert_eq!(again.open::<String>("grant", &sealed).as_deref(), Some("token"));
        assert_eq!(again.open::<String>("other", &sealed), None);
        assert_eq!(Sealer::new("b secret").open::<String>("grant", &sealed), None);
        for cut in 0..sealed.len() {
            assert_eq!(sealer.open::<String>("grant", &sealed[..cut]), None);
        }
    }
}
