//! What a client selects by URL or headers. Both may be given; together they narrow further.

use http::{HeaderMap, HeaderName, Uri};
use url::form_urlencoded;

use crate::{
    mcp::Selection,
    types::{Toolset, ToolsetError},
};

const TOOLSETS: HeaderName = HeaderName::from_static("x-mcp-toolsets");
const READONLY: HeaderName = HeaderName::from_static("x-mcp-readonly");
const SERVER: HeaderName = HeaderName::from_static("x-mcp-server");

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectionError {
    #[error("toolsets: {0}")]
    Toolset(#[from] ToolsetError),
    #[error("readonly: {0:?} is neither true nor false")]
    Readonly(String),
    #[error("server: the URL selects {url:?} and the header {header:?}; select one")]
    Servers { url: String, header: String },
}

pub(super) fn select(uri: &Uri, headers: &HeaderMap) -> Result<Selection, SelectionError> {
    let by_url = from_query(uri.query().unwrap_or_default())?;
    let by_header = from_headers(headers)?;
    narrow(by_url, by_header)
}

fn from_query(query: &str) -> Result<Selection, SelectionError> {
    let mut selection = Selection::default();
    if query.is_empty() {
        return Ok(selection);
    }
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "toolsets" => selection.toolsets.extend(Toolset::parse_list(value.split(','))?),
            "readonly" => selection.readonly |= flag(&value)?,
            "server" => selection.servers.extend(names(&value)),
            // Other parameters may be an ingress' own.
            _ => {}
        }
    }
    Ok(selection)
}

fn from_headers(headers: &HeaderMap) -> Result<Selection, SelectionError> {
    let get = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    Ok(Selection {
        toolsets: Toolset::parse_list(get(TOOLSETS).unwrap_or_default().split(','))?,
        readonly: get(READONLY).map(flag).transpose()?.unwrap_or(false),
        servers: get(SERVER).map(|value| names(value).collect()).unwrap_or_default(),
    })
}

fn narrow(url: Selection, header: Selection) -> Result<Selection, SelectionError> {
    let toolsets = match (url.toolsets.is_empty(), header.toolsets.is_empty()) {
        (true, _) => header.toolsets,
        (_, true) => url.toolsets,
        _ => url
            .toolsets
            .into_iter()
            .filter(|toolset| header.toolsets.contains(toolset))
            .collect(),
    };
    let servers = match (url.servers.is_empty(), header.servers.is_empty()) {
        (true, _) => header.servers,
        (_, true) => url.servers,
        _ if url.servers == header.servers => url.servers,
        _ => {
            return Err(SelectionError::Servers {
                url: url.servers.join(","),
                header: header.servers.join(","),
            });
        }
    };
    Ok(Selection {
        toolsets,
        readonly: url.readonly || header.readonly,
        servers,
    })
}

fn flag(value: &str) -> Result<bool, SelectionError> {
    match value.trim() {
        "true" | "1" | "" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(SelectionError::Readonly(other.chars().take(50).collect())),
    }
}

fn names(value: &str) -> impl Iterator<Item = String> {
    value
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(uri: &str, headers: &[(&'static str, &'static str)]) -> Result<Selection, SelectionError> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect();
        select(&uri.parse().expect("uri"), &headers)
    }

    #[test]
    fn url_and_headers_say_the_same() {
        let expected = Selection {
            toolsets: vec![Toolset::Notebook, Toolset::Kernel],
            readonly: true,
            servers: vec!["lab-b".to_owned()],
        };
        assert_eq!(
            selected("/mcp?toolsets=notebook,kernel&readonly=true&server=lab-b", &[]),
            Ok(expected.clone())
        );
        let headers = [
            ("x-mcp-toolsets", "notebook, kernel"),
            ("x-mcp-readonly", "true"),
            ("x-mcp-server", "lab-b"),
        ];
        assert_eq!(selected("/mcp", &headers), Ok(expected));
        assert_eq!(selected("/mcp?x=y", &[]), Ok(Selection::default()));
    }

    #[test]
    fn together_they_only_narrow() {
        let both = selected(
            "/mcp?toolsets=notebook&readonly=true",
            &[("x-mcp-toolsets", "all"), ("x-mcp-readonly", "false")],
        )
        .expect("valid");
        assert_eq!((both.toolsets, both.readonly), (vec![Toolset::Notebook], true));
    }

    #[test]
    fn nonsense_is_refused() {
        for uri in ["/mcp?toolsets=nonsense", "/mcp?readonly=maybe"] {
            assert!(selected(uri, &[]).is_err(), "{uri}");
        }
        assert!(selected("/mcp?server=a", &[("x-mcp-server", "b")]).is_err());
    }
}
