//! Two eras of the protocol on one endpoint.

use reqwest::StatusCode;
use serde_json::json;

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    agent::ERAS,
    wire::{self, MODERN_VERSION, initialize, post, send},
};

#[tokio::test]
async fn both_eras_list_and_call_the_same_tools() {
    let gateway = Gateway::start().await;
    let mut lists = Vec::new();
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        lists.push(agent.tools().await);
        let answer = agent.call("get_base_url", json!({})).await;
        let text = answer.text().to_owned();
        let structured = answer.ok();
        assert_eq!(text, structured["base_url"], "the text is what a model needs");
        assert!(
            crate::support::lab()
                .url()
                .starts_with(structured["base_url"].as_str().unwrap())
        );
    }
    assert_eq!(lists[0], lists[1]);
    assert!(lists[0].contains(&"list_nbs".to_owned()));
}

#[tokio::test]
async fn every_older_version_can_be_negotiated() {
    let gateway = Gateway::start().await;
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let body = initialize().replace(wire::LEGACY_VERSION, version);
        let answer = send(post(&gateway, body)).await;
        assert_eq!(answer.status, 200);
        assert!(
            answer.text.contains(&format!("\"protocolVersion\":\"{version}\"")),
            "{}",
            answer.text
        );
        let session = answer.header("mcp-session-id").to_owned();
        assert!(!session.is_empty());
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        let request = post(&gateway, call.to_string())
            .header("mcp-session-id", session)
            .header("mcp-protocol-version", version);
        let listed = send(request).await;
        assert_eq!(listed.status, 200, "{}", listed.text);
        let primes = listed.text.lines().any(|line| line.trim_end() == "data:");
        assert_eq!(primes, version == "2025-11-25", "{version}: {}", listed.text);
    }
}

#[tokio::test]
async fn an_initialize_that_names_the_newest_version_still_gets_a_session() {
    let gateway = Gateway::start().await;
    let body = initialize().replace(wire::LEGACY_VERSION, MODERN_VERSION);
    let answer = send(post(&gateway, body).header("mcp-protocol-version", MODERN_VERSION)).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!answer.header("mcp-session-id").is_empty());
}

#[tokio::test]
async fn the_modern_era_has_no_sessions_and_no_streams_to_get() {
    let gateway = Gateway::start().await;
    let client = reqwest::Client::new();
    for method in [reqwest::Method::GET, reqwest::Method::DELETE] {
        let request = client
            .request(method, gateway.url("/mcp"))
            .bearer_auth(TOKEN)
            .header("mcp-protocol-version", MODERN_VERSION);
        let answer = send(
            request
                .header("accept", "text/event-stream")
                .header("last-event-id", "0"),
        )
        .await;
        assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED);
    }
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let discovered = agent.request("server/discover", json!({})).await;
    let result = &discovered["result"];
    assert!(
        result["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!(MODERN_VERSION)),
        "{discovered}"
    );
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "jupyter-mcp-gateway"
    );
}

#[tokio::test]
async fn header_and_body_must_agree_in_the_modern_era() {
    let gateway = Gateway::with("mcp.route_headers = true").await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": MODERN_VERSION, "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "get_base_url", "arguments": { "server": "lab" }, "_meta": meta } }).to_string();
    let request = || {
        post(&gateway, body.clone())
            .header("mcp-protocol-version", MODERN_VERSION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "get_base_url")
    };
    let agreed = send(request().header("mcp-param-server", "lab")).await;
    assert_eq!(
        agreed.json()["result"]["structuredContent"]["server"],
        "lab",
        "{}",
        agreed.text
    );
    let routed_elsewhere = send(request().header("mcp-param-server", "other")).await;
    assert_eq!(
        (
            routed_elsewhere.status.as_u16(),
            routed_elsewhere.json()["error"]["code"].as_i64()
        ),
        (400, Some(-32020))
    );
    let unrouted = send(request()).await;
    assert_eq!(unrouted.status, 400);
    let unknown = send(
        post(&gateway, body.replace(MODERN_VERSION, "2099-01-01"))
            .header("mcp-protocol-version", "2099-01-01")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "get_base_url")
            .header("mcp-param-server", "lab"),
    )
    .await;
    assert_eq!(
        (unknown.status.as_u16(), unknown.json()["error"]["code"].as_i64()),
        (400, Some(-32022))
    );
}

