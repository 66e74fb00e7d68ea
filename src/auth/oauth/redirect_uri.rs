//! Redirect URIs: a client is answered only at one that it has registered, letter by letter. On this machine any port will do,
//! since native clients take the one that is free (RFC 8252).

use url::{Host, Url};

const MAX_BYTES: usize = 1024;
/// Schemes by which a browser does something else than to hand over an answer.
const REFUSED_SCHEMES: [&str; 12] = [
    "about",
    "blob",
    "chrome",
    "data",
    "file",
    "filesystem",
    "ftp",
    "javascript",
    "mailto",
    "vbscript",
    "view-source",
    "ws",
];

/// Checks that a URI may be registered.
pub(super) fn check(uri: &str) -> Result<(), &'static str> {
    if uri.len() > MAX_BYTES || !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a redirect URI is too long, or has characters that need to be escaped");
    }
    let url = Url::parse(uri).map_err(|_| "a redirect URI is no absolute URI")?;
    if url.fragment().is_some() || !url.username().is_empty() || url.password().is_some() {
        return Err("a redirect URI must have no fragment, user or password");
    }
    match url.scheme() {
        "https" if url.has_host() => Ok(()),
        "http" if is_loopback(&url) => Ok(()),
        "https" | "http" | "wss" => Err("a redirect URI must be of https, or of http on this machine"),
        scheme if REFUSED_SCHEMES.contains(&scheme) => Err("a redirect URI has a scheme that is not allowed"),
        _ => Ok(()),
    }
}

/// Returns whether a client that registered `registered` may be answered at `asked`.
pub(super) fn is_match(registered: &str, asked: &str) -> bool {
    if registered == asked {
        return true;
    }
    let is_local = |uri| Url::parse(uri).is_ok_and(|url| url.scheme() == "http" && is_loopback(&url));
    let is_same = match (without_port(registered), without_port(asked)) {
        (Some(registered), Some(asked)) => registered == asked,
        _ => false,
    };
    is_same && is_local(registered) && is_local(asked) && check(asked).is_ok()
}

/// Host and the rest of a URI of http, as they are written.
fn without_port(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    Some((host, rest))
}

/// The place that a person is told the answer goes to.
pub(super) fn shown_host(uri: &str) -> String {
    let Ok(url) = Url::parse(uri) else {
        return uri.to_owned();
    };
    match (url.scheme(), url.host_str(), url.port()) {
        ("http" | "https", Some(host), None) => host.to_owned(),
        ("http" | "https", Some(host), Some(port)) => format!("{host}:{port}"),
        (scheme, Some(host), _) => format!("{scheme}://{host}"),
        (scheme, None, _) => format!("{scheme}:"),
    }
}

/// Returns whether a URL is one of this machine.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_registered() {
        for allowed in [
            "https://app.example.org/callback?a=b",
            "http://127.0.0.1:3000/cb",
            "http://[::1]/cb",
            "http://localhost/",
            "cursor://anysphere.cursor-retrieval/oauth/callback",
            "com.example.app:/cb",
        ] {
            assert_eq!(check(allowed), Ok(()), "{allowed}");
        }
        for refused in [
            "",
            "/cb",
            "http://app.example.org/",
            "http://localhost.evil.example/",
            "https://app.example.org/#f",
            "https://ana:x@app.example.org/",
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "https://app.example.org/a b",
            "https://app.example.org/\r\nx",
        ] {
            assert!(check(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn a_match_is_exact_but_for_ports_of_this_machine() {
        for (registered, asked, matches) in [
            ("https://a.example/cb", "https://a.example/cb", true),
            ("https://a.example/cb", "https://a.example/cb/", false),
            ("https://a.example/cb", "https://a.example/cb?x=1", false),
            ("https://a.example/cb", "https://a.example:444/cb", false),
            ("https://a.example/cb", "https://a.example.evil/cb", false),
            ("https://a.example/cb", "https://a.example/CB", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:41234/cb", true),
            ("http://127.0.0.1:3000/cb", "http://127.0.0.1:41234/cb", true),
            ("http://localhost:3000/cb", "http://localhost:41234/cb", true),
            ("http://[::1]:3000/cb", "http://[::1]:41234/cb", true),
            ("http://127.0.0.1/cb", "http://localhost:41234/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:41234/cb2", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:41234/x/../cb", false),
            ("http://127.0.0.1/cb", "HTTP://127.0.0.1:41234/cb", false),
            ("http://localhost:3000", "http://localhost:41234", true),
            ("http://127.0.0.1/cb", "https://127.0.0.1:41234/cb", false),
            ("http://127.0.0.1/cb", "http://ana@127.0.0.1:41234/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:41234/cb#x", false),
            ("app:/cb", "app:/cb?x", false),
        ] {
            assert_eq!(is_match(registered, asked), matches, "{registered} {asked}");
        }
    }
}
