//! The cookie by which a browser is known during a login. No script reads it and no other site sends it along, except
//! when a person follows a link, as from the upstream provider.

use http::{HeaderMap, HeaderValue, header::COOKIE};

use crate::auth::oauth::{Browser, OAuth};

/// With TLS, a name that only this host can have set, for all of it.
const SECURE_NAME: &str = "__Host-jmg-login";
const PLAIN_NAME: &str = "jmg-login";

fn name(oauth: &OAuth) -> &'static str {
    match oauth.settings().public_url.scheme() {
        "https" => SECURE_NAME,
        _ => PLAIN_NAME,
    }
}

/// The value of the browser's cookie.
pub(super) fn cookie<'a>(oauth: &OAuth, headers: &'a HeaderMap) -> Option<&'a str> {
    find(headers, name(oauth))
}

fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    pairs.find_map(|pair| {
        let (found, value) = pair.trim().split_once('=')?;
        (found == name).then_some(value)
    })
}

/// The header that gives a browser its cookie, until it is closed.
pub(super) fn set_cookie(oauth: &OAuth, browser: &Browser) -> Option<HeaderValue> {
    let name = name(oauth);
    let secure = if name == SECURE_NAME { "; Secure" } else { "" };
    let value = browser.cookie();
    HeaderValue::try_from(format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=b; jmg-login-2=x"));
        assert_eq!(find(&headers, PLAIN_NAME), None);
        headers.append(COOKIE, HeaderValue::from_static("c=d;jmg-login=abc; e"));
        assert_eq!(find(&headers, PLAIN_NAME), Some("abc"));
    }
}
