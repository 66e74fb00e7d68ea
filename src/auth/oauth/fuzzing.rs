//! What strangers send in a login, as far as it means something without the store.

use super::{Browser, clients, decision, parameters::Parameters, pkce, redirect_uri, scopes, tokens};

/// A query or a form: of a request, a decision or the token endpoint.
pub(crate) fn parameters(text: &str) {
    decision::fuzz(text);
    let _ = Browser::of(Some(text));
    let Ok(parameters) = Parameters::parse(text) else {
        return;
    };
    let given = |name: &str| parameters.get(name);
    let _ = scopes::requested(given("scope"));
    tokens::fuzz(given("refresh_token").unwrap_or(text), given("scope"));
    if let (Some(challenge), Some(verifier)) = (given("code_challenge"), given("code_verifier")) {
        let _ = pkce::is_challenge(challenge) && pkce::is_verified(verifier, challenge);
    }
    let Some(uri) = given("redirect_uri") else { return };
    if redirect_uri::check(uri).is_ok() {
        assert!(redirect_uri::is_match(uri, uri) && !redirect_uri::shown_host(uri).is_empty());
    }
    for registered in ["http://127.0.0.1/cb", "https://app.example.org/cb"] {
        // Whoever is answered is the one who registered.
        if redirect_uri::is_match(registered, uri) {
            assert!(uri == registered || uri.starts_with("http://"), "{uri}");
            assert!(redirect_uri::shown_host(uri).starts_with(&redirect_uri::shown_host(registered)));
        }
    }
}

/// The body of a registration, or a document about a client.
pub(crate) fn client(body: &[u8]) {
    clients::fuzz(body);
}
