//! Whose a token is that somebody else brings, as a server says. Asked without the gateway's own token and without cookies,
//! by which the server would take anybody for the gateway.

use std::time::{Duration, Instant};

use futures::future::try_join;
use reqwest::{Client, RequestBuilder, StatusCode, header::AUTHORIZATION, redirect::Policy};
use rustls::ClientConfig;
use serde::Deserialize;

use super::{JupyterError, JupyterServer, Secret};
use crate::client::{authorization, is_loopback};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Somebody waits to be let in.
const TIMEOUT: Duration = Duration::from_secs(6);
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// Prefix of the names that a server invents for users without an account.
const ANONYMOUS: &str = "Anonymous ";

/// Account of a token on a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Account {
    /// None if the server tells its users not apart.
    pub username: Option<String>,
    pub display_name: Option<String>,
}

#[derive(Deserialize)]
struct Me {
    identity: Identity,
}

#[derive(Deserialize)]
struct Identity {
    username: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    display_name: Option<String>,
}

/// Answer to a question that only users may ask.
enum Answer {
    /// With the body, if it is asked for.
    Accepted(Vec<u8>),
    Refused,
    NotFound,
}

impl JupyterServer {
    /// Asks whose a token is; `None` if the server does not accept it, or accepts anybody.
    pub async fn account_of(&self, token: &Secret) -> Result<Option<Account>, JupyterError> {
        // Servers before version 2 do not know their users.
        for path in ["api/me", "api/status"] {
            let with_token = self.ask(path, Some(token));
            // Where nobody has to log in, a token proves nothing.
            let without = self.ask(path, None);
            return match try_join(with_token, without).await? {
                (Answer::NotFound, _) => continue,
                (Answer::Accepted(body), Answer::Refused) => Ok(Some(account_in(&body))),
                (Answer::Accepted(_), Answer::Accepted(_) | Answer::NotFound) | (Answer::Refused, _) => Ok(None),
            };
        }
        Ok(None)
    }

    /// Returns whether the gateway itself uses that token here.
    pub fn has_token(&self, token: &Secret) -> bool {
        let (Some(own), Some(other)) = (self.authorization_value(), authorization(token)) else {
            return false;
        };
        // All bytes are looked at, so that the time taken tells nothing.
        let (own, other) = (own.as_bytes(), other.as_bytes());
        let differing = own.iter().zip(other).fold(0, |bits, (own, other)| bits | (own ^ other));
        own.len() == other.len() && differing == 0
    }

    async fn ask(&self, path: &str, token: Option<&Secret>) -> Result<Answer, JupyterError> {
        let client = self.guest.get_or_try_init(async || self.guest_client()).await;
        let client = client.map_err(|error| self.unreachable(error.without_url().to_string()))?;
        let mut request = client.get(format!("{}{path}", self.url()));
        match token.map(authorization) {
            Some(Some(value)) => request = request.header(AUTHORIZATION, value),
            // It cannot be a token of anybody.
            Some(None) => return Ok(Answer::Refused),
            None => {}
        }
        self.read(request).await
    }

    async fn read(&self, request: RequestBuilder) -> Result<Answer, JupyterError> {
        let started = Instant::now();
        let mut response = self.answer(request).await?;
        match response.status() {
            status if status.is_success() => {
                let mut body = Vec::new();
                while let Some(chunk) = response
                    .chunk()
                    .await
                    .map_err(|error| self.transport_error(&error, started))?
                {
                    if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                        return Err(self.unreachable("it says too much about a user".to_owned()));
                    }
                    body.extend_from_slice(&chunk);
                }
                Ok(Answer::Accepted(body))
            }
            StatusCode::NOT_FOUND => Ok(Answer::NotFound),
            // A redirect leads to the login page.
            status if status.is_redirection() => Ok(Answer::Refused),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Ok(Answer::Refused),
            status => Err(self.unreachable(format!("it answered with status {}", status.as_u16()))),
        }
    }

    fn guest_client(&self) -> Result<Client, reqwest::Error> {
        let mut client = Client::builder();
        if is_loopback(self.url()) {
            client = client.no_proxy();
        }
        if let Some(authorities) = &self.authorities {
            client = client.tls_backend_preconfigured(ClientConfig::clone(authorities.config()));
        }
        client
            .redirect(Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .tcp_nodelay(true)
            .build()
    }
}

/// The account that an answer names. A user who was invented for the request is nobody in particular.
fn account_in(body: &[u8]) -> Account {
    let Ok(Me { identity }) = serde_json::from_slice(body) else {
        return Account::default();
    };
    let name = identity.display_name.or(identity.name).filter(|name| !name.is_empty());
    let is_random = identity.username.len() == 32 && identity.username.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_anonymous = name.as_ref().is_some_and(|name| name.starts_with(ANONYMOUS));
    if identity.username.is_empty() || is_random && is_anonymous {
        return Account::default();
    }
    Account {
        username: Some(identity.username),
        display_name: name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_stays_the_same_has_a_name() {
        let account = |body: &str| account_in(body.as_bytes());
        let nobody = r#"{"identity": {"username": "0123456789abcdef0123456789abcdef", "name": "Anonymous Io", "display_name": "Anonymous Io"}}"#;
        assert_eq!(account(nobody), Account::default());
        assert_eq!(account("<html>"), Account::default());
        let ana =
            account(r#"{"identity": {"username": "ana", "name": "Ana", "display_name": "Ana L.", "color": null}}"#);
        assert_eq!(
            (ana.username.as_deref(), ana.display_name.as_deref()),
            (Some("ana"), Some("Ana L."))
        );
    }
}
