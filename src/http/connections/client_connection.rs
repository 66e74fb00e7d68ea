//! One open connection, as what reads from it, what answers on it and what may close it share it.

use std::{
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::CancellationToken;

use super::{
    CloseReason, Timeouts,
    progress::{EvictionRank, Progress},
};

pub(in crate::http) struct ClientConnection {
    address: IpAddr,
    timeouts: Timeouts,
    progress: Mutex<Progress>,
    evicted: CancellationToken,
}

impl ClientConnection {
    pub(super) fn new(address: IpAddr, timeouts: Timeouts, now: Instant) -> Self {
        Self {
            address,
            timeouts,
            progress: Mutex::new(Progress::new(now)),
            evicted: CancellationToken::new(),
        }
    }

    /// The client's, or that of the proxy before it.
    pub(in crate::http) fn address(&self) -> IpAddr {
        self.address
    }

    pub(in crate::http) fn timeouts(&self) -> &Timeouts {
        &self.timeouts
    }

    pub(super) fn on_bytes(&self) {
        self.progress().on_bytes(Instant::now());
    }

    /// Records that TLS is agreed on; the client's time begins anew.
    pub(in crate::http) fn on_handshake(&self) {
        self.progress().on_handshake(Instant::now());
    }

    /// Records that a request of this connection has a token that is known.
    pub(in crate::http) fn on_authenticated(&self) {
        self.progress().on_authenticated();
    }

    /// Begins to answer a request, until what is returned is dropped.
    pub(in crate::http) fn begin(self: &Arc<Self>, version: http::Version) -> Answering {
        self.progress()
            .on_request(version == http::Version::HTTP_2, Instant::now());
        Answering(Arc::clone(self))
    }

    pub(super) fn eviction_rank(&self, now: Instant) -> Option<EvictionRank> {
        self.progress().eviction_rank(&self.timeouts, now)
    }

    pub(super) fn evict(&self) {
        self.evicted.cancel();
    }

    #[cfg(test)]
    pub(super) fn is_evicted(&self) -> bool {
        self.evicted.is_cancelled()
    }

    /// Waits until another connection needs the place of this one.
    pub(in crate::http) async fn evicted(&self) {
        self.evicted.cancelled().await;
    }

    /// Polls for the end of the client's time. The timer is set forward only when it rings: what moves the deadline
    /// back happens with every request.
    pub(in crate::http) fn poll_expired(
        &self,
        mut timer: Pin<&mut Sleep>,
        context: &mut Context<'_>,
    ) -> Poll<CloseReason> {
        loop {
            let due = self.progress().deadline(&self.timeouts);
            let next = due.map_or_else(|| Instant::now() + self.timeouts.idle, |(at, _)| at);
            if next < timer.deadline() || timer.is_elapsed() {
                timer.as_mut().reset(next);
            }
            ready!(timer.as_mut().poll(context));
            if let Some((_, why)) = due.filter(|(at, _)| *at <= Instant::now()) {
                return Poll::Ready(why);
            }
        }
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock()
    }
}

/// A request that is being answered.
pub(in crate::http) struct Answering(Arc<ClientConnection>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.progress().on_answered(Instant::now());
    }
}

/// The body of an answer, with which its request is answered.
pub(in crate::http) struct CountedBody {
    pub(in crate::http) body: Body,
    pub(in crate::http) answering: Answering,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let _ = &self.answering;
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
