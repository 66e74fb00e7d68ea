//! MCP sessions: whose they are, how many, how long.

use std::time::Duration;

use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TOKEN, eventually,
    gateway::{everything, lab_server},
    wire::{initialize, post, send},
};

const BOB: &str = "test-token-of-bob";

fn two_people(more: &str) -> String {
    format!(
        "{more}\n{}{}[[auth.tokens]]\nname = \"bob\"\ntenant = \"all\"\ntoken = \"{BOB}\"\n",
        lab_server("lab"),
        everything()
    )
}

#[tokio::test]
async fn somebody_elses_session_does_not_exist() {
    let gateway = Gateway::configured(&two_people("")).await;
    let ana = Agent::with_token(&gateway, TOKEN, Era::Legacy).await;
    let mut bob = Agent::with_token(&gateway, BOB, Era::Legacy).await;
    bob.session = ana.session.clone();
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(bob.send(list.clone()).await.status(), 404);
    assert_eq!(bob.listen(None).await.status(), 404);
    assert_eq!(bob.close().await, 404);
    assert_eq!(ana.send(list).await.status(), 200, "and is unharmed");
}

#[tokio::test]
async fn a_closed_or_unknown_session_is_gone() {
    let gateway = Gateway::start().await;
    let mut agent = Agent::connect(&gateway, Era::Legacy).await;
    assert_eq!(agent.close().await, 204);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(agent.send(list.clone()).await.status(), 404);
    agent.session = Some("made-up".to_owned());
    assert_eq!(agent.send(list).await.status(), 404);
}

#[tokio::test]
async fn at_the_limit_the_longest_unused_session_makes_room() {
    let gateway = Gateway::configured(&two_people("mcp.max_sessions_per_principal = 2")).await;
    let first = Agent::connect(&gateway, Era::Legacy).await;
    let second = Agent::connect(&gateway, Era::Legacy).await;
    // The times of the last uses must differ.
    tokio::time::sleep(Duration::from_millis(5)).await;
    first.tools().await;
    let third = Agent::connect(&gateway, Era::Legacy).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(
        second.send(list.clone()).await.status(),
        404,
        "the least used one is closed"
    );
    assert_eq!(first.send(list.clone()).await.status(), 200);
    assert_eq!(third.send(list.clone()).await.status(), 200);
    let bob = Agent::with_token(&gateway, BOB, Era::Legacy).await;
    assert_eq!(
        bob.send(list).await.status(),
        200,
        "another principal's limit is its own"
    );
}

#[tokio::test]
async fn sessions_in_use_are_not_closed_for_others() {
    let gateway = Gateway::configured(&two_people("mcp.max_sessions_per_principal = 1")).await;
    let busy = Agent::connect(&gateway, Era::Legacy).await;
    let _stream = busy.listen(None).await;
    let refused = send(post(&gateway, initialize())).await;
    assert_eq!(refused.status, 429);
    assert!(!refused.header("retry-after").is_empty());
    assert!(refused.text.contains("limit 1"), "{}", refused.text);
    assert_eq!(busy.close().await, 204);
    assert_eq!(
        send(post(&gateway, initialize())).await.status,
        200,
        "its place is free again"
    );
}

#[tokio::test]
async fn many_at_once_do_not_slip_past_the_limit() {
    let gateway = Gateway::with("mcp.max_sessions_per_principal = 5\nmcp.max_sessions = 5").await;
    let opened = futures::future::join_all((0..40).map(|_| send(post(&gateway, initialize())))).await;
    assert!(opened.iter().all(|answer| answer.status == 200 || answer.status == 429));
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let mut alive = 0;
    for answer in opened.iter().filter(|answer| answer.status == 200) {
        let request = post(&gateway, list.clone()).header("mcp-session-id", answer.header("mcp-session-id"));
        alive += usize::from(send(request).await.status == 200);
    }
    assert!((1..=5).contains(&alive), "{alive} sessions are open");
}

#[tokio::test]
async fn an_idle_session_is_closed_and_one_with_a_listener_is_not() {
    let gateway = Gateway::with("mcp.session_idle_timeout = \"1s\"").await;
    let idle = Agent::connect(&gateway, Era::Legacy).await;
    let listening = Agent::connect(&gateway, Era::Legacy).await;
    let _stream = listening.listen(None).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    // Longer than a session may be idle.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    eventually("the idle session is closed", async || {
        // Asking would keep it alive, so it is left alone between two looks at the sweep's pace.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        (idle.send(ping.clone()).await.status() == 404).then_some(())
    })
    .await;
    assert_eq!(listening.send(ping).await.status(), 200);
}
