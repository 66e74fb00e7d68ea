//! The address of a client, also behind proxies: what they say is believed only of those that the operator trusts.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Proxies that are believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The right-most address that no trusted proxy has, since each proxy appends the address that it was called from.
    /// If an entry is not an address, it is the proxy that passed it on.
    pub(super) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if self.0.is_empty() || !self.contains(peer) {
            return peer;
        }
        let mut known = peer;
        for entry in headers.get_all(X_FORWARDED_FOR).iter().rev() {
            for address in entry.to_str().unwrap_or_default().rsplit(',') {
                let Some(address) = parse(address) else {
                    return known;
                };
                known = address;
                if !self.contains(address) {
                    return known;
                }
            }
        }
        known
    }
}

/// An address, with a port or in brackets as some proxies write it.
fn parse(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let bare = entry.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().ok();
    let with_port = || entry.parse::<SocketAddr>().ok().map(|address| address.ip());
    address.or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn found(trusted: &[&str], peer: &str, forwarded: &[&str]) -> String {
        let networks = trusted.iter().map(|network| network.parse().expect("a network"));
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(X_FORWARDED_FOR, HeaderValue::from_str(value).expect("a value"));
        }
        let proxies = TrustedProxies::new(networks.collect());
        let address = proxies.client_address(peer.parse().expect("an address"), &headers);
        address.to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let trusted = &["10.0.0.0/8", "fd00::/8"];
        for (peer, forwarded, client) in [
            // Nobody is believed who is not trusted.
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1"),
            // What a client claims itself stands to the left.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
            ("10.0.0.1", &["1.1.1.1", "198.51.100.1"], "198.51.100.1"),
            // Several proxies in a row.
            ("10.0.0.1", &["198.51.100.1, 10.2.3.4,10.9.9.9"], "198.51.100.1"),
            ("10.0.0.1", &["198.51.100.1", "10.2.3.4"], "198.51.100.1"),
            // A client in the network of the proxies.
            ("10.0.0.1", &["10.2.3.4"], "10.2.3.4"),
            // Nonsense.
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1"),
            ("10.0.0.1", &["198.51.100.1, "], "10.0.0.1"),
            ("10.0.0.1", &["unknown, 10.2.3.4"], "10.2.3.4"),
            // Spellings.
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1"),
            ("fd00::1", &["2001:db8::7"], "2001:db8::7"),
            ("fd00::1", &["[2001:db8::7]:443"], "2001:db8::7"),
            ("fd00::1", &["[2001:db8::7]"], "2001:db8::7"),
            ("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1"),
        ] {
            assert_eq!(found(trusted, peer, forwarded), client, "{peer} {forwarded:?}");
        }
        assert_eq!(found(&[], "10.0.0.1", &["198.51.100.1"]), "10.0.0.1");
    }
}
