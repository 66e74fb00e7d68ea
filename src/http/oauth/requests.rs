//! Requests of logins: who sent them, and bodies that are small and of the kind that is expected.

use std::{net::IpAddr, sync::Arc};

use axum::extract::Request;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use tokio::time::timeout;

use crate::{
    audit::Origin,
    auth::oauth::OAuthError,
    http::{
        Edge,
        connections::{ClientConnection, Timeouts},
        mcp_route::{client_address, request_id},
    },
    limits::{AddressLimit, Refusal},
};

/// A registration with all redirect URIs that there may be is smaller.
const MAX_BODY_BYTES: usize = 32 * 1024;

/// Sender of a request.
pub(super) struct Sender(Origin);

impl Sender {
    pub(super) fn of<H>(edge: &Edge<H>, request: &Request) -> Self {
        let connection = request.extensions().get::<Arc<ClientConnection>>();
        let address = connection.map(|connection| client_address(edge, connection, request.headers()));
        Self(Origin {
            address,
            request_id: request_id(request.headers()).into(),
        })
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.0
    }

    /// Counts what an address asks for.
    pub(super) fn admit<H>(&self, edge: &Edge<H>, limit: AddressLimit) -> Result<(), Refusal> {
        let counted = |address: IpAddr| edge.access.limits.count_address(limit, address);
        self.0.address.map_or(Ok(()), counted)
    }
}

/// The body of a request.
pub(super) async fn body(request: Request) -> Result<Bytes, OAuthError> {
    let connection = request.extensions().get::<Arc<ClientConnection>>();
    let patience = connection
        .map_or_else(Timeouts::default, |connection| *connection.timeouts())
        .body;
    let reading = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    match timeout(patience, reading).await {
        Ok(Ok(read)) => Ok(read.to_bytes()),
        Ok(Err(_)) => Err(OAuthError::request(
            "the body is too large, or ended before it was complete",
        )),
        Err(_) => Err(OAuthError::request("the body did not arrive in time")),
    }
}

/// The form in the body of a request.
pub(super) async fn form(request: Request) -> Result<String, OAuthError> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(OAuthError::request(
            "the body must be a form, with Content-Type: application/x-www-form-urlencoded",
        ));
    }
    let body = body(request).await?;
    String::from_utf8(body.into()).map_err(|_| OAuthError::request("the body is not text"))
}
