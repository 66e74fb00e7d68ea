//! Jupyter servers that are down, slow, or not Jupyter at all: the error names the server and what to
//! check, and the others go on.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use crate::support::{
    Agent, Era, Gateway,
    gateway::{everything, lab_server, server},
    lab,
};

/// A server that answers every request with the same bytes, or never if there are none.
async fn answering(bytes: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while socket.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    if bytes.is_empty() {
                        std::future::pending::<()>().await;
                    }
                    let _ = socket.write_all(bytes.as_bytes()).await;
                }
            });
        }
    });
    url
}

const HTML: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>";
const HTML_404: &str = "HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>";
const LOGIN: &str = "HTTP/1.1 302 Found\r\nlocation: /login?next=/\r\ncontent-length: 0\r\n\r\n";
const GARBAGE: &str = "220 smtp.example.org ESMTP\r\n";
const BAD_JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"a\": [1]";

#[tokio::test]
async fn each_kind_of_broken_server_gets_its_own_advice() {
    let wrong_token = server("refused", lab().url(), "not-the-token");
    let cases = [
        ("down", server("down", "http://127.0.0.1:9/", "t"), "cannot be reached"),
        (
            "page",
            server("page", &answering(HTML).await, "t"),
            "with HTML instead of JSON",
        ),
        (
            "notfound",
            server("notfound", &answering(HTML_404).await, "t"),
            "base path",
        ),
        (
            "login",
            server("login", &answering(LOGIN).await, "t"),
            "gateway's token",
        ),
        (
            "garbage",
            server("garbage", &answering(GARBAGE).await, "t"),
            "cannot be reached",
        ),
        (
            "badjson",
            server("badjson", &answering(BAD_JSON).await, "t"),
            "instead of JSON",
        ),
        ("refused", wrong_token, "gateway's token"),
    ];
    let servers: String = cases.iter().map(|(_, toml, _)| toml.as_str()).collect();
    let gateway = Gateway::configured(&format!("{servers}{}{}", lab_server("lab"), everything())).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    for (name, _, advice) in &cases {
        for (tool, arguments) in [
            ("list_documents", json!({ "server": name })),
            ("list_available_kernels", json!({ "server": name })),
            ("create_document", json!({ "server": name, "path": "x.txt" })),
            ("delete_document", json!({ "server": name, "path": "x.txt" })),
            (
                "rename_document",
                json!({ "server": name, "path": "x.txt", "newPath": "y.txt" }),
            ),
        ] {
            let error = agent.call(tool, arguments).await.error();
            assert!(
                error.contains(&format!("`{name}`")) && error.contains(advice),
                "{tool} on {name}: {error}"
            );
        }
    }
    agent.call("list_documents", json!({ "server": "lab" })).await.ok();
}

#[tokio::test]
async fn a_server_that_never_answers_times_out_and_delays_nobody() {
    let hung = format!(
        "[[servers]]\nname = \"hung\"\nurl = \"{}\"\nrequest_timeout = \"4s\"\n",
        answering("").await
    );
    let gateway = Gateway::configured(&format!("{hung}{}{}", lab_server("lab"), everything())).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    let started = Instant::now();
    let (slow, fast) = tokio::join!(agent.call("list_documents", json!({ "server": "hung" })), async {
        let answer = agent.call("list_documents", json!({ "server": "lab" })).await;
        (answer, started.elapsed())
    });
    let error = slow.error();
    assert!(error.contains("`hung`") && error.contains("did not answer"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    fast.0.ok();
    assert!(
        fast.1 < Duration::from_secs(4),
        "the other server's call took {:?}",
        fast.1
    );
    let started = Instant::now();
    let ready = crate::support::wire::get(&gateway, "/readyz").await;
    assert!(started.elapsed() < Duration::from_secs(2), "it was waited for");
    assert_eq!(
        (ready.status.as_u16(), &ready.json()["servers"]["hung"]["reachable"]),
        (200, &json!(false))
    );
    let listed = agent.call("list_servers", json!({})).await.ok();
    assert_eq!(listed["servers"][0]["reachable"], false);
    assert!(
        listed.to_string().contains("within 3 s"),
        "as long as it was waited: {listed}"
    );
    assert_eq!(listed["servers"][1]["reachable"], true);
}
