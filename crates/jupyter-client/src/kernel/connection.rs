//! One connection to a kernel, from its opening to its end: a listener that may have to wait for whoever
//! takes the messages, and a speaker that never does.

use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_util::sync::CancellationToken;

use super::{
    Framing, KernelEvent, Message, WireError,
    answers::Answers,
    message::Outgoing,
    queue::{NoListener, Queue},
    wire::{self, LongStream, Payload, SUBPROTOCOL},
};
use crate::{JupyterError, JupyterServer, socket::Socket};

/// Pings of ours are answered within this time, or the connection is dead. Jupyter's own come only every 30 s.
const PING_TIMEOUT: Duration = Duration::from_secs(20);
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Jupyter hears nothing on a new connection, pings included, until a starting kernel has answered it,
/// for which it waits a minute.
const OPENING_TIMEOUT: Duration = Duration::from_secs(90);
/// Jupyter does not tell of a kernel that was shut down; one that is quiet for so long is asked after.
const QUIET_INTERVAL: Duration = Duration::from_secs(10);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Frames beyond this size are parsed where they keep no other task waiting, and long streams in pieces of it.
const LARGE: usize = 1024 * 1024;

const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');

type Sink = stream::SplitSink<Socket, Frame>;
type Stream = stream::SplitStream<Socket>;

/// A kernel, and the session under which it knows us.
#[derive(Clone, Copy)]
pub(super) struct Kernel<'a> {
    pub(super) server: &'a JupyterServer,
    pub(super) id: &'a str,
    pub(super) session_id: &'a str,
}

pub(super) struct Connection {
    socket: Socket,
    pub(super) framing: Framing,
}

/// A message on its way out, and whom to tell that it is on the wire.
pub(super) struct Request {
    pub(super) message: Outgoing,
    pub(super) written: oneshot::Sender<()>,
}

/// The end of a connection.
pub(super) enum End {
    /// It may come back.
    Cut(String),
    /// The kernel does not exist any more.
    Gone(JupyterError),
    /// It is not wanted any more.
    Left,
}

impl Connection {
    /// Opens a connection in the given framing, or in the older one if that is all the server speaks.
    pub(super) async fn open(kernel: Kernel<'_>, framing: Framing) -> Result<Self, JupyterError> {
        let Kernel { server, id, session_id } = kernel;
        let encoded = |id| utf8_percent_encode(id, SEGMENT);
        let address = format!(
            "api/kernels/{}/channels?session_id={}",
            encoded(id),
            encoded(session_id)
        );
        let named = |error| server.name_kernel(error, id);
        let subprotocol = (framing == Framing::V1).then_some(SUBPROTOCOL);
        let opened = server.kernel_socket(subprotocol, &address, id).await;
        let (socket, is_spoken) = opened.map_err(named)?;
        let framing = if is_spoken { Framing::V1 } else { Framing::Legacy };
        Ok(Self { socket, framing })
    }

    /// Carries messages both ways until the connection ends; the listener is greeted before the first.
    pub(super) async fn serve(
        self,
        kernel: Kernel<'_>,
        greeting: Option<KernelEvent>,
        outbox: &mut mpsc::Receiver<Request>,
        (events, answers): (&mut Queue, &Answers),
        closing: &CancellationToken,
    ) -> End {
        let (mut sink, mut stream) = self.socket.split();
        let heard = Notify::new();
        let end = tokio::select! {
            end = listen(&mut stream, self.framing, greeting, (events, answers), &heard) => end,
            end = speak(&mut sink, self.framing, outbox, closing) => end,
            gone = watch_existence(kernel, &heard) => End::Gone(gone),
        };
        if closing.is_cancelled() || matches!(end, End::Left) {
            hang_up(sink, stream).await;
            return End::Left;
        }
        end
    }
}

