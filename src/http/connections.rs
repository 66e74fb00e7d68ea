//! Limits of open connections: how many at once, how many of one client, and which one goes when another needs its
//! place. Knows nothing of what is sent over them.

mod client_connection;
mod descriptors;
mod progress;
mod stream;

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

pub(super) use client_connection::{ClientConnection, CountedBody};
pub use descriptors::within_descriptors;
pub(super) use stream::ObservedStream;

use super::TrustedProxies;
use crate::{telemetry::Metrics, types::ClientAddress};

/// Interval between warnings about a full table; a flood must not fill the disk.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Connections at once.
    pub max: usize,
    /// Connections of one client address at once. Those of a trusted proxy are many clients'.
    pub max_per_address: usize,
    pub trusted_proxies: TrustedProxies,
    pub timeouts: Timeouts,
}

/// Times that a client may take for each step.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Until TLS is agreed on, from the start of the connection.
    pub handshake: Duration,
    /// Until the first byte, from the start of the connection.
    pub first_byte: Duration,
    /// Until a request's headers are complete: from the start of the connection, or of the request where others came
    /// before it.
    pub headers: Duration,
    /// Until a request's body is complete.
    pub body: Duration,
    /// Until everything is answered that needs no token; whoever does not read answers cannot keep a connection so.
    pub anonymous: Duration,
    /// Between requests. Load balancers keep idle connections for a minute; one that were closed here first would cost a
    /// call that is sent at that moment.
    pub idle: Duration,
    /// Interval between HTTP/2 pings, and the time limit for the answer.
    pub ping_interval: Duration,
    pub ping: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            handshake: seconds(10),
            first_byte: seconds(10),
            headers: seconds(15),
            body: seconds(30),
            anonymous: seconds(60),
            idle: seconds(75),
            ping_interval: seconds(20),
            ping: seconds(20),
        }
    }
}

/// Reason why the gateway closes or refuses a connection; metrics count by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CloseReason {
    Handshake,
    FirstByte,
    Headers,
    Anonymous,
    Idle,
    /// Another connection needed its place.
    Evicted,
    /// All others were in use.
    Refused,
}

impl CloseReason {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Handshake => "handshake_timeout",
            Self::FirstByte => "first_byte_timeout",
            Self::Headers => "headers_timeout",
            Self::Anonymous => "anonymous_timeout",
            Self::Idle => "idle_timeout",
            Self::Evicted => "evicted",
            Self::Refused => "refused",
        }
    }
}

/// The open connections of all listeners.
pub struct ConnectionTable {
    limits: ConnectionLimits,
    metrics: Metrics,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    next: u64,
    /// The oldest first.
    connections: BTreeMap<u64, (ClientAddress, Arc<ClientConnection>)>,
    per_address: HashMap<ClientAddress, usize>,
    warned: Option<Instant>,
}

/// A place in the table, free again when dropped.
pub(super) struct Place {
    table: Arc<ConnectionTable>,
    id: u64,
    connection: Arc<ClientConnection>,
}

impl ConnectionTable {
    pub fn new(limits: ConnectionLimits, metrics: Metrics) -> Self {
        Self {
            limits,
            metrics,
            open: Mutex::default(),
        }
    }

    /// The same with other times, for tests that cannot wait so long.
    pub(crate) fn with_timeouts(&self, timeouts: Timeouts) -> Self {
        Self::new(
            ConnectionLimits {
                timeouts,
                ..self.limits.clone()
            },
            self.metrics.clone(),
        )
    }

    /// A place for a new connection. Where there is none, whoever uses theirs least gives way.
    pub(super) fn admit(self: &Arc<Self>, client: IpAddr) -> Result<Place, CloseReason> {
        let address = ClientAddress::of(client);
        let now = Instant::now();
        let mut open = self.open.lock();
        let of_address = open.per_address.get(&address).copied().unwrap_or_default();
        let is_one_client = !self.limits.trusted_proxies.contains(client);
        let has_place = if is_one_client && of_address >= self.limits.max_per_address {
            self.evict(&mut open, Some(address), now)
        } else if open.connections.len() >= self.limits.max {
            self.evict(&mut open, None, now)
        } else {
            true
        };
        if !has_place {
            self.metrics.connection_closed(CloseReason::Refused.as_str());
            return Err(CloseReason::Refused);
        }
        let connection = Arc::new(ClientConnection::new(client, self.limits.timeouts, now));
        let id = open.next;
        open.next += 1;
        open.connections.insert(id, (address, Arc::clone(&connection)));
        *open.per_address.entry(address).or_default() += 1;
        self.metrics.connection_opened();
        Ok(Place {
            table: Arc::clone(self),
            id,
            connection,
        })
    }

