//! An OpenTelemetry collector as far as a test needs one: it takes traces, metrics and logs by gRPC and by HTTP on one
//! port, and keeps them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body_util::StreamBody;
use hyper::body::Frame;
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::Span,
};
use prost::Message;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::eventually;

/// Length of what stands before a message of gRPC.
const GRPC_PREFIX: usize = 5;

pub struct Collector {
    port: u16,
    received: Arc<Mutex<Received>>,
    _task: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    metrics: BTreeSet<String>,
    logs: Vec<LogLine>,
    resources: Vec<Resource>,
    headers: Vec<HeaderMap>,
    /// Everything as text, to be searched for what must not be there.
    text: String,
}

/// A log record: what it says, and the trace that it belongs to.
#[derive(Debug, Clone)]
pub struct LogLine {
    pub body: String,
    pub trace_id: Vec<u8>,
}

impl Collector {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let received = Arc::<Mutex<Received>>::default();
        let router = Router::new().fallback(take).with_state(Arc::clone(&received));
        let serving = async move { axum::serve(listener, router).await.expect("it serves") };
        Self {
            port,
            received,
            _task: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The span of this name in a trace, once it has come.
    pub async fn span(&self, trace_id: &str, name: &str) -> Span {
        let what = format!("the span {name} in {trace_id}");
        let found = eventually(&what, async || {
            let received = self.received.lock().expect("no panic");
            let mut spans = received.spans.iter();
            spans
                .find(|span| hex(&span.trace_id) == trace_id && span.name == name)
                .cloned()
        });
        found.await
    }

    pub fn spans(&self) -> Vec<Span> {
        self.received.lock().expect("no panic").spans.clone()
    }

    pub async fn metric(&self, name: &str) {
        let what = format!("the metric {name}");
        let arrived = eventually(&what, async || {
            let received = self.received.lock().expect("no panic");
            received.metrics.contains(name).then_some(())
        });
        arrived.await;
    }

    pub async fn log(&self, body: &str) -> LogLine {
        let what = format!("the log line {body}");
        let found = eventually(&what, async || {
            let received = self.received.lock().expect("no panic");
            received.logs.iter().find(|line| line.body.contains(body)).cloned()
        });
        found.await
    }

    /// The attributes of those who sent something.
    pub fn resource(&self) -> BTreeMap<String, String> {
        let received = self.received.lock().expect("no panic");
        received
            .resources
            .iter()
            .flat_map(|resource| attributes(&resource.attributes))
            .collect()
    }

    /// Returns whether everything was sent with this header.
    pub fn has_header(&self, name: &str, value: &str) -> bool {
        let received = self.received.lock().expect("no panic");
        let mut requests = received.headers.iter();
        !received.headers.is_empty() && requests.all(|headers| headers.get(name).is_some_and(|had| had == value))
    }

    pub fn text(&self) -> String {
        self.received.lock().expect("no panic").text.clone()
    }
}

pub fn attributes(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let value = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(value)) => value.clone(),
        Some(Value::IntValue(value)) => value.to_string(),
        Some(Value::BoolValue(value)) => value.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = attributes.iter();
    pairs
        .map(|attribute| (attribute.key.clone(), value(attribute)))
        .collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn take(State(received): State<Arc<Mutex<Received>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 64 * 1024 * 1024).await.expect("a body");
    let kind = parts.headers.get("content-type").map(HeaderValue::as_bytes);
    let is_grpc = kind.is_some_and(|kind| kind.starts_with(b"application/grpc"));
    let message = match is_grpc {
        true => body.slice(GRPC_PREFIX..),
        false => body,
    };
    let mut received = received.lock().expect("no panic");
    received.headers.push(parts.headers);
    received.keep(parts.uri.path(), message);
    match is_grpc {
        true => grpc_answer(),
        false => Response::builder()
            .header("content-type", "application/x-protobuf")
            .body(Body::empty())
            .expect("an answer"),
    }
}

/// An empty message, and that all went well.
fn grpc_answer() -> Response {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let frames = [
        Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(&[0; GRPC_PREFIX]))),
        Ok(Frame::trailers(trailers)),
    ];
    let body = StreamBody::new(futures::stream::iter(frames));
    let answer = Response::builder().header("content-type", "application/grpc");
    answer.body(Body::new(body)).expect("an answer")
}

impl Received {
    fn keep(&mut self, path: &str, message: Bytes) {
        if path.contains("race") {
            let request = ExportTraceServiceRequest::decode(message).expect("traces");
            self.text += &format!("{request:?}");
            for group in request.resource_spans {
                self.resources.extend(group.resource);
                self.spans
                    .extend(group.scope_spans.into_iter().flat_map(|scope| scope.spans));
            }
        } else if path.contains("etrics") {
            let request = ExportMetricsServiceRequest::decode(message).expect("metrics");
            self.text += &format!("{request:?}");
            for group in request.resource_metrics {
                let metrics = group.scope_metrics.into_iter().flat_map(|scope| scope.metrics);
                self.metrics.extend(metrics.map(|metric| metric.name));
            }
        } else {
            let request = ExportLogsServiceRequest::decode(message).expect("logs");
            self.text += &format!("{request:?}");
            for record in request.resource_logs.into_iter().flat_map(|group| group.scope_logs) {
                self.logs.extend(record.log_records.into_iter().map(|record| LogLine {
                    body: format!("{:?}", record.body),
                    trace_id: record.trace_id,
                }));
            }
        }
    }
}
