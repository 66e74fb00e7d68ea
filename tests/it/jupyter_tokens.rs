//! Tokens of the Jupyter servers themselves, where the config accepts them.

use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TOKEN, eventually,
    gateway::{everything, lab_server, server},
    lab,
    own_lab::OwnLab,
    wire::{Answer, initialize, post_without_token, send},
};

async fn knock(gateway: &Gateway, scheme: &str, token: &str) -> Answer {
    send(post_without_token(gateway, initialize()).header("authorization", format!("{scheme} {token}"))).await
}

#[tokio::test]
async fn whoever_a_server_accepts_is_its_user_there_only() {
    let mut own = OwnLab::start(&[]).await;
    own.write("there.txt", "text");
    let servers = format!("{}{}", lab_server("shared"), server("own", &own.url(), own.token()));
    let gateway = Gateway::configured(&format!("{servers}{}[auth.jupyter]\nenabled = true\n", everything())).await;
    for (token, name) in [(own.token(), "own"), (lab().token(), "shared")] {
        let agent = Agent::with_token(&gateway, token, Era::Modern).await;
        let listed = agent.call("list_servers", json!({})).await.ok();
        let names: Vec<_> = listed["servers"]
            .as_array()
            .expect("servers")
            .iter()
            .map(|server| &server["name"])
            .collect();
        assert_eq!(names, [name]);
        let other = if name == "own" { "shared" } else { "own" };
        let refused = agent.call("list_documents", json!({ "server": other })).await.error();
        assert!(refused.contains("unknown server"), "{refused}");
    }
    let agent = Agent::with_token(&gateway, own.token(), Era::Modern).await;
    let ran = agent.call("run_code", json!({ "code": "print(6 * 7)" })).await;
    assert!(!ran.is_error && ran.text().contains("42"), "{ran:?}");
    assert_eq!(
        knock(&gateway, "token", own.token()).await.status,
        200,
        "as Jupyter writes it"
    );
    let wrong = knock(&gateway, "Bearer", "not-a-token-of-anybody").await;
    assert_eq!(wrong.status, 401);
    // Nobody can tell whether a server that is down would accept it; the tokens of the gateway itself go on.
    own.kill();
    eventually("the question cannot be answered", async || {
        let asked = knock(&gateway, "Bearer", "another-token-of-anybody").await;
        (asked.status == 503).then_some(())
    })
    .await;
    assert_eq!(knock(&gateway, "Bearer", TOKEN).await.status, 200);
}

#[tokio::test]
async fn a_server_that_lets_everybody_in_vouches_for_nobody() {
    let own = OwnLab::start(&[
        "--IdentityProvider.token=",
        "--ServerApp.allow_unauthenticated_access=True",
    ])
    .await;
    let servers = server("open", &own.url(), "");
    let gateway = Gateway::configured(&format!("{servers}{}[auth.jupyter]\nenabled = true\n", everything())).await;
    assert_eq!(knock(&gateway, "Bearer", "anything-at-all").await.status, 401);
}
