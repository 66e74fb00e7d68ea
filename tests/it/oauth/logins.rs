//! The way of a person: to the provider, to the page on which they decide, and back to the client.

use serde_json::{Value, json};

use super::{Browser, CALLBACK, Page, Stage};
use crate::support::{Agent, Era, agent::ERAS};

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_and_an_agent_works_for_them() {
    let stage = Stage::new().await;
    let refused = stage.challenge().await;
    assert!(refused.contains("/.well-known/oauth-protected-resource"), "{refused}");
    let base = stage.url("");
    for path in ["", "/mcp"] {
        let resource = stage
            .document(&format!("/.well-known/oauth-protected-resource{path}"))
            .await;
        assert_eq!(resource["resource"], format!("{base}/mcp"));
        assert_eq!(resource["authorization_servers"], json!([base]));
        let server = stage
            .document(&format!("/.well-known/oauth-authorization-server{path}"))
            .await;
        assert_eq!(server["issuer"], Value::from(base.clone()));
        assert_eq!(server["code_challenge_methods_supported"], json!(["S256"]));
    }

    let client = stage.client().await;
    let browser = Browser::new();
    let consent = browser.log_in(&stage.authorize_url(&client, &[]), "ana").await.shown();
    let header = |name: &str| consent.headers[name].to_str().expect("text").to_owned();
    assert_eq!(header("x-frame-options"), "DENY");
    assert!(header("content-security-policy").contains("frame-ancestors 'none'"));
    assert_eq!(header("cache-control"), "no-store");
    for shown in [
        "&lt;b&gt;Agent&lt;/b&gt;",
        "127.0.0.1:9",
        "<dd>ana</dd>",
        "research",
        "run code",
    ] {
        assert!(consent.html.contains(shown), "{shown}: {}", consent.html);
    }
    // The tenant may not administer, so that nobody is asked to allow it.
    assert!(!consent.html.contains("jupyter:admin"));

    let answer = browser.submit(&consent, &[("decision", "allow")]).await.answer();
    assert_eq!(
        (answer["state"].as_str(), answer["iss"].as_str()),
        ("the client's state", &*base)
    );
    let (status, tokens) = stage.redeem(&client, &answer["code"]).await;
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(tokens["scope"], "jupyter:read jupyter:write jupyter:execute");
    assert_eq!(
        (tokens["token_type"].as_str(), tokens["expires_in"].as_u64()),
        (Some("Bearer"), Some(3600))
    );
    let token = tokens["access_token"].as_str().expect("a token");
    let ana = format!("{}|ana", stage.provider.issuer());
    stage.audited("allow", &ana).await;
    assert_eq!(stage.redeem(&client, "invented").await.0, 400);
    stage.audited("deny", "").await;
    for era in ERAS {
        let agent = Agent::connect_to(&stage.url("/mcp"), token, era).await;
        let servers = agent.call("list_servers", json!({})).await.ok();
        assert_eq!(servers["servers"][0]["name"], "lab");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_allows_less_or_nothing() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let browser = Browser::new();
    let url = stage.authorize_url(&client, &[]);
    let consent = browser.log_in(&url, "ana").await.shown();
    let fields = consent
        .fields()
        .into_iter()
        .filter(|(_, value)| !value.contains("execute") && !value.contains("write"));
    let mut fields: Vec<_> = fields.collect();
    fields.push(("scope".to_owned(), "jupyter:admin".to_owned()));
    fields.push(("decision".to_owned(), "allow".to_owned()));
    let answer = browser.post(&consent.action(), &fields, None).await.answer();
    let (_, tokens) = stage.redeem(&client, &answer["code"]).await;
    assert_eq!(tokens["scope"], "jupyter:read", "nothing that was not offered");
    let token = tokens["access_token"].as_str().expect("a token");
    let agent = Agent::connect_to(&stage.url("/mcp"), token, Era::Modern).await;
    let call = json!({ "name": "run_code", "arguments": { "code": "1" } });
    let refused = agent.start(7, "tools/call", call).await;
    assert_eq!(refused.status(), 403);
    let challenge = refused.headers()["www-authenticate"].to_str().expect("text");
    assert!(
        challenge.contains("scope=\"jupyter:read jupyter:execute\""),
        "{challenge}"
    );

    let consent = browser.log_in(&url, "ana").await.shown();
    let answer = browser.submit(&consent, &[("decision", "deny")]).await.answer();
    assert_eq!(
        (answer["error"].as_str(), answer["state"].as_str()),
        ("access_denied", "the client's state")
    );
    assert!(!answer.contains_key("code"));

    stage
        .provider
        .account(
            "cleo",
            json!({ "tenant": "elsewhere", "permissions": ["jupyter:read"] }),
        )
        .await;
    stage
        .provider
        .account("dan", json!({ "tenant": "research", "permissions": ["jupyter:admin"] }))
        .await;
    for (account, told) in [("cleo", "no tenant"), ("dan", "none of the permissions")] {
        let answer = Browser::new().log_in(&url, account).await.answer();
        assert_eq!(answer["error"], "access_denied");
        assert!(answer["error_description"].contains(told), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_decides_but_the_person_in_their_browser() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let url = stage.authorize_url(&client, &[]);
    let (ana, mallory) = (Browser::new(), Browser::new());
    mallory.log_in(&url, "ben").await.shown();

    let consent = ana.log_in(&url, "ana").await.shown();
    let mut fields = consent.fields();
    fields.push(("decision".to_owned(), "allow".to_owned()));
    let action = consent.action();
    // A link, a page of somebody else, a frame without an origin, no ticket.
    let query = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(&fields)
        .finish();
    assert_eq!(ana.open(&format!("{action}?{query}")).await.shown().status, 405);
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let shown = ana.post(&action, &fields, Some(origin)).await.shown();
        assert!(shown.status.is_client_error(), "{origin}: {}", shown.html);
    }
    let without: Vec<_> = fields.iter().filter(|(name, _)| name != "ticket").cloned().collect();
    assert_eq!(ana.post(&action, &without, None).await.shown().status, 400);
    // She can still decide: nothing of this was hers.
    let answer = ana.post(&action, &fields, None).await.answer();
    assert!(answer.contains_key("code"));
    // Once.
    assert_eq!(ana.post(&action, &fields, None).await.shown().status, 400);

    let consent = ana.log_in(&url, "ana").await.shown();
    let mut fields = consent.fields();
    fields.push(("decision".to_owned(), "allow".to_owned()));
    let shown = mallory.post(&action, &fields, None).await.shown();
    assert!(shown.html.contains("another browser"), "{}", shown.html);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_was_begun_in_another_browser_does_not_go_on() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    // Mallory logs in, and has ana's browser finish it, so that she works as mallory.
    let mallory = Browser::new();
    let to_provider = mallory.first_redirect(&stage.authorize_url(&client, &[])).await;
    let ana = Browser::new();
    ana.log_in(&stage.authorize_url(&client, &[]), "ana").await.shown();
    let shown = ana.log_in(&to_provider, "ana").await.shown();
    assert!(shown.html.contains("another browser"), "{}", shown.html);
    for query in ["", "?state=x", "?state=x&code=y", "?code=y"] {
        let shown = ana.open(&stage.url(&format!("/oauth/callback{query}"))).await.shown();
        assert_eq!(shown.status, 400, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_cannot_be_meant_goes_nowhere() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let browser = Browser::new();
    // Whoever asks is not known well enough to be answered.
    for other in [
        ("client_id", ""),
        ("client_id", "unknown"),
        ("redirect_uri", ""),
        ("redirect_uri", "http://127.0.0.1:9/other"),
        ("redirect_uri", "http://127.0.0.1:9/callback/../x"),
        ("redirect_uri", "https://evil.example/callback"),
        ("redirect_uri", "http://127.0.0.1:9/callback#x"),
    ] {
        let page = browser.open(&stage.authorize_url(&client, &[other])).await;
        let shown = page.shown();
        assert_eq!(shown.status, 400, "{other:?}");
        assert_eq!(shown.url.path(), "/oauth/authorize", "{other:?}");
    }
    for (other, error) in [
        (("code_challenge", ""), "invalid_request"),
        (("code_challenge", "tooshort"), "invalid_request"),
        (("code_challenge_method", ""), "invalid_request"),
        (("code_challenge_method", "plain"), "invalid_request"),
        (("resource", "https://other.example/mcp"), "invalid_target"),
        (("response_type", "token"), "unsupported_response_type"),
        (("scope", "openid"), "invalid_scope"),
        (("prompt", "none"), "consent_required"),
    ] {
        let answer = browser.open(&stage.authorize_url(&client, &[other])).await.answer();
        assert_eq!(answer["error"], error, "{other:?}");
        assert_eq!(answer["iss"], stage.url(""), "{other:?}");
        assert_eq!(answer["state"], "the client's state");
    }
    // Any port of this machine.
    let other = CALLBACK.replace(":9/", ":41234/");
    let page = browser
        .open(&stage.authorize_url(&client, &[("redirect_uri", &other)]))
        .await;
    assert!(matches!(page, Page::Html(shown) if shown.url.path().starts_with("/interaction/")));

    for (metadata, error) in [
        (json!({ "redirect_uris": [] }), "invalid_redirect_uri"),
        (
            json!({ "redirect_uris": ["javascript:alert(1)"] }),
            "invalid_redirect_uri",
        ),
        (
            json!({ "redirect_uris": ["http://app.example.org/"] }),
            "invalid_redirect_uri",
        ),
        (
            json!({ "redirect_uris": [CALLBACK], "grant_types": ["implicit"] }),
            "invalid_client_metadata",
        ),
        (json!([1]), "invalid_client_metadata"),
        (
            json!({ "redirect_uris": [CALLBACK], "client_name": "x".repeat(40_000) }),
            "invalid_request",
        ),
    ] {
        let (status, answer) = stage.register(&metadata).await;
        assert_eq!(
            (status.as_u16(), answer["error"].as_str()),
            (400, Some(error)),
            "{answer}"
        );
    }
    let mut refused = None;
    for _ in 0..30 {
        let (status, answer) = stage.register(&json!({ "redirect_uris": [CALLBACK] })).await;
        refused = (status != 201).then_some((status, answer));
    }
    let (status, answer) = refused.expect("too many");
    assert!(
        status == 429 && answer["error_description"].to_string().contains("wait"),
        "{answer}"
    );
}
