//! A connection between the gateway and Jupyter that can be cut, blocked, counted and spoken into.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};
use tokio_util::task::AbortOnDropHandle;

pub struct Proxy {
    address: String,
    link: Arc<Link>,
    _task: AbortOnDropHandle<()>,
}

/// Traffic from Jupyter that does not get through.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Blocked {
    #[default]
    Nothing,
    Rooms,
    Everything,
}

#[derive(Default)]
struct Link {
    refusing: AtomicBool,
    blocked: watch::Sender<Blocked>,
    /// Counts the cuts; every connection ends at the next one.
    cuts: watch::Sender<usize>,
    /// The next frame from Jupyter larger than this is cut in its middle.
    cut_in_frame_over: Mutex<Option<usize>>,
    /// Frame to send in Jupyter's place, in the next room that sends something.
    inject: Mutex<Option<Vec<u8>>>,
    rooms_opened: AtomicUsize,
    rooms_open: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy in front of a server, by its host and port.
    pub async fn to(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let link = Arc::<Link>::default();
        let (shared, target) = (Arc::clone(&link), target.to_owned());
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if shared.refusing.load(Ordering::SeqCst) {
                    continue;
                }
                let (link, target) = (Arc::clone(&shared), target.clone());
                tokio::spawn(async move {
                    let Ok(server) = TcpStream::connect(&target).await else {
                        return;
                    };
                    let mut cuts = link.cuts.subscribe();
                    tokio::select! {
                        _ = cuts.changed() => {}
                        () = carry(&link, client, server) => {}
                    }
                });
            }
        });
        Self {
            address,
            link,
            _task: AbortOnDropHandle::new(task),
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Ends every connection now; new ones are welcome.
    pub fn cut(&self) {
        self.link.cuts.send_modify(|cuts| *cuts += 1);
    }

    pub fn refuse(&self, refusing: bool) {
        self.link.refusing.store(refusing, Ordering::SeqCst);
    }

    /// Lets nothing through, or everything again.
    pub fn hold(&self, blocked: bool) {
        let blocked = if blocked { Blocked::Everything } else { Blocked::Nothing };
        self.link.blocked.send_replace(blocked);
    }

    /// Lets nothing through of what is said in the rooms of documents; answers to requests are.
    pub fn hold_rooms(&self) {
        self.link.blocked.send_replace(Blocked::Rooms);
    }

    pub fn cut_in_frame_over(&self, bytes: usize) {
        *self.link.cut_in_frame_over.lock().expect("no panic") = Some(bytes);
    }

    pub fn has_cut_in_frame(&self) -> bool {
        self.link.cut_in_frame_over.lock().expect("no panic").is_none()
    }

    /// Says this before the next word of Jupyter in any room.
    pub fn inject(&self, payload: &[u8]) {
        let length = u64::try_from(payload.len()).expect("a length").to_be_bytes();
        let head = match u8::try_from(payload.len()) {
            Ok(short @ 0..126) => vec![0x82, short],
            _ => [&[0x82, 127][..], &length].concat(),
        };
        *self.link.inject.lock().expect("no panic") = Some([&head, payload].concat());
    }

    pub fn has_injected(&self) -> bool {
        self.link.inject.lock().expect("no panic").is_none()
    }

    pub fn rooms_opened(&self) -> usize {
        self.link.rooms_opened.load(Ordering::SeqCst)
    }

    pub fn rooms_open(&self) -> usize {
        self.link.rooms_open.load(Ordering::SeqCst)
    }
}

/// Carries one connection until either side ends it.
async fn carry(link: &Arc<Link>, client: TcpStream, server: TcpStream) {
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let ((mut from_client, to_client), (from_server, mut to_server)) = (client.into_split(), server.into_split());
    let mut request = vec![0; 65536];
    let Ok(read) = from_client.read(&mut request).await else {
        return;
    };
    request.truncate(read);
    // The list of who is online is a room too, but no document's.
    let is_room = [&b"json:"[..], b"text:"]
        .iter()
        .any(|format| request.starts_with(&[b"GET /api/collaboration/room/", *format].concat()));
    let _count = is_room.then(|| OpenRoomCount::new(Arc::clone(link)));
    if to_server.write_all(&request).await.is_err() {
        return;
    }
    tokio::select! {
        _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
        () = hand_back(link, is_room, from_server, to_client) => {}
    }
}

struct OpenRoomCount(Arc<Link>);

impl OpenRoomCount {
    fn new(link: Arc<Link>) -> Self {
        link.rooms_opened.fetch_add(1, Ordering::SeqCst);
        link.rooms_open.fetch_add(1, Ordering::SeqCst);
        Self(link)
    }
}

impl Drop for OpenRoomCount {
    fn drop(&mut self) {
        self.0.rooms_open.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Hands on what comes from Jupyter, in a room frame by frame.
async fn hand_back(link: &Link, is_room: bool, mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let (mut pending, mut chunk, mut in_frames) = (Vec::new(), vec![0; 65536], false);
    loop {
        let Ok(read @ 1..) = from.read(&mut chunk).await else {
            return;
        };
        let passes = |blocked: &Blocked| *blocked == Blocked::Nothing || *blocked == Blocked::Rooms && !is_room;
        let _ = link.blocked.subscribe().wait_for(passes).await;
        pending.extend_from_slice(&chunk[..read]);
        while let Some(length) = part(&pending, is_room, in_frames) {
            let frame: Vec<u8> = pending.drain(..length).collect();
            let limit = link
                .cut_in_frame_over
                .lock()
                .expect("no panic")
                .take_if(|limit| in_frames && length > *limit);
            if limit.is_some() {
                let _ = to.write_all(&frame[..length / 2]).await;
                return;
            }
            let injected = link.inject.lock().expect("no panic").take_if(|_| in_frames);
            if to
                .write_all(&[injected.unwrap_or_default(), frame].concat())
                .await
                .is_err()
            {
                return;
            }
            in_frames |= is_room;
        }
    }
}

/// The length of what can be handed on: the answer's head first, then whole frames.
fn part(pending: &[u8], is_room: bool, in_frames: bool) -> Option<usize> {
    if !is_room {
        return Some(pending.len()).filter(|length| *length > 0);
    }
    if !in_frames {
        return pending.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
    }
    let length = match pending.get(1)? & 0x7f {
        126 => 4 + usize::from(u16::from_be_bytes(pending.get(2..4)?.try_into().ok()?)),
        127 => 10 + usize::try_from(u64::from_be_bytes(pending.get(2..10)?.try_into().ok()?)).ok()?,
        short => 2 + usize::from(short),
    };
    (pending.len() >= length).then_some(length)
}
