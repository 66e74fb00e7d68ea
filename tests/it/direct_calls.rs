//! Calls that run nothing take a shorter way through the gateway. Nobody can tell by the answer which way it took,
//! and what holds for every other call holds for them: they can be resumed, cancelled and are told apart from wrong ones.

use std::time::Duration;

use reqwest::Response;
use serde_json::{Value, json};

use crate::support::{
    Agent, Era, Gateway,
    agent::ERAS,
    eventually, lab,
    proxy::Proxy,
    wire::{Events, MODERN_VERSION},
};

/// A client that wants to hear of progress needs the long way, and is answered the same.
fn long_way(mut params: Value) -> Value {
    params["_meta"] = json!({ "progressToken": "p" });
    params
}

/// Everything of an answer but the moment it was given and the ids that must differ.
async fn shape(response: Response) -> (u16, Vec<(String, String)>, String) {
    let status = response.status().as_u16();
    let mut headers: Vec<(String, String)> = response
        .headers()
        .iter()
        .filter(|(name, _)| !["date", "x-request-id"].contains(&name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    let lines = response.text().await.unwrap();
    // In which order an object has its members means nothing.
    let in_order = |line: &str| match serde_json::from_str::<Value>(line.trim_start_matches("data:")) {
        Ok(message) => message.to_string(),
        Err(_) => line.to_owned(),
    };
    let without_ids = lines.lines().map(|line| match line.strip_prefix("id:") {
        Some(id) => format!("id: {} characters", id.trim().len()),
        None => in_order(line),
    });
    (status, headers, without_ids.collect::<Vec<_>>().join("\n"))
}

#[tokio::test]
async fn both_ways_answer_alike_in_both_eras() {
    let (gateway, folder) = (Gateway::start().await, lab().folder());
    let path = folder.notebook("n.ipynb");
    let calls = [
        ("get_base_url", json!({})),
        ("get_base_url", json!({ "server": "lab" })),
        ("list_servers", json!({})),
        ("read_nb_cells", json!({ "path": path })),
        ("get_nb_stat", json!({ "path": path })),
        ("read_nb_cells", json!({ "path": folder.path("missing.ipynb") })),
        ("read_nb_cells", json!({ "path": "../n.ipynb" })),
        ("read_nb_cells", json!({ "path": path, "ranges": [{ "start": 7 }] })),
        ("read_nb_cells", json!({ "path": path, "unknown": 1 })),
        ("get_base_url", json!({ "server": "another" })),
        ("nb_path_from_url", json!({ "url": 5 })),
        ("delete_document", json!({ "path": folder.path("missing.ipynb") })),
        ("create_document", json!({ "path": path, "content": "" })),
        (
            "modify_nb_cells",
            json!({ "path": path, "modifications": [{ "range": { "start": 9 }, "content": "" }], "exec": false }),
        ),
    ];
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        for (tool, arguments) in &calls {
            let params = json!({ "name": tool, "arguments": arguments });
            let short = shape(agent.start(3, "tools/call", params.clone()).await).await;
            let long = shape(agent.start(3, "tools/call", long_way(params)).await).await;
            assert_eq!(short, long, "{tool} {arguments} in {era:?}");
        }
        for _ in 0..2 {
            let short = shape(agent.start(3, "tools/list", json!({})).await).await;
            let long = shape(agent.start(3, "tools/list", long_way(json!({}))).await).await;
            assert_eq!(short, long, "the list of tools in {era:?}");
        }
    }
}

#[tokio::test]
async fn what_is_wrong_about_a_request_is_refused_on_either_way() {
    let gateway = Gateway::start().await;
    let call = |id: Value, version: &str| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "get_base_url", "arguments": {},
            "_meta": { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} } } })
    };
    let right = [
        ("mcp-protocol-version", MODERN_VERSION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "get_base_url"),
    ];
    let send = async |message: &Value, headers: &[(&str, &str)]| {
        let mut request = crate::support::wire::post(&gateway, message.to_string());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        crate::support::wire::send(request).await
    };
    assert_eq!(send(&call(json!(1), MODERN_VERSION), &right).await.status, 200);
    for wrong in [
        [right[0], right[1], ("mcp-name", "list_servers")],
        [right[0], ("mcp-method", "tools/list"), right[2]],
        [right[0], right[1], ("mcp-param-server", "lab")],
        [("mcp-protocol-version", "2027-01-01"), right[1], right[2]],
    ] {
        let answer = send(&call(json!(1), MODERN_VERSION), &wrong).await;
        assert_eq!(answer.status, 400, "{wrong:?}: {}", answer.text);
    }
    let twice = [right[0], right[1], right[2], ("mcp-name", "list_servers")];
    assert_eq!(send(&call(json!(1), MODERN_VERSION), &twice).await.status, 400);
    assert_eq!(send(&call(json!(1), "2025-11-25"), &right).await.status, 400);
}

/// A gateway whose Jupyter can be made to take its time.
async fn slow() -> (Gateway, Proxy) {
    let proxy = Proxy::to(lab().address()).await;
    (Gateway::to(&proxy.url(), lab().token()).await, proxy)
}

#[tokio::test]
async fn a_reading_that_takes_its_time_can_be_resumed() {
    let (gateway, proxy) = slow().await;
    let folder = lab().folder();
    folder.notebook("n.ipynb");
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    proxy.hold(true);
    let params = json!({ "name": "list_nbs", "arguments": { "path": folder.name } });
    let mut events = Events::new(agent.start(7, "tools/call", params).await);
    let primed = events.next().await.unwrap();
    drop(events);
    proxy.hold(false);
    for _ in 0..2 {
        let mut resumed = Events::new(agent.listen(primed.id.as_deref()).await);
        let (_, message) = resumed.next_message().await.expect("the result");
        assert_eq!(message["id"], 7);
        let found = &message["result"]["structuredContent"]["notebooks"];
        assert_eq!(found.as_array().map(Vec::len), Some(1), "{message}");
        assert!(resumed.next().await.is_none(), "nothing follows");
    }
}

#[tokio::test]
async fn a_reading_that_is_cancelled_ends_without_a_result() {
    let (gateway, proxy) = slow().await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    proxy.hold(true);
    let params = json!({ "name": "list_nbs", "arguments": {} });
    let mut events = Events::new(agent.start(7, "tools/call", params).await);
    let primed = events.next().await.unwrap();
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    assert_eq!(agent.send(cancel).await.status(), 202);
    let ended = tokio::time::timeout(Duration::from_secs(5), events.next_message()).await;
    assert!(ended.expect("the stream ends").is_none(), "without a result");
    proxy.hold(false);
    agent.call("list_nbs", json!({})).await.ok();
    let mut resumed = Events::new(agent.listen(primed.id.as_deref()).await);
    assert!(resumed.next_message().await.is_none(), "nor is there one later");
}

#[tokio::test]
async fn what_was_begun_is_done_whole_also_if_its_client_leaves() {
    let (gateway, proxy) = slow().await;
    let folder = lab().folder();
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let name = format!("{era:?}.md");
        proxy.hold(true);
        let arguments = json!({ "path": folder.path(&name), "content": "whole" });
        let params = json!({ "name": "create_document", "arguments": arguments });
        let left = tokio::time::timeout(Duration::from_millis(500), async {
            agent.start(7, "tools/call", params).await.text().await
        });
        assert!(left.await.is_err(), "it is not answered yet");
        proxy.hold(false);
        eventually("the document is there", async || folder.has(&name).then_some(())).await;
    }
}
