//! A person with a document open: a second client of Jupyter's rooms that shares no code with the
//! gateway, so that a mistake cannot hide by being made on both sides.

mod shown;
mod wire;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_tungstenite::{
    connect_async_with_config,
    tungstenite::{Message, client::IntoClientRequest, protocol::WebSocketConfig},
};
use yrs::{
    Any, Array, ArrayPrelim, ArrayRef, Doc, GetString, Map, MapPrelim, MapRef, OffsetKind, Options, Out, ReadTxn,
    StateVector, Text, TextPrelim, TextRef, Transact, TransactionMut, Update,
    block::ClientID,
    types::ToJson,
    updates::{decoder::Decode, encoder::Encode},
};

use self::{
    shown::user,
    wire::{buffer, number, presence, sync},
};
use super::{eventually, lab, notebook::CellView};

/// Interval at which a browser says who is there; Jupyter shows a newcomer nobody until they do.
const RENEWAL: Duration = Duration::from_secs(15);
/// Longest wait for a document that is opened.
const OPENING_TIMEOUT: Duration = Duration::from_secs(30);

pub struct Human {
    page: Arc<Mutex<Page>>,
    client: u64,
    out: mpsc::UnboundedSender<Vec<u8>>,
    task: JoinHandle<()>,
}

/// Memory of the person's browser.
struct Page {
    doc: Doc,
    cells: ArrayRef,
    source: TextRef,
    synced: bool,
    /// Why the room is closed, if it is.
    closed: Option<String>,
    presence: Value,
    clock: u64,
    others: HashMap<u64, Value>,
}

impl Page {
    /// The presence once more, if there is one.
    fn renewed(&mut self, client: u64) -> Vec<Vec<u8>> {
        if self.presence.is_null() {
            return Vec::new();
        }
        self.clock += 1;
        vec![presence(client, self.clock, &self.presence)]
    }
}

impl Human {
    /// Opens a document of the shared JupyterLab.
    pub async fn join(path: &str) -> Self {
        Self::join_at(lab().url(), lab().token(), path).await
    }

    /// Opens a document of any server and waits until it is there.
    pub async fn join_at(url: &str, token: &str, path: &str) -> Self {
        super::deadline::note_wait("the document arrives");
        let joined = Self::try_join_at(url, token, path).await;
        joined.unwrap_or_else(|why| panic!("{path} does not arrive: {why}"))
    }

    /// The same with a server that may refuse, of which a person would try to open the document again.
    pub async fn try_join_at(url: &str, token: &str, path: &str) -> Result<Self, String> {
        // Older servers garble ids that are longer than those of browsers.
        let mut options = Options::with_client_id(ClientID::new(u64::from(uuid::Uuid::new_v4().as_fields().0)));
        options.offset_kind = OffsetKind::Utf16;
        let doc = Doc::with_options(options);
        let client = doc.client_id().get();
        let (cells, source) = (doc.get_or_insert_array("cells"), doc.get_or_insert_text("source"));
        let page = Arc::new(Mutex::new(Page {
            doc,
            cells,
            source,
            synced: false,
            closed: None,
            presence: Value::Null,
            clock: 0,
            others: HashMap::new(),
        }));
        let (out, task) = attend(&page, client, open_room(url, token, path).await?);
        let human = Self {
            page,
            client,
            out,
            task,
        };
        human.send(sync(0, &StateVector::default().encode_v1()));
        human.synced().await?;
        Ok(human)
    }

