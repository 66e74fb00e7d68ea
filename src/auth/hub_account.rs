//! The account of a Hub's user, as far as one of their tokens reaches: their servers under the names by which the gateway
//! knows them, and starting one.

use std::{fmt, sync::Arc};

use jupyter_client::{
    Hub, HubError, HubName, HubPlace, HubServer, HubServerState, HubUser, JupyterServer, Secret, Servers, SpawnProgress,
};
use parking_lot::RwLock;
use tokio::sync::mpsc;

/// A user's token, and the servers that it reaches.
pub struct HubAccount {
    hub: Arc<Hub>,
    user: String,
    token: Secret,
    all: Arc<Servers>,
    /// The user's default server comes first.
    servers: RwLock<Vec<Arc<JupyterServer>>>,
}

impl HubAccount {
    pub(super) fn new(hub: Arc<Hub>, token: Secret, user: &HubUser, all: Arc<Servers>) -> Self {
        let account = Self {
            hub,
            user: user.name.clone(),
            token,
            all,
            servers: RwLock::default(),
        };
        account.add_all(user);
        account
    }

    /// The servers that the token reaches. Whoever gets them is about to use them, with this token.
    pub fn servers(&self) -> Vec<Arc<JupyterServer>> {
        let servers = self.servers.read().clone();
        for server in &servers {
            // Two agents of one user may have a token each; the other's may hold no longer.
            server.use_token(&self.token);
        }
        servers
    }

    /// Returns whether it reaches all servers of another one.
    pub(super) fn reaches_all_of(&self, before: &Self) -> bool {
        let servers = self.servers.read();
        let has = |server: &Arc<JupyterServer>| servers.iter().any(|known| known.name() == server.name());
        self.user == before.user && before.servers.read().iter().all(has)
    }

    /// The states of the servers as the Hub tells them now. A server that it names for the first time is known from then
    /// on.
    pub async fn refresh(&self) -> Result<HubStates, HubError> {
        let user = self.hub.user(&self.token).await?;
        self.add_all(&user);
        Ok(HubStates(user))
    }

    /// The name in the Hub that somebody means by a server that is not known yet: another one of the user's own.
    pub fn new_server(&self, name: &str) -> Option<HubName> {
        HubName::parse(name).filter(|name| name.owner == self.user && !name.server.is_empty())
    }

    /// Starts a server, and waits until it is ready.
    pub async fn start(
        &self,
        name: &HubName,
        told: &mpsc::Sender<SpawnProgress>,
    ) -> Result<Arc<JupyterServer>, HubError> {
        self.hub.start(&self.token, name, told).await?;
        let known = || {
            let servers = self.servers.read();
            let mut known = servers.iter();
            known.find(|server| place(server) == Some(name)).cloned()
        };
        if let Some(known) = known() {
            return Ok(known);
        }
        // It was made by being started.
        self.refresh().await?;
        known().ok_or(HubError::NotFound)
    }

    fn add_all(&self, user: &HubUser) {
        let mut servers = self.servers.write();
        for server in &user.servers {
            if servers.iter().all(|known| place(known) != Some(&server.name)) {
                servers.extend(self.connect(server));
            }
        }
    }

    fn connect(&self, server: &HubServer) -> Option<Arc<JupyterServer>> {
        let name = self.name_of(&server.name);
        let made = self.all.of_hub(&self.hub, &name, server, &self.token);
        made.map_err(|error| tracing::error!(%error, "no client for a server of JupyterHub"))
            .ok()
    }

    /// The name of a server in the gateway, which no other user has for anything. Neither names of users nor of servers
    /// have slashes, so that there are one or two parts for a user's own servers and more for those of others; and a
    /// user may have the name of a configured server.
    fn name_of(&self, name: &HubName) -> String {
        let user = &self.user;
        if name.owner != *user {
            return format!("{user}/shared/{name}");
        }
        let plain = name.to_string();
        match self.all.get(&plain) {
            Some(_) => format!("{plain}/"),
            None => plain,
        }
    }
}

fn place(server: &JupyterServer) -> Option<&HubName> {
    server.hub().map(HubPlace::name)
}

impl fmt::Debug for HubAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubAccount")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// The states of a user's servers at one moment.
#[derive(Debug)]
pub struct HubStates(HubUser);

impl HubStates {
    /// The state of a server, as far as the Hub tells it.
    pub fn of(&self, server: &JupyterServer) -> Option<HubServerState> {
        self.0.state_of(place(server)?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jupyter_client::{HubOptions, RequestObserver, ServerOptions};
    use url::Url;

    use super::*;

    fn names(account: &HubAccount) -> Vec<String> {
        let servers = account.servers();
        servers.iter().map(|server| server.name().to_owned()).collect()
    }

    #[test]
    fn two_users_share_no_name_and_none_is_that_of_a_configured_server() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let observer: Arc<dyn RequestObserver> = Arc::new(());
        let api = Url::parse("http://127.0.0.1:1/hub/api/").unwrap();
        let hub = HubOptions {
            servers: Hub::servers_of_api(&api),
            api: api.clone(),
            public: None,
            authorities: None,
        };
        let hub = Arc::new(Hub::new(hub, Arc::clone(&observer)).unwrap());
        let configured = ServerOptions::new("lab", api, Secret::default());
        let all = Arc::new(Servers::new(&[configured], &observer).unwrap());
        let account = |user: &str, servers: &[&str]| {
            let server = |name: &&str| HubServer {
                name: HubName::parse(name).unwrap(),
                state: None,
                url: None,
            };
            let user = HubUser {
                name: user.to_owned(),
                is_user: true,
                groups: Vec::new(),
                token_id: None,
                scopes: Vec::new(),
                servers: servers.iter().map(server).collect(),
            };
            HubAccount::new(
                Arc::clone(&hub),
                Secret::new(user.name.as_str()),
                &user,
                Arc::clone(&all),
            )
        };
        let ana = account("ana", &["ana", "ana/gpu"]);
        let bob = account("bob", &["bob", "ana/gpu"]);
        let lab = account("lab", &["lab", "lab/x"]);
        assert_eq!(names(&ana), ["ana", "ana/gpu"]);
        assert_eq!(names(&bob), ["bob", "bob/shared/ana/gpu"]);
        assert_eq!(names(&lab), ["lab/", "lab/x"]);
        // Another token of the same user comes to the same servers, for as long as they are in use.
        let again = account("ana", &["ana"]);
        assert!(Arc::ptr_eq(&ana.servers()[0], &again.servers()[0]));
        assert!(!again.reaches_all_of(&ana) && ana.reaches_all_of(&again) && !ana.reaches_all_of(&bob));
        assert_eq!(ana.new_server("ana/new"), Some(HubName::new("ana", "new")));
        assert_eq!(ana.new_server("bob/new"), None);
    }
}
