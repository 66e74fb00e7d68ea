//! The Hub as a place to log in: where a browser goes, and the token that the code it comes back with is good for.

use std::time::{Duration, SystemTime};

use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use url::{Url, form_urlencoded};

use super::{Hub, HubError, HubUser, TIMEOUT};
use crate::Secret;

/// A service of the Hub, as which a program asks people to log in.
#[derive(Debug, Clone)]
pub struct HubService {
    pub client_id: String,
    /// The service's API token.
    pub secret: Secret,
    pub redirect_uri: String,
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: Option<u64>,
}

#[derive(Deserialize)]
struct TokenModel {
    expires_at: Option<String>,
}

impl Hub {
    /// Where people log in and allow a service what it is to have.
    pub fn authorize_url(&self) -> Url {
        let base = self.options.public.as_ref().unwrap_or(&self.options.servers);
        let mut url = base.clone();
        url.set_path(&format!("{}hub/api/oauth2/authorize", base.path()));
        url
    }

    /// The person's token and when it expires, for the code with which the Hub has sent their browser back.
    pub async fn redeem(
        &self,
        service: &HubService,
        code: &str,
        verifier: &str,
    ) -> Result<(Secret, Option<SystemTime>), HubError> {
        let form = form_urlencoded::Serializer::new(String::new())
            .append_pair("grant_type", "authorization_code")
            .append_pair("client_id", &service.client_id)
            .append_pair("client_secret", service.secret.expose())
            .append_pair("redirect_uri", &service.redirect_uri)
            .append_pair("code", code)
            .append_pair("code_verifier", verifier)
            .finish();
        let url = format!("{}oauth2/token", self.options.api);
        let request = self.http.post(url).timeout(TIMEOUT).body(form);
        let request = request.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        let body = self.body(self.send(request).await?).await?;
        let answer: TokenAnswer = serde_json::from_slice(&body).map_err(|_| HubError::NotAHub { status: 200 })?;
        let lifetime = answer.expires_in.map(Duration::from_secs);
        let expires_at = lifetime.and_then(|lifetime| SystemTime::now().checked_add(lifetime));
        Ok((Secret::new(answer.access_token), expires_at))
    }

    /// When a token expires, if it does and the Hub tells the token so.
    pub async fn expiry(&self, token: &Secret, user: &HubUser) -> Option<SystemTime> {
        let path = user.token_path()?;
        let request = self.request(Method::GET, &path, token).ok()?;
        let body = self.body(self.send(request.timeout(TIMEOUT)).await.ok()?).await.ok()?;
        let model: TokenModel = serde_json::from_slice(&body).ok()?;
        humantime::parse_rfc3339_weak(&model.expires_at?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{HubOptions, RequestObserver};

    #[test]
    fn people_log_in_where_they_reach_the_hub() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        for (api, public, expected) in [
            (
                "http://10.0.0.1:8081/jupyter/hub/api/",
                Some("https://hub.example.org/jupyter/"),
                "https://hub.example.org/jupyter/hub/api/oauth2/authorize",
            ),
            (
                "https://hub.example.org/hub/api/",
                None,
                "https://hub.example.org/hub/api/oauth2/authorize",
            ),
        ] {
            let api = Url::parse(api).unwrap();
            let options = HubOptions {
                servers: Hub::servers_of_api(&api),
                api,
                public: public.map(|url| Url::parse(url).unwrap()),
                authorities: None,
            };
            let observer: Arc<dyn RequestObserver> = Arc::new(());
            let hub = Hub::new(options, observer).unwrap();
            assert_eq!(hub.authorize_url().as_str(), expected);
        }
    }
}
