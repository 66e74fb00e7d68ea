//! Sockets: accepting connections, and letting go of them without failing anybody.

use std::{
    convert::Infallible,
    future::poll_fn,
    net::IpAddr,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{Router, body::Body};
use http::{HeaderValue, header::CONNECTION};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::yield_now,
    time::{Instant, sleep, sleep_until, timeout, timeout_at},
};
use tokio_rustls::server::TlsStream;
use tokio_util::{
    sync::CancellationToken,
    task::{TaskTracker, task_tracker::TaskTrackerToken},
};
use tower::ServiceExt;

use super::{
    connections::{ClientConnection, CloseReason, ConnectionTable, CountedBody, ObservedStream, Place},
    tls::Tls,
};

/// Upper bound of hyper's buffer per connection; larger headers are answered with 431.
const MAX_BUFFER: usize = 128 * 1024;
/// Accepting fails when the process is out of file descriptors; trying at once again would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Shortest time between the last call to waiting requests and the deadline.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// For so long at most connections are accepted although it is leaving: each answer closes one meanwhile, and whatever is in
/// front may learn that it is to send calls elsewhere.
const ACCEPTING: Duration = Duration::from_secs(5);
/// For so long at most idle connections stay open after the last one was accepted: whoever keeps them, a load balancer perhaps,
/// may send a call over one before it has learnt that no more are accepted.
const LINGER: Duration = Duration::from_secs(1);
/// After the streams were told to end, connections need only a moment to say so.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Shortest time for documents to be saved and closed, however much of the deadline the requests needed.
const SAVE_TIME: Duration = Duration::from_secs(3);
/// Time before the deadline at which documents are no longer waited for, so that what was recorded is still written.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// The state of leaving: told to leave, what is still being worked on, and when to drop everything.
#[derive(Debug, Clone)]
pub struct Drain {
    leaving: CancellationToken,
    last_call: CancellationToken,
    /// Cancelled when no more connections are accepted.
    closing: CancellationToken,
    stop: CancellationToken,
    work: TaskTracker,
    /// Addresses and connections over which requests may still come.
    serving: TaskTracker,
    deadline: Duration,
    /// Time at which it was told to leave.
    began: Arc<OnceLock<Instant>>,
}

impl Drain {
    pub fn new(deadline: Duration) -> Self {
        Self {
            leaving: CancellationToken::new(),
            last_call: CancellationToken::new(),
            closing: CancellationToken::new(),
            stop: CancellationToken::new(),
            work: TaskTracker::new(),
            serving: TaskTracker::new(),
            deadline,
            began: Arc::default(),
        }
    }

    /// Starts to leave: unready from now on, and gone when the requests under way are finished.
    pub fn start(&self) {
        self.began.get_or_init(Instant::now);
        self.leaving.cancel();
    }

    /// Cancelled when the gateway is told to leave.
    pub fn leaving_token(&self) -> &CancellationToken {
        &self.leaving
    }

    /// Cancelled a moment before the deadline: who only waits must answer now, while answers are still sent.
    pub fn last_call_token(&self) -> &CancellationToken {
        &self.last_call
    }

    /// Cancelled when every stream must end, whatever it carries.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Waits until documents must be closed, saved or not. Requests are over by then.
    pub async fn wait_until_overdue(&self) {
        self.stop.cancelled().await;
        let began = self.began.get().copied().unwrap_or_else(Instant::now);
        let until = began + self.deadline.saturating_sub(WRITE_TIME);
        sleep_until(until.max(Instant::now() + SAVE_TIME.min(self.deadline))).await;
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.leaving.is_cancelled()
    }

    /// A piece of work that leaving waits for, as long as the token lives.
    pub(super) fn work(&self) -> TaskTrackerToken {
        self.work.token()
    }

