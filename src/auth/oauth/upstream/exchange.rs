//! Requests to the provider's token endpoint.

use reqwest::{RequestBuilder, header::CONTENT_TYPE};
use serde::Deserialize;
use url::form_urlencoded;

use super::{Upstream, UpstreamError, shown_code};
use crate::auth::outbound::{self, OutboundError};

/// The provider's answer to a code or a refresh token.
#[derive(Default, Deserialize)]
pub(super) struct TokenAnswer {
    pub(super) id_token: Option<String>,
    pub(super) refresh_token: Option<String>,
    pub(super) scope: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl Upstream {
    pub(super) async fn request_tokens(&self, form: &[(&str, &str)]) -> Result<TokenAnswer, UpstreamError> {
        let (metadata, endpoint) = self.token_endpoint().await?;
        let request = self.provider.client().post(endpoint);
        let request = self.authenticated(request, form, &metadata.token_endpoint_auth_methods_supported);
        let unavailable = |error: OutboundError| UpstreamError::Unavailable(error.to_string());
        let (status, body) = outbound::answer(request).await.map_err(unavailable)?;
        if status.is_success() {
            return outbound::parse(&body).map_err(|error| UpstreamError::Invalid(error.to_string()));
        }
        let refusal = outbound::parse::<Refusal>(&body).ok();
        match refusal.filter(|_| status.is_client_error()) {
            Some(refusal) if refusal.error == "invalid_grant" => Err(UpstreamError::Denied(shown_code(&refusal.error))),
            Some(refusal) => Err(UpstreamError::Invalid(format!(
                "its token endpoint refuses the gateway ({})",
                shown_code(&refusal.error)
            ))),
            None => Err(UpstreamError::Unavailable(format!("status {status}"))),
        }
    }

    /// The request with what tells the provider that the gateway sends it.
    fn authenticated(&self, request: RequestBuilder, form: &[(&str, &str)], methods: &[String]) -> RequestBuilder {
        let (id, secret) = (&self.settings.client_id, self.settings.client_secret.expose());
        let mut body = form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(form);
        let offers = |method: &str| methods.iter().any(|offered| offered == method);
        // By the standard, a provider that says nothing means this one.
        let in_header = methods.is_empty() || offers("client_secret_basic");
        let request = match (secret.is_empty(), in_header) {
            (false, true) => {
                let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                request.basic_auth(encoded(id), Some(encoded(secret)))
            }
            (false, false) => {
                body.append_pair("client_id", id).append_pair("client_secret", secret);
                request
            }
            (true, _) => {
                body.append_pair("client_id", id);
                request
            }
        };
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.header("accept", "application/json").body(body.finish())
    }
}
