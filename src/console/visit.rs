//! A request of a browser, as the edge hands it over: it has checked Host, Origin and sizes.

use std::sync::Arc;

use http::HeaderValue;
use url::form_urlencoded;

use crate::audit::Origin;

/// Longest name or id that a page is asked for.
const MAX_FIELD: usize = 4096;

/// A request for a page, or a form that was sent.
pub struct Visit {
    /// Path below the root: `""`, `console`, `console/...`.
    pub path: String,
    pub query: Fields,
    /// None for what only asks.
    pub form: Option<Fields>,
    /// Value of the `Cookie` header.
    pub cookies: String,
    /// Value of `Sec-Fetch-Site`, which browsers send and pages cannot choose.
    pub fetch_site: Option<String>,
    /// Value of `If-None-Match`.
    pub known_tag: Option<HeaderValue>,
    pub site: Site,
    pub origin: Origin,
}

/// The gateway's own address, as the visitor came to it.
#[derive(Debug, Clone)]
pub struct Site {
    /// Ends with a slash.
    pub url: String,
    /// True if the browser uses https, to the gateway or to a proxy in front of it.
    pub is_secure: bool,
    /// The port in the visitor's address: cookies are shared by all ports of a host.
    pub port: Option<u16>,
}

/// Fields of a query or a form.
#[derive(Debug, Clone, Default)]
pub struct Fields(Arc<[(String, String)]>);

impl Fields {
    pub fn parse(encoded: &[u8]) -> Self {
        let fields = form_urlencoded::parse(encoded);
        Self(
            fields
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    /// The first field of a name; empty if there is none, or if it cannot be meant.
    pub(super) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| value.len() <= MAX_FIELD)
            .unwrap_or_default()
    }

    /// The same, unless it is empty.
    pub(super) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    /// All fields of a name.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.0.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    }
}

impl Visit {
    /// Relative path from the page to the root, since the gateway may be served below a path that only a proxy knows.
    pub(super) fn root(&self) -> &'static str {
        match self.path.contains('/') {
            true => "../",
            false => "",
        }
    }
}