    /// Waits until the document has arrived.
    async fn synced(&self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let (synced, closed) = {
                let page = self.page();
                (page.synced, page.closed.clone())
            };
            match closed {
                _ if synced => return Ok(()),
                Some(why) => return Err(format!("{why} after {:.1?}", began.elapsed())),
                None if began.elapsed() > OPENING_TIMEOUT => return Err(format!("not in {OPENING_TIMEOUT:?}")),
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Is online in the shared JupyterLab, as its side panel lists people, with these documents open.
    pub async fn online(name: &str, current: Option<&str>, documents: &[&str]) -> Self {
        Self::online_at(lab().url(), lab().token(), name, current, documents).await
    }

    /// The same on any server.
    pub async fn online_at(url: &str, token: &str, name: &str, current: Option<&str>, documents: &[&str]) -> Self {
        let doc = Doc::with_client_id(u64::from(uuid::Uuid::new_v4().as_fields().0));
        let client = doc.client_id().get();
        let (cells, source) = (doc.get_or_insert_array("cells"), doc.get_or_insert_text("source"));
        let page = Arc::new(Mutex::new(Page {
            doc,
            cells,
            source,
            synced: true,
            closed: None,
            presence: Value::Null,
            clock: 0,
            others: HashMap::new(),
        }));
        super::jupyter::install_tls();
        let base = url.replace("http://", "ws://");
        let address = format!("{base}api/collaboration/room/JupyterLab:globalAwareness?token={token}");
        let (socket, _) = tokio_tungstenite::connect_async(address).await.expect("the room opens");
        let (out, task) = attend(&page, client, socket);
        let human = Self {
            page,
            client,
            out,
            task,
        };
        let current = current.map(|path| format!("notebook:{path}"));
        human.say(json!({ "user": user(name), "current": current, "documents": documents }));
        human
    }

    /// Returns to a room with what the browser still has in memory, as a page does that was never reloaded.
    pub async fn come_back(&mut self, url: &str, token: &str, path: &str) {
        self.task.abort();
        let room = open_room(url, token, path).await.expect("the room opens");
        {
            let mut page = self.page();
            (page.synced, page.closed) = (false, None);
        }
        (self.out, self.task) = attend(&self.page, self.client, room);
        let vector = self.page().doc.transact().state_vector();
        self.send(sync(0, &vector.encode_v1()));
        self.synced().await.expect("the document arrives");
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        self.page.lock().expect("no panic inside")
    }

    fn send(&self, frame: Vec<u8>) {
        let _ = self.out.send(frame);
    }

    pub fn cells(&self) -> Vec<CellView> {
        let page = self.page();
        let txn = page.doc.transact();
        let cell = |value: Out| match value {
            Out::YMap(cell) => CellView {
                id: string(&cell, &txn, "id"),
                cell_type: string(&cell, &txn, "cell_type"),
                source: string(&cell, &txn, "source"),
            },
            other => panic!("not a cell: {other:?}"),
        };
        page.cells.iter(&txn).map(cell).collect()
    }

    /// A cell with all that a live document has of it.
    pub fn cell(&self, index: u32) -> Value {
        let page = self.page();
        let txn = page.doc.transact();
        let cell = page.cells.get(&txn, index).map(|cell| cell.to_json(&txn));
        cell.map_or(Value::Null, |cell| serde_json::to_value(cell).expect("json"))
    }

    pub fn sources(&self) -> Vec<String> {
        self.cells().into_iter().map(|cell| cell.source).collect()
    }

    pub fn text(&self) -> String {
        let page = self.page();
        page.source.get_string(&page.doc.transact())
    }

    /// Types into a cell, one character per update, waiting `pause` after each.
    pub async fn type_into(&self, cell: usize, offset: u32, text: &str, pause: Duration) {
        // The cursor stays in the cell wherever others move it.
        let id = self.cells()[cell].id.clone();
        let mut at = offset;
        for character in text.chars() {
            self.splice_cell(&id, at, 0, &character.to_string());
            at += u32::try_from(character.len_utf16()).expect("1 or 2");
            tokio::time::sleep(pause).await;
        }
    }

    /// Replaces part of a cell; positions count UTF-16 units, as in a browser.
    pub fn splice_cell(&self, id: &str, at: u32, delete: u32, insert: &str) {
        self.change(|page, txn| {
            let source = find(page, txn, id);
            splice(&source, txn, at, delete, insert);
        });
    }

    pub fn splice_text(&self, at: u32, delete: u32, insert: &str) {
        self.change(|page, txn| splice(&page.source.clone(), txn, at, delete, insert));
    }

    pub fn insert_cell(&self, at: u32, id: &str, source: &str) {
        let cell = MapPrelim::from([
            ("id".to_owned(), yrs::In::Any(Any::from(id))),
            ("cell_type".to_owned(), yrs::In::Any(Any::from("markdown"))),
            ("metadata".to_owned(), MapPrelim::default().into()),
            ("source".to_owned(), TextPrelim::new(source).into()),
        ]);
        self.change(|page, txn| {
            page.cells.insert(txn, at, cell);
        });
    }

    /// Moves a code cell as JupyterLab does, by another one in its new place; what was put out last does not come along.
    pub fn move_cell(&self, from: u32, to: u32) {
        let cell = self.cell(from);
        let text = |member: &str| cell[member].as_str().expect("a text").to_owned();
        let moved = MapPrelim::from([
            ("id".to_owned(), yrs::In::Any(Any::from(text("id")))),
            ("cell_type".to_owned(), yrs::In::Any(Any::from("code"))),
            ("metadata".to_owned(), MapPrelim::default().into()),
            ("source".to_owned(), TextPrelim::new(text("source")).into()),
            ("outputs".to_owned(), ArrayPrelim::default().into()),
            ("execution_count".to_owned(), yrs::In::Any(Any::Null)),
        ]);
        self.change(|page, txn| {
            page.cells.remove(txn, from);
            page.cells.insert(txn, to, moved);
        });
    }

    /// Puts a cell back to how it was after an earlier run.
    pub fn put_back(&self, at: u32, count: i64, output: &str) {
        self.clear_outputs(at);
        self.change(|page, txn| {
            let cell: MapRef = page.cells.get(txn, at).expect("a cell").cast().expect("a map");
            let outputs: ArrayRef = cell.get(txn, "outputs").expect("outputs").cast().expect("a list");
            let stream = MapPrelim::from([
                ("output_type".to_owned(), yrs::In::Any(Any::from("stream"))),
                ("name".to_owned(), yrs::In::Any(Any::from("stdout"))),
                ("text".to_owned(), TextPrelim::new(output).into()),
            ]);
            outputs.insert(txn, 0, stream);
            cell.insert(txn, "execution_count", count);
            cell.insert(txn, "execution_state", "idle");
        });
    }

    /// Returns whether the tab is marked as unsaved.
    pub fn sees_unsaved(&self) -> bool {
        let page = self.page();
        let state = page.doc.get_or_insert_map("state");
        matches!(
            state.get(&page.doc.transact(), "dirty"),
            Some(Out::Any(Any::Bool(true)))
        )
    }

    /// Has the tab show that something is not saved, as JupyterLab does when autosave is off.
    pub fn mark_unsaved(&self) {
        // Before the transaction, which the document allows one of.
        let state = self.page().doc.get_or_insert_map("state");
        self.change(|_, txn| {
            state.insert(txn, "dirty", true);
        });
    }

    /// Shows a cell as running, as JupyterLab does with one that a person runs.
    pub fn show_running(&self, at: u32) {
        self.change(|page, txn| {
            let cell: MapRef = page.cells.get(txn, at).expect("a cell").cast().expect("a map");
            cell.insert(txn, "execution_state", "running");
        });
    }

    /// Presses Ctrl+S.
    pub fn save(&self) {
        self.send([&[2, 4], &b"save"[..], &[1]].concat());
    }

    pub fn clear_outputs(&self, at: u32) {
        self.change(|page, txn| {
            let cell: MapRef = page.cells.get(txn, at).expect("a cell").cast().expect("a map");
            let outputs: ArrayRef = cell.get(txn, "outputs").expect("outputs").cast().expect("a list");
            let length = outputs.len(txn);
            outputs.remove_range(txn, 0, length);
        });
    }

    pub fn delete_cell(&self, at: u32) {
        self.change(|page, txn| page.cells.remove(txn, at));
    }

    fn change(&self, change: impl FnOnce(&Page, &mut TransactionMut<'_>)) {
        let page = self.page();
        let mut txn = page.doc.transact_mut();
        change(&page, &mut txn);
        let update = txn.encode_update_v1();
        drop(txn);
        self.send(sync(2, &update));
    }

    pub async fn wait_for(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        eventually(what, async || condition(self).then_some(())).await;
    }

    /// Closes the document.
    pub async fn leave(self) {
        self.say(Value::Null);
        let Self { out, task, .. } = self;
        drop(out);
        let _ = task.await;
    }
}

type Socket = tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

async fn open_room(url: &str, token: &str, path: &str) -> Result<Socket, String> {
    let kind = if path.ends_with(".ipynb") {
        "json:notebook"
    } else {
        "text:file"
    };
    let (format, file_type) = kind.split_once(':').expect("a kind");
    let authorization = format!("token {token}");
    super::jupyter::install_tls();
    let answer = reqwest::Client::new()
        .put(format!("{url}api/collaboration/session/{path}"))
        .header("authorization", &authorization)
        .json(&json!({ "format": format, "type": file_type }))
        .send()
        .await
        .map_err(|error| error.to_string())?;
    let (status, text) = (answer.status(), answer.text().await.unwrap_or_default());
    let session: Value = serde_json::from_str(&text).unwrap_or_default();
    if session["fileId"].is_null() {
        return Err(format!("no session: {status} {text}"));
    }
    let id = |name: &str| session[name].as_str().expect("an id").to_owned();
    let base = url.replace("http://", "ws://");
    let address = format!(
        "{base}api/collaboration/room/{kind}:{}?sessionId={}",
        id("fileId"),
        id("sessionId")
    );
    let mut request = address.into_client_request().expect("a url");
    request
        .headers_mut()
        .insert("authorization", authorization.parse().expect("a header"));
    let limits = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
    let opened = connect_async_with_config(request, Some(limits), true).await;
    Ok(opened.map_err(|error| format!("the room does not open: {error}"))?.0)
}

/// Carries frames between a page and its room until either is gone, and says again and again who is there, as
/// browsers do.
fn attend(page: &Arc<Mutex<Page>>, client: u64, socket: Socket) -> (mpsc::UnboundedSender<Vec<u8>>, JoinHandle<()>) {
    let (out, mut waiting) = mpsc::unbounded_channel::<Vec<u8>>();
    let shared = Arc::clone(page);
    let task = tokio::spawn(async move {
        let (mut write, mut read) = socket.split();
        let mut renewal = tokio::time::interval(RENEWAL);
        loop {
            let frames = tokio::select! {
                _ = renewal.tick() => shared.lock().expect("no panic inside").renewed(client),
                frame = waiting.recv() => match frame {
                    Some(frame) => vec![frame],
                    None => break,
                },
                message = read.next() => match message {
                    Some(Ok(Message::Binary(bytes))) => hear(&shared, client, &bytes),
                    Some(Ok(Message::Close(frame))) => {
                        note_closed(&shared, &format!("{frame:?}"));
                        Vec::new()
                    }
                    Some(Ok(_)) => Vec::new(),
                    Some(Err(error)) => {
                        note_closed(&shared, &error.to_string());
                        break;
                    }
                    None => {
                        note_closed(&shared, "its connection ended");
                        break;
                    }
                },
            };
            for frame in frames {
                if write.send(Message::Binary(frame.into())).await.is_err() {
                    return;
                }
            }
        }
        let _ = timeout(Duration::from_secs(1), write.close()).await;
    });
    (out, task)
}

/// Keeps the first reason.
fn note_closed(page: &Mutex<Page>, why: &str) {
    let mut page = page.lock().expect("no panic inside");
    page.closed.get_or_insert_with(|| format!("the room was closed: {why}"));
}

/// Takes in one frame and returns what to answer.
fn hear(page: &Mutex<Page>, me: u64, frame: &[u8]) -> Vec<Vec<u8>> {
    let mut page = page.lock().expect("no panic inside");
    let mut rest = frame;
    match (number(&mut rest), rest) {
        (0, mut rest) => match (number(&mut rest), buffer(&mut rest)) {
            (0, vector) => {
                let vector = StateVector::decode_v1(vector).expect("a state vector");
                vec![sync(1, &page.doc.transact().encode_diff_v1(&vector))]
            }
            (step, update) => {
                let update = Update::decode_v1(update).expect("an update");
                page.doc.transact_mut().apply_update(update).expect("it fits");
                page.synced |= step == 1;
                Vec::new()
            }
        },
        (1, mut rest) => {
            let mut inner = buffer(&mut rest);
            for _ in 0..number(&mut inner) {
                let (client, _clock) = (number(&mut inner), number(&mut inner));
                let state: Value = serde_json::from_slice(buffer(&mut inner)).expect("a state");
                match state {
                    _ if client == me => {}
                    Value::Null => drop(page.others.remove(&client)),
                    state => drop(page.others.insert(client, state)),
                }
            }
            Vec::new()
        }
        _ => Vec::new(),
    }
}

fn find(page: &Page, txn: &impl ReadTxn, id: &str) -> TextRef {
    let cells = page.cells.iter(txn).filter_map(|value| value.cast::<MapRef>().ok());
    let cell = cells
        .into_iter()
        .find(|cell| string(cell, txn, "id") == id)
        .expect("the cell");
    cell.get(txn, "source")
        .and_then(|source| source.cast().ok())
        .expect("a source")
}

fn splice(text: &TextRef, txn: &mut TransactionMut<'_>, at: u32, delete: u32, insert: &str) {
    if delete > 0 {
        text.remove_range(txn, at, delete);
    }
    if !insert.is_empty() {
        text.insert(txn, at, insert);
    }
}

fn string(cell: &MapRef, txn: &impl ReadTxn, key: &str) -> String {
    cell.get(txn, key).map(|value| value.to_string(txn)).unwrap_or_default()
}
