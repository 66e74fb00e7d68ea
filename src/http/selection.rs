//! Selection by URL or headers. It may be given in both and several times; all of it together narrows.

use http::{HeaderMap, HeaderName, Uri};
use url::form_urlencoded;

use crate::{
    mcp::Selection,
    types::{Toolset, ToolsetError},
};

const TOOLSETS: HeaderName = HeaderName::from_static("x-mcp-toolsets");
const READONLY: HeaderName = HeaderName::from_static("x-mcp-readonly");
const SERVER: HeaderName = HeaderName::from_static("x-mcp-server");
const STRUCTURED: HeaderName = HeaderName::from_static("x-mcp-structured");
const REVIEW: HeaderName = HeaderName::from_static("x-mcp-review");

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SelectionError {
    #[error("toolsets: {0}")]
    Toolset(#[from] ToolsetError),
    #[error("{name}: {value:?} is neither true nor false")]
    Flag { name: &'static str, value: String },
    #[error("server: {one:?} and {other:?} are selected at once; select one")]
    Servers { one: String, other: String },
    #[error("{0}: the header's value is not plain text")]
    Undecodable(HeaderName),
}

pub(super) fn select(uri: &Uri, headers: &HeaderMap) -> Result<Selection, SelectionError> {
    let mut selection = Selection::default();
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        match &*name {
            "toolsets" => narrow_toolsets(&mut selection, &value)?,
            "readonly" => selection.readonly |= flag("readonly", &value)?,
            "review" => selection.review |= flag("review", &value)?,
            "structured" => narrow_structured(&mut selection, &value)?,
            "server" => narrow_servers(&mut selection, &value)?,
            // Other parameters may be an ingress' own.
            _ => {}
        }
    }
    for value in texts(headers, &TOOLSETS) {
        narrow_toolsets(&mut selection, value?)?;
    }
    for value in texts(headers, &READONLY) {
        selection.readonly |= flag("readonly", value?)?;
    }
    for value in texts(headers, &REVIEW) {
        selection.review |= flag("review", value?)?;
    }
    for value in texts(headers, &STRUCTURED) {
        narrow_structured(&mut selection, value?)?;
    }
    for value in texts(headers, &SERVER) {
        narrow_servers(&mut selection, value?)?;
    }
    Ok(selection)
}

/// Every value of a header. Each may come from another hand on the way, and what one of them forbids must hold.
fn texts<'a>(
    headers: &'a HeaderMap,
    name: &'a HeaderName,
) -> impl Iterator<Item = Result<&'a str, SelectionError>> + 'a {
    let undecodable = |_| SelectionError::Undecodable(name.clone());
    headers
        .get_all(name)
        .iter()
        .map(move |value| value.to_str().map_err(undecodable))
}

/// Narrows a selection of toolsets. Nothing in common is a selection too: of no tools at all.
fn narrow_toolsets(selection: &mut Selection, value: &str) -> Result<(), SelectionError> {
    let named = Toolset::parse_list(value.split(','))?;
    if named.is_empty() {
        return Ok(());
    }
    match &mut selection.toolsets {
        Some(selected) => selected.retain(|toolset| named.contains(toolset)),
        none => *none = Some(named),
    }
    Ok(())
}

fn narrow_servers(selection: &mut Selection, value: &str) -> Result<(), SelectionError> {
    let named: Vec<String> = names(value).collect();
    let selected = &mut selection.servers;
    if named.is_empty() || selected.is_empty() {
        selected.extend(named);
        return Ok(());
    }
    let conflict = SelectionError::Servers {
        one: selected.join(","),
        other: named.join(","),
    };
    selected.retain(|server| named.contains(server));
    match selected.is_empty() {
        true => Err(conflict),
        false => Ok(()),
    }
}

/// Selects whether answers have structured content. Who is told both has none.
fn narrow_structured(selection: &mut Selection, value: &str) -> Result<(), SelectionError> {
    let wanted = flag("structured", value)?;
    selection.structured = Some(wanted && selection.structured.unwrap_or(true));
    Ok(())
}

fn flag(name: &'static str, value: &str) -> Result<bool, SelectionError> {
    match value.trim() {
        "true" | "1" | "" => Ok(true),
        "false" | "0" => Ok(false),
        other => Err(SelectionError::Flag {
            name,
            value: other.chars().take(50).collect(),
        }),
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
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(*name, http::HeaderValue::from_static(value));
        }
        select(&uri.parse().expect("uri"), &all)
    }

    #[test]
    fn url_and_headers_say_the_same() {
        let expected = Selection {
            toolsets: Some(vec![Toolset::Notebook, Toolset::Kernel]),
            readonly: true,
            servers: vec!["lab-b".to_owned()],
            structured: Some(false),
            review: true,
        };
        assert_eq!(
            selected(
                "/mcp?toolsets=notebook,kernel&readonly=true&server=lab-b&structured=false&review=true",
                &[]
            ),
            Ok(expected.clone())
        );
        let headers = [
            ("x-mcp-toolsets", "notebook, kernel"),
            ("x-mcp-readonly", "true"),
            ("x-mcp-server", "lab-b"),
            ("x-mcp-structured", "false"),
            ("x-mcp-review", "true"),
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
        assert_eq!((both.toolsets, both.readonly), (Some(vec![Toolset::Notebook]), true));
        let toolsets = |uri, headers| selected(uri, headers).expect("valid").toolsets;
        let nothing_in_common = toolsets("/mcp?toolsets=url", &[("x-mcp-toolsets", "session")]);
        assert_eq!(
            nothing_in_common,
            Some(vec![]),
            "no tools, and not those of nobody's selection"
        );
        let repeated = [("x-mcp-toolsets", "url,files"), ("x-mcp-toolsets", "files,kernel")];
        assert_eq!(toolsets("/mcp", &repeated), Some(vec![Toolset::Files]));
        assert_eq!(
            toolsets("/mcp?toolsets=url&toolsets=all", &[]),
            Some(vec![Toolset::Url])
        );
        assert_eq!(toolsets("/mcp?toolsets=", &[("x-mcp-toolsets", "")]), None);
        let readonly = [("x-mcp-readonly", "false"), ("x-mcp-readonly", "true")];
        assert!(selected("/mcp?readonly=false", &readonly).expect("valid").readonly);
        let both = selected("/mcp?structured=true", &[("x-mcp-structured", "false")]);
        assert_eq!(both.expect("valid").structured, Some(false));
        let review = selected("/mcp?review=true", &[("x-mcp-review", "false")]);
        assert!(review.expect("valid").review);
        let servers = selected("/mcp?server=a,b", &[("x-mcp-server", "b"), ("x-mcp-server", "b,c")]);
        assert_eq!(servers.expect("valid").servers, ["b"]);
    }

    #[test]
    fn nonsense_is_refused() {
        for uri in ["/mcp?toolsets=nonsense", "/mcp?readonly=maybe", "/mcp?structured=no"] {
            assert!(selected(uri, &[]).is_err(), "{uri}");
        }
        assert!(selected("/mcp?server=a", &[("x-mcp-server", "b")]).is_err());
        assert!(selected("/mcp", &[("x-mcp-server", "a"), ("x-mcp-server", "b")]).is_err());
        for name in [TOOLSETS, READONLY, SERVER, STRUCTURED, REVIEW] {
            let undecodable = http::HeaderValue::from_bytes(b"\xc3\xa4").expect("a header value");
            let headers = HeaderMap::from_iter([(name.clone(), undecodable)]);
            let refused = select(&Uri::from_static("/mcp"), &headers);
            assert_eq!(refused, Err(SelectionError::Undecodable(name)));
        }
    }
}
