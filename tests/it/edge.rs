//! The HTTP edge: who may knock, how loudly, and what everybody may ask.

use serde_json::json;
use store::file_url;

use crate::support::{
    Agent, Era, Gateway, TOKEN, eventually,
    wire::{self, get, initialize, post, post_without_token, send},
};

#[tokio::test]
async fn without_a_token_the_answer_says_what_to_do() {
    let gateway = Gateway::start().await;
    for token in [None, Some("wrong")] {
        let mut request = post_without_token(&gateway, initialize());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answer = send(request).await;
        assert_eq!(answer.status, 401);
        let challenge = answer.header("www-authenticate");
        assert!(
            challenge.starts_with("Bearer") && !challenge.contains("resource_metadata"),
            "there is no authorization server: {challenge}"
        );
        let body = answer.json();
        assert_eq!((&body["jsonrpc"], &body["id"]), (&json!("2.0"), &json!(null)), "{body}");
        assert!(body["error"]["code"].is_i64(), "{body}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.contains("Authorization: Bearer <token>"), "{message}");
    }
}

#[tokio::test]
async fn nobody_is_sent_to_log_in_where_there_is_nothing_to_log_in_to() {
    let gateway = Gateway::start().await;
    let client = reqwest::Client::new();
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/openid-configuration",
        "/register",
        "/authorize",
        "/token",
    ] {
        for request in [client.get(gateway.url(path)), client.post(gateway.url(path))] {
            let answer = send(request).await;
            assert_eq!(answer.status, 404, "{path}");
            let body = answer.json();
            assert!(body["error"].is_string(), "{path}: {body}");
            let description = body["error_description"].as_str().unwrap_or_default();
            assert!(description.contains("Authorization: Bearer <token>"), "{path}: {body}");
        }
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_on_every_method() {
    let gateway = Gateway::start().await;
    let client = reqwest::Client::new();
    for request in [
        client.get(gateway.url("/mcp")),
        client.delete(gateway.url("/mcp")),
        post_without_token(&gateway, initialize()),
    ] {
        let answer = send(request.bearer_auth("wrong")).await;
        assert_eq!(answer.status, 401);
        assert!(answer.header("www-authenticate").contains("invalid_token"));
    }
}

#[tokio::test]
async fn the_jupyter_spelling_of_a_token_is_accepted() {
    let gateway = Gateway::start().await;
    let request = post_without_token(&gateway, initialize()).header("authorization", format!("token {TOKEN}"));
    assert_eq!(send(request).await.status, 200);
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_on_every_route() {
    let gateway = Gateway::with(
        "http.allowed_origins = [\"https://app.example.org\"]\nhttp.public_url = \"https://mcp.example.org\"",
    )
    .await;
    let client = reqwest::Client::new();
    for path in [
        "/mcp",
        "/healthz",
        "/readyz",
        "/metrics",
        "/.well-known/oauth-protected-resource",
        "/nothing",
    ] {
        let url = gateway.url(path);
        let rebound = send(client.get(&url).bearer_auth(TOKEN).header("host", "evil.example")).await;
        assert_eq!(rebound.status, 403, "{path} by a foreign host");
        let page = send(
            client
                .get(&url)
                .bearer_auth(TOKEN)
                .header("origin", "https://evil.example"),
        )
        .await;
        assert_eq!(page.status, 403, "{path} from a foreign page");
    }
    for origin in [
        "https://app.example.org",
        "https://mcp.example.org",
        "http://localhost:6274",
    ] {
        assert_eq!(
            send(client.get(gateway.url("/healthz")).header("origin", origin))
                .await
                .status,
            200,
            "{origin}"
        );
    }
    assert_eq!(
        send(client.get(gateway.url("/healthz")).header("host", "mcp.example.org"))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn a_request_has_one_host_and_one_origin() {
    let gateway = Gateway::start().await;
    let get = |target: &str, headers: &str| format!("GET {target} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    let here = "Host: {address}\r\n";
    for (target, headers, status) in [
        ("/healthz", here.to_owned(), 200),
        ("http://{address}/healthz", here.to_owned(), 200),
        ("/healthz", format!("{here}{here}"), 400),
        ("/healthz", format!("{here}Host: evil.example\r\n"), 400),
        ("/healthz", format!("Host: evil.example\r\n{here}"), 400),
        ("http://evil.example/healthz", here.to_owned(), 400),
        ("http://{address}/healthz", "Host: evil.example\r\n".to_owned(), 400),
        ("http://evil.example/healthz", "Host: evil.example\r\n".to_owned(), 403),
        ("http://localhost/healthz", "Host: \u{e4}\r\n".to_owned(), 400),
        (
            "/healthz",
            format!("{here}Origin: http://localhost\r\nOrigin: http://evil.example\r\n"),
            400,
        ),
    ] {
        let request = get(target, &headers);
        assert_eq!(gateway.status_of(&request).await, status, "{request}");
    }
}

#[tokio::test]
async fn metrics_at_an_address_of_their_own_are_guarded_too() {
    let gateway = Gateway::with("http.metrics_listen = \"127.0.0.1:0\"").await;
    let client = reqwest::Client::new();
    let url = gateway.metrics_url("/metrics");
    assert_eq!(send(client.get(&url)).await.status, 200);
    assert_eq!(send(client.get(&url).header("host", "10.1.2.3:9090")).await.status, 200);
    for path in ["/metrics", "/nothing"] {
        let url = gateway.metrics_url(path);
        let rebound = send(client.get(&url).header("host", "evil.example")).await;
        assert_eq!(rebound.status, 403, "{path}");
        let page = send(client.get(&url).header("origin", "https://evil.example")).await;
        assert_eq!(page.status, 403, "{path}");
    }
    assert_eq!(get(&gateway, "/metrics").await.status, 404);
}

#[tokio::test]
async fn a_browser_of_an_allowed_origin_may_ask_first() {
    let gateway = Gateway::with("http.allowed_origins = [\"https://app.example.org\"]").await;
    let preflight = reqwest::Client::new()
        .request(reqwest::Method::OPTIONS, gateway.url("/mcp"))
        .header("origin", "https://app.example.org")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,mcp-session-id");
    let answer = send(preflight).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), "https://app.example.org");
    assert!(answer.header("access-control-allow-headers").contains("mcp-session-id"));
    let call = send(post(&gateway, initialize()).header("origin", "https://app.example.org")).await;
    assert_eq!(call.header("access-control-allow-origin"), "https://app.example.org");
    assert!(call.header("access-control-expose-headers").contains("mcp-session-id"));
}

#[tokio::test]
async fn what_is_too_large_or_too_deep_is_refused() {
    let gateway = Gateway::with("http.max_body_bytes = 2048").await;
    let large = send(post(&gateway, "x".repeat(3000))).await;
    assert_eq!(large.status, 413);
    let chunks = futures::stream::iter((0..10).map(|_| Ok::<_, std::io::Error>("y".repeat(500))));
    assert_eq!(
        send(post(&gateway, reqwest::Body::wrap_stream(chunks))).await.status,
        413,
        "without a length as well"
    );
    let headers = send(post(&gateway, initialize()).header("x-filler", "z".repeat(40_000))).await;
    assert_eq!(headers.status, 431);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}1{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let deep = send(post(&gateway, deep)).await;
    assert_eq!(
        (deep.status.as_u16(), deep.json()["error"]["code"].as_i64()),
        (400, Some(-32600))
    );
    assert_eq!(
        send(post(&gateway, initialize())).await.status,
        200,
        "the gateway is none the worse"
    );
}

#[tokio::test]
async fn malformed_messages_get_json_rpc_errors() {
    let gateway = Gateway::start().await;
    let cases = [
        ("{", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":3}}"#,
            -32602,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"resources/read"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"completion/complete"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":7,"method":"resources/subscribe"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":"\ud83d"}}}"#,
            -32700,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":1e999}}"#,
            -32700,
        ),
        (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, -32600),
    ];
    for (body, code) in cases {
        let answer = send(post(&gateway, body)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["error"]["code"].as_i64()),
            (400, Some(code)),
            "{body}"
        );
        // The newer era looks first at headers that are missing here, and has its own methods.
        let modern = send(post(&gateway, body).header("mcp-protocol-version", wire::MODERN_VERSION)).await;
        assert_eq!(modern.status, 400, "{body}");
        assert!(modern.json()["error"]["code"].is_i64(), "{body}: {}", modern.text);
    }
    for (accept, kind) in [
        ("image/png", "application/json"),
        ("application/json, text/event-stream", "text/plain"),
    ] {
        let request = reqwest::Client::new().post(gateway.url("/mcp")).bearer_auth(TOKEN);
        let request = request.header("accept", accept).header("content-type", kind);
        let answer = send(request.body(initialize())).await;
        assert!(answer.status.is_client_error(), "{}", answer.text);
        assert_eq!(answer.json()["error"]["code"], -32600, "{}", answer.text);
    }
}

