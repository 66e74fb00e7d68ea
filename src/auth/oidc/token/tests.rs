//! Tokens signed here with keys of each kind, right ones and wrong ones of every kind.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    },
};
use serde_json::{Value, json};

use super::*;
use crate::auth::oidc::crypto;

const ISSUER: &str = "https://login.example.org";
const AUDIENCE: &str = "https://mcp.example.org/mcp";

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn now() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    i64::try_from(passed.as_secs()).expect("a time")
}

fn claims(changes: &Value) -> Value {
    let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "exp": now() + 100 });
    let members = claims.as_object_mut().expect("an object");
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(members.remove(name)),
            value => drop(members.insert(name.clone(), value.clone())),
        }
    }
    claims
}

/// Keys of three kinds, and what a provider would publish of them.
struct Keys {
    p256: EcdsaKeyPair,
    p384: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    random: SystemRandom,
    set: KeySet,
}

impl Keys {
    fn new() -> Self {
        crypto::install();
        let random = SystemRandom::new();
        let ec = |algorithm| {
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
            EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).expect("a key")
        };
        let (p256, p384) = (
            ec(&ECDSA_P256_SHA256_FIXED_SIGNING),
            ec(&ECDSA_P384_SHA384_FIXED_SIGNING),
        );
        let document = Ed25519KeyPair::generate_pkcs8(&random).expect("a key");
        let ed = Ed25519KeyPair::from_pkcs8(document.as_ref()).expect("a key");
        let point = |key: &EcdsaKeyPair, curve: &str, kid: &str, purpose: &str| {
            let (x, y) = key.public_key().as_ref()[1..].split_at(key.public_key().as_ref().len() / 2);
            json!({
                "kty": "EC", "crv": curve, "kid": kid, "use": purpose,
                "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
            })
        };
        let set = KeySet::parse(json!({ "keys": [
            point(&p256, "P-256", "p256", "sig"),
            point(&p256, "P-256", "p256-enc", "enc"),
            point(&p384, "P-384", "p384", "sig"),
            json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": URL_SAFE_NO_PAD.encode(ed.public_key()) }),
        ] }))
        .expect("a set");
        Self {
            p256,
            p384,
            ed,
            random,
            set,
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let ec = |key: &EcdsaKeyPair| {
            key.sign(&self.random, message.as_bytes())
                .expect("signed")
                .as_ref()
                .to_vec()
        };
        let signature = match header["alg"].as_str().unwrap_or_default() {
            "ES256" => ec(&self.p256),
            "ES384" => ec(&self.p384),
            "EdDSA" => self.ed.sign(message.as_bytes()).as_ref().to_vec(),
            // The well-known confusion: a public key as the secret.
            "HS256" => {
                let secret = hmac::Key::new(hmac::HMAC_SHA256, self.p256.public_key().as_ref());
                hmac::sign(&secret, message.as_bytes()).as_ref().to_vec()
            }
            _ => Vec::new(),
        };
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn check(&self, token: &str, expected: &Expected<'_>) -> Result<Claims, TokenError> {
        let header = Header::parse(token)?;
        match header.is_symmetric() {
            true => Err(NOT_ACCEPTED),
            false => header.validate(token, &self.set, ISSUER, expected),
        }
    }

    /// Returns why an access token is refused; empty if it is valid.
    fn wrong(&self, header: &Value, changes: &Value) -> String {
        let token = self.sign(header, &claims(changes));
        let checked = self.check(&token, &Expected::Access { audience: AUDIENCE });
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    }
}

#[test]
fn each_kind_of_key_signs_its_own_tokens_only() {
    let keys = Keys::new();
    for (alg, kid, wrong) in [
        ("ES256", "p256", ""),
        ("ES384", "p384", ""),
        ("EdDSA", "ed", ""),
        ("ES256", "p384", "it is signed with a key that is for another use"),
        ("ES256", "p256-enc", "it is signed with a key that is for another use"),
        ("ES256", "other", "it is signed with an unknown key"),
        ("HS256", "p256", "it is signed with an algorithm that is not accepted"),
        ("ES512", "p256", "it is signed with an algorithm that is not accepted"),
        ("none", "p256", "it is not signed"),
        ("NoNe", "p256", "it is not signed"),
    ] {
        assert_eq!(
            keys.wrong(&json!({ "alg": alg, "kid": kid }), &json!({})),
            wrong,
            "{alg} {kid}"
        );
    }
    assert_eq!(
        keys.wrong(&json!({ "alg": "ES384" }), &json!({})),
        "",
        "the only one of its kind"
    );
}

#[test]
fn each_thing_that_is_wrong_is_told_by_its_kind() {
    let keys = Keys::new();
    let header = json!({ "alg": "ES256", "kid": "p256", "typ": "at+jwt" });
    for (changes, wrong) in [
        (json!({}), ""),
        (json!({ "aud": ["a", AUDIENCE] }), ""),
        (json!({ "exp": now() - 30, "nbf": now() + 30 }), ""),
        (json!({ "exp": now() - 90 }), "it has expired"),
        (json!({ "nbf": now() + 90 }), "it is not valid yet"),
        (
            json!({ "aud": "https://other.example.org" }),
            "it was issued for another audience",
        ),
        (
            json!({ "iss": "https://login.example.org/" }),
            "it was issued by somebody else",
        ),
        (json!({ "exp": null }), "it has no time of expiry (exp)"),
        (json!({ "iss": null }), "it does not say who issued it (iss)"),
        (json!({ "aud": null }), "it does not say for whom it was issued (aud)"),
        (json!({ "sub": null }), "it does not say whose it is (sub)"),
        (json!({ "sub": "" }), "it does not say whose it is (sub)"),
        (json!({ "exp": "soon" }), "it has no time of expiry (exp)"),
    ] {
        assert_eq!(keys.wrong(&header, &changes), wrong, "{changes}");
    }
    let other = json!({ "alg": "ES256", "kid": "p256", "typ": "logout+jwt" });
    assert_eq!(keys.wrong(&other, &json!({})), "it is a token of another kind");
    let critical = json!({ "alg": "ES256", "kid": "p256", "crit": ["b64"], "b64": false });
    assert_eq!(
        keys.wrong(&critical, &json!({})),
        "it has critical headers that are not known"
    );
}

#[test]
fn what_was_changed_is_noticed_and_garbage_is_no_token() {
    let keys = Keys::new();
    let wrong = |token: &str| {
        let checked = keys.check(token, &Expected::Access { audience: AUDIENCE });
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    };
    let token = keys.sign(&json!({ "alg": "ES256", "kid": "p256" }), &claims(&json!({})));
    let parts: Vec<&str> = token.split('.').collect();
    let other = encoded(&claims(&json!({ "sub": "bob" })));
    assert_eq!(
        wrong(&format!("{}.{other}.{}", parts[0], parts[2])),
        "its signature is wrong"
    );
    assert_eq!(wrong(&format!("{}.{}.", parts[0], parts[1])), "its signature is wrong");
    let malformed = "it is not a well-formed JSON Web Token";
    let nested = URL_SAFE_NO_PAD.encode("[".repeat(100_000));
    for garbage in ["", "..", "ey..", "eyJ9.e30.", &format!("{nested}.e30."), "e30.e30.e30"] {
        assert_eq!(wrong(garbage), malformed, "{garbage:.40}");
    }
    assert_eq!(wrong("e30.a.b.c.d"), "it is encrypted");
    assert!(is_jwt(&token) && is_jwt("eyJ9.a.b.c.d"));
    assert!(!is_jwt("jmg_0123") && !is_jwt("eyJ9") && !is_jwt("ab.cd.ef"));
}

#[test]
fn a_login_is_answered_by_its_own_token() {
    let keys = Keys::new();
    let header = json!({ "alg": "ES256", "kid": "p256" });
    let wrong = |changes: &Value| {
        let token = keys.sign(&header, &claims(changes));
        let expected = Expected::Id {
            client: "gateway",
            nonce: Some("n-1"),
        };
        let checked = keys.check(&token, &expected);
        checked.err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (changes, expected) in [
        (json!({ "aud": "gateway", "nonce": "n-1" }), ""),
        (json!({ "aud": ["gateway", "a"], "azp": "gateway", "nonce": "n-1" }), ""),
        (
            json!({ "aud": ["gateway", "a"], "nonce": "n-1" }),
            "it was issued for another audience",
        ),
        (
            json!({ "aud": "gateway", "azp": "a", "nonce": "n-1" }),
            "it was issued for another audience",
        ),
        (
            json!({ "aud": "gateway", "nonce": "n-2" }),
            "it was issued for another login",
        ),
        (json!({ "aud": "gateway" }), "it was issued for another login"),
        (
            json!({ "aud": AUDIENCE, "nonce": "n-1" }),
            "it was issued for another audience",
        ),
    ] {
        assert_eq!(wrong(&changes), expected, "{changes}");
    }
}
