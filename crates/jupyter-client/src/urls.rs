//! From a URL that a person copied out of the browser to the notebook it shows. Does no I/O.

use percent_encoding::percent_decode_str;
use url::Url;

use super::{JupyterServer, client::is_loopback};
use crate::{DocPath, PathError};

/// The views behind which Jupyter's front ends put a path, longest first where one contains another.
const VIEWS: &[&str] = &[
    "nbclassic/notebooks/",
    "nbclassic/edit/",
    "nbclassic/tree/",
    "lab/tree/",
    "doc/tree/",
    "notebooks/",
    "tree/",
    "edit/",
    "view/",
    "files/",
    "consoles/",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotebookUrl<'a> {
    /// Index of the server among those given.
    pub server: &'a str,
    pub base_url: &'a str,
    pub path: DocPath,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("{0:?} is not an http(s) URL; paste the address of a notebook as the browser shows it")]
    NotAUrl(String),
    #[error("{url:?} belongs to none of the configured Jupyter servers: {configured}")]
    Foreign { url: String, configured: String },
    #[error(
        "{url:?} belongs to none of the configured Jupyter servers: {configured}; beyond them an operator allows (connect_urls): {allowed}"
    )]
    NotAllowed {
        url: String,
        configured: String,
        allowed: String,
    },
    #[error("{0:?} shows no document; expected an address such as .../lab/tree/folder/name.ipynb")]
    NoDocument(String),
    #[error("{0:?} is not a notebook: its path does not end with .ipynb")]
    NotANotebook(String),
    #[error(transparent)]
    Path(#[from] PathError),
}

/// Reads the document of a URL, whichever server it is of.
#[cfg(any(test, fuzzing))]
pub(crate) fn document_of(raw: &str) {
    if let Ok(url) = parse(raw) {
        let _ = document_path(url.path());
    }
}

/// Finds the server and the notebook that a URL shows, among the servers the caller may use.
pub fn locate_notebook<'a>(
    raw: &str,
    servers: impl IntoIterator<Item = &'a JupyterServer>,
) -> Result<NotebookUrl<'a>, UrlError> {
    let url = parse(raw)?;
    let (server, rest) = owner(&url, servers)?;
    let path = document_path(rest).ok_or_else(|| UrlError::NoDocument(shown(raw)))??;
    if !path.is_notebook() {
        return Err(UrlError::NotANotebook(path.to_string()));
    }
    Ok(NotebookUrl {
        server: server.name(),
        base_url: server.public_base_url(),
        path,
    })
}

/// Finds the server that a URL belongs to, be it the server's own or that of something on it.
pub fn locate_server<'a>(raw: &str, servers: impl IntoIterator<Item = &'a JupyterServer>) -> Result<&'a str, UrlError> {
    let mut url = parse(raw)?;
    if !url.path().ends_with('/') {
        // The base of a server ends with a slash; people leave it out.
        url.set_path(&format!("{}/", url.path()));
    }
    owner(&url, servers).map(|(server, _)| server.name())
}

/// The base URL of a server that is not configured, if it is, or is below, one of those that are allowed.
pub fn allowed_base(raw: &str, allowed: &[Url]) -> Option<Url> {
    let mut url = parse(raw).ok()?;
    if !url.username().is_empty() || url.password().is_some() {
        return None;
    }
    url.set_query(None);
    url.set_fragment(None);
    // Jupyter prints its address with the page that it wants to be opened at, and people copy that.
    let pages = ["/lab", "/tree"];
    let path = pages.iter().find_map(|page| url.path().strip_suffix(page));
    let path = path.unwrap_or(url.path()).trim_end_matches('/').to_owned();
    url.set_path(&format!("{path}/"));
    let is_below = |base: &&Url| url.scheme() == base.scheme() && path_below(&url, base).is_some_and(is_plain);
    let host = allowed.iter().find(is_below)?.host_str()?.to_owned();
    // Another name of this machine's loopback may lead to something else there.
    url.set_host(Some(&host)).ok()?;
    Some(url)
}

/// Returns whether every server reads a path as it is read here: encoded separators or dots may lead elsewhere.
fn is_plain(path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let segments = || decoded.split(['/', '\\']);
    segments().count() == path.split('/').count() && segments().all(|segment| !["..", "."].contains(&segment))
}

fn parse(raw: &str) -> Result<Url, UrlError> {
    Url::parse(raw.trim())
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| UrlError::NotAUrl(shown(raw)))
}

/// A query or a login may carry a secret, which nobody should read again.
fn shown(raw: &str) -> String {
    let end = raw.find(['?', '#']).unwrap_or(raw.len());
    let (scheme, rest) = raw[..end].split_once("://").unwrap_or(("", &raw[..end]));
    let host = rest.find('/').unwrap_or(rest.len());
    let rest = rest[..host].rfind('@').map_or(rest, |login| &rest[login + 1..]);
    let separator = if scheme.is_empty() { "" } else { "://" };
    format!("{scheme}{separator}{rest}").chars().take(500).collect()
}

