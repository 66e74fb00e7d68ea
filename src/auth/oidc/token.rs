//! One JSON Web Token: what it says of itself, and whether it holds: RFC 7519, RFC 8725. What is wrong with it is told
//! by kind; nothing is repeated of what it says, and nothing told of what would be right.

use std::str::FromStr;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, Validation, decode, errors::ErrorKind};
use jupyter_client::{Secret, is_shallow_json};
use serde::Deserialize;
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::{
    claims::{Claims, Expected, LEEWAY},
    keys::{Choice, KeySet},
};

/// Reason why a token does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The kind of defect.
    #[error("{0}")]
    Invalid(&'static str),
    /// The keys that it might be signed with cannot be had.
    #[error("{0}")]
    Unavailable(String),
}

const MALFORMED: TokenError = TokenError::Invalid("it is not a well-formed JSON Web Token");
const UNSIGNED: TokenError = TokenError::Invalid("it is not signed");
pub(super) const NOT_ACCEPTED: TokenError = TokenError::Invalid("it is signed with an algorithm that is not accepted");
const UNKNOWN_KEY: TokenError = TokenError::Invalid("it is signed with an unknown key");
const OTHER_USE: TokenError = TokenError::Invalid("it is signed with a key that is for another use");
const OTHER_KIND: TokenError = TokenError::Invalid("it is a token of another kind");
const OTHER_AUDIENCE: TokenError = TokenError::Invalid("it was issued for another audience");
const OTHER_LOGIN: TokenError = TokenError::Invalid("it was issued for another login");

/// Returns whether a bearer token looks like a JSON Web Token, signed, unsigned or encrypted.
pub fn is_jwt(bearer: &str) -> bool {
    // The beginning of every JSON object, encoded.
    bearer.starts_with("ey") && matches!(bearer.matches('.').count(), 2 | 4)
}

/// Header of a token.
pub(super) struct Header {
    algorithm: Algorithm,
    key_id: Option<String>,
}

#[derive(Deserialize)]
struct RawHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<Value>,
}

impl Header {
    pub(super) fn parse(token: &str) -> Result<Self, TokenError> {
        let mut parts = token.split('.');
        let (Some(header), Some(_), Some(_)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(MALFORMED);
        };
        if parts.next().is_some() {
            return Err(TokenError::Invalid("it is encrypted"));
        }
        let header = URL_SAFE_NO_PAD.decode(header).map_err(|_| MALFORMED)?;
        if !is_shallow_json(&header) {
            return Err(MALFORMED);
        }
        let header: RawHeader = serde_json::from_slice(&header).map_err(|_| MALFORMED)?;
        if header.alg.eq_ignore_ascii_case("none") {
            return Err(UNSIGNED);
        }
        if header.crit.is_some() {
            return Err(TokenError::Invalid("it has critical headers that are not known"));
        }
        if !header.typ.as_deref().is_none_or(is_known_type) {
            return Err(OTHER_KIND);
        }
        Ok(Self {
            algorithm: Algorithm::from_str(&header.alg).map_err(|_| NOT_ACCEPTED)?,
            key_id: header.kid,
        })
    }

    pub(super) fn is_symmetric(&self) -> bool {
        self.algorithm.family() == AlgorithmFamily::Hmac
    }

    /// The keys of a set that it may be signed with.
    pub(super) fn choose<'a>(&self, keys: &'a KeySet) -> Choice<'a> {
        keys.choose(self.key_id.as_deref(), self.algorithm)
    }

    pub(super) fn validate(
        &self,
        token: &str,
        keys: &KeySet,
        issuer: &str,
        expected: &Expected<'_>,
    ) -> Result<Claims, TokenError> {
        let keys = match self.choose(keys) {
            Choice::Keys(keys) => keys,
            Choice::OtherUse => return Err(OTHER_USE),
            Choice::Unknown => return Err(UNKNOWN_KEY),
        };
        self.validate_with_one_of(token, &keys, issuer, expected)
    }

    pub(super) fn validate_with_secret(
        &self,
        token: &str,
        secret: &Secret,
        issuer: &str,
        expected: &Expected<'_>,
    ) -> Result<Claims, TokenError> {
        let key = DecodingKey::from_secret(secret.expose().as_bytes());
        self.validate_with_one_of(token, &[&key], issuer, expected)
    }

    fn validate_with_one_of(
        &self,
        token: &str,
        keys: &[&DecodingKey],
        issuer: &str,
        expected: &Expected<'_>,
    ) -> Result<Claims, TokenError> {
        let validation = self.validation(issuer, expected);
        let mut outcome = Err(UNKNOWN_KEY);
        for key in keys {
            match decode::<Map<String, Value>>(token, key, &validation) {
                Ok(data) => return check(Claims::new(data.claims), expected),
                Err(error) => outcome = Err(what_is_wrong(error.kind())),
            }
        }
        outcome
    }

    fn validation(&self, issuer: &str, expected: &Expected<'_>) -> Validation {
        let mut validation = Validation::new(self.algorithm);
        validation.leeway = LEEWAY.as_secs();
        validation.validate_nbf = true;
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[expected.audience()]);
        validation
    }
}

/// Access and ID tokens; others that a provider signs, such as those of a logout, prove nothing here.
fn is_known_type(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    ["jwt", "at+jwt"].contains(&kind)
}

fn what_is_wrong(error: &ErrorKind) -> TokenError {
    match error {
        ErrorKind::InvalidSignature => TokenError::Invalid("its signature is wrong"),
        ErrorKind::ExpiredSignature => TokenError::Invalid("it has expired"),
        ErrorKind::ImmatureSignature => TokenError::Invalid("it is not valid yet"),
        ErrorKind::InvalidIssuer => TokenError::Invalid("it was issued by somebody else"),
        ErrorKind::InvalidAudience => OTHER_AUDIENCE,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName | ErrorKind::UnsupportedAlgorithm => NOT_ACCEPTED,
        ErrorKind::MissingRequiredClaim(claim) => TokenError::Invalid(match claim.as_str() {
            "exp" => "it has no time of expiry (exp)",
            "iss" => "it does not say who issued it (iss)",
            "aud" => "it does not say for whom it was issued (aud)",
            "sub" => "it does not say whose it is (sub)",
            _ => "it lacks a claim",
        }),
        _ => MALFORMED,
    }
}

/// Checks what is not the same for all tokens.
fn check(claims: Claims, expected: &Expected<'_>) -> Result<Claims, TokenError> {
    if claims.subject().is_none() {
        return Err(TokenError::Invalid("it does not say whose it is (sub)"));
    }
    let Expected::Id { client, nonce } = expected else {
        return Ok(claims);
    };
    // Whoever is named beside others must be the one who asked for it.
    let has_others = matches!(claims.get("aud"), Some(Value::Array(audiences)) if audiences.len() > 1);
    match claims.text("azp") {
        Some(party) if party != *client => return Err(OTHER_AUDIENCE),
        None if has_others => return Err(OTHER_AUDIENCE),
        _ => {}
    }
    let Some(nonce) = nonce else { return Ok(claims) };
    let sent = claims.text("nonce").unwrap_or_default();
    match bool::from(sent.as_bytes().ct_eq(nonce.as_bytes())) {
        true => Ok(claims),
        false => Err(OTHER_LOGIN),
    }
}

#[cfg(test)]
mod tests;
