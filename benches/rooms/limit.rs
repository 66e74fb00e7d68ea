//! The limit of reading: a shared document in memory behind the least of an HTTP server.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Query, State},
    http::header::CONTENT_TYPE,
    response::IntoResponse,
    routing::get,
    serve::ListenerExt,
};
use serde::Deserialize;
use tokio::net::TcpListener;
use yrs::{Any, Array, ArrayRef, Doc, ReadTxn, Transact, Update, types::ToJson, updates::decoder::Decode};

#[derive(Deserialize)]
struct Range {
    start: Option<u32>,
    end: Option<u32>,
}

pub(super) async fn start(update: &[u8]) -> SocketAddr {
    let doc = Doc::new();
    let cells = doc.get_or_insert_array("cells");
    let update = Update::decode_v1(update).expect("an update");
    doc.transact_mut().apply_update(update).expect("it fits");
    let router = Router::new()
        .route("/cells", get(read))
        .with_state(Arc::new((doc, cells)));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("TCP_NODELAY"));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn read(State(document): State<Arc<(Doc, ArrayRef)>>, Query(range): Query<Range>) -> impl IntoResponse {
    let (doc, cells) = &*document;
    let txn = doc.transact();
    let json = match (range.start, range.end) {
        (Some(start), Some(end)) => some(cells, &txn, start..end),
        _ => cells.to_json(&txn),
    };
    let body = serde_json::to_vec(&json).expect("JSON");
    ([(CONTENT_TYPE, "application/json")], body)
}

fn some(cells: &ArrayRef, txn: &impl ReadTxn, range: std::ops::Range<u32>) -> Any {
    let cells = range.filter_map(|index| Some(cells.get(txn, index)?.to_json(txn)));
    Any::Array(cells.collect())
}