/// The server with the longest base that a URL is below, and what follows that base.
fn owner<'a, 'b>(
    url: &'b Url,
    servers: impl IntoIterator<Item = &'a JupyterServer>,
) -> Result<(&'a JupyterServer, &'b str), UrlError> {
    let mut best: Option<(&'a JupyterServer, &'b str)> = None;
    let mut longest = 0;
    let mut configured = Vec::new();
    for server in servers {
        configured.push(format!("{} ({})", server.name(), server.public_base_url()));
        for base in server.bases() {
            if let Some(rest) = path_below(url, base).filter(|_| base.path().len() > longest) {
                longest = base.path().len();
                best = Some((server, rest));
            }
        }
    }
    best.ok_or_else(|| UrlError::Foreign {
        url: shown(url.as_str()),
        configured: configured.join(", "),
    })
}

/// The encoded path of `url` below the base of a server, if it is that server's.
fn path_below<'a>(url: &'a Url, base: &Url) -> Option<&'a str> {
    let same_port = url.port_or_known_default() == base.port_or_known_default();
    if !same_port || !same_host(url, base) {
        return None;
    }
    below(url.path(), base.path())
}

/// The rest of a path after a base. A character that may be escaped or not, as `@` may, is the same either way.
fn below<'a>(path: &'a str, base: &str) -> Option<&'a str> {
    let mut rest = path;
    for segment in base.trim_end_matches('/').split('/') {
        let (first, others) = rest.split_once('/')?;
        if !percent_decode_str(first).eq(percent_decode_str(segment)) {
            return None;
        }
        rest = others;
    }
    Some(rest)
}

/// Hosts are compared by name, and all names of this machine's loopback are one.
fn same_host(a: &Url, b: &Url) -> bool {
    a.host_str() == b.host_str() || is_loopback(a) && is_loopback(b)
}

/// The document behind a view: `lab/tree/a%20b.ipynb` is `a b.ipynb`.
fn document_path(rest: &str) -> Option<Result<DocPath, PathError>> {
    let rest = without_workspace(rest);
    let encoded = VIEWS.iter().find_map(|view| rest.strip_prefix(view))?;
    let Ok(decoded) = percent_decode_str(encoded).decode_utf8() else {
        return Some(Err(PathError::Encoded(encoded.to_owned())));
    };
    // A separator that was itself encoded is no separator of this URL, so it cannot be one of the path.
    if decoded.matches('/').count() != encoded.matches('/').count() {
        return Some(Err(PathError::Encoded(encoded.to_owned())));
    }
    // JupyterLab marks shared documents of older versions with a drive, as in `RTC:folder/name.ipynb`.
    let path = decoded.strip_prefix("RTC:").unwrap_or(&decoded);
    if path.trim_matches('/').is_empty() {
        return None;
    }
    Some(DocPath::parse_file(path))
}

/// `lab/workspaces/mine/tree/x` shows the same document as `lab/tree/x`.
fn without_workspace(rest: &str) -> String {
    for app in ["lab", "doc"] {
        let inner = rest
            .strip_prefix(app)
            .and_then(|rest| rest.strip_prefix("/workspaces/"));
        if let Some((_, tail)) = inner.and_then(|inner| inner.split_once('/')) {
            return format!("{app}/{tail}");
        }
    }
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_has_two_spellings() {
        for (path, base, rest) in [
            ("/user/ana@x/lab", "/user/ana%40x/", Some("lab")),
            ("/user/ana%40x/lab/a%20b", "/user/ana@x/", Some("lab/a%20b")),
            ("/user/ana%40x/", "/user/ana%40x/", Some("")),
            ("/lab/tree", "/", Some("lab/tree")),
            ("/user/ana", "/user/ana/", None),
            ("/user/ana@y/lab", "/user/ana@x/", None),
            ("/user%2fana/lab", "/user/ana/", None),
        ] {
            assert_eq!(below(path, base), rest, "{path} {base}");
        }
    }

    #[test]
    fn only_what_is_below_an_allowed_url_is_allowed() {
        let allowed = ["http://127.0.0.1:8889/", "https://hub.example.org/user/"].map(|url| Url::parse(url).unwrap());
        for (raw, base) in [
            ("http://127.0.0.1:8889", "http://127.0.0.1:8889/"),
            (" http://localhost:8889/lab?token=x#y ", "http://127.0.0.1:8889/"),
            ("http://127.1.2.3:8889/tree", "http://127.0.0.1:8889/"),
            (
                "https://HUB.example.org:443/user/ana",
                "https://hub.example.org/user/ana/",
            ),
            ("https://hub.example.org/user/lab/", "https://hub.example.org/user/lab/"),
            (
                "https://hub.example.org/user/a%40b/lab",
                "https://hub.example.org/user/a%40b/",
            ),
        ] {
            let found = allowed_base(raw, &allowed);
            assert_eq!(found.as_ref().map(Url::as_str), Some(base), "{raw}");
        }
        for raw in [
            "http://127.0.0.1:8888",
            "https://127.0.0.1:8889",
            "http://hub.example.org/user/ana/",
            "https://hub.example.org/hub/",
            "https://hub.example.org/users/",
            "https://hub.example.org/user/../hub/",
            "https://hub.example.org/user/%2e%2e/hub/",
            "https://hub.example.org/user/..%2fhub/",
            "https://hub.example.org/user/a%5c..%5chub/",
            "https://me:secret@hub.example.org/user/ana/",
            "https://hub.example.org.example/user/ana/",
            "https://hub.example.org@example.com/user/ana/",
            "ftp://hub.example.org/user/ana/",
            "nonsense",
        ] {
            assert_eq!(allowed_base(raw, &allowed), None, "{raw}");
        }
        assert_eq!(allowed_base("http://127.0.0.1:8889", &[]), None);
    }
}
