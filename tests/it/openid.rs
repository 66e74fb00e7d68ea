//! Tokens of a real OpenID provider: who they make of their bearers, keys that change, and a provider that is away.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{
    Agent, Era, Gateway, Watcher,
    agent::ERAS,
    eventually,
    gateway::lab_server,
    provider::{Provider, ProviderClient},
    wire::{Answer, get, initialize, post_without_token, send},
};

const AUDIENCE: &str = "https://mcp.example.org/mcp";
const REDIRECT: &str = "https://client.example.org/callback";

struct Stage {
    provider: Provider,
    client: ProviderClient,
    gateway: Gateway,
}

impl Stage {
    async fn new() -> Self {
        let provider = Provider::start().await;
        let client = provider.register(REDIRECT).await;
        provider
            .token_claims(json!({ "tenant": "research", "preferred_username": "Ana" }))
            .await;
        let jwt = format!(
            "[auth.jwt]\nissuer = \"{}\"\naudience = \"{AUDIENCE}\"\n",
            provider.issuer()
        );
        let tenants = "[[tenants]]\nname = \"research\"\n[[tenants]]\nname = \"other\"\npaths = [\"nothing/**\"]\n";
        let gateway = Gateway::configured(&format!("{}{tenants}{jwt}", lab_server("lab"))).await;
        Self {
            provider,
            client,
            gateway,
        }
    }

    async fn token(&self, scope: &str) -> String {
        self.provider.token(&self.client, AUDIENCE, scope).await
    }

    async fn knock(&self, token: &str) -> Answer {
        send(post_without_token(&self.gateway, initialize()).bearer_auth(token)).await
    }
}

fn message(answer: &Answer) -> String {
    let body = answer.json();
    let message = body["error"]["message"].as_str().or_else(|| body["message"].as_str());
    message.unwrap_or_else(|| panic!("{body}")).to_owned()
}

#[tokio::test]
async fn a_token_says_whose_it_is_and_what_it_may_do() {
    let stage = Stage::new().await;
    let token = stage.token("jupyter:read jupyter:write").await;
    for era in ERAS {
        let agent = Agent::with_token(&stage.gateway, &token, era).await;
        let servers = agent.call("list_servers", json!({})).await.ok();
        assert_eq!(servers["servers"][0]["name"], "lab", "{servers}");
        // Its client can get a token that may do more, and is told so in the way by which it does.
        let call = json!({ "name": "run_code", "arguments": { "code": "1" } });
        let refused = agent.start(77, "tools/call", call).await;
        assert_eq!(refused.status(), 403);
        let challenge = refused.headers()["www-authenticate"].to_str().expect("text").to_owned();
        for told in [
            "error=\"insufficient_scope\"",
            "scope=\"jupyter:read jupyter:write jupyter:execute\"",
            "resource_metadata=\"http",
        ] {
            assert!(challenge.contains(told), "{challenge}");
        }
        let body: Value = refused.json().await.expect("JSON");
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(77)));
        assert!(
            body["error"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("`execute`")),
            "{body}"
        );
        // On a connection that only reads it would not help.
        let reading = Agent::connect_to(&stage.gateway.url("/mcp?readonly=true"), &token, era).await;
        let refused = reading.call("run_code", json!({ "code": "1" })).await.error();
        assert!(refused.contains("read-only"), "{refused}");
    }
    // The tenant is a claim: what another one may see is something else.
    stage
        .provider
        .token_claims(json!({ "tenant": ["staff", "other"] }))
        .await;
    let token = stage.token("jupyter:read").await;
    let agent = Agent::with_token(&stage.gateway, &token, Era::Modern).await;
    let listed = agent.call("list_documents", json!({})).await.ok();
    assert_eq!(listed["documents"].as_array().map(Vec::len), Some(0), "{listed}");
}

