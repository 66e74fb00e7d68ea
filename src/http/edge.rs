//! Shared state of the edge, as all of its layers need it.

use std::sync::Arc;

use jupyter_client::Servers;
use store::Store;

use super::{Challenges, OriginPolicy, TrustedProxies, health::Readiness, server::Drain};
use crate::{
    audit::AuditSink,
    auth::{Authenticator, oauth::OAuth},
    console::Console,
    limits::Limits,
    mcp::Endpoint,
    telemetry::Metrics,
};

#[derive(Debug, Clone)]
pub struct EdgeConfig {
    pub origins: OriginPolicy,
    pub max_body_bytes: usize,
    pub max_header_bytes: usize,
    /// True if `/metrics` is served here, and not on an address of its own.
    pub serve_metrics: bool,
    pub trusted_proxies: TrustedProxies,
    pub challenges: Challenges,
}

/// Authentication, limits and records of callers.
pub struct Access {
    pub authenticator: Arc<Authenticator>,
    pub limits: Arc<Limits>,
    pub audit: Arc<dyn AuditSink>,
    /// Browser logins, if there are any.
    pub oauth: Option<Arc<OAuth>>,
}

pub struct Edge<H> {
    pub(super) config: EdgeConfig,
    pub(super) access: Access,
    pub(super) servers: Arc<Servers>,
    pub(super) endpoint: Arc<Endpoint<H>>,
    pub(super) metrics: Metrics,
    pub(super) readiness: Readiness,
    pub(super) drain: Drain,
    /// None if there is no page for people.
    pub(super) console: Option<Arc<Console>>,
}

impl<H> Edge<H> {
    pub fn new(
        config: EdgeConfig,
        access: Access,
        servers: Arc<Servers>,
        endpoint: Arc<Endpoint<H>>,
        store: Store,
        metrics: Metrics,
        drain: Drain,
    ) -> Self {
        let readiness = Readiness::new(Arc::clone(&servers), store, drain.clone());
        Self {
            config,
            access,
            servers,
            endpoint,
            metrics,
            readiness,
            drain,
            console: None,
        }
    }

    /// The same with a page for people.
    pub fn with_console(mut self, console: Option<Arc<Console>>) -> Self {
        self.console = console;
        self
    }
}
