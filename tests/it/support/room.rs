//! A person with a document open: the plainest client of Jupyter's rooms, which only holds the door.

use futures::StreamExt;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async, tungstenite::client::IntoClientRequest};

use super::lab;

pub type Room = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Opens a document's room and waits until the server has loaded it.
pub async fn join(path: &str, format: &str, kind: &str) -> Room {
    let authorization = format!("token {}", lab().token());
    let session: Value = reqwest::Client::new()
        .put(format!("{}api/collaboration/session/{path}", lab().url()))
        .header("authorization", &authorization)
        .json(&json!({ "format": format, "type": kind }))
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("a session");
    let base = lab().url().replace("http://", "ws://");
    let (id, session) = (
        session["fileId"].as_str().expect("an id"),
        session["sessionId"].as_str().expect("an id"),
    );
    let mut request = format!("{base}api/collaboration/room/{format}:{kind}:{id}?sessionId={session}")
        .into_client_request()
        .expect("a url");
    request
        .headers_mut()
        .insert("authorization", authorization.parse().expect("a header"));
    let (mut room, _) = connect_async(request).await.expect("the room opens");
    room.next().await.expect("the server speaks first").expect("a frame");
    room
}
