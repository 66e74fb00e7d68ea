//! A login from a client's request to the page on which the person decides. It is kept in the store, sealed, under the
//! digest of a value that only this browser has seen, and is found once.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    ErrorCode, LoginRefusal, OAuth, OAuthError,
    clients::Client,
    parameters::Parameters,
    pkce, redirect_uri, scopes,
    secrets::{digest, is_same, is_secret, new_secret},
    tokens::IssuedTokens,
    upstream::{Begun, Identity, UpstreamTokens},
};
use crate::{
    auth::scope_of,
    types::{Permission, PermissionSet},
};

/// Time for a person to log in, and to decide.
const LOGIN_TTL: Duration = Duration::from_secs(10 * 60);
/// Logins under way; beyond it the oldest are given up.
const MAX_LOGINS: usize = 20_000;

/// The value of the cookie by which a browser is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Browser(String);

impl Browser {
    /// The browser of a cookie; a new one if it has none of ours.
    pub fn of(cookie: Option<&str>) -> Self {
        match cookie.filter(|cookie| is_secret(cookie)) {
            Some(known) => Self(known.to_owned()),
            None => Self(new_secret()),
        }
    }

    /// The value of its cookie.
    pub fn cookie(&self) -> &str {
        &self.0
    }
}

/// A login that has begun.
#[derive(Debug)]
pub struct Started {
    /// URL at which the browser logs in.
    pub location: Url,
    pub browser: Browser,
}

/// Somebody whom the upstream service has sent back.
pub enum LoggedIn {
    /// They decide what a client may do for them.
    ForClient(Consent),
    /// They are their own client, on the page of the gateway.
    ForThemselves(IssuedTokens),
}

/// Question to a person.
#[derive(Debug, PartialEq, Eq)]
pub struct Consent {
    pub client_name: String,
    /// The host that vouches for the client; `None` if nobody does.
    pub client_host: Option<String>,
    /// Destination of the answer.
    pub redirect_host: String,
    /// The person, as they are called.
    pub person: String,
    pub tenant: String,
    /// Permissions that the client may be granted, with their scopes.
    pub scopes: Vec<(Permission, &'static str)>,
    /// Goes back with the decision.
    pub ticket: String,
}

/// A client's request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) client: Client,
    pub(super) redirect_uri: String,
    pub(super) state: Option<String>,
    pub(super) challenge: String,
    pub(super) scope: String,
}

/// A login under way. Digests of browsers, not their cookies.
#[derive(Serialize, Deserialize)]
pub(super) enum Login {
    AtUpstream {
        /// None for the page of the gateway itself.
        request: Option<Request>,
        browser: String,
        nonce: String,
        verifier: String,
    },
    AtConsent {
        request: Request,
        browser: String,
        identity: Identity,
        tokens: UpstreamTokens,
        offered: String,
    },
}

impl OAuth {
    /// Begins the login that a client asks for.
    pub async fn authorize(&self, query: &str, browser: Browser) -> Result<Started, LoginRefusal> {
        let parameters = Parameters::parse(query)?;
        let client = self.clients.find(parameters.require("client_id")?).await?;
        let redirect_uri = parameters.require("redirect_uri")?;
        if !client.may_redirect_to(redirect_uri) {
            let description = "the redirect URI is none that the client has registered";
            return Err(OAuthError::request(description).into());
        }
        let state = parameters.get("state");
        let told = |error: OAuthError| self.tell(redirect_uri, state, &error);
        let (challenge, permissions) = self.check_request(&parameters).map_err(told)?;
        let request = Request {
            client,
            redirect_uri: redirect_uri.to_owned(),
            state: state.map(str::to_owned),
            challenge: challenge.to_owned(),
            scope: scopes::scopes(permissions),
        };
        self.begin(Some(request), browser).await
    }

    /// Sends a browser to the upstream service.
    pub(super) async fn begin(&self, request: Option<Request>, browser: Browser) -> Result<Started, LoginRefusal> {
        let upstream_state = new_secret();
        let begun = self.upstream.begin(&self.settings, &upstream_state).await;
        let Begun { url, nonce, verifier } = begun.map_err(|error| self.refuse(request.as_ref(), error.into()))?;
        let login = Login::AtUpstream {
            request,
            browser: digest(browser.cookie()),
            nonce,
            verifier,
        };
        self.keep(&upstream_state, &login).await?;
        Ok(Started { location: url, browser })
    }

