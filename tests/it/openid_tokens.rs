//! Tokens that are wrong in one way each, and what is said of them. They are signed here with the secret for development,
//! since no provider can be had to make them.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Value, json};

use crate::support::{
    Gateway, TOKEN,
    gateway::{everything, lab_server},
    wire::{Answer, initialize, post_without_token, send},
};

const ISSUER: &str = "http://127.0.0.1:9/nobody";
const AUDIENCE: &str = "https://mcp.example.org/mcp";
const SECRET: &str = "a secret for development, and long";

fn now() -> i64 {
    let passed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock");
    i64::try_from(passed.as_secs()).expect("a time")
}

fn token(algorithm: &str, changes: &Value) -> String {
    let mut claims = json!({
        "iss": ISSUER, "aud": AUDIENCE, "sub": "ana", "exp": now() + 300, "tenant": "all", "scope": "openid jupyter:read",
    });
    for (name, value) in changes.as_object().expect("an object") {
        claims[name] = value.clone();
    }
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encoded(&json!({ "alg": algorithm })), encoded(&claims));
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()));
    format!("{message}.{signature}")
}

async fn gateway(jwt: &str) -> Gateway {
    let jwt = format!("[auth.jwt]\nissuer = \"{ISSUER}\"\naudience = \"{AUDIENCE}\"\n{jwt}\n");
    Gateway::configured(&format!("{}{}{jwt}", lab_server("lab"), everything())).await
}

async fn knock(gateway: &Gateway, token: &str) -> Answer {
    send(post_without_token(gateway, initialize()).bearer_auth(token)).await
}

#[tokio::test]
async fn what_is_wrong_with_a_token_is_told_by_kind() {
    let gateway = gateway(&format!("secret = \"{SECRET}\"")).await;
    assert_eq!(knock(&gateway, &token("HS256", &json!({}))).await.status, 200);
    let late = token("HS256", &json!({ "exp": now() - 30, "nbf": now() + 30 }));
    assert_eq!(knock(&gateway, &late).await.status, 200, "clocks differ");
    let oversized = token("HS256", &json!({ "groups": "x".repeat(13_000) }));
    for (token, words) in [
        (token("HS256", &json!({ "exp": now() - 90 })), "it has expired"),
        (token("HS256", &json!({ "nbf": now() + 90 })), "it is not valid yet"),
        (
            token("HS256", &json!({ "aud": "other" })),
            "it was issued for another audience",
        ),
        (
            token("HS256", &json!({ "iss": "other" })),
            "it was issued by somebody else",
        ),
        (
            token("HS256", &json!({ "exp": null })),
            "it has no time of expiry (exp)",
        ),
        (token("HS512", &json!({})), "its signature is wrong"),
        (token("none", &json!({})), "it is not signed"),
        (
            token("XS256", &json!({})),
            "it is signed with an algorithm that is not accepted",
        ),
        ("ey.ey.ey".to_owned(), "it is not a well-formed JSON Web Token"),
        (oversized, "it is too large"),
    ] {
        let refused = knock(&gateway, &token).await;
        assert_eq!(refused.status, 401, "{words}");
        assert!(refused.header("www-authenticate").contains("error=\"invalid_token\""));
        let message = format!("the bearer token is not accepted: {words}; get a new one");
        assert_eq!(refused.json()["error"]["message"], message.as_str());
    }
    // Another method is not asked in the place of one that refuses, nor kept from being asked by it.
    assert_eq!(knock(&gateway, TOKEN).await.status, 200);
}

#[tokio::test]
async fn without_a_secret_of_the_config_nothing_is_signed_with_one() {
    let gateway = gateway("").await;
    let refused = knock(&gateway, &token("HS256", &json!({}))).await;
    assert_eq!(refused.status, 401);
    assert!(
        refused.text.contains("an algorithm that is not accepted"),
        "{}",
        refused.text
    );
    // Whether the provider has such a key cannot be told while it is away.
    assert_eq!(knock(&gateway, &token("RS256", &json!({}))).await.status, 503);
}

#[tokio::test]
async fn a_request_has_one_authorization() {
    let gateway = Gateway::start().await;
    for second in [TOKEN, "other"] {
        let request = post_without_token(&gateway, initialize())
            .bearer_auth(TOKEN)
            .bearer_auth(second);
        let refused = send(request).await;
        assert_eq!(refused.status, 401);
        assert!(
            refused.text.contains("more than one `Authorization` header"),
            "{}",
            refused.text
        );
    }
}