    /// Waits to be told to leave, then for the work to end, at most until the deadline.
    async fn finished(&self) {
        self.leaving.cancelled().await;
        self.work.close();
        self.serving.close();
        let began = self.began.get().copied().unwrap_or_else(Instant::now);
        let in_time = async {
            // There may never be a moment without work while somebody goes on sending it here.
            let _ = timeout_at(began + accepting(self.deadline), self.work.wait()).await;
            self.closing.cancel();
            let mut answered = pin!(async {
                self.serving.wait().await;
                self.work.wait().await;
            });
            if timeout_at(began + patience(self.deadline), answered.as_mut())
                .await
                .is_ok()
            {
                return true;
            }
            self.last_call.cancel();
            timeout_at(began + self.deadline, answered).await.is_ok()
        };
        if self.stop.run_until_cancelled(in_time).await == Some(false) {
            tracing::warn!(
                left = self.work.len(),
                "requests are still running at the drain deadline"
            );
        }
        self.closing.cancel();
        self.stop.cancel();
    }
}

/// The share of the time for leaving that those who wait may have; the rest is for their answers.
fn patience(deadline: Duration) -> Duration {
    deadline.saturating_sub((deadline / 10).max(ANSWER_TIME))
}

/// The share of it in which connections are still accepted.
fn accepting(deadline: Duration) -> Duration {
    ACCEPTING.min(patience(deadline) / 4)
}

/// The share of it in which idle connections stay open after that.
fn linger(deadline: Duration) -> Duration {
    LINGER.min(deadline.saturating_sub(patience(deadline)) / 2)
}

/// What the connections of an address have in common.
#[derive(Clone)]
struct Address {
    tls: Option<Arc<Tls>>,
    router: Router,
    connections: Arc<ConnectionTable>,
    tasks: TaskTracker,
    /// Cancelled when connections end as soon as what came over them is answered.
    ending: CancellationToken,
    /// Cancelled when they end.
    gone: CancellationToken,
    drain: Drain,
}

