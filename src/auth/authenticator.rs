//! Everybody who may call, found by one method after the other.

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};
use tokio_util::sync::CancellationToken;

use super::{
    ApprovalError, HubTokens, JupyterTokens, JwtTokens, Principal, Tenants,
    method::{AuthError, Credentials, Method, Outcome, TokenDigest, first_decision},
    oauth::OAuthTokens,
    tenants::tenants,
    tokens::OwnTokens,
    verified::Verified,
};
use crate::config::Config;

/// Interval at which those are cut off whose credentials have expired.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The methods there are, in the order in which they are asked.
pub enum AnyMethod {
    OwnTokens(OwnTokens),
    OAuth(Verified<OAuthTokens>),
    JupyterHub(HubTokens),
    Jwt(Verified<JwtTokens>),
    Jupyter(Verified<JupyterTokens>),
}

impl AnyMethod {
    fn rank(&self) -> u8 {
        match self {
            Self::OwnTokens(_) => 0,
            Self::OAuth(_) => 1,
            Self::JupyterHub(_) => 3,
            Self::Jwt(_) => 2,
            Self::Jupyter(_) => 4,
        }
    }
}

impl Method for AnyMethod {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Outcome {
        match self {
            Self::OwnTokens(tokens) => tokens.authenticate(credentials).await,
            Self::OAuth(tokens) => tokens.authenticate(credentials).await,
            Self::JupyterHub(tokens) => tokens.authenticate(credentials).await,
            Self::Jwt(tokens) => tokens.authenticate(credentials).await,
            Self::Jupyter(tokens) => tokens.authenticate(credentials).await,
        }
    }

    fn on_tenants_replaced(&self) {
        match self {
            Self::OwnTokens(tokens) => tokens.on_tenants_replaced(),
            Self::OAuth(tokens) => tokens.on_tenants_replaced(),
            Self::JupyterHub(tokens) => tokens.on_tenants_replaced(),
            Self::Jwt(tokens) => tokens.on_tenants_replaced(),
            Self::Jupyter(tokens) => tokens.on_tenants_replaced(),
        }
    }

    fn sweep(&self) -> bool {
        match self {
            Self::OwnTokens(tokens) => tokens.sweep(),
            Self::OAuth(tokens) => tokens.sweep(),
            Self::JupyterHub(tokens) => tokens.sweep(),
            Self::Jwt(tokens) => tokens.sweep(),
            Self::Jupyter(tokens) => tokens.sweep(),
        }
    }
}

/// Tells who calls, by the methods of the config.
pub struct Authenticator {
    methods: Vec<AnyMethod>,
    tenants: Arc<Tenants>,
    /// Changes when principals were replaced or revoked.
    replaced: watch::Sender<()>,
}

impl Authenticator {
    /// The tokens of a validated config; the methods that ask others are added to them.
    pub fn new(config: &Config) -> Result<Self, ApprovalError> {
        let by_name = tenants(config)?;
        let tokens = OwnTokens::new(config, &by_name)?;
        let tenants = Arc::new(Tenants::default());
        tenants.replace(by_name);
        Ok(Self {
            methods: vec![AnyMethod::OwnTokens(tokens)],
            tenants,
            replaced: watch::Sender::default(),
        })
    }

    /// The same with another method in its place among the others.
    pub fn with(mut self, method: AnyMethod) -> Self {
        self.methods.push(method);
        self.methods.sort_by_key(AnyMethod::rank);
        self
    }

    /// The tenants as they are at this moment, for methods whose principals name one.
    pub fn tenants(&self) -> &Arc<Tenants> {
        &self.tenants
    }

    /// Puts the tenants and tokens of another config in the place of those there are, or changes nothing. Whose token is
    /// gone or may do less than before is revoked.
    pub fn replace(&self, config: &Config) -> Result<(), ApprovalError> {
        let tenants = tenants(config)?;
        for method in &self.methods {
            if let AnyMethod::OwnTokens(tokens) = method {
                tokens.replace(config, &tenants)?;
            }
        }
        self.tenants.replace(tenants);
        for method in &self.methods {
            method.on_tenants_replaced();
        }
        self.replaced.send_replace(());
        Ok(())
    }

