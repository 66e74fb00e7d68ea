//! The configured servers' own tokens: `[auth.jupyter]`. Whoever a server accepts is that server's user, there only.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use jupyter_client::{JupyterServer, Secret, Servers};

use super::{
    PathRules, Principal, Tenants,
    method::{Outcome, Rejection},
    principal::shown_name,
    verified::{Freshness, Verified, Verifier},
};
use crate::{
    config::{JupyterAuthConfig, token::TOKEN_PREFIX},
    types::Permission,
};

/// The servers are asked about a token so often at most, also about one that they do not know.
const FRESHNESS: Freshness = Freshness {
    accepted: Duration::from_secs(60),
    refused: Duration::from_secs(10),
};
/// As tokens of the config that say nothing else.
const PERMISSIONS: [Permission; 3] = [Permission::Read, Permission::Write, Permission::Execute];

pub struct JupyterTokens {
    servers: Arc<Servers>,
    tenants: Arc<Tenants>,
    config: JupyterAuthConfig,
    everywhere: PathRules,
}

impl JupyterTokens {
    pub fn new(
        config: &JupyterAuthConfig,
        servers: Arc<Servers>,
        tenants: Arc<Tenants>,
    ) -> Result<Verified<Self>, globset::Error> {
        let tokens = Self {
            servers,
            tenants: Arc::clone(&tenants),
            config: config.clone(),
            everywhere: PathRules::new(&["**".to_owned()])?,
        };
        Ok(Verified::new(tokens, FRESHNESS, tenants))
    }

    /// The servers to ask about a token. Those that the gateway itself uses it for come first: others learn nothing of it.
    fn candidates(&self, token: &Secret) -> Vec<&Arc<JupyterServer>> {
        let tenant = self.config.tenant.as_ref().and_then(|name| self.tenants.get(name));
        let of_tenant = |server: &&Arc<JupyterServer>| {
            let tenant = tenant.as_ref();
            tenant.is_none_or(|tenant| tenant.servers.iter().any(|name| name == server.name()))
        };
        let servers: Vec<_> = self.servers.iter().filter(of_tenant).collect();
        let own: Vec<_> = servers
            .iter()
            .copied()
            .filter(|server| server.has_token(token))
            .collect();
        if own.is_empty() { servers } else { own }
    }
}

impl Verifier for JupyterTokens {
    /// Those of the gateway, known or not, are nothing that servers should be shown.
    fn is_mine(&self, bearer: &str) -> bool {
        !bearer.starts_with(TOKEN_PREFIX)
    }

    async fn verify(&self, bearer: &Secret) -> Outcome {
        let candidates = self.candidates(bearer);
        let asked = candidates.iter().map(|server| server.account_of(bearer));
        let answers = join_all(asked).await;
        let is_sure = answers.iter().all(Result::is_ok);
        let mut accepted = candidates.iter().zip(answers).filter_map(|(server, answer)| {
            let account = answer.ok()??;
            Some((server.name().to_owned(), account))
        });
        let Some((server, account)) = accepted.next() else {
            // A server that does not answer may be the one.
            return if is_sure {
                Outcome::NotMine
            } else {
                Outcome::Unavailable
            };
        };
        let Some(tenant) = self.tenants.get(&self.config.tenant_of(&server)) else {
            let sentence = "the tenant for users of Jupyter servers is gone; ask an operator of the gateway";
            return Outcome::Rejected(Rejection::Forbidden(sentence.to_owned()));
        };
        let id = match &account.username {
            Some(username) => format!("jupyter:{server}|{username}"),
            None => format!("jupyter:{server}"),
        };
        let given = account.display_name.or(account.username).unwrap_or_default();
        let name = shown_name(&given, &server);
        let others = accepted.map(|(server, _)| server);
        let permissions = PERMISSIONS.into_iter().collect();
        let principal = Principal::new(&id, &name, tenant, permissions, self.everywhere.clone());
        let servers = std::iter::once(server.clone()).chain(others).collect();
        Outcome::Accepted(Arc::new(principal.on_servers(servers)))
    }
}