#[tokio::test]
async fn whoever_may_do_nothing_is_told_why() {
    let stage = Stage::new().await;
    let none = stage.knock(&stage.token("").await).await;
    assert_eq!(none.status, 403);
    let challenge = none.header("www-authenticate");
    assert!(
        challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\"jupyter:read\""),
        "{challenge}"
    );
    assert!(message(&none).contains("jupyter:read"));
    for (claims, words) in [
        (json!({ "tenant": "nobody" }), "no tenant of the name"),
        (json!({}), "does not say which tenant"),
    ] {
        stage.provider.token_claims(claims).await;
        let refused = stage.knock(&stage.token("jupyter:read").await).await;
        assert_eq!(refused.status, 403);
        assert!(message(&refused).contains(words), "{}", message(&refused));
    }
    let foreign = stage
        .provider
        .token(&stage.client, "https://other.example.org", "jupyter:read");
    let foreign = stage.knock(&foreign.await).await;
    assert_eq!(foreign.status, 401);
    assert!(message(&foreign).contains("another audience"), "{}", message(&foreign));
}

#[tokio::test]
async fn clients_are_told_where_to_log_in() {
    let stage = Stage::new().await;
    let refused = send(post_without_token(&stage.gateway, initialize())).await;
    assert_eq!(refused.status, 401);
    let metadata = stage.gateway.url("/.well-known/oauth-protected-resource/mcp");
    let challenge = refused.header("www-authenticate");
    assert!(
        challenge.contains(&format!("resource_metadata=\"{metadata}\"")),
        "{challenge}"
    );
    for path in ["", "/mcp"] {
        let document = get(&stage.gateway, &format!("/.well-known/oauth-protected-resource{path}"))
            .await
            .json();
        assert_eq!(document["authorization_servers"], json!([stage.provider.issuer()]));
        assert_eq!(document["resource"], stage.gateway.url("/mcp"));
        assert!(
            document["scopes_supported"]
                .as_array()
                .is_some_and(|scopes| scopes.len() == 4)
        );
    }
}

#[tokio::test]
async fn keys_change_and_outlive_an_outage() {
    let mut stage = Stage::new().await;
    let (known, unseen) = (
        stage.token("jupyter:read").await,
        stage.token("jupyter:read jupyter:write").await,
    );
    assert_eq!(stage.knock(&known).await.status, 200);
    stage.provider.stop().await;
    assert_eq!(stage.knock(&known).await.status, 200);
    assert_eq!(stage.knock(&unseen).await.status, 200, "its key is known");
    // The header of a token names a key that might be a new one.
    let invented = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im5ldyJ9.e30.AAAA";
    let unknown = stage.knock(invented).await;
    assert_eq!(unknown.status, 503, "{}", unknown.text);
    assert!(!unknown.header("retry-after").is_empty());
    stage.provider.restart().await;
    stage.client = stage.provider.register(REDIRECT).await;
    stage.provider.token_claims(json!({ "tenant": "research" })).await;
    let new = stage.token("jupyter:read").await;
    eventually("tokens with the new key are accepted", async || {
        (stage.knock(&new).await.status == 200).then_some(())
    })
    .await;
    let unknown = stage.knock(invented).await;
    assert_eq!(unknown.status, 401);
    assert!(message(&unknown).contains("unknown key"), "{}", message(&unknown));
}

#[tokio::test]
async fn who_expires_is_cut_off_and_goes_on_with_another_token() {
    let stage = Stage::new().await;
    let renewed = stage.token("jupyter:read").await;
    stage.provider.lifetime(10).await;
    for era in ERAS {
        let short = stage.token("jupyter:read").await;
        let agent = Agent::with_token(&stage.gateway, &short, era).await;
        let stream = Watcher::start(&agent, era, &[]).await;
        // Where a slow machine is late, the stream ends with the time by which clocks may differ.
        let ended = timeout(Duration::from_secs(100), stream.ended()).await;
        assert!(ended.is_ok(), "the stream of an expired token goes on");
        let refused = stage.knock(&short).await;
        assert_eq!(refused.status, 401, "nor does it come back");
        assert!(message(&refused).contains("has expired"), "{}", message(&refused));
        let Some(session) = agent.session.as_deref() else {
            continue;
        };
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" }).to_string();
        let request = post_without_token(&stage.gateway, body).bearer_auth(&renewed);
        assert_eq!(
            send(request.header("mcp-session-id", session)).await.status,
            200,
            "it is the principal's"
        );
    }
}
