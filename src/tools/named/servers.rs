//! The server that a caller names as the operator does, or by its URL.

use std::sync::Arc;

use jupyter_client::{JupyterServer, Secret, UrlError, allowed_base, locate_server};
use url::Url;

use crate::tools::{Call, ToolError};

/// The server that an agent names as the operator does, or by the URL that it was given for it. One that the gateway does
/// not know is refused unless an operator allows it: an agent must not choose where the gateway connects to.
pub(in crate::tools) async fn find_server(
    call: &Call,
    named: Option<&str>,
    token: Option<String>,
) -> Result<Arc<JupyterServer>, ToolError> {
    let Some(url) = named.filter(|named| named.contains("://")) else {
        return call.server(named).cloned();
    };
    match locate_server(url, call.servers().iter().map(AsRef::as_ref)) {
        Ok(name) => call.server(Some(name)).cloned(),
        Err(UrlError::Foreign { url: shown, configured }) => match allowed_base(url, call.connect_urls()) {
            Some(base) => own_server(call, &base, token.unwrap_or_default()).await,
            None => Err(not_allowed(call, shown, configured).into()),
        },
        Err(error) => Err(error.into()),
    }
}

/// The server at a URL, which is the caller's own. What it answers is known before anything is done with it.
async fn own_server(call: &Call, url: &Url, token: String) -> Result<Arc<JupyterServer>, ToolError> {
    if !token.chars().all(|character| character.is_ascii_graphic()) {
        let why = "a token has neither spaces nor control characters, and only ASCII";
        return Err(ToolError::argument("token", why));
    }
    let token = Secret::new(token);
    let known = call.connections().own_servers(&call.principal().id);
    let known = known.into_iter().find(|server| server.is_at(url, &token));
    let server = match known {
        Some(server) => server,
        None => call.connect(url, &token)?,
    };
    server.kernelspecs().await?;
    Ok(server)
}

fn not_allowed(call: &Call, url: String, configured: String) -> UrlError {
    let allowed: Vec<&str> = call.connect_urls().iter().map(Url::as_str).collect();
    UrlError::NotAllowed {
        url,
        configured,
        allowed: match allowed.is_empty() {
            true => "none".to_owned(),
            false => allowed.join(", "),
        },
    }
}
