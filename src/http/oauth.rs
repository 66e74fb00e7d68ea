//! The routes of browser logins: what clients are told and get, and the pages that people see. What it all means is in
//! `auth::oauth`; here it is read, limited and dressed.

mod browser;
mod pages;
mod requests;

use std::sync::Arc;

use axum::{
    Json, Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, LOCATION, ORIGIN, RETRY_AFTER, SET_COOKIE},
};
use rmcp::ServerHandler;
use serde_json::{Value, json};
use url::Url;

use self::requests::Sender;
use super::{Edge, console_route};
use crate::{
    audit::{record_failed_login, record_login},
    auth::oauth::{Browser, ErrorCode, LoggedIn, LoginRefusal, OAuth, OAuthError, PersonLogin, Started},
    limits::{AddressLimit, Refusal},
};

/// State of the routes.
struct Logins<H> {
    oauth: Arc<OAuth>,
    edge: Arc<Edge<H>>,
}

/// The routes of a gateway at which people can log in.
pub(super) fn routes<H: ServerHandler>(oauth: &Arc<OAuth>, edge: &Arc<Edge<H>>) -> Router<Arc<Edge<H>>> {
    const METADATA: &str = "/.well-known/oauth-authorization-server";
    let logins = Logins {
        oauth: Arc::clone(oauth),
        edge: Arc::clone(edge),
    };
    Router::new()
        // Some clients ask for the document of the endpoint that they know, below it.
        .route(METADATA, get(metadata::<H>))
        .route(&format!("{METADATA}/{{*resource}}"), get(metadata::<H>))
        .route("/oauth/authorize", get(authorize::<H>))
        .route("/oauth/login", get(log_in::<H>))
        .route("/oauth/callback", get(callback::<H>))
        .route("/oauth/consent", post(decide::<H>))
        .route("/oauth/token", post(token::<H>))
        .route("/oauth/register", post(register::<H>))
        .route("/oauth/revoke", post(revoke::<H>))
        .with_state(Arc::new(logins))
}

type Context<H> = State<Arc<Logins<H>>>;

async fn metadata<H>(State(logins): Context<H>) -> Json<Value> {
    Json(logins.oauth.server_metadata())
}

async fn authorize<H>(State(logins): Context<H>, request: Request) -> Response {
    let Logins { oauth, edge } = &*logins;
    let sender = Sender::of(edge, &request);
    if let Err(refusal) = sender.admit(edge, AddressLimit::Logins) {
        return too_many(&refusal, pages::refused);
    }
    let query = request.uri().query().unwrap_or_default();
    let known = browser::cookie(oauth, request.headers());
    begin(oauth, oauth.authorize(query, Browser::of(known)).await)
}

/// Sends a person to log in for the page of the gateway. Only the page itself leads here, or the person's own bookmark.
async fn log_in<H>(State(logins): Context<H>, request: Request) -> Response {
    let Logins { oauth, edge } = &*logins;
    if edge.console.is_none() {
        return super::stack::not_found(request.uri().clone(), true)
            .await
            .into_response();
    }
    let site = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    if !matches!(site, None | Some(b"same-origin" | b"none")) {
        let description = "only the gateway's own page leads here; open it and log in there";
        return pages::refused(&OAuthError::request(description));
    }
    let sender = Sender::of(edge, &request);
    if let Err(refusal) = sender.admit(edge, AddressLimit::Logins) {
        return too_many(&refusal, pages::refused);
    }
    let known = browser::cookie(oauth, request.headers());
    begin(oauth, oauth.authorize_person(Browser::of(known)).await)
}

/// Sends a browser to the upstream service, unless the login is refused.
fn begin(oauth: &OAuth, started: Result<Started, LoginRefusal>) -> Response {
    let started = match started {
        Ok(started) => started,
        Err(refusal) => return refuse(refusal),
    };
    let mut response = redirect(StatusCode::FOUND, &started.location);
    if let Some(cookie) = browser::set_cookie(oauth, &started.browser) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

async fn callback<H>(State(logins): Context<H>, request: Request) -> Response {
    let Logins { oauth, edge } = &*logins;
    let query = request.uri().query().unwrap_or_default();
    let tokens = match oauth.callback(query, browser::cookie(oauth, request.headers())).await {
        Ok(LoggedIn::ForClient(consent)) => {
            return pages::consent(&consent, &oauth.settings().endpoint("consent"));
        }
        Ok(LoggedIn::ForThemselves(tokens)) => tokens,
        Err(refusal) => return refuse(refusal),
    };
    if let Some(login) = tokens.login() {
        let sender = Sender::of(edge, &request);
        record_login(&*edge.access.audit, sender.origin(), &login.principal, &login.tenant);
    }
    console_route::enter(edge, request, PersonLogin::new(Arc::clone(oauth), &tokens)).await
}

/// The decision comes from the gateway's own page, in the browser that was asked.
async fn decide<H>(State(logins): Context<H>, request: Request) -> Response {
    let oauth = &logins.oauth;
    if !is_own_page(request.headers(), &oauth.settings().public_url) {
        let description = "only the gateway's own page may send this; log in again from your client";
        let error = OAuthError::request(description);
        return pages::refused(&error);
    }
    let headers = request.headers().clone();
    let form = match requests::form(request).await {
        Ok(form) => form,
        Err(error) => return pages::refused(&error),
    };
    match oauth.decide(&form, browser::cookie(oauth, &headers)).await {
        Ok(location) => redirect(StatusCode::SEE_OTHER, &location),
        Err(refusal) => refuse(refusal),
    }
}

/// Browsers say from where a form is sent. Those that say nothing still need the cookie and the ticket.
fn is_own_page(headers: &HeaderMap, public_url: &Url) -> bool {
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes);
    let own = public_url.origin().ascii_serialization();
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    origin.is_none_or(|origin| origin == own.as_bytes()) && site.is_none_or(|site| site == b"same-origin")
}