    /// The challenge and the permissions of a request, if it is one that can be granted.
    fn check_request<'a>(&self, parameters: &'a Parameters) -> Result<(&'a str, PermissionSet), OAuthError> {
        if parameters.require("response_type")? != "code" {
            let description = "`response_type` must be code";
            return Err(OAuthError::new(ErrorCode::UnsupportedResponseType, description));
        }
        let challenge = parameters.get("code_challenge");
        let method = parameters.get("code_challenge_method");
        let challenge = challenge.filter(|challenge| method == Some("S256") && pkce::is_challenge(challenge));
        let challenge = challenge.ok_or_else(|| {
            OAuthError::request("PKCE is required: `code_challenge` with `code_challenge_method` S256")
        })?;
        if !self.settings.is_resource(parameters.get("resource")) {
            let description = format!("`resource` must be {}", self.settings.resource());
            return Err(OAuthError::new(ErrorCode::InvalidTarget, description));
        }
        if parameters.get("prompt") == Some("none") {
            let description = "the person has to be asked";
            return Err(OAuthError::new(ErrorCode::ConsentRequired, description));
        }
        let permissions = scopes::requested(parameters.get("scope")).ok_or_else(|| {
            let description = format!("`scope` names none of {}", scopes::supported().join(" "));
            OAuthError::new(ErrorCode::InvalidScope, description)
        })?;
        Ok((challenge, permissions))
    }

    /// Goes on with a login when the upstream service has sent the browser back.
    pub async fn callback(&self, query: &str, browser: Option<&str>) -> Result<LoggedIn, LoginRefusal> {
        let parameters = Parameters::parse(query)?;
        let login = self.take(parameters.require("state")?, browser).await?;
        let Login::AtUpstream {
            request,
            browser,
            nonce,
            verifier,
        } = login
        else {
            return Err(lost().into());
        };
        let told = |error: OAuthError| self.refuse(request.as_ref(), error);
        let code = self.upstream.code(&parameters).map_err(|error| told(error.into()))?;
        let finished = self.upstream.finish(&self.settings, code, &verifier, &nonce).await;
        let (identity, tokens) = finished.map_err(|error| told(error.into()))?;
        let asked = request.as_ref().map(|request| scopes::permissions(&request.scope));
        let (tenant, offered) = self
            .offer(asked.unwrap_or_else(PermissionSet::all), &identity)
            .map_err(told)?;
        let Some(request) = request else {
            let issued = self.issue_to_person(&identity, &tokens, offered).await?;
            return Ok(LoggedIn::ForThemselves(issued));
        };
        let ticket = new_secret();
        let consent = Consent {
            client_name: request.client.name.clone(),
            client_host: request.client.host.clone(),
            redirect_host: redirect_uri::shown_host(&request.redirect_uri),
            person: identity.name.clone(),
            tenant,
            scopes: offered
                .iter()
                .map(|permission| (permission, scope_of(permission)))
                .collect(),
            ticket: ticket.clone(),
        };
        let login = Login::AtConsent {
            request,
            browser,
            identity,
            tokens,
            offered: scopes::scopes(offered),
        };
        self.keep(&ticket, &login).await?;
        Ok(LoggedIn::ForClient(consent))
    }

    /// What a person can allow: what is asked for, of what they and their tenant may.
    pub(super) fn offer(
        &self,
        asked: PermissionSet,
        identity: &Identity,
    ) -> Result<(String, PermissionSet), OAuthError> {
        let denied = |description: String| OAuthError::new(ErrorCode::AccessDenied, description);
        let tenant = identity.tenant(&self.tenants);
        let tenant = tenant.ok_or_else(|| denied("your account belongs to no tenant of this gateway".to_owned()))?;
        let own = scopes::permissions(&identity.scope).intersection(tenant.permissions);
        let offered = own.intersection(asked);
        match offered == PermissionSet::default() {
            true => Err(denied(format!(
                "your account has none of the permissions that the client asks for: {}",
                scopes::scopes(asked)
            ))),
            false => Ok((tenant.name.clone(), offered)),
        }
    }

    async fn keep(&self, secret: &str, login: &Login) -> Result<(), LoginRefusal> {
        let known_as = digest(secret);
        let sealed = self.sealer.seal(&known_as, login).ok_or_else(OAuthError::internal)?;
        let expires_at = SystemTime::now() + LOGIN_TTL;
        let kept = self.store.put_oauth_login(&known_as, &sealed, expires_at, MAX_LOGINS);
        Ok(kept.await?)
    }

    /// The login of a value, if this is its browser. Whoever brings it in another one has ended it.
    pub(super) async fn take(&self, secret: &str, browser: Option<&str>) -> Result<Login, LoginRefusal> {
        let known_as = digest(secret);
        let sealed = self.store.take_oauth_login(&known_as).await?;
        let login = sealed.and_then(|sealed| self.sealer.open::<Login>(&known_as, &sealed));
        let login = login.ok_or_else(lost)?;
        let (Login::AtUpstream { browser: bound, .. } | Login::AtConsent { browser: bound, .. }) = &login;
        match browser.is_some_and(|browser| is_same(&digest(browser), bound)) {
            true => Ok(login),
            false => Err(OAuthError::request(
                "this login was begun in another browser, or its cookie is gone; log in again from your client",
            )
            .into()),
        }
    }

    /// Has whoever began a login told what is wrong: the client, or the person themselves.
    fn refuse(&self, request: Option<&Request>, error: OAuthError) -> LoginRefusal {
        match request {
            Some(request) => self.tell(&request.redirect_uri, request.state.as_deref(), &error),
            None => LoginRefusal::Shown(error),
        }
    }

    /// Has a client told what is wrong.
    pub(super) fn tell(&self, redirect_uri: &str, state: Option<&str>, error: &OAuthError) -> LoginRefusal {
        let answer = [
            ("error", error.code.as_str()),
            ("error_description", &error.description),
        ];
        match self.answer(redirect_uri, state, &answer) {
            Some(url) => LoginRefusal::Told(url),
            None => LoginRefusal::Shown(error.clone()),
        }
    }

    /// The URL by which a client is answered. It says who answers (RFC 9207).
    pub(super) fn answer(&self, redirect_uri: &str, state: Option<&str>, answer: &[(&str, &str)]) -> Option<Url> {
        let mut url = Url::parse(redirect_uri).ok()?;
        let mut query = url.query_pairs_mut();
        query.extend_pairs(answer);
        query.extend_pairs(state.map(|state| ("state", state)));
        query.append_pair("iss", self.settings.issuer());
        drop(query);
        Some(url)
    }
}

/// Nothing is known under a value that was sent.
pub(super) fn lost() -> OAuthError {
    OAuthError::request("this login is over or was never begun; log in again from your client")
}
