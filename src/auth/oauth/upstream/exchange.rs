//! Requests to the provider's token endpoint.

use reqwest::{RequestBuilder, header::CONTENT_TYPE};
use serde::Deserialize;
use url::form_urlencoded;

use super::{
    UpstreamError,
    openid::{OpenIdLogins, lacks},
    shown_code,
};
use crate::auth::{
    oauth::OAuthSettings,
    outbound::{self, OutboundError},
};

/// The provider's answer to a code or a refresh token.
#[derive(Default, Deserialize)]
pub(super) struct TokenAnswer {
    pub(super) id_token: Option<String>,
    pub(super) access_token: Option<String>,
    pub(super) refresh_token: Option<String>,
    pub(super) scope: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: String,
}

impl OpenIdLogins {
    pub(super) async fn request_tokens(
        &self,
        settings: &OAuthSettings,
        form: &[(&str, &str)],
    ) -> Result<TokenAnswer, UpstreamError> {
        let metadata = self.provider.metadata().await?;
        let endpoint = metadata.token_endpoint.clone();
        let request = self
            .provider
            .client()
            .post(endpoint.ok_or_else(|| lacks("token_endpoint"))?);
        let request = authenticated(request, settings, form, &metadata.token_endpoint_auth_methods_supported);
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
}

/// The request with what tells the provider that the gateway sends it.
fn authenticated(
    request: RequestBuilder,
    settings: &OAuthSettings,
    form: &[(&str, &str)],
    methods: &[String],
) -> RequestBuilder {
    let (id, secret) = (&settings.client_id, settings.client_secret.expose());
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
