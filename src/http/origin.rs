//! Hosts and origins that may reach the gateway. A page on the web must not be able to drive a
//! gateway on somebody's laptop by pointing a name at 127.0.0.1 (DNS rebinding).

use std::net::IpAddr;

use url::{Host, Url};

#[derive(Debug, Clone, Default)]
pub struct OriginPolicy {
    /// Host names, with a port only where the operator gave one.
    hosts: Vec<(String, Option<u16>)>,
    origins: Vec<Url>,
    /// True if any host is allowed that is an IP address and not a name.
    addresses: bool,
}

impl OriginPolicy {
    /// Loopback is always allowed, and so is the public URL.
    pub fn new(public_url: Option<&Url>, allowed_hosts: &[String], allowed_origins: &[String]) -> Self {
        let mut hosts: Vec<_> = allowed_hosts.iter().filter_map(|host| split_authority(host)).collect();
        let mut origins: Vec<Url> = allowed_origins
            .iter()
            .filter_map(|origin| Url::parse(origin).ok())
            .collect();
        if let Some(url) = public_url {
            hosts.extend(
                url.host_str()
                    .map(|host| (host.trim_matches(['[', ']']).to_ascii_lowercase(), None)),
            );
            origins.push(url.clone());
        }
        Self {
            hosts,
            origins,
            addresses: false,
        }
    }

    /// The same, but whoever knows an address of this machine may use it.
    pub(super) fn with_addresses(self) -> Self {
        Self {
            addresses: true,
            ..self
        }
    }

    pub(super) fn allows_host(&self, authority: &str) -> bool {
        let Some((host, port)) = split_authority(authority) else {
            return false;
        };
        is_loopback(&host)
            || self.addresses && host.parse::<IpAddr>().is_ok()
            || self
                .hosts
                .iter()
                .any(|(allowed, on)| *allowed == host && (on.is_none() || *on == port))
    }

    /// Pages served from this machine may call a gateway that is addressed as this machine.
    pub(super) fn allows_origin(&self, origin: &str, authority: &str) -> bool {
        let Ok(origin) = Url::parse(origin) else { return false };
        let Some(Host::Domain(_) | Host::Ipv4(_) | Host::Ipv6(_)) = origin.host() else {
            return false;
        };
        if self.origins.iter().any(|allowed| allowed.origin() == origin.origin()) {
            return true;
        }
        let local_page = origin
            .host_str()
            .is_some_and(|host| is_loopback(host.trim_matches(['[', ']'])));
        local_page && split_authority(authority).is_some_and(|(host, _)| is_loopback(&host))
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Splits `host`, `host:port`, `[v6]` or `[v6]:port`.
fn split_authority(authority: &str) -> Option<(String, Option<u16>)> {
    let authority: http::uri::Authority = authority.trim().parse().ok()?;
    if authority.as_str().contains('@') {
        return None;
    }
    let host = authority.host().trim_matches(['[', ']']).to_ascii_lowercase();
    (!host.is_empty()).then(|| (host, authority.port_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> OriginPolicy {
        let public = Url::parse("https://mcp.example.org").expect("valid");
        OriginPolicy::new(
            Some(&public),
            &["gw.internal".to_owned(), "other:9000".to_owned()],
            &["https://app.example.org".to_owned()],
        )
    }

    #[test]
    fn hosts() {
        for allowed in [
            "localhost",
            "127.0.0.1:8585",
            "[::1]:1",
            "MCP.example.org",
            "mcp.example.org:443",
            "gw.internal:1",
            "other:9000",
        ] {
            assert!(policy().allows_host(allowed), "{allowed}");
        }
        for refused in [
            "evil.example",
            "other",
            "other:1",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "a@localhost",
            "mcp.example.org.evil",
        ] {
            assert!(!policy().allows_host(refused), "{refused}");
        }
    }

    #[test]
    fn origins() {
        for allowed in [
            "https://app.example.org",
            "https://mcp.example.org",
            "http://localhost:6274",
            "http://127.0.0.1:3000",
        ] {
            assert!(policy().allows_origin(allowed, "127.0.0.1:8585"), "{allowed}");
        }
        for refused in [
            "null",
            "https://evil.example",
            "http://app.example.org",
            "https://app.example.org:444",
            "http://localhost.evil.example",
            "",
            "file:///x",
        ] {
            assert!(!policy().allows_origin(refused, "127.0.0.1:8585"), "{refused}");
        }
        assert!(!policy().allows_origin("http://localhost:6274", "mcp.example.org"));
    }

    #[test]
    fn addresses() {
        let policy = policy();
        assert!(!policy.allows_host("10.1.2.3:9090"));
        let policy = policy.with_addresses();
        assert!(policy.allows_host("10.1.2.3:9090") && policy.allows_host("[fd00::1]:9090"));
        assert!(!policy.allows_host("evil.example:9090"));
    }
}