/// Serves until told to leave, then finishes what is under way, at most until the deadline. Meanwhile
/// it still answers: readiness says that it is leaving, and no call fails that came a moment too late.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    connections: Arc<ConnectionTable>,
    drain: Drain,
) {
    let address = Address {
        tls,
        router,
        connections,
        tasks: TaskTracker::new(),
        ending: CancellationToken::new(),
        gone: CancellationToken::new(),
        drain: drain.clone(),
    };
    let serving = drain.serving.token();
    let accepting = async {
        while let Some(accepted) = drain.closing.run_until_cancelled(listener.accept()).await {
            match accepted {
                Ok((stream, client)) => address.take(stream, client.ip()),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    address.connections.make_room();
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        address.take_waiting(listener);
        address.tasks.close();
        let all_ended = timeout(linger(drain.deadline), address.tasks.wait());
        let _ = drain.stop.run_until_cancelled(all_ended).await;
        address.ending.cancel();
        drop(serving);
    };
    tokio::join!(accepting, drain.finished());
    let _ = timeout(CLOSE_TIMEOUT, address.tasks.wait()).await;
    address.gone.cancel();
    address.tasks.wait().await;
}

impl Address {
    /// Serves a connection, if there is a place for it.
    fn take(&self, stream: TcpStream, client: IpAddr) {
        match self.connections.admit(client) {
            Ok(place) => {
                let connection = connection(stream, self.clone(), place);
                let gone = self.gone.clone();
                drop(self.tasks.spawn(gone.run_until_cancelled_owned(connection)));
            }
            // Over TLS nothing can be said without waiting.
            Err(_) if self.tls.is_some() => {}
            Err(_) => refuse(&stream),
        }
    }

    /// Accepts who is connected already but has not been accepted, and nobody after them: the system would cut them off.
    fn take_waiting(&self, listener: TcpListener) {
        let Ok(listener) = listener.into_std() else { return };
        while let Ok((stream, client)) = listener.accept() {
            if stream.set_nonblocking(true).is_ok()
                && let Ok(stream) = TcpStream::from_std(stream)
            {
                self.take(stream, client.ip());
            }
        }
    }
}

/// Says what can be said without waiting for a client, of whom there are too many.
fn refuse(stream: &TcpStream) {
    const ANSWER: &[u8] =
        b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let _ = stream.try_write(ANSWER);
}

async fn connection(stream: TcpStream, address: Address, place: Place) {
    // Small answers must not wait for the client's delayed acknowledgement.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY cannot be set");
    }
    match address.tls.clone() {
        None => answer_all(stream, address, place).await,
        // Boxed, since its state is large and most of it is needed for a moment only.
        Some(tls) => {
            if let Some(stream) = Box::pin(secured(stream, &tls, &place, &address.ending)).await {
                answer_all(stream, address, place).await;
            }
        }
    }
}

/// The stream inside of TLS, if the client agrees on it in time and nobody else needs its place more.
async fn secured(
    stream: TcpStream,
    tls: &Tls,
    place: &Place,
    ending: &CancellationToken,
) -> Option<TlsStream<TcpStream>> {
    let client = place.connection();
    let closed = tokio::select! {
        biased;
        agreed = tls.acceptor().accept(stream) => {
            client.on_handshake();
            return agreed
                .inspect_err(|error| tracing::debug!(%error, "a TLS handshake failed"))
                .ok();
        }
        () = ending.cancelled() => return None,
        () = client.evicted() => CloseReason::Evicted,
        () = sleep(client.timeouts().handshake) => CloseReason::Handshake,
    };
    place.closed(closed);
    None
}

/// Answers what comes over a connection, as long as its client takes no more time than it has and nobody else needs its
/// place more.
async fn answer_all<S>(stream: S, address: Address, place: Place)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let client = Arc::clone(place.connection());
    let timeouts = *client.timeouts();
    let stream = ObservedStream::new(stream, Arc::clone(&client));
    let Address {
        router, ending, drain, ..
    } = address;
    let serving = drain.serving.token();
    let answering = Arc::clone(&client);
    let service = service_fn(move |request| answer(request, router.clone(), &answering, &drain));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The table's own times tell a connection without a request from one between two of them.
        .header_read_timeout(None)
        .max_buf_size(MAX_BUFFER)
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(timeouts.ping_interval)
        .keep_alive_timeout(timeouts.ping)
        .max_header_list_size(u32::try_from(MAX_BUFFER).unwrap_or(u32::MAX));
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).into_owned());
    let answered = async {
        tokio::select! {
            biased;
            ended = connection.as_mut() => return ended,
            // What has come by now is read before the connection is told to end.
            () = async { ending.cancelled().await; yield_now().await } => {}
        }
        connection.as_mut().graceful_shutdown();
        // Requests that have come count as work by now.
        drop(serving);
        connection.await
    };
    let mut timer = pin!(sleep_until(Instant::now() + timeouts.first_byte));
    let closed = tokio::select! {
        biased;
        ended = answered => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            return;
        }
        () = client.evicted() => CloseReason::Evicted,
        reason = poll_fn(|context| client.poll_expired(timer.as_mut(), context)) => reason,
    };
    tracing::debug!(reason = closed.as_str(), "a connection was closed");
    place.closed(closed);
}

/// Answers a request, which the connection counts until the last byte of the answer.
fn answer(
    mut request: http::Request<Incoming>,
    router: Router,
    connection: &Arc<ClientConnection>,
    drain: &Drain,
) -> impl Future<Output = Result<http::Response<CountedBody>, Infallible>> + use<> {
    let version = request.version();
    let answering = connection.begin(version);
    request.extensions_mut().insert(Arc::clone(connection));
    let (working, leaving) = (drain.work(), drain.leaving.clone());
    async move {
        let Ok(mut response) = router.oneshot(request.map(Body::new)).await;
        // A connection that is closed with an answer is not closed while a call is on its way over it.
        if leaving.is_cancelled() && version <= http::Version::HTTP_11 {
            let headers = response.headers_mut();
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        drop(working);
        Ok(response.map(|body| CountedBody { body, answering }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_wait_are_called_in_time() {
        let seconds = Duration::from_secs;
        for (deadline, called_after) in [(60, 54), (20, 18), (5, 4), (1, 0), (0, 0)] {
            assert_eq!(patience(seconds(deadline)), seconds(called_after));
        }
    }
}
