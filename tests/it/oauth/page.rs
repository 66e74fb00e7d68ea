//! People who log in at the provider to see the page of the gateway.

use std::time::{Duration, Instant};

use regex::Regex;
use reqwest::StatusCode;
use serde_json::json;

use super::{Browser, Stage};
use crate::support::eventually;

/// The page as a browser sees it; whether somebody is logged in there.
async fn console(stage: &Stage, browser: &Browser) -> (bool, String) {
    let shown = browser.open(&stage.url("/console")).await.shown();
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.html);
    (shown.html.contains("console/logout"), shown.html)
}

async fn logged_in(stage: &Stage, account: &str) -> Browser {
    let browser = Browser::new();
    let shown = browser.log_in(&stage.url("/oauth/login"), account).await.shown();
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.html);
    assert_eq!(shown.url.path(), "/oauth/callback");
    let cookie = shown.headers["set-cookie"].to_str().expect("text");
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    // A redirect from another site would not have the cookie sent.
    assert!(shown.html.contains("url=../console"), "{}", shown.html);
    assert!(console(stage, &browser).await.0);
    browser
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_to_the_page_and_out() {
    let stage = Stage::new().await;
    let stranger = Browser::new();
    let (is_logged_in, front) = console(&stage, &stranger).await;
    assert!(!is_logged_in);
    assert!(
        front.contains("href=\"oauth/login\"") && front.contains("Log in with 127.0.0.1"),
        "{front}"
    );

    let (ana, ben) = (logged_in(&stage, "ana").await, logged_in(&stage, "ben").await);
    stage
        .audited("allow", &format!("{}|ana", stage.provider.issuer()))
        .await;
    let (_, anas) = console(&stage, &ana).await;
    let (_, bens) = console(&stage, &ben).await;
    assert!(anas.contains("ana") && bens.contains("ben") && !bens.contains(">ana<"));
    assert!(!console(&stage, &stranger).await.0);

    let csrf = Regex::new("name=\"csrf\" value=\"([^\"]+)\"").expect("a pattern");
    let csrf = csrf.captures(&anas).expect("a form")[1].to_owned();
    let logout = url::Url::parse(&stage.url("/console/logout")).expect("a URL");
    let forged = ben
        .post(&logout, &[("csrf".to_owned(), csrf.clone())], None)
        .await
        .shown();
    assert_eq!(forged.status, StatusCode::FORBIDDEN);
    assert!(console(&stage, &ben).await.0);
    ana.post(&logout, &[("csrf".to_owned(), csrf)], None).await.shown();
    assert!(!console(&stage, &ana).await.0);
    assert!(console(&stage, &ben).await.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_logged_in_by_somebody_else() {
    let stage = Stage::new().await;
    let (mallory, ana) = (Browser::new(), Browser::new());
    // Mallory's own login, finished in ana's browser, would have her work as mallory.
    let to_provider = mallory.first_redirect(&stage.url("/oauth/login")).await;
    let shown = ana.log_in(&to_provider, "ben").await.shown();
    assert!(shown.html.contains("another browser"), "{}", shown.html);
    assert!(!console(&stage, &ana).await.0);
    for (site, is_let) in [
        ("cross-site", false),
        ("same-site", false),
        ("same-origin", true),
        ("none", true),
    ] {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        let request = http.build().expect("a client").get(stage.url("/oauth/login"));
        let answer = request.header("sec-fetch-site", site).send().await.expect("an answer");
        assert_eq!(answer.status().is_redirection(), is_let, "{site}");
    }
    // Whoever may do nothing here is told so, and gets no session.
    stage
        .provider
        .account("dan", json!({ "tenant": "nowhere", "permissions": [] }))
        .await;
    let dan = Browser::new();
    let shown = dan.log_in(&stage.url("/oauth/login"), "dan").await.shown();
    assert!(
        shown.status.is_client_error() && shown.html.contains("no tenant"),
        "{}",
        shown.html
    );
    assert!(!console(&stage, &dan).await.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_for_as_long_as_the_provider_knows_the_person() {
    let lifetime = Duration::from_secs(3);
    let stage = Stage::with("access_ttl = \"3s\"").await;
    let (ana, ben) = (logged_in(&stage, "ana").await, logged_in(&stage, "ben").await);
    let began = Instant::now();
    eventually("its tokens are renewed", async || {
        assert!(console(&stage, &ana).await.0);
        (began.elapsed() > lifetime * 2).then_some(())
    })
    .await;
    stage.provider.remove_account("ana").await;
    eventually("her session ends", async || {
        (!console(&stage, &ana).await.0).then_some(())
    })
    .await;
    // Also that of somebody who did nothing meanwhile.
    assert!(console(&stage, &ben).await.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_page_there_is_nothing_to_log_in_to() {
    let stage = Stage::with("[console]\nenabled = false").await;
    assert_eq!(stage.get("/oauth/login").await.status(), 404);
}