    /// Frees a place although nobody asked for one, where the process is out of file descriptors.
    pub(super) fn make_room(&self) {
        self.evict(&mut self.open.lock(), None, Instant::now());
    }

    /// Closes the connection that is used least, of one client or of all; false if all of them are in use.
    fn evict(&self, open: &mut Open, of: Option<ClientAddress>, now: Instant) -> bool {
        if open.warned.is_none_or(|warned| now - warned >= WARNING_INTERVAL) {
            open.warned = Some(now);
            tracing::warn!(
                open = open.connections.len(),
                of_one_address = of.is_some(),
                "too many connections; those without a request are closed first, see http.max_connections"
            );
        }
        let candidates = open.connections.iter().filter_map(|(id, (address, connection))| {
            let rank = connection.eviction_rank(now)?;
            of.is_none_or(|of| of == *address).then_some((rank, *id))
        });
        let Some((_, id)) = candidates.min() else {
            return false;
        };
        if let Some(connection) = open.remove(id) {
            connection.evict();
            self.metrics.connection_ended();
        }
        true
    }
}

impl Open {
    fn remove(&mut self, id: u64) -> Option<Arc<ClientConnection>> {
        let (address, connection) = self.connections.remove(&id)?;
        if let Some(count) = self.per_address.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&address);
            }
        }
        Some(connection)
    }
}

impl Place {
    pub(super) fn connection(&self) -> &Arc<ClientConnection> {
        &self.connection
    }

    /// Records that the gateway closes the connection.
    pub(super) fn closed(&self, reason: CloseReason) {
        self.table.metrics.connection_closed(reason.as_str());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What was evicted has given its place away already.
        if self.table.open.lock().remove(self.id).is_some() {
            self.table.metrics.connection_ended();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(max: usize, max_per_address: usize) -> Arc<ConnectionTable> {
        let limits = ConnectionLimits {
            max,
            max_per_address,
            trusted_proxies: TrustedProxies::default(),
            timeouts: Timeouts::default(),
        };
        let metrics = Metrics::new("test", None).expect("metrics");
        Arc::new(ConnectionTable::new(limits, metrics))
    }

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn whoever_has_sent_no_request_gives_way() {
        let table = table(3, 3);
        let silent = table.admit(address(1)).expect("a place");
        let busy = table.admit(address(1)).expect("a place");
        let request = busy.connection().begin(http::Version::HTTP_11);
        let idle = table.admit(address(2)).expect("a place");
        drop(idle.connection().begin(http::Version::HTTP_11));
        let next = table.admit(address(3)).expect("the place of the silent one");
        assert!(silent.connection().is_evicted() && !busy.connection().is_evicted());
        let request_of_next = next.connection().begin(http::Version::HTTP_11);
        let last = table.admit(address(3)).expect("the place of the idle one");
        assert!(idle.connection().is_evicted());
        let request_of_last = last.connection().begin(http::Version::HTTP_11);
        assert!(table.admit(address(4)).is_err(), "all others are in use");
        drop((silent, idle));
        assert!(table.admit(address(4)).is_err(), "their places were given away");
        drop((request, busy));
        assert!(table.admit(address(4)).is_ok());
        drop((request_of_next, request_of_last));
    }

    #[test]
    fn a_client_competes_with_itself() {
        let table = table(10, 2);
        let other = table.admit(address(1)).expect("a place");
        let places: Vec<_> = (0..5).map(|_| table.admit(address(2)).expect("a place")).collect();
        let evicted: Vec<_> = places.iter().map(|place| place.connection().is_evicted()).collect();
        assert_eq!(evicted, [true, true, true, false, false]);
        assert!(!other.connection().is_evicted());
    }
}
