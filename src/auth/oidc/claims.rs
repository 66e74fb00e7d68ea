//! Claims of a token, and the audience that it must have been issued for.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

/// Time by which the clocks of a provider and of the gateway may differ.
pub(super) const LEEWAY: Duration = Duration::from_secs(60);

/// Audience that a token must have been issued for.
#[derive(Debug, Clone, Copy)]
pub enum Expected<'a> {
    /// An access token for this audience.
    Access { audience: &'a str },
    /// An ID token for this client, in answer to its request with this nonce. One that comes with a refresh has none.
    Id { client: &'a str, nonce: Option<&'a str> },
}

impl Expected<'_> {
    pub(super) fn audience(&self) -> &str {
        match self {
            Self::Access { audience } => audience,
            Self::Id { client, .. } => client,
        }
    }
}

/// The claims of a token that was checked.
#[derive(Debug, Clone)]
pub struct Claims(Map<String, Value>);

impl Claims {
    pub(super) fn new(claims: Map<String, Value>) -> Self {
        Self(claims)
    }

    /// A claim by its name, or by the way to it through objects: `realm_access.roles`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        if let Some(claim) = self.0.get(name) {
            return Some(claim);
        }
        let (first, rest) = name.split_once('.')?;
        rest.split('.')
            .try_fold(self.0.get(first)?, |claim, step| claim.get(step))
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str().filter(|text| !text.is_empty())
    }

    /// The words of a claim: of a text separated by spaces, as `scope` is, or of a list.
    pub fn words(&self, name: &str) -> Vec<&str> {
        match self.get(name) {
            Some(Value::String(text)) => text.split_whitespace().collect(),
            Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// The names of a claim: of a text, which is one name however many spaces are in it, or of a list.
    pub fn names(&self, name: &str) -> Vec<&str> {
        match self.text(name) {
            Some(text) => vec![text],
            None => self.words(name),
        }
    }

    pub fn subject(&self) -> Option<&str> {
        self.text("sub")
    }

    /// The time at which work begun with the token ends. A token that is accepted after its time, since clocks may differ, ends
    /// when they can differ no longer.
    pub fn ends_at(&self, now: SystemTime) -> Option<SystemTime> {
        let seconds = self.get("exp")?.as_f64().filter(|seconds| *seconds >= 0.0)?;
        let expires_at = SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)?;
        match expires_at > now {
            true => Some(expires_at),
            false => expires_at.checked_add(LEEWAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_are_found_by_name_and_by_way() {
        let claims = json!({ "a.b": "direct", "a": { "b": "nested", "c": { "d": ["x", 1, "y"] } }, "scope": " p  q " });
        let Value::Object(claims) = claims else { unreachable!() };
        let claims = Claims::new(claims);
        assert_eq!(claims.text("a.b"), Some("direct"));
        assert_eq!(claims.words("a.c.d"), ["x", "y"]);
        assert_eq!(claims.words("scope"), ["p", "q"]);
        assert_eq!(claims.get("a.c.e"), None);
        assert_eq!(claims.words("none"), Vec::<&str>::new());
    }

    #[test]
    fn the_leeway_is_for_those_who_come_late() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let ends_after = |exp: f64| {
            let claims = Claims::new(Map::from_iter([("exp".to_owned(), exp.into())]));
            claims.ends_at(now)?.duration_since(now).ok()
        };
        assert_eq!(ends_after(1_000_010.0), Some(Duration::from_secs(10)));
        assert_eq!(ends_after(999_970.0), Some(Duration::from_secs(30)));
        assert_eq!(ends_after(f64::MAX), None);
    }
}