#[tokio::test]
async fn unknown_methods_and_tools_are_errors_of_the_protocol() {
    let gateway = Gateway::start().await;
    for era in ERAS {
        let agent = Agent::connect(&gateway, era).await;
        let method = agent.request("no/such", json!({})).await;
        assert_eq!(method["error"]["code"], -32601, "{method}");
        let tool = agent.request("tools/call", json!({ "name": "no_such_tool" })).await;
        assert_eq!(tool["error"]["code"], -32602);
        assert!(tool["error"]["message"].as_str().unwrap().contains("no_such_tool"));
        let level = agent.request("logging/setLevel", json!({ "level": "info" })).await;
        assert_eq!(level["error"]["code"], -32601, "not declared, so not answered");
    }
}

#[tokio::test]
async fn lists_are_private_and_results_are_signed() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let listed = agent.request("tools/list", json!({})).await;
    assert_eq!(listed["result"]["cacheScope"], "private");
    assert!(listed["result"]["ttlMs"].as_u64().unwrap() > 0);
    let called = agent
        .request("tools/call", json!({ "name": "get_base_url", "arguments": {} }))
        .await;
    assert_eq!(
        called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "jupyter-mcp-gateway"
    );
}

#[tokio::test]
async fn the_catalogue_is_small_and_every_tool_is_described() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let listed = agent.request("tools/list", json!({})).await;
    for (query, max) in [("", 24_000), ("?toolsets=notebook", 8_000)] {
        let model = Agent::introduced_as("claude-code", &gateway.url(&format!("/mcp{query}")), Era::Legacy).await;
        let size = model.request("tools/list", json!({})).await["result"]["tools"]
            .to_string()
            .len();
        assert!(size <= max, "{size} bytes of tools for {query:?}");
    }
    let routing = Gateway::with("mcp.route_headers = true").await;
    let routed = Agent::connect(&routing, Era::Legacy).await;
    let routed = routed.request("tools/list", json!({})).await["result"]["tools"].clone();
    let tools = listed["result"]["tools"].as_array().unwrap();
    for (tool, routed) in tools.iter().zip(routed.as_array().unwrap()) {
        let name = tool["name"].as_str().unwrap();
        for (member, schema) in tool["outputSchema"]["properties"].as_object().unwrap() {
            assert!(!schema["type"].is_null(), "{name}: {member} has no type: {schema}");
        }
        assert!(
            tool["description"].as_str().is_some_and(|text| text.len() > 10),
            "{name}"
        );
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let runs_code = ["run_code", "run_notebook", "cancel_execution"].contains(&name)
            || name.ends_with("_kernel")
            || name.starts_with("execute")
            // They can execute what they changed.
            || ["insert_nb_cells", "modify_nb_cells", "edit_nb_cell"].contains(&name);
        assert_eq!(tool["annotations"]["openWorldHint"] == false, !runs_code, "{name}");
        for (argument, header) in [("path", "Path"), ("server", "Server")] {
            let properties = [tool, routed].map(|tool| tool["inputSchema"]["properties"][argument].clone());
            let marks = properties.map(|property| property["x-mcp-header"].clone());
            let has_it = tool["inputSchema"]["properties"][argument].is_object();
            let mark = if has_it { json!(header) } else { json!(null) };
            assert_eq!(marks, [json!(null), mark], "{name}: only where an operator wants it");
        }
        assert!(!tool["inputSchema"].to_string().contains("null"), "{name}: {tool}");
    }
}

/// Every byte of a list is in a model's context before it has done anything. Run with `--nocapture` to see the sizes.
#[tokio::test]
async fn lists_are_small_in_every_selection() {
    let gateway = Gateway::start().await;
    for (selection, limit) in [
        ("", 24_576),
        ("&readonly=true", 12_288),
        ("&toolsets=notebook", 8192),
        ("&toolsets=notebook,kernel,execution", 12_288),
        ("&toolsets=document,files", 8192),
        ("&toolsets=collab", 9216),
        ("&toolsets=classic", 7168),
        ("&toolsets=datalayer", 10_240),
    ] {
        let url = gateway.url(&format!("/mcp?structured=false{selection}"));
        let agent = Agent::connect_to(&url, TOKEN, Era::Legacy).await;
        let listed = agent.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let size = listed["result"].to_string().len();
        println!("{selection:40} {size:6} bytes, {} tools", tools.len());
        assert!(size <= limit, "{selection}: {size} bytes");
    }
}
