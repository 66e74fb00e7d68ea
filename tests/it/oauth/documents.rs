//! Clients whose id is the URL of a document, and what the gateway lets itself be sent to.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_util::task::AbortOnDropHandle;

use super::{Browser, CALLBACK, Client, Stage};

/// A web server that answers by path, as no honest one would.
struct Web {
    address: SocketAddr,
    asked: Arc<AtomicUsize>,
    _task: AbortOnDropHandle<()>,
}

impl Web {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut request = vec![0; 4096];
                    let read = socket.read(&mut request).await.unwrap_or_default();
                    let request = String::from_utf8_lossy(&request[..read]).into_owned();
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let _ = socket.write_all(answer(address, path).as_bytes()).await;
                });
            }
        });
        Self {
            address,
            asked,
            _task: AbortOnDropHandle::new(task),
        }
    }

    fn id(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn times_asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn answer(address: SocketAddr, path: &str) -> String {
    let id = format!("http://{address}/client.json");
    let document = |id: &str| json!({ "client_id": id, "client_name": "App", "redirect_uris": [CALLBACK] }).to_string();
    let (status, headers, body) = match path {
        // The second says that it is the first.
        "/client.json" | "/other.json" => ("200 OK", "Content-Type: application/json\r\n".to_owned(), document(&id)),
        "/moved.json" => ("302 Found", format!("Location: {id}\r\n"), String::new()),
        "/page" => ("200 OK", "Content-Type: text/html\r\n".to_owned(), document(&id)),
        "/huge.json" => {
            let name = "x".repeat(100_000);
            let huge = json!({ "client_id": id, "client_name": name, "redirect_uris": [CALLBACK] });
            (
                "200 OK",
                "Content-Type: application/json\r\n".to_owned(),
                huge.to_string(),
            )
        }
        _ => ("404 Not Found", String::new(), String::new()),
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

fn client(id: String) -> Client {
    Client {
        id,
        verifier: "v".repeat(43),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_says_who_the_client_is() {
    let stage = Stage::with("allow_private_client_metadata = true").await;
    let web = Web::start().await;
    let app = client(web.id("/client.json"));
    let browser = Browser::new();
    let consent = browser.log_in(&stage.authorize_url(&app, &[]), "ana").await.shown();
    assert!(consent.html.contains("App (127.0.0.1)"), "{}", consent.html);
    let answer = browser.submit(&consent, &[("decision", "allow")]).await.answer();
    let (status, tokens) = stage.redeem(&app, &answer["code"]).await;
    assert_eq!(status, 200, "{tokens}");
    assert_eq!(stage.refresh(&app, &tokens).await.0, 200);
    browser.log_in(&stage.authorize_url(&app, &[]), "ana").await.shown();
    assert_eq!(web.times_asked(), 1, "it is remembered");

    for (path, told) in [
        ("/moved.json", "redirects are not followed"),
        ("/other.json", "client_id is not its URL"),
        ("/page", "not JSON"),
        ("/huge.json", "larger than"),
        ("/none", "404"),
    ] {
        let url = stage.authorize_url(&client(web.id(path)), &[]);
        let shown = browser.open(&url).await.shown();
        assert_eq!(shown.status, 400);
        assert!(shown.html.contains(told), "{path}: {}", shown.html);
        let asked = web.times_asked();
        browser.open(&url).await.shown();
        assert_eq!(web.times_asked(), asked, "a failure is remembered for a moment");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_sent_to_what_only_the_gateway_can_reach() {
    let stage = Stage::new().await;
    let web = Web::start().await;
    let port = web.address.port();
    let browser = Browser::new();
    for id in [
        web.id("/client.json"),
        format!("https://127.0.0.1:{port}/client.json"),
        format!("https://localhost:{port}/client.json"),
        format!("https://[::1]:{port}/client.json"),
        format!("https://[::ffff:7f00:1]:{port}/client.json"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let shown = browser
            .open(&stage.authorize_url(&client(id.clone()), &[]))
            .await
            .shown();
        assert_eq!(shown.status, 400);
        let told = ["not public", "https://"].iter().any(|told| shown.html.contains(told));
        assert!(told, "{id}: {}", shown.html);
    }
    assert_eq!(web.times_asked(), 0);
}
