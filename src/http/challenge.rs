//! Discovery of the login for clients: the `WWW-Authenticate` header and the protected resource metadata of RFC 9728.
//! Both name an authorization server only where there is one: clients that were given a token must not be sent to log in.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Uri};
use serde_json::json;
use url::Url;

use super::{Edge, guard::authority, problem::Problem};
use crate::{auth::scope_of, types::Permission};

/// Path of the metadata; those of `/mcp` are below it.
pub(super) const METADATA: &str = "/.well-known/oauth-protected-resource";
/// Permissions that clients ask for unless they are told otherwise.
const USUAL: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Execute];

/// Information for clients on logging in.
#[derive(Debug, Clone)]
pub struct Challenges {
    /// Issuers of tokens that are accepted here; empty if there is nothing to log in to.
    pub authorization_servers: Vec<String>,
    /// URL at which clients reach the gateway; `None` means the one that they use.
    pub public_url: Option<Url>,
    /// Scheme of the gateway's own address.
    pub scheme: &'static str,
}

impl Challenges {
    pub(super) fn names_servers(&self) -> bool {
        !self.authorization_servers.is_empty()
    }

    /// The value of `WWW-Authenticate`, with an error and the scope that it is about.
    pub(super) fn header(&self, error: Option<(&str, Option<&str>)>, uri: &Uri, headers: &HeaderMap) -> HeaderValue {
        let mut parameters = Vec::new();
        if let Some((error, _)) = error {
            parameters.push(format!("error=\"{error}\""));
        }
        match (error, self.names_servers()) {
            (Some((_, Some(scope))), _) => parameters.push(format!("scope=\"{scope}\"")),
            (_, true) => parameters.push(format!("scope=\"{}\"", USUAL.map(scope_of).join(" "))),
            _ => {}
        }
        if self.names_servers() {
            let base = self.base(uri, headers);
            parameters.push(format!("resource_metadata=\"{base}{METADATA}/mcp\""));
        }
        let challenge = format!("Bearer {}", parameters.join(", "));
        // A host that fits into no header was refused before.
        HeaderValue::try_from(challenge.trim_end()).unwrap_or(HeaderValue::from_static("Bearer"))
    }

    /// The gateway's address without a slash at its end.
    fn base(&self, uri: &Uri, headers: &HeaderMap) -> String {
        if let Some(url) = &self.public_url {
            return url.as_str().trim_end_matches('/').to_owned();
        }
        format!("{}://{}", self.scheme, authority(headers, uri).unwrap_or("localhost"))
    }
}

/// Serves the protected resource metadata.
pub(super) async fn metadata<H>(State(edge): State<Arc<Edge<H>>>, uri: Uri, headers: HeaderMap) -> Response {
    let challenges = &edge.config.challenges;
    if !challenges.names_servers() {
        return nothing_to_log_in_to().into_response();
    }
    let document = json!({
        "resource": format!("{}/mcp", challenges.base(&uri, &headers)),
        "authorization_servers": challenges.authorization_servers,
        "scopes_supported": Permission::ALL.map(scope_of),
        "bearer_methods_supported": ["header"],
        "resource_name": "Jupyter (jupyter-mcp-gateway)",
    });
    Json(document).into_response()
}

/// Answer to clients that look for an authorization server where there is none.
pub(super) fn nothing_to_log_in_to() -> Problem {
    Problem::oauth(
        "this gateway has no authorization server and nothing to log in to; configure the client to send the header \
         `Authorization: Bearer <token>` with a token of this gateway",
    )
}

#[cfg(test)]
mod tests {
    use http::header::HOST;

    use super::*;

    fn challenges(servers: &[&str], public_url: Option<&str>) -> Challenges {
        Challenges {
            authorization_servers: servers.iter().map(|&server| server.to_owned()).collect(),
            public_url: public_url.map(|url| Url::parse(url).expect("a URL")),
            scheme: "http",
        }
    }

    #[test]
    fn only_who_can_log_in_is_told_where() {
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("127.0.0.1:8585"))]);
        let uri = Uri::from_static("/mcp");
        let header = |challenges: &Challenges, error| {
            let header = challenges.header(error, &uri, &headers);
            header.to_str().expect("text").to_owned()
        };
        let without = challenges(&[], None);
        assert_eq!(header(&without, None), "Bearer");
        assert_eq!(
            header(&without, Some(("invalid_token", None))),
            "Bearer error=\"invalid_token\""
        );
        let with = challenges(&["https://login.example.org"], None);
        let usual = "scope=\"jupyter:read jupyter:write jupyter:execute\"";
        let metadata = "/.well-known/oauth-protected-resource/mcp\"";
        assert_eq!(
            header(&with, None),
            format!("Bearer {usual}, resource_metadata=\"http://127.0.0.1:8585{metadata}")
        );
        let public = challenges(&["https://login.example.org"], Some("https://mcp.example.org/gw/"));
        assert_eq!(
            header(&public, Some(("insufficient_scope", Some("jupyter:read")))),
            format!(
                "Bearer error=\"insufficient_scope\", scope=\"jupyter:read\", \
                 resource_metadata=\"https://mcp.example.org/gw{metadata}"
            )
        );
    }
}
