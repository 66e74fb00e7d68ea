//! Tokens: refreshed, used twice, revoked, and kept over a restart.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::timeout;

use super::Stage;
use crate::support::{
    Agent, Era, Watcher,
    agent::ERAS,
    eventually,
    wire::{LEGACY_VERSION, post_without_token, send},
};

/// Time within which streams must have ended.
const CUT_OFF_TIMEOUT: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_that_is_used_twice_ends_the_grant() {
    let stage = Stage::new().await;
    let (client, first) = stage.tokens("ana").await;
    let (_, others) = stage.tokens("ana").await;
    let (status, second) = stage.refresh(&client, &first).await;
    assert_eq!(status, 200, "{second}");
    assert_eq!(second["scope"], first["scope"]);
    assert!(stage.is_known(&first).await && stage.is_known(&second).await);
    let stranger = stage.client().await;
    assert_eq!(stage.refresh(&stranger, &second).await.0, 400);

    let (status, answer) = stage.refresh(&client, &first).await;
    assert_eq!(
        (status.as_u16(), answer["error"].as_str()),
        (400, Some("invalid_grant"))
    );
    assert_eq!(
        stage.refresh(&client, &second).await.0,
        400,
        "nor is the newer one good"
    );
    for tokens in [&first, &second] {
        eventually("the token is revoked", async || {
            (!stage.is_known(tokens).await).then_some(())
        })
        .await;
    }
    assert!(stage.is_known(&others).await, "what was granted to others stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_token_loses_its_streams() {
    let stage = Stage::new().await;
    for (era, revoked) in ERAS.into_iter().zip(["access_token", "refresh_token"]) {
        let (client, tokens) = stage.tokens("ana").await;
        let token = tokens["access_token"].as_str().expect("a token");
        let agent = Agent::connect_to(&stage.url("/mcp"), token, era).await;
        let stream = Watcher::start(&agent, era, &[]).await;
        let stranger = stage.client().await;
        for (who, status) in [(&stranger, 401), (&client, 200)] {
            let form = [
                ("token", tokens[revoked].as_str().expect("a token")),
                ("client_id", &who.id),
            ];
            assert_eq!(stage.post("/oauth/revoke", &form).await.0, status);
        }
        timeout(CUT_OFF_TIMEOUT, stream.ended()).await.expect("the stream ends");
        assert_eq!(stage.status_of(&tokens).await, 401);
        assert_eq!(stage.refresh(&client, &tokens).await.0, 400);
    }
    assert_eq!(stage.post("/oauth/revoke", &[("token", "invented")]).await.0, 200);
    assert_eq!(stage.post("/oauth/revoke", &[]).await.0, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_what_was_granted() {
    let stage = Stage::new().await;
    let (client, tokens) = stage.tokens("ana").await;
    let stage = stage.restarted().await;
    let token = tokens["access_token"].as_str().expect("a token");
    let agent = Agent::connect_to(&stage.url("/mcp"), token, Era::Modern).await;
    agent.call("list_servers", json!({})).await.ok();
    let (status, tokens) = stage.refresh(&client, &tokens).await;
    assert_eq!(status, 200, "{tokens}");
    assert!(stage.is_known(&tokens).await);
    assert!(
        !stage.code(&client, "ben").await.is_empty(),
        "the client is still registered"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_no_longer_log_in_is_not_refreshed() {
    let stage = Stage::new().await;
    let (client, tokens) = stage.tokens("ana").await;
    let (status, tokens) = stage.refresh(&client, &tokens).await;
    assert_eq!(status, 200, "{tokens}");
    stage.provider.remove_account("ana").await;
    let (status, answer) = stage.refresh(&client, &tokens).await;
    assert_eq!(
        (status.as_u16(), answer["error"].as_str()),
        (400, Some("invalid_grant")),
        "{answer}"
    );
    eventually("the token is revoked", async || {
        (!stage.is_known(&tokens).await).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_ends_with_all_that_it_has_open_when_its_time_is_over() {
    let lifetime = Duration::from_secs(6);
    let stage = Stage::with("access_ttl = \"6s\"").await;
    for era in ERAS {
        let (client, tokens) = stage.tokens("ana").await;
        let token = tokens["access_token"].as_str().expect("a token");
        let agent = Arc::new(Agent::connect_to(&stage.url("/mcp"), token, era).await);
        let stream = Watcher::start(&agent, era, &[]).await;
        let call = json!({ "name": "run_code", "arguments": { "code": "import time; time.sleep(60)", "timeout": 50 } });
        let waiting = tokio::spawn({
            let agent = Arc::clone(&agent);
            async move {
                let answer = agent.start(4000, "tools/call", call).await;
                (answer.status().as_u16(), answer.text().await.unwrap_or_default())
            }
        });
        timeout(lifetime + CUT_OFF_TIMEOUT, stream.ended())
            .await
            .expect("the stream ends");
        let waited = timeout(CUT_OFF_TIMEOUT, waiting).await.expect("the wait ends");
        let (status, text) = waited.expect("no panic");
        assert!(status == 401 || status == 200, "{era:?}: {status} {text}");
        assert!(!text.contains("execution_id"), "{era:?}: {text}");
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        assert_eq!(agent.send(list.clone()).await.status(), 401);

        // With the next one a session goes on.
        let (status, tokens) = stage.refresh(&client, &tokens).await;
        assert_eq!((status.as_u16(), tokens["expires_in"].as_u64()), (200, Some(6)));
        let renewed = tokens["access_token"].as_str().expect("a token");
        if let Some(session) = &agent.session {
            let request = post_without_token(&stage.gateway, list.to_string()).bearer_auth(renewed);
            let request = request.header("mcp-session-id", session);
            let answer = send(request.header("mcp-protocol-version", LEGACY_VERSION)).await;
            // Unless nobody came in time.
            assert!([200, 404].contains(&answer.status.as_u16()), "{}", answer.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_with_a_token_that_comes_in_time() {
    let stage = Stage::with("access_ttl = \"6s\"").await;
    let (client, first) = stage.tokens("ana").await;
    let token = first["access_token"].as_str().expect("a token");
    let agent = Agent::connect_to(&stage.url("/mcp"), token, Era::Legacy).await;
    let (status, second) = stage.refresh(&client, &first).await;
    assert_eq!(status, 200, "{second}");
    let list = async |tokens: &Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        let token = tokens["access_token"].as_str().expect("a token");
        let request = post_without_token(&stage.gateway, body).bearer_auth(token);
        let request = request.header("mcp-session-id", agent.session.as_deref().expect("a session"));
        send(request.header("mcp-protocol-version", LEGACY_VERSION))
            .await
            .status
    };
    assert_eq!(list(&second).await, 200);
    eventually("the first has expired", async || {
        (list(&first).await == 401).then_some(())
    })
    .await;
    let (status, third) = stage.refresh(&client, &second).await;
    assert_eq!(status, 200, "{third}");
    assert_eq!(list(&third).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_people_do_not_see_each_other() {
    let stage = Stage::new().await;
    let [(_, anas), (_, bens)] = [stage.tokens("ana").await, stage.tokens("ben").await];
    let agent = async |tokens: &Value| {
        let token = tokens["access_token"].as_str().expect("a token").to_owned();
        Agent::connect_to(&stage.url("/mcp"), &token, Era::Legacy).await
    };
    let (ana, ben) = (agent(&anas).await, agent(&bens).await);
    let ran = ana.call("run_code", json!({ "code": "print(1)" })).await.ok();
    let id = &ran["execution_id"];
    let told = ben.call("get_execution", json!({ "execution_id": id })).await.error();
    assert!(told.contains("no execution") || told.contains("not"), "{told}");
    // Another login of the same person is the same person.
    let (_, again) = stage.tokens("ana").await;
    agent(&again)
        .await
        .call("get_execution", json!({ "execution_id": id }))
        .await
        .ok();
}
