//! Clients that are less exact than the protocol asks for, and mean no harm.

use serde_json::json;

use crate::support::{
    Gateway, TOKEN,
    wire::{self, initialize, send},
};

#[tokio::test]
async fn whoever_takes_anything_is_answered() {
    let gateway = Gateway::start().await;
    let post = |path: &str, accept: Option<&str>| {
        let request = reqwest::Client::new()
            .post(gateway.url(path))
            .header("content-type", "application/json")
            .bearer_auth(TOKEN)
            .body(initialize());
        match accept {
            Some(accept) => request.header("accept", accept),
            None => request,
        }
    };
    for accept in [None, Some("*/*"), Some("application/*"), Some("text/html, */*;q=0.1")] {
        for path in ["/mcp", "/mcp/"] {
            let answer = send(post(path, accept)).await;
            assert_eq!(answer.status, 200, "{accept:?}: {}", answer.text);
            assert!(answer.text.contains("jupyter-mcp-gateway"), "{}", answer.text);
        }
    }
    assert_eq!(send(post("/mcp", Some("image/png"))).await.status, 406);
}

#[tokio::test]
async fn a_call_needs_no_list_before_it() {
    let gateway = Gateway::start().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": wire::MODERN_VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "get_base_url", "arguments": { "server": "lab" }, "_meta": meta } });
    for headers in [&[][..], &[("mcp-param-server", "lab")]] {
        let mut request = wire::post(&gateway, call.to_string())
            .header("mcp-protocol-version", wire::MODERN_VERSION)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "get_base_url");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = send(request).await;
        assert_eq!(
            answer.json()["result"]["structuredContent"]["server"],
            "lab",
            "{}",
            answer.text
        );
    }
}
