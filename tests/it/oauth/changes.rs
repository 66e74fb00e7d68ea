//! People of whom the provider says something else than when they logged in: their grants follow at the next refresh.

use serde_json::{Value, json};

use super::{ALL, Stage};
use crate::support::{Agent, Era, eventually};

async fn allow(stage: &Stage, tenant: &str, permissions: &[&str]) {
    let claims = json!({ "tenant": tenant, "permissions": permissions });
    stage.provider.account("ana", claims).await;
}

/// A provider that gives refresh tokens, and one whose userinfo has to be asked.
async fn stages() -> [Stage; 2] {
    [Stage::new().await, Stage::without_refresh_tokens().await]
}

fn refused(status: u16, answer: &Value) {
    assert_eq!(
        (status, answer["error"].as_str()),
        (400, Some("invalid_grant")),
        "{answer}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_less_at_the_provider_may_less_after_the_next_refresh() {
    for stage in stages().await {
        let (client, first) = stage.tokens("ana").await;
        allow(&stage, "research", &["jupyter:read"]).await;
        let (status, second) = stage.refresh(&client, &first).await;
        assert_eq!(status, 200, "{second}");
        assert_eq!(second["scope"], "jupyter:read");
        for tokens in [&first, &second] {
            let token = tokens["access_token"].as_str().expect("a token");
            let agent = Agent::connect_to(&stage.url("/mcp"), token, Era::Modern).await;
            let call = json!({ "name": "run_code", "arguments": { "code": "1" } });
            eventually("nothing can be run", async || {
                // What is gone at the provider is nothing to log in for again.
                let answer = agent.request("tools/call", call.clone()).await;
                (answer["result"]["isError"] == true).then_some(())
            })
            .await;
        }
        allow(&stage, "research", &ALL.split(' ').collect::<Vec<_>>()).await;
        let (status, third) = stage.refresh(&client, &second).await;
        assert_eq!((status.as_u16(), &third["scope"]), (200, &first["scope"]), "{third}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_nothing_any_more_or_is_gone_loses_the_grant() {
    for stage in stages().await {
        for change in ["tenant", "permissions", "account"] {
            allow(&stage, "research", &["jupyter:read"]).await;
            let (client, tokens) = stage.tokens("ana").await;
            match change {
                "tenant" => allow(&stage, "nowhere", &["jupyter:read"]).await,
                "permissions" => allow(&stage, "research", &[]).await,
                _ => stage.provider.remove_account("ana").await,
            }
            let (status, answer) = stage.refresh(&client, &tokens).await;
            refused(status.as_u16(), &answer);
            eventually("the token is revoked", async || {
                (!stage.is_known(&tokens).await).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_away_ends_nothing() {
    for mut stage in stages().await {
        let (client, tokens) = stage.tokens("ana").await;
        stage.provider.stop().await;
        let (status, answer) = stage.refresh(&client, &tokens).await;
        assert_eq!(
            (status.as_u16(), answer["error"].as_str()),
            (503, Some("temporarily_unavailable")),
            "{answer}"
        );
        assert!(stage.is_known(&tokens).await);
    }
}
