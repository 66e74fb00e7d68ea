//! Codes: good for one client, once.

use reqwest::StatusCode;
use serde_json::Value;

use super::{CALLBACK, Client, Stage};
use crate::support::eventually;

async fn refused(answer: (StatusCode, Value), error: &str) {
    let (status, answer) = answer;
    assert_eq!(answer["error"], error, "{answer}");
    assert_eq!(status, if error == "invalid_client" { 401 } else { 400 });
    assert!(answer["error_description"].is_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_used_twice_takes_back_what_it_gave() {
    let stage = Stage::new().await;
    let client = stage.client().await;
    let code = stage.code(&client, "ana").await;
    let (_, tokens) = stage.redeem(&client, &code).await;
    assert!(stage.is_known(&tokens).await);
    refused(stage.redeem(&client, &code).await, "invalid_grant").await;
    eventually("the token is revoked", async || {
        (!stage.is_known(&tokens).await).then_some(())
    })
    .await;
    refused(stage.refresh(&client, &tokens).await, "invalid_grant").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_good_for_nobody_but_its_client() {
    let stage = Stage::new().await;
    let (client, other) = (stage.client().await, stage.client().await);
    let thieves: [&dyn Fn() -> Client; 2] = [
        &|| Client {
            verifier: "x".repeat(43),
            ..client.clone()
        },
        &|| Client {
            id: other.id.clone(),
            ..client.clone()
        },
    ];
    for thief in thieves {
        let code = stage.code(&client, "ana").await;
        refused(stage.redeem(&thief(), &code).await, "invalid_grant").await;
        // It was seen by somebody else.
        refused(stage.redeem(&client, &code).await, "invalid_grant").await;
    }
    for (changed, value, error) in [
        ("redirect_uri", "http://127.0.0.1:10/callback", "invalid_grant"),
        ("redirect_uri", "", "invalid_request"),
        ("code_verifier", "", "invalid_request"),
        ("client_id", "", "invalid_request"),
        ("resource", "https://other.example/mcp", "invalid_target"),
        ("grant_type", "password", "unsupported_grant_type"),
    ] {
        let code = stage.code(&client, "ana").await;
        let resource = stage.url("/mcp");
        let form = [
            ("grant_type", "authorization_code"),
            ("client_id", client.id.as_str()),
            ("code", code.as_str()),
            ("redirect_uri", CALLBACK),
            ("code_verifier", client.verifier.as_str()),
            ("resource", resource.as_str()),
        ];
        let form = form.map(|(name, usual)| (name, if name == changed { value } else { usual }));
        refused(stage.post("/oauth/token", &form).await, error).await;
    }
    refused(stage.redeem(&client, "invented").await, "invalid_grant").await;
    let code = stage.code(&client, "ana").await;
    let twice = [
        ("grant_type", "authorization_code"),
        ("code", code.as_str()),
        ("code", "other"),
    ];
    refused(stage.post("/oauth/token", &twice).await, "invalid_request").await;
}