    /// Refuses the config's tokens of these digests from now on, and cuts off who has one.
    pub fn revoke(&self, digests: &[TokenDigest]) {
        let mut has_revoked = false;
        for method in &self.methods {
            if let AnyMethod::OwnTokens(tokens) = method {
                has_revoked |= tokens.revoke(digests);
            }
        }
        if has_revoked {
            self.replaced.send_replace(());
        }
    }

    /// Tells when principals were replaced or revoked.
    pub fn replacements(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    /// Has everything end that is open in the name of principals that a method has revoked.
    pub fn on_revoked(&self) {
        self.replaced.send_replace(());
    }

    /// Finds the principal of a request.
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthError> {
        first_decision(&self.methods, credentials).await
    }

    /// Cuts off those whose credentials expire, until `stop` is cancelled.
    pub async fn watch_expiry(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(SWEEP_INTERVAL)).await.is_some() {
            // Every method is swept, also after one that has revoked somebody.
            let revoked = self.methods.iter().filter(|method| method.sweep()).count();
            if revoked > 0 {
                self.replaced.send_replace(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::config::Env;

    fn principal(authenticator: &Authenticator) -> Arc<Principal> {
        let bearer = &"x".repeat(32);
        let found = authenticator.authenticate(Credentials::new(bearer)).now_or_never();
        found.unwrap().unwrap()
    }

    fn config(tenant: &str, token: &str) -> Config {
        let text = format!(
            "servers = [{{ name = \"a\", url = \"http://127.0.0.1:1/\" }}, {{ name = \"b\", url = \"http://127.0.0.1:2/\" }}]\n\
             [[tenants]]\nname = \"t\"\n{tenant}\n\
             [[auth.tokens]]\nname = \"ana\"\ntenant = \"t\"\ntoken = \"{}\"\n{token}\n",
            "x".repeat(32)
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Config::load(Some(file.path()), &Env::default()).unwrap()
    }

    #[test]
    fn only_who_may_do_less_is_revoked() {
        let tenant = "servers = [\"a\"]\npaths = [\"**\"]\nconnect_urls = [\"http://127.0.0.1:3/\"]";
        let token = "permissions = [\"read\", \"write\"]\npaths = [\"a/**\"]";
        for (tenant_now, token_now, is_revoked) in [
            (tenant.to_owned(), token.to_owned(), false),
            (
                tenant.replace("[\"a\"]", "[\"b\", \"a\"]"),
                token.replace("[\"read\"", "[\"execute\", \"read\""),
                false,
            ),
            (format!("{tenant}\nmax_open_rooms = 7"), token.to_owned(), false),
            (tenant.to_owned(), token.replace(", \"write\"", ""), true),
            (tenant.to_owned(), token.replace("a/**", "a/b/**"), true),
            (tenant.replace("[\"a\"]", "[\"b\"]"), token.to_owned(), true),
            (tenant.replace("**", "a/**"), token.to_owned(), true),
            (tenant.replace(":3/", ":4/"), token.to_owned(), true),
            (format!("{tenant}\npermissions = [\"read\"]"), token.to_owned(), true),
            (format!("{tenant}\ntoolsets = [\"kernel\"]"), token.to_owned(), true),
        ] {
            let authenticator = Authenticator::new(&config(tenant, token)).unwrap();
            let before = principal(&authenticator);
            authenticator.replace(&config(&tenant_now, &token_now)).unwrap();
            assert_eq!(before.revoked().is_cancelled(), is_revoked, "{tenant_now} {token_now}");
            let now = principal(&authenticator);
            assert!(!now.revoked().is_cancelled());
            // A principal that goes on is cut off with the one that took its place.
            let none = Config {
                auth: crate::config::AuthConfig::default(),
                ..config(tenant, token)
            };
            authenticator.replace(&none).unwrap();
            assert!(before.revoked().is_cancelled() && now.revoked().is_cancelled());
        }
    }
}
