//! The body of an answer, which ends early when the access of whoever reads it is revoked.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};
use tokio_util::{sync::WaitForCancellationFutureOwned, task::task_tracker::TaskTrackerToken};

use crate::{auth::Principal, limits::Admission};

pub(super) struct StreamBody {
    body: BoxBody<Bytes, Infallible>,
    /// In use for as long as the stream is open.
    _principal: Arc<Principal>,
    /// None for what is sent at once.
    revoked: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    /// A stream is being worked on until its last byte is sent.
    _working: Option<TaskTrackerToken>,
    /// The request's admission, which is held until then.
    _admission: Arc<Admission>,
}

impl StreamBody {
    pub(super) fn new(
        body: BoxBody<Bytes, Infallible>,
        principal: Arc<Principal>,
        working: Option<TaskTrackerToken>,
        admission: Arc<Admission>,
    ) -> Self {
        let size = body.size_hint().exact();
        // Of a stream there is never more than a little at once.
        admission.set_bytes(size.and_then(|size| usize::try_from(size).ok()).unwrap_or_default());
        let is_stream = size.is_none();
        Self {
            body,
            revoked: is_stream.then(|| Box::pin(principal.revoked().clone().cancelled_owned())),
            _principal: principal,
            _working: working,
            _admission: admission,
        }
    }
}

impl Body for StreamBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(revoked) = &mut self.revoked
            && revoked.as_mut().poll(context).is_ready()
        {
            // Whatever it holds is let go of at once.
            self.body = BoxBody::default();
            self.revoked = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