async fn token<H>(State(logins): Context<H>, request: Request) -> Response {
    let Logins { oauth, edge } = &*logins;
    let sender = Sender::of(edge, &request);
    if let Err(refusal) = sender.admit(edge, AddressLimit::Tokens) {
        return too_many(&refusal, problem);
    }
    let issued = match requests::form(request).await {
        Ok(form) => oauth.token(&form).await,
        Err(error) => Err(error),
    };
    match issued {
        Ok(tokens) => {
            if let Some(login) = tokens.login() {
                record_login(&*edge.access.audit, sender.origin(), &login.principal, &login.tenant);
            }
            no_store(Json(tokens).into_response())
        }
        Err(error) => {
            if let ErrorCode::InvalidGrant | ErrorCode::InvalidClient = error.code {
                record_failed_login(&*edge.access.audit, sender.origin(), error.code.as_str());
                if let Err(refusal) = sender.admit(edge, AddressLimit::FailedLogins) {
                    return too_many(&refusal, problem);
                }
            }
            problem(&error)
        }
    }
}

async fn register<H>(State(logins): Context<H>, request: Request) -> Response {
    let Logins { oauth, edge } = &*logins;
    let sender = Sender::of(edge, &request);
    if let Err(refusal) = sender.admit(edge, AddressLimit::Registrations) {
        return too_many(&refusal, problem);
    }
    let registered = match requests::body(request).await {
        Ok(body) => oauth.register(&body).await.map_err(OAuthError::from),
        Err(error) => Err(error),
    };
    match registered {
        Ok(client) => no_store((StatusCode::CREATED, Json(client)).into_response()),
        Err(error) => problem(&error),
    }
}

async fn revoke<H>(State(logins): Context<H>, request: Request) -> Response {
    let Logins { oauth, edge } = &*logins;
    let sender = Sender::of(edge, &request);
    if let Err(refusal) = sender.admit(edge, AddressLimit::Tokens) {
        return too_many(&refusal, problem);
    }
    let revoked = match requests::form(request).await {
        Ok(form) => oauth.revoke(&form).await,
        Err(error) => Err(error),
    };
    match revoked {
        Ok(()) => no_store(StatusCode::OK.into_response()),
        Err(error) => problem(&error),
    }
}

/// A browser that gets no further: it shows why, or goes to the client with it.
fn refuse(refusal: LoginRefusal) -> Response {
    match refusal {
        LoginRefusal::Shown(error) => pages::refused(&error),
        LoginRefusal::Told(location) => redirect(StatusCode::SEE_OTHER, &location),
    }
}

/// Refuses requests that come too often, in the form that the caller expects.
fn too_many(refusal: &Refusal, told: fn(&OAuthError) -> Response) -> Response {
    let mut response = told(&OAuthError {
        code: ErrorCode::TemporarilyUnavailable,
        description: refusal.to_string(),
    });
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    refusal.describe(response.headers_mut());
    response
}

fn redirect(status: StatusCode, location: &Url) -> Response {
    match HeaderValue::try_from(location.as_str()) {
        Ok(location) => {
            let headers = [
                (LOCATION, location),
                (CACHE_CONTROL, HeaderValue::from_static("no-store")),
                (http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            ];
            (status, headers).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The status of an error.
fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::AccessDenied
        | ErrorCode::ConsentRequired
        | ErrorCode::InvalidClientMetadata
        | ErrorCode::InvalidGrant
        | ErrorCode::InvalidRedirectUri
        | ErrorCode::InvalidRequest
        | ErrorCode::InvalidScope
        | ErrorCode::InvalidTarget
        | ErrorCode::UnsupportedGrantType
        | ErrorCode::UnsupportedResponseType => StatusCode::BAD_REQUEST,
        ErrorCode::InvalidClient => StatusCode::UNAUTHORIZED,
        ErrorCode::ServerError => StatusCode::INTERNAL_SERVER_ERROR,
        ErrorCode::TemporarilyUnavailable => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// An error as clients read it.
fn problem(error: &OAuthError) -> Response {
    let body = json!({ "error": error.code.as_str(), "error_description": error.description });
    no_store((status(error.code), Json(body)).into_response())
}

/// Keeps secrets out of caches.
fn no_store(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if response.status() == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