#[tokio::test]
async fn every_answer_carries_a_request_id() {
    let gateway = Gateway::start().await;
    let fresh = get(&gateway, "/healthz").await;
    assert_eq!(fresh.header("x-request-id").len(), 32);
    let client = reqwest::Client::new();
    let own = send(client.get(gateway.url("/healthz")).header("x-request-id", "abc-1")).await;
    assert_eq!(own.header("x-request-id"), "abc-1");
    let hostile = send(client.get(gateway.url("/healthz")).header("x-request-id", "a b\"c")).await;
    assert_eq!(hostile.header("x-request-id").len(), 32);
}

#[tokio::test]
async fn readiness_names_each_server_and_stays_ready_for_the_others() {
    let down = crate::support::gateway::server("gone", "http://127.0.0.1:9/", "t");
    let gateway = Gateway::with(&down).await;
    let known = async || send(reqwest::Client::new().get(gateway.url("/readyz")).bearer_auth(TOKEN)).await;
    // A server that is busy is not waited for, so that it may be known only later.
    let body = eventually("both are known", async || {
        let answer = known().await;
        assert_eq!(answer.status, 200);
        let body = answer.json();
        let gone = body["servers"]["gone"]["error"].as_str()?.contains("`gone`");
        (gone && body["servers"]["lab"]["reachable"] == true).then_some(body)
    })
    .await;
    assert_eq!(body["servers"]["gone"]["reachable"], false);
    assert_eq!(get(&gateway, "/healthz").await.json()["status"], "ok");
    for token in [None, Some("wrong")] {
        let mut request = reqwest::Client::new().get(gateway.url("/readyz"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let anybody = send(request).await;
        assert_eq!(
            anybody.json()["servers"],
            json!({ "gone": { "status": "down", "reachable": false }, "lab": { "status": "up", "reachable": true } }),
            "addresses and versions are nobody else's business"
        );
        assert!(!anybody.text.contains("127.0.0.1"), "{}", anybody.text);
    }
}

#[tokio::test]
async fn without_its_store_the_gateway_is_unready_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let url = file_url(&dir.path().join("gateway.db"));
    let gateway = Gateway::with(&format!("[store]\nurl = \"{url}\"")).await;
    let up = get(&gateway, "/readyz").await;
    assert_eq!(up.status, 200);
    assert_eq!(up.json()["store"], json!({ "status": "up" }));
    // As good as a broken disk: what the gateway asks for is not there.
    let database = sqlx::SqlitePool::connect(&url).await.unwrap();
    sqlx::raw_sql("ALTER TABLE executions RENAME TO elsewhere")
        .execute(&database)
        .await
        .unwrap();
    let body = eventually("unready", async || {
        let answer = send(reqwest::Client::new().get(gateway.url("/readyz")).bearer_auth(TOKEN)).await;
        (answer.status == 503).then(|| answer.json())
    })
    .await;
    assert_eq!(
        (&body["status"], &body["store"]["status"]),
        (&json!("unready"), &json!("down"))
    );
    assert!(
        body["store"]["error"]
            .as_str()
            .unwrap()
            .contains("the store cannot be used"),
        "{body}"
    );
    assert_eq!(
        get(&gateway, "/readyz").await.json()["store"],
        json!({ "status": "down" })
    );
    assert_eq!(get(&gateway, "/healthz").await.status, 200);
}

#[tokio::test]
async fn metrics_count_operations_by_the_conventions() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("get_base_url", json!({})).await.ok();
    agent.call("get_base_url", json!({ "server": "nowhere" })).await.error();
    agent.request("tools/call", json!({ "name": "no_such_tool" })).await;
    send(post_without_token(&gateway, initialize())).await;
    let newer = initialize().replace(wire::LEGACY_VERSION, "2099-01-01");
    assert_eq!(send(post(&gateway, newer)).await.status, 200);
    let text = get(&gateway, "/metrics").await.text;
    let line = |parts: &[&str]| text.lines().any(|line| parts.iter().all(|part| line.contains(part)));
    let count = "mcp_server_operation_duration_seconds_count";
    assert!(
        line(&[
            count,
            "mcp_method_name=\"tools/call\"",
            "gen_ai_tool_name=\"get_base_url\"",
            "mcp_protocol_version=\"2026-07-28\""
        ]),
        "{text}"
    );
    assert!(line(&[count, "error_type=\"tool_error\""]), "{text}");
    assert!(line(&[count, "error_type=\"-32602\""]), "{text}");
    assert!(
        line(&["mcp_server_operation_duration_seconds_bucket", "le=\"0.01\""]),
        "{text}"
    );
    assert!(
        line(&["jmg_http_rejections_total", "reason=\"token_missing\""]),
        "{text}"
    );
    assert!(
        line(&[
            count,
            "mcp_method_name=\"initialize\"",
            "mcp_protocol_version=\"2025-11-25\""
        ]),
        "{text}"
    );
    for said_by_clients in ["no_such_tool", "2099-01-01", TOKEN] {
        assert!(!text.contains(said_by_clients), "{text}");
    }
}

#[tokio::test]
async fn leaving_waits_for_work_and_says_so() {
    let gateway = Gateway::start().await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let stream = agent.listen(None).await;
    assert_eq!(stream.status(), 200);
    gateway.drain().start();
    let mut events = wire::Events::new(stream);
    assert!(events.next_message().await.is_none(), "an idle stream ends");
    gateway.gone().await;
}