/// Hands on what the kernel says. While the queue is full nothing is read, which makes the server wait.
async fn listen(
    stream: &mut Stream,
    framing: Framing,
    greeting: Option<KernelEvent>,
    (events, answers): (&mut Queue, &Answers),
    heard: &Notify,
) -> End {
    if let Some(greeting) = greeting
        && let Err(NoListener) = events.offer(greeting, 0).await
    {
        return End::Left;
    }
    let mut patience = OPENING_TIMEOUT;
    loop {
        let frame = tokio::select! {
            frame = timeout(patience, stream.next()) => frame,
            () = events.wait_until_gone() => return End::Left,
        };
        patience = PING_TIMEOUT;
        let (said, size) = match frame {
            Ok(Some(Ok(Frame::Binary(bytes)))) => {
                let size = bytes.len();
                (decode(size, move || said_in_binary(framing, &bytes)).await, size)
            }
            Ok(Some(Ok(Frame::Text(text)))) => {
                let bytes = Bytes::from(text);
                let size = bytes.len();
                (
                    decode(size, move || wire::decode_text(&bytes).map(Said::One)).await,
                    size,
                )
            }
            Ok(Some(Ok(Frame::Close(_))) | None) => return End::Cut("the server hung up".to_owned()),
            Ok(Some(Ok(_))) => continue,
            Ok(Some(Err(error))) => return End::Cut(error.to_string()),
            Err(_) => return End::Cut("the server stopped answering".to_owned()),
        };
        heard.notify_one();
        let handed_on = match said {
            Ok(Said::One(message)) => match answers.take(message) {
                Some(message) => events.offer(KernelEvent::Message(message), size).await,
                None => Ok(()),
            },
            Ok(Said::Long(stream)) => hand_on(stream, events).await,
            Err(error) => {
                tracing::warn!(%error, "ignoring an unreadable frame from a kernel");
                Ok(())
            }
        };
        if let Err(NoListener) = handed_on {
            return End::Left;
        }
    }
}

/// Content of a frame.
enum Said {
    One(Message),
    Long(LongStream),
}

fn said_in_binary(framing: Framing, frame: &Bytes) -> Result<Said, WireError> {
    match LongStream::of(framing, frame, LARGE) {
        Some(stream) => Ok(Said::Long(stream)),
        None => wire::decode_binary(framing, frame).map(Said::One),
    }
}

async fn decode(
    size: usize,
    work: impl FnOnce() -> Result<Said, WireError> + Send + 'static,
) -> Result<Said, WireError> {
    if size < LARGE {
        return work();
    }
    let parsed = tokio::task::spawn_blocking(work).await;
    parsed.unwrap_or(Err(WireError::Json))
}

/// Each piece is made when there is room for it.
async fn hand_on(stream: LongStream, events: &mut Queue) -> Result<(), NoListener> {
    for piece in stream {
        events.offer(KernelEvent::Message(piece), LARGE).await?;
    }
    Ok(())
}

/// Sends what is to be sent, and a ping from time to time. When the link is closed it says so, and the listener hears
/// what the kernel said before the server took notice.
async fn speak(
    sink: &mut Sink,
    framing: Framing,
    outbox: &mut mpsc::Receiver<Request>,
    closing: &CancellationToken,
) -> End {
    let mut pings = interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (frame, written) = tokio::select! {
            request = outbox.recv() => match request {
                Some(Request { written, .. }) if written.is_closed() => continue,
                Some(Request { message, written }) => (frame(framing, &message), Some(written)),
                None => return End::Left,
            },
            _ = pings.tick() => (Frame::Ping(Bytes::new()), None),
            () = closing.cancelled() => {
                let _ = sink.send(Frame::Close(None)).await;
                tokio::time::sleep(CLOSE_TIMEOUT).await;
                return End::Left;
            }
        };
        if let Err(error) = sink.send(frame).await {
            return End::Cut(error.to_string());
        }
        if let Some(written) = written {
            let _ = written.send(());
        }
    }
}

fn frame(framing: Framing, message: &Outgoing) -> Frame {
    match wire::encode(framing, message) {
        Payload::Text(text) => Frame::Text(text.into()),
        Payload::Binary(bytes) => Frame::Binary(bytes.into()),
    }
}

/// Returns when the kernel is known not to exist any more. It may be missing for a moment while the server
/// restarts it, so it is asked after twice.
async fn watch_existence(kernel: Kernel<'_>, heard: &Notify) -> JupyterError {
    let mut missing = false;
    loop {
        if timeout(QUIET_INTERVAL, heard.notified()).await.is_ok() {
            missing = false;
            continue;
        }
        let was_missing = missing;
        missing = matches!(kernel.server.kernel(kernel.id).await, Ok(None));
        if missing && was_missing {
            return kernel.server.no_kernel(kernel.id);
        }
    }
}

/// Hanging up with something unread resets the connection, and the server could lose what was sent last.
async fn hang_up(mut sink: Sink, mut stream: Stream) {
    let closing = async {
        let _ = sink.close().await;
        while let Some(Ok(_)) = stream.next().await {}
    };
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}
