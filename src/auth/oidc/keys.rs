//! The keys that a provider signs with, and which of them a token may have been signed with: RFC 7517.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

/// Providers have a handful.
const MAX_KEYS: usize = 100;
/// Keys that are tried for a token that names none.
const MAX_TRIED: usize = 4;

#[derive(Default)]
pub(super) struct KeySet(Vec<Key>);

pub(super) struct Key {
    id: Option<String>,
    kind: Kind,
    /// The only algorithm that it is for, if it is for one.
    algorithm: Option<String>,
    is_for_signatures: bool,
    key: DecodingKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

/// Keys of a set for a token.
pub(super) enum Choice<'a> {
    /// Those that it may have been signed with, at least one.
    Keys(Vec<&'a DecodingKey>),
    /// The key that it names is not for signatures, or not for that algorithm.
    OtherUse,
    Unknown,
}

/// A key as it is published.
#[derive(Deserialize)]
struct Published {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct PublishedSet {
    keys: Vec<Value>,
}

impl KeySet {
    /// Reads a key set. Keys of kinds that are not known are left out.
    pub(super) fn parse(document: Value) -> Option<Self> {
        let published: PublishedSet = serde_json::from_value(document).ok()?;
        let keys = published.keys.into_iter().take(MAX_KEYS);
        let known = |key| Key::new(serde_json::from_value(key).ok()?);
        Some(Self(keys.filter_map(known).collect()))
    }

    /// The keys for a token that names one, or none.
    pub(super) fn choose(&self, id: Option<&str>, algorithm: Algorithm) -> Choice<'_> {
        let is_named = |key: &&Key| id.is_none_or(|id| key.id.as_deref() == Some(id));
        let mut named = self.0.iter().filter(is_named).peekable();
        let is_known = id.is_some() && named.peek().is_some();
        let usable: Vec<_> = named
            .filter(|key| key.is_for(algorithm))
            .take(MAX_TRIED)
            .map(|key| &key.key)
            .collect();
        match (usable.is_empty(), is_known) {
            (false, _) => Choice::Keys(usable),
            (true, true) => Choice::OtherUse,
            (true, false) => Choice::Unknown,
        }
    }
}

impl Key {
    fn new(published: Published) -> Option<Self> {
        let (kind, key) = published.key()?;
        let verifies = |operations: &Vec<String>| operations.iter().any(|operation| operation == "verify");
        Some(Self {
            kind,
            is_for_signatures: published.purpose.is_none_or(|purpose| purpose == "sig")
                && published.key_ops.as_ref().is_none_or(verifies),
            id: published.kid,
            algorithm: published.alg,
            key,
        })
    }

    fn is_for(&self, algorithm: Algorithm) -> bool {
        let name = format!("{algorithm:?}");
        self.is_for_signatures && self.kind.signs(algorithm) && self.algorithm.as_ref().is_none_or(|only| *only == name)
    }
}

impl Published {
    fn key(&self) -> Option<(Kind, DecodingKey)> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", None) => {
                let key = DecodingKey::from_rsa_components(self.n.as_ref()?, self.e.as_ref()?);
                Some((Kind::Rsa, key.ok()?))
            }
            ("EC", Some("P-256")) => Some((Kind::P256, self.point(32)?)),
            ("EC", Some("P-384")) => Some((Kind::P384, self.point(48)?)),
            ("OKP", Some("Ed25519")) => {
                let key = DecodingKey::from_ed_components(self.x.as_ref()?);
                Some((Kind::Ed25519, key.ok()?))
            }
            _ => None,
        }
    }

    /// The key of a curve whose coordinates have so many bytes.
    fn point(&self, bytes: usize) -> Option<DecodingKey> {
        let (x, y) = (self.x.as_ref()?, self.y.as_ref()?);
        let is_whole = |part: &String| URL_SAFE_NO_PAD.decode(part).is_ok_and(|part| part.len() == bytes);
        if !is_whole(x) || !is_whole(y) {
            return None;
        }
        DecodingKey::from_ec_components(x, y).ok()
    }
}

impl Kind {
    fn signs(self, algorithm: Algorithm) -> bool {
        use Algorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        match self {
            Self::Rsa => matches!(algorithm, RS256 | RS384 | RS512 | PS256 | PS384 | PS512),
            Self::P256 => algorithm == ES256,
            Self::P384 => algorithm == ES384,
            Self::Ed25519 => algorithm == EdDSA,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set() -> KeySet {
        let word = URL_SAFE_NO_PAD.encode([7_u8; 32]);
        let rsa = |kid: &str, more: Value| {
            let mut key = json!({ "kty": "RSA", "kid": kid, "n": word, "e": "AQAB" });
            key.as_object_mut()
                .expect("an object")
                .extend(more.as_object().expect("an object").clone());
            key
        };
        KeySet::parse(json!({ "keys": [
            rsa("any", json!({})),
            rsa("rs256", json!({ "alg": "RS256", "use": "sig" })),
            rsa("enc", json!({ "use": "enc" })),
            rsa("signs", json!({ "key_ops": ["sign"] })),
            json!({ "kty": "EC", "kid": "p256", "crv": "P-256", "x": word, "y": word }),
            json!({ "kty": "EC", "kid": "cut", "crv": "P-384", "x": word, "y": word }),
            json!({ "kty": "OKP", "kid": "ed", "crv": "Ed25519", "x": word }),
            json!({ "kty": "oct", "kid": "secret", "k": word }),
            json!({ "kty": "EC", "kid": "p521", "crv": "P-521", "x": word, "y": word }),
            json!(["no", "key"]),
        ] }))
        .expect("a set")
    }

    #[test]
    fn a_key_is_used_for_what_it_is_for() {
        let set = set();
        let chosen = |id, algorithm| match set.choose(id, algorithm) {
            Choice::Keys(keys) => keys.len().to_string(),
            Choice::OtherUse => "other use".to_owned(),
            Choice::Unknown => "unknown".to_owned(),
        };
        for (id, algorithm, expected) in [
            ("any", Algorithm::RS256, "1"),
            ("any", Algorithm::PS512, "1"),
            ("any", Algorithm::ES256, "other use"),
            ("rs256", Algorithm::RS256, "1"),
            ("rs256", Algorithm::PS256, "other use"),
            ("enc", Algorithm::RS256, "other use"),
            ("signs", Algorithm::RS256, "other use"),
            ("p256", Algorithm::ES256, "1"),
            ("p256", Algorithm::ES384, "other use"),
            ("ed", Algorithm::EdDSA, "1"),
            ("cut", Algorithm::ES384, "unknown"),
            ("secret", Algorithm::HS256, "unknown"),
            ("p521", Algorithm::ES256, "unknown"),
            ("none", Algorithm::RS256, "unknown"),
        ] {
            assert_eq!(chosen(Some(id), algorithm), expected, "{id} {algorithm:?}");
        }
        assert_eq!(chosen(None, Algorithm::RS256), "2");
        assert_eq!(chosen(None, Algorithm::ES384), "unknown");
        assert!(KeySet::parse(json!({ "keys": {} })).is_none());
    }
}
