//! Connections before anybody has logged in: how long a client may take, and how many there may be.

use std::time::{Duration, Instant};

use jupyter_mcp_gateway::http::Timeouts;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::support::{
    Agent, Era, Gateway, TOKEN, eventually,
    wire::{self, get},
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// All steps a hundred times faster.
fn hurried() -> Timeouts {
    let milliseconds = Duration::from_millis;
    Timeouts {
        handshake: milliseconds(200),
        first_byte: milliseconds(100),
        headers: milliseconds(300),
        body: milliseconds(300),
        anonymous: milliseconds(600),
        idle: milliseconds(750),
        ping_interval: milliseconds(200),
        ping: milliseconds(200),
    }
}

/// Sends something and reads until the gateway closes the connection.
async fn answer_to(gateway: &Gateway, sent: &[u8]) -> String {
    let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
    socket.write_all(sent).await.expect("sent");
    let mut answer = Vec::new();
    let closed = timeout(Duration::from_secs(10), socket.read_to_end(&mut answer)).await;
    let _ = closed.unwrap_or_else(|_| panic!("still open after {:?}", String::from_utf8_lossy(sent)));
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn whoever_sends_no_request_is_let_go() {
    let gateway = Gateway::with_timeouts("", hurried()).await;
    let after_preface = [PREFACE, SETTINGS].concat();
    for sent in [
        &b""[..],
        b"GET /healthz HT",
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        &PREFACE[..12],
        PREFACE,
        &after_preface,
    ] {
        let begun = Instant::now();
        answer_to(&gateway, sent).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{sent:?}");
    }
    let metrics = get(&gateway, "/metrics").await.text;
    for reason in ["first_byte_timeout", "headers_timeout"] {
        let counted = |line: &str| line.starts_with("jmg_http_connections_closed_total{") && line.contains(reason);
        assert!(metrics.lines().any(counted), "{reason}: {metrics}");
    }
    assert!(metrics.contains("jmg_http_connections{"), "{metrics}");
}

#[tokio::test]
async fn headers_that_come_byte_by_byte_have_no_more_time() {
    let gateway = Gateway::with_timeouts("", hurried()).await;
    let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
    let begun = Instant::now();
    let dripping = async {
        loop {
            if socket.write_all(b"G").await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(10), dripping).await.expect("closed");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let gateway = Gateway::with_timeouts("", hurried()).await;
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\n\r\n{{\"jsonrpc\""
    );
    let answer = answer_to(&gateway, request.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    assert!(answer.contains("body_timeout"), "{answer}");
}

#[tokio::test]
async fn a_connection_between_two_requests_is_kept_for_a_while() {
    let gateway = Gateway::with_timeouts("", hurried()).await;
    let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
    let mut buffer = [0; 4096];
    for _ in 0..3 {
        let request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        socket.write_all(request).await.expect("still open");
        let read = socket.read(&mut buffer).await.expect("an answer");
        assert!(buffer[..read].starts_with(b"HTTP/1.1 200"));
        // Longer than a first byte may take, shorter than a connection is kept.
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    let closed = timeout(Duration::from_secs(10), socket.read(&mut buffer)).await;
    assert_eq!(closed.expect("closed in time").expect("closed well"), 0);
}

#[tokio::test]
async fn a_stream_of_somebody_known_stays() {
    let gateway = Gateway::with_timeouts("", hurried()).await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let mut stream = wire::Events::new(agent.listen(None).await);
    let ended = async { while stream.next().await.is_some() {} };
    let ended = timeout(Duration::from_secs(3), ended).await;
    assert!(ended.is_err(), "an open stream outlives every timeout");
}

#[tokio::test]
async fn health_is_answered_while_somebody_takes_all_connections() {
    let limits = "http.max_connections = 60\nhttp.max_connections_per_address = 40";
    let gateway = Gateway::with(limits).await;
    let agent = Agent::connect(&gateway, Era::Legacy).await;
    let stream = agent.listen(None).await;
    let mut attackers = Vec::new();
    for attempt in 0..200 {
        let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
        if attempt % 2 == 0 {
            let _ = socket.write_all(b"GET / HTTP/1.1\r\n").await;
        }
        attackers.push(socket);
        if attempt % 20 == 0 {
            assert_eq!(get(&gateway, "/healthz").await.status, 200, "beside {attempt}");
        }
    }
    assert_eq!(get(&gateway, "/healthz").await.status, 200);
    let open = eventually("places are given away", async || {
        let metrics = get(&gateway, "/metrics").await.text;
        let open = metrics.lines().find(|line| line.starts_with("jmg_http_connections{"))?;
        let open: f64 = open.rsplit(' ').next()?.parse().ok()?;
        (open <= 40.0 && metrics.contains("evicted")).then_some(open)
    })
    .await;
    assert!(open > 1.0);
    drop(attackers);
    assert!(!agent.tools().await.is_empty(), "who is known goes on");
    drop(stream);
}
