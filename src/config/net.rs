//! Owns how addresses, URLs, hosts and origins are read. Messages do not repeat a URL, because people
//! paste URLs with a password or a token in them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ipnet::IpNet;
use jupyter_client::Secret;
use url::Url;

use super::error::Why;
use super::node::Node;
use super::parse::{Parsed, bad, secret, string, text};

pub(super) fn address(node: &Node) -> Parsed<SocketAddr> {
    let value = text(node, "a string")?;
    // No other name is looked up: what a name resolves to may differ from what was reviewed.
    if let Some(Ok(port)) = value.strip_prefix("localhost:").map(str::parse) {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    let hint = "expected host:port such as \"127.0.0.1:8585\"";
    value.parse().map_err(|_| bad(value, "an address", hint))
}

/// A network such as `10.0.0.0/8`, or a single address.
pub(super) fn network(node: &Node) -> Parsed<IpNet> {
    let value = text(node, "a string")?;
    let single = || value.parse::<IpAddr>().ok().map(IpNet::from);
    let network = value.parse::<IpNet>().ok().or_else(single);
    let hint = "expected an address or a network such as \"10.0.0.0/8\"";
    network
        .map(|network| network.trunc())
        .ok_or_else(|| bad(value, "a network", hint))
}

/// Any http or https URL without credentials.
pub(super) fn http_url(node: &Node) -> Parsed<Url> {
    let value = text(node, "a string")?;
    let hint = "not a URL; expected one such as \"https://host.example.org/path\"";
    let url = Url::parse(value).map_err(|_| Why::BadHidden(hint))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Why::BadHidden("the URL must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Why::BadHidden("the URL must not contain a user or password"));
    }
    Ok(url)
}

/// A URL that others are joined to: it has no query and ends with a slash.
pub fn base_url(raw: &str) -> Result<Url, Why> {
    base(&Node::Text(raw.to_owned()))
}

pub(super) fn base(node: &Node) -> Parsed<Url> {
    let mut url = http_url(node)?;
    if url.query().is_some() || url.fragment().is_some() {
        let why = "the URL must not contain a query or fragment; a token goes into a key of its own";
        return Err(Why::BadHidden(why));
    }
    if !url.path().ends_with('/') {
        let path = format!("{}/", url.path());
        url.set_path(&path);
    }
    Ok(url)
}

/// A JWT issuer stays as written, because it is compared with the `iss` claim byte by byte.
pub(super) fn issuer(node: &Node) -> Parsed<String> {
    http_url(node)?;
    string(node)
}

pub(super) fn host(node: &Node) -> Parsed<String> {
    let value = text(node, "a string")?;
    let parsed = Url::parse(&format!("http://{value}/"));
    let plain = !value.contains(['/', '\\', '@', '?', '#', '*']) && value.trim() == value;
    match parsed {
        Ok(url) if plain && url.path() == "/" => Ok(value.to_ascii_lowercase()),
        _ => {
            let hint = "expected a host or host:port such as \"mcp.example.org\"";
            Err(refused(value, "a host", hint))
        }
    }
}

/// An origin in the form in which browsers send it.
pub(super) fn origin(node: &Node) -> Parsed<String> {
    let value = text(node, "a string")?;
    let hint = "expected scheme://host or scheme://host:port such as \"https://app.example.org\"";
    let fail = || Err(refused(value, "an origin", hint));
    let Ok(url) = Url::parse(value) else {
        return fail();
    };
    let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
    if !url.has_host() || !bare || value.contains(['@', '*']) {
        return fail();
    }
    // The origin of schemes such as vscode-webview is opaque to the URL standard, not to us.
    Ok(if url.origin().is_tuple() {
        url.origin().ascii_serialization()
    } else {
        value.trim_end_matches('/').to_ascii_lowercase()
    })
}

pub(super) fn store_url(node: &Node) -> Parsed<Secret> {
    let why = "the URL must start with sqlite:, postgres: or postgresql:";
    with_scheme(node, &["sqlite:", "postgres:", "postgresql:"], why)
}

pub(super) fn events_url(node: &Node) -> Parsed<Secret> {
    let why = "the URL must be empty, or start with redis:// or rediss://";
    with_scheme(node, &["redis://", "rediss://"], why)
}

fn with_scheme(node: &Node, schemes: &[&str], why: &'static str) -> Parsed<Secret> {
    let url = secret(node)?;
    let has = |scheme: &&str| url.expose().starts_with(scheme);
    if schemes.iter().any(has) {
        return Ok(url);
    }
    Err(Why::BadHidden(why))
}

fn refused(value: &str, what: &'static str, hint: &'static str) -> Why {
    if value.contains(['@', '?']) {
        return Why::BadHidden("must not contain a user, a password or a query");
    }
    bad(value, what, hint)
}
