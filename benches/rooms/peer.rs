//! A bare client of Jupyter's rooms: as little as it takes to be in one. Its socket is set up as well as
//! the gateway's, so that neither waits for delayed acknowledgements.

use std::time::{Duration, Instant};

use futures::{FutureExt, SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{net::TcpStream, time::timeout};
use tokio_tungstenite::{
    WebSocketStream, client_async_with_config,
    tungstenite::{Message, client::IntoClientRequest, protocol::WebSocketConfig},
};
use yrs::{
    Any, Array, ArrayPrelim, ArrayRef, Doc, GetString, In, Map, MapPrelim, MapRef, ReadTxn, StateVector, Text,
    TextPrelim, TextRef, Transact, TransactionMut, Update,
    encoding::write::Write,
    updates::{decoder::Decode, encoder::Encode},
};

use crate::lab::lab;

const TIMEOUT: Duration = Duration::from_secs(60);

const SYNC: u8 = 0;
const STEP_1: u8 = 0;
const STEP_2: u8 = 1;
const UPDATE: u8 = 2;

pub(super) struct Peer {
    doc: Doc,
    cells: ArrayRef,
    socket: WebSocketStream<TcpStream>,
}

/// Contents of a frame.
struct Heard {
    step: u8,
    of_mine: bool,
}

impl Peer {
    /// Opens a notebook of the shared JupyterLab and waits until it is there.
    pub(super) async fn join(path: &str) -> Self {
        let authorization = format!("token {}", lab().token());
        let session: Value = client()
            .put(format!("{}api/collaboration/session/{path}", lab().url()))
            .header("authorization", &authorization)
            .json(&json!({ "format": "json", "type": "notebook" }))
            .send()
            .await
            .expect("an answer")
            .json()
            .await
            .expect("a session");
        let id = |name: &str| session[name].as_str().expect("an id").to_owned();
        let room = format!(
            "api/collaboration/room/json:notebook:{}?sessionId={}",
            id("fileId"),
            id("sessionId")
        );
        let url = format!("ws://{}/{room}", lab().address());
        let mut request = url.into_client_request().expect("a url");
        request
            .headers_mut()
            .insert("authorization", authorization.parse().expect("a header"));
        let tcp = TcpStream::connect(lab().address()).await.expect("JupyterLab listens");
        tcp.set_nodelay(true).expect("TCP_NODELAY");
        let limits = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) = client_async_with_config(request, tcp, Some(limits))
            .await
            .expect("the room opens");
        let doc = Doc::new();
        let cells = doc.get_or_insert_array("cells");
        let mut peer = Self { doc, cells, socket };
        peer.send(STEP_1, &StateVector::default().encode_v1()).await;
        while peer.hear().await.step != STEP_2 {}
        peer
    }

    pub(super) fn cell_count(&self) -> u32 {
        self.cells.len(&self.doc.transact())
    }

    /// The whole document as one update.
    pub(super) fn whole(&self) -> Vec<u8> {
        self.doc.transact().encode_diff_v1(&StateVector::default())
    }

    pub(super) async fn set_source(&mut self, cell: usize, source: &str) {
        self.change(|cells, txn| {
            let text = source_of(cells, txn, cell);
            let length = text.len(txn);
            text.remove_range(txn, 0, length);
            text.insert(txn, 0, source);
        })
        .await;
    }

    pub(super) async fn insert(&mut self, at: usize, source: &str) {
        let cell = MapPrelim::from([
            ("id".to_owned(), In::Any(Any::from("last"))),
            ("cell_type".to_owned(), In::Any(Any::from("code"))),
            ("metadata".to_owned(), MapPrelim::default().into()),
            ("source".to_owned(), TextPrelim::new(source).into()),
            ("outputs".to_owned(), ArrayPrelim::default().into()),
            ("execution_count".to_owned(), In::Any(Any::Null)),
        ]);
        self.change(|cells, txn| {
            cells.insert(txn, position(at), cell);
        })
        .await;
    }

    pub(super) async fn delete(&mut self, at: usize) {
        self.change(|cells, txn| cells.remove(txn, position(at))).await;
    }

    async fn change(&mut self, change: impl FnOnce(&ArrayRef, &mut TransactionMut<'_>)) {
        let update = {
            let mut txn = self.doc.transact_mut();
            change(&self.cells, &mut txn);
            txn.encode_update_v1()
        };
        self.send(UPDATE, &update).await;
    }

    /// Listens until a cell has this source, and tells when that was.
    pub(super) async fn until_source(&mut self, cell: usize, source: &str) -> Instant {
        loop {
            self.hear().await;
            let txn = self.doc.transact();
            if source_of(&self.cells, &txn, cell).get_string(&txn) == source {
                return Instant::now();
            }
        }
    }

    /// Listens until the server sends what this client sent.
    pub(super) async fn until_echoed(&mut self) {
        while !self.hear().await.of_mine {}
    }

    /// Takes in what has come already.
    pub(super) async fn drain(&mut self) {
        while self.hear().now_or_never().is_some() {}
    }

    async fn hear(&mut self) -> Heard {
        loop {
            let message = timeout(TIMEOUT, self.socket.next()).await.expect("something comes");
            let message = message.expect("the room stays open").expect("a frame");
            // The kernel forgets the setting after a while.
            #[cfg(target_os = "linux")]
            self.socket.get_ref().set_quickack(true).expect("TCP_QUICKACK");
            let Message::Binary(frame) = message else { continue };
            let (&[SYNC, step], payload) = frame.split_first_chunk().expect("two numbers") else {
                continue;
            };
            let payload = buffer(payload);
            if step == STEP_1 {
                let vector = StateVector::decode_v1(payload).expect("a state vector");
                let diff = self.doc.transact().encode_diff_v1(&vector);
                self.send(STEP_2, &diff).await;
                continue;
            }
            let update = Update::decode_v1(payload).expect("an update");
            let me = self.doc.client_id();
            let of_mine = update.insertions(true).get(&me).is_some() || update.delete_set().get(&me).is_some();
            self.doc.transact_mut().apply_update(update).expect("it fits");
            return Heard { step, of_mine };
        }
    }

    async fn send(&mut self, step: u8, payload: &[u8]) {
        let mut frame = vec![SYNC, step];
        frame.write_buf(payload);
        let frame = Message::Binary(frame.into());
        self.socket.send(frame).await.expect("the room takes it");
    }
}

fn client() -> &'static reqwest::Client {
    static CLIENT: std::sync::LazyLock<reqwest::Client> = std::sync::LazyLock::new(reqwest::Client::new);
    &CLIENT
}

fn source_of(cells: &ArrayRef, txn: &impl ReadTxn, cell: usize) -> TextRef {
    let cell: MapRef = cells
        .get(txn, position(cell))
        .and_then(|cell| cell.cast().ok())
        .expect("a cell");
    cell.get(txn, "source")
        .and_then(|source| source.cast().ok())
        .expect("a source")
}

fn position(index: usize) -> u32 {
    u32::try_from(index).expect("few cells")
}

/// The bytes behind their length.
fn buffer(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| byte & 0x80 == 0).expect("a length");
    &bytes[end + 1..]
}
