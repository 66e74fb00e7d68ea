//! Everybody who may call, found by one method after the other.

use std::sync::Arc;

use parking_lot::RwLock;

use super::{
    Principal,
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
}

impl Authenticator {
    /// Builds the methods of a validated config.
    pub fn new(config: &Config) -> Result<Self, globset::Error> {
        Ok(Self {
            methods: RwLock::new(methods(config)?),
        })
    }

    /// Puts the methods of another config in the place of all there are, or changes nothing.
    pub fn replace(&self, config: &Config) -> Result<(), globset::Error> {
        *self.methods.write() = methods(config)?;
        Ok(())
    }

    /// Finds the principal of a request.
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Arc<Principal>, AuthError> {
        let methods = Arc::clone(&self.methods.read());
        first_decision(&methods, credentials).await
    }
}

fn methods(config: &Config) -> Result<Arc<[AnyMethod]>, globset::Error> {
    Ok([AnyMethod::OwnTokens(OwnTokens::new(config)?)].into())
}
