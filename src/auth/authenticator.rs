//! Everybody who may call, found by one method after the other.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use super::{
    ApprovalError, Principal,
    method::{AuthError, Credentials, Method, Outcome, first_decision},
    tokens::OwnTokens,
};
use crate::config::Config;

/// The methods there are.
enum AnyMethod {
    OwnTokens(OwnTokens),
}

impl Method for AnyMethod {
    async fn authenticate(&self, credentials: Credentials<'_>) -> Outcome {
        match self {
            Self::OwnTokens(tokens) => tokens.authenticate(credentials).await,
        }
    }
}

/// Tells who calls, by the methods of the config.
pub struct Authenticator {
    methods: RwLock<Arc<[AnyMethod]>>,
    /// Changes when principals were replaced.
    replaced: watch::Sender<()>,
}

impl Authenticator {
    /// Builds the methods of a validated config.
    pub fn new(config: &Config) -> Result<Self, ApprovalError> {
        Ok(Self {
            methods: RwLock::new(methods(config, None)?),
            replaced: watch::Sender::default(),
        })
    }

    /// Puts the methods of another config in the place of all there are, or changes nothing. Whose token is gone or
    /// may do less than before is revoked.
    pub fn replace(&self, config: &Config) -> Result<(), ApprovalError> {
        let mut current = self.methods.write();
        *current = methods(config, Some(&current))?;
        drop(current);
        self.replaced.send_replace(());
        Ok(())
    }

    /// Tells when principals were replaced.
    pub fn replacements(&self) -> watch::Receiver<()> {
        self.replaced.subscribe()
    }

    /// Finds the principal of a request.
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthError> {
        let methods = Arc::clone(&self.methods.read());
        first_decision(&methods, credentials).await
    }
}

/// The methods of a config, which take the place of those there were.
fn methods(config: &Config, before: Option<&[AnyMethod]>) -> Result<Arc<[AnyMethod]>, ApprovalError> {
    let mut tokens = OwnTokens::new(config)?;
    for AnyMethod::OwnTokens(before) in before.unwrap_or_default() {
        tokens.replace(before);
    }
    Ok([AnyMethod::OwnTokens(tokens)].into())
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;
    use crate::config::Env;

    fn principal(authenticator: &Authenticator) -> Arc<Principal> {
        let bearer = &"x".repeat(32);
        let found = authenticator.authenticate(Credentials { bearer }).now_or_never();
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
