//! A user of a Hub as the Hub describes them: name, scopes, servers.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Url;

use super::{HubName, HubOptions, name::encoded};

/// The owner of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubUser {
    pub name: String,
    /// A token may also be that of a service, which has no servers.
    pub is_user: bool,
    pub groups: Vec<String>,
    /// By which the Hub knows the token.
    pub token_id: Option<String>,
    /// What the token may do, spelled out.
    pub scopes: Vec<String>,
    /// Servers that the token gives access to: the user's own, their default first, and those shared with them.
    pub servers: Vec<HubServer>,
}

/// A server that a token gives access to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubServer {
    pub name: HubName,
    /// None if the Hub does not tell this token.
    pub state: Option<HubServerState>,
    /// Its URL; `None` if the Hub does not tell this token.
    pub url: Option<Url>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubServerState {
    Running,
    Starting,
    Stopping,
    Stopped,
}

/// The part of the Hub's answer that is used here. The Hub leaves out what the token may not see.
#[derive(Deserialize)]
pub(super) struct RawUser {
    name: String,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    token_id: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    #[serde(default)]
    servers: BTreeMap<String, RawServer>,
}

#[derive(Deserialize)]
struct RawServer {
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    pending: Option<String>,
    #[serde(default)]
    url: Option<String>,
}

impl HubUser {
    pub(super) fn read(raw: RawUser, options: &HubOptions) -> Self {
        let is_user = raw.kind.as_deref().is_none_or(|kind| kind == "user");
        let mut servers = match is_user {
            true => own_servers(&raw, options),
            false => Vec::new(),
        };
        for name in HubName::named_in(&raw.scopes) {
            if servers.iter().all(|known| known.name != name) && name.owner != raw.name {
                servers.push(HubServer {
                    name,
                    state: None,
                    url: None,
                });
            }
        }
        servers.retain(|server| server.name.is_accessible(&raw.scopes));
        Self {
            name: raw.name,
            is_user,
            groups: raw.groups,
            token_id: raw.token_id,
            scopes: raw.scopes,
            servers,
        }
    }

    /// Returns whether the token has a scope: as it is, or without the filter that narrows it.
    pub fn has_scope(&self, wanted: &str) -> bool {
        let whole = wanted.split('!').next().unwrap_or(wanted);
        self.scopes.iter().any(|scope| scope == wanted || scope == whole)
    }

    /// Where the Hub tells of the token, below its API; `None` if it does not tell this one.
    pub(super) fn token_path(&self) -> Option<String> {
        let is_told = self.has_scope(&format!("read:tokens!user={}", self.name));
        let id = self.token_id.as_deref().filter(|_| is_told)?;
        Some(format!("users/{}/tokens/{}", encoded(&self.name), encoded(id)))
    }

    /// The state of a server, as far as the Hub tells it.
    pub fn state_of(&self, name: &HubName) -> Option<HubServerState> {
        self.servers.iter().find(|server| server.name == *name)?.state
    }
}

/// The default server, which everybody has, and those with names.
fn own_servers(raw: &RawUser, options: &HubOptions) -> Vec<HubServer> {
    let known = |server: &str| raw.servers.get(server);
    let named = raw.servers.keys().map(String::as_str).filter(|name| !name.is_empty());
    let names = std::iter::once("").chain(named);
    names
        .map(|server| HubServer {
            name: HubName::new(&raw.name, server),
            state: known(server).map(RawServer::state),
            url: known(server).and_then(|server| server.url(options)),
        })
        .collect()
}

impl RawServer {
    fn state(&self) -> HubServerState {
        match self.pending.as_deref() {
            Some("stop") => HubServerState::Stopping,
            Some(_) => HubServerState::Starting,
            None if self.ready => HubServerState::Running,
            None => HubServerState::Stopped,
        }
    }

    /// A path below the base of all servers, or a whole URL where users have hosts of their own.
    fn url(&self, options: &HubOptions) -> Option<Url> {
        let mut url = options.servers.join(self.url.as_deref()?).ok()?;
        let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
        if !is_plain || url.scheme() != options.servers.scheme() {
            return None;
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Some(url)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(user: Value) -> HubUser {
        let api = Url::parse("https://hub.example.org/hub/api/").unwrap();
        let options = HubOptions {
            servers: super::super::Hub::servers_of_api(&api),
            api,
            public: None,
            authorities: None,
        };
        HubUser::read(serde_json::from_value(user).unwrap(), &options)
    }

    fn shown(user: &HubUser) -> Vec<String> {
        user.servers.iter().map(|server| server.name.to_string()).collect()
    }

    #[test]
    fn servers_are_the_users_own_and_those_shared_with_them() {
        let server = |ready, pending: Value, url: &str| json!({ "ready": ready, "pending": pending, "url": url });
        let user = read(json!({
            "kind": "user",
            "name": "ana",
            "groups": ["lab"],
            "scopes": ["access:servers!user=ana", "access:servers!server=bob/", "read:servers!user=ana"],
            "servers": {
                "gpu": server(false, json!("spawn"), "/user/ana/gpu/"),
                "": server(true, Value::Null, "https://ana.hub.example.org/user/ana/"),
                "old": server(false, Value::Null, "/user/ana/old"),
            },
        }));
        assert_eq!(shown(&user), ["ana", "ana/gpu", "ana/old", "bob"]);
        let urls: Vec<_> = user
            .servers
            .iter()
            .map(|server| server.url.as_ref().map(Url::as_str))
            .collect();
        assert_eq!(
            urls,
            [
                Some("https://ana.hub.example.org/user/ana/"),
                Some("https://hub.example.org/user/ana/gpu/"),
                Some("https://hub.example.org/user/ana/old/"),
                None
            ]
        );
        let states: Vec<_> = user.servers.iter().map(|server| server.state).collect();
        let told = [
            HubServerState::Running,
            HubServerState::Starting,
            HubServerState::Stopped,
        ]
        .map(Some);
        assert_eq!(states, [&told[..], &[None]].concat());
    }

    #[test]
    fn a_token_reaches_what_its_scopes_say() {
        let user = |scopes: Value| read(json!({ "kind": "user", "name": "ana", "scopes": scopes }));
        assert_eq!(shown(&user(json!(["access:servers!user=ana"]))), ["ana"]);
        assert!(shown(&user(json!(["read:users!user=ana"]))).is_empty());
        assert_eq!(shown(&user(json!(["access:servers"]))), ["ana"], "an administrator's");
        let service = read(json!({ "kind": "service", "name": "ana", "scopes": ["access:servers"] }));
        assert!(!service.is_user && service.servers.is_empty());
        let narrow = user(json!(["access:services!service=mcp"]));
        assert!(narrow.has_scope("access:services!service=mcp") && !narrow.has_scope("access:services!service=x"));
        assert!(user(json!(["access:services"])).has_scope("access:services!service=mcp"));
        assert!(!narrow.has_scope("access:services"));
    }
}
