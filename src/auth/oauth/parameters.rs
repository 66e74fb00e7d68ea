//! Parameters of a request as OAuth has them: each at most once, none without a value, none too long.

use std::collections::HashMap;

use url::form_urlencoded;

use super::error::OAuthError;

/// Longest value of a parameter; clients put what they like into `state`.
const MAX_VALUE_BYTES: usize = 4096;
const MAX_PARAMETERS: usize = 64;

/// The parameters of a query or a form.
pub(super) struct Parameters(HashMap<String, String>);

impl Parameters {
    /// Reads parameters. Where one is given more than once it cannot be told which is meant.
    pub(super) fn parse(encoded: &str) -> Result<Self, OAuthError> {
        let mut parameters = HashMap::new();
        for (count, (name, value)) in form_urlencoded::parse(encoded.as_bytes()).enumerate() {
            if count >= MAX_PARAMETERS {
                return Err(OAuthError::request("there are too many parameters"));
            }
            if value.len() > MAX_VALUE_BYTES {
                return Err(OAuthError::request("a parameter is too long"));
            }
            if value.is_empty() {
                continue;
            }
            let name = name.into_owned();
            match parameters.get(&name) {
                // Several resources are several values by RFC 8707; the same one twice is one.
                Some(before) if *before != value => {
                    return Err(OAuthError::request("a parameter is given more than once"));
                }
                _ => parameters.insert(name, value.into_owned()),
            };
        }
        Ok(Self(parameters))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A parameter without which a request makes no sense.
    pub(super) fn require(&self, name: &'static str) -> Result<&str, OAuthError> {
        self.get(name)
            .ok_or_else(|| OAuthError::request(format!("`{name}` is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once_and_has_a_value() {
        let parsed = Parameters::parse("a=1&b=%C3%A9+x&c=&a=1").expect("valid");
        assert_eq!((parsed.get("a"), parsed.get("b")), (Some("1"), Some("é x")));
        assert!(parsed.get("c").is_none() && parsed.require("c").is_err());
        assert!(Parameters::parse("a=1&a=2").is_err());
        assert!(Parameters::parse(&format!("a={}", "x".repeat(5000))).is_err());
        let many: String = (0..70).map(|n| format!("p{n}=1&")).collect();
        assert!(Parameters::parse(&many).is_err());
    }
}
