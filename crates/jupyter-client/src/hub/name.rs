//! Names of servers as a Hub gives them, and what its scopes say of them.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// Characters that the Hub leaves as they are in its URLs.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'@');
const ACCESS: &str = "access:servers";

/// A server by the name of its user and its own; that of a user's default server is empty. Neither has a slash.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HubName {
    pub owner: String,
    pub server: String,
}

impl HubName {
    pub fn new(owner: impl Into<String>, server: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            server: server.into(),
        }
    }

    /// Reads `ana` or `ana/gpu`.
    pub fn parse(name: &str) -> Option<Self> {
        let (owner, server) = name.split_once('/').unwrap_or((name, ""));
        let is_valid = !owner.is_empty() && !server.contains('/');
        is_valid.then(|| Self::new(owner, server))
    }

    /// The base URL of the server below that of all servers.
    pub(super) fn below(&self, base: &Url) -> Url {
        let mut path = format!("{}user/{}/", base.path(), encoded(&self.owner));
        if !self.server.is_empty() {
            path.push_str(&encoded(&self.server));
            path.push('/');
        }
        let mut url = base.clone();
        url.set_path(&path);
        url
    }

    /// The path of the server in the Hub's API.
    pub(super) fn api_path(&self) -> String {
        let owner = encoded(&self.owner);
        match self.server.is_empty() {
            true => format!("users/{owner}/server"),
            false => format!("users/{owner}/servers/{}", encoded(&self.server)),
        }
    }

    /// Returns whether one of some scopes gives access to the server. Groups are not resolved: the Hub lists what a user
    /// may do through one by the names of servers.
    pub(super) fn is_accessible(&self, scopes: &[String]) -> bool {
        scopes
            .iter()
            .any(|scope| match scope.split_once('!').unwrap_or((scope, "")) {
                (ACCESS, "") => !scope.contains('!'),
                (ACCESS, filter) => match filter.split_once('=') {
                    Some(("user", user)) => user == self.owner,
                    Some(("server", server)) => Self::in_scope(server).is_some_and(|named| named == *self),
                    _ => false,
                },
                _ => false,
            })
    }

    /// The servers that scopes give access to by name.
    pub(super) fn named_in(scopes: &[String]) -> impl Iterator<Item = Self> {
        scopes.iter().filter_map(|scope| {
            let filter = scope.strip_prefix(ACCESS)?.strip_prefix('!')?;
            match filter.split_once('=')? {
                ("server", server) => Self::in_scope(server),
                ("user", user) => Some(Self::new(user, "")),
                _ => None,
            }
        })
    }

    /// Reads `ana/` or `ana/gpu`, as scopes name servers.
    fn in_scope(server: &str) -> Option<Self> {
        server.contains('/').then(|| Self::parse(server))?
    }
}

impl fmt::Display for HubName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.server.is_empty() {
            true => f.write_str(&self.owner),
            false => write!(f, "{}/{}", self.owner, self.server),
        }
    }
}

/// A segment of a path.
pub(super) fn encoded(segment: &str) -> String {
    // A segment of dots would be taken for a way up.
    match segment {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        _ => utf8_percent_encode(segment, SEGMENT).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_paths_as_the_hub_writes_them() {
        let base = Url::parse("https://hub.example.org/jupyter/").unwrap();
        for (name, url, api) in [
            ("ana", "user/ana/", "users/ana/server"),
            ("ana/gpu", "user/ana/gpu/", "users/ana/servers/gpu"),
            (
                "a b@x.org/ü",
                "user/a%20b@x.org/%C3%BC/",
                "users/a%20b@x.org/servers/%C3%BC",
            ),
        ] {
            let name = HubName::parse(name).unwrap();
            assert_eq!(
                name.below(&base).as_str(),
                format!("https://hub.example.org/jupyter/{url}")
            );
            assert_eq!(name.api_path(), api);
        }
        assert_eq!(HubName::parse(""), None);
        assert_eq!(HubName::parse("/gpu"), None);
        assert_eq!(HubName::parse("a/b/c"), None);
    }

    #[test]
    fn scopes_tell_which_servers_are_accessible() {
        let gpu = HubName::new("ana", "gpu");
        for (scope, is_accessible) in [
            ("access:servers", true),
            ("access:servers!user=ana", true),
            ("access:servers!server=ana/gpu", true),
            ("access:servers!server=ana/", false),
            ("access:servers!user=an", false),
            ("access:servers!group=ana", false),
            ("access:servers!", false),
            ("access:services!user=ana", false),
            ("read:servers!user=ana", false),
        ] {
            assert_eq!(gpu.is_accessible(&[scope.to_owned()]), is_accessible, "{scope}");
        }
        let scopes = [
            "access:servers!server=ana/gpu",
            "access:servers!server=bob/",
            "access:servers",
            "x",
        ];
        let scopes = scopes.map(str::to_owned);
        let named: Vec<String> = HubName::named_in(&scopes).map(|name| name.to_string()).collect();
        assert_eq!(named, ["ana/gpu", "bob"]);
    }
}
