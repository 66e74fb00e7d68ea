//! Owns the sections about who may reach what: servers, tenants and the ways to log in.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use jupyter_client::Secret;
use url::Url;

use super::changes::{self, Comparison};
use super::model::{BYTES, COUNT};
use super::net;
use super::parse;
use super::reader::{Range, Reader, Section};
use super::section::section;
use super::token::{from_hex, sha256};
use crate::types::Permission;

/// Whoever loses access is cut off within a minute.
pub(super) const LONGEST_TTL: Duration = Duration::from_secs(60);
const COUNT_OR_DERIVED: Range = (0, 10_000_000);

section! {
    /// A Jupyter server. At most one of the three token keys is set; none means no authentication.
    ServerConfig [at_most_one(["token", "token_env", "token_file"])] {
        name: String = String::new(), required(parse::non_empty);
        /// Ends with a slash; holds neither credentials nor a query.
        url: Url = constant("http://127.0.0.1:8888/"), required(net::base);
        /// Base URL for people, for links in answers; ends with a slash. `None` means the same as `url`.
        public_url: Option<Url> = None, optional(net::base);
        token: Option<Secret> = None, optional(parse::sendable);
        token_env: Option<String> = None, optional(parse::variable);
        token_file: Option<PathBuf> = None, optional(parse::path);
        connect_timeout: Duration = Duration::from_secs(5), value(parse::duration);
        request_timeout: Duration = Duration::from_secs(30), value(parse::duration);
        /// PEM file of the authorities that may have signed its certificate; `None` means those of the system.
        ca_file: Option<PathBuf> = None, optional(parse::path);
    }
}

/// Whether edits of agents go to a fork that a person merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Review {
    Off,
    Required,
}

/// Further condition of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalWhen {
    /// A person is in the notebook.
    PersonPresent,
}

/// Who decides about a call that a person must allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalBy {
    /// The person of the caller's client, or somebody on the page.
    Client,
    /// Somebody on the page alone.
    Others,
}

section! {
    /// Calls that a person must allow: those for which all that is set here holds.
    ApprovalConfig [some_of(["code", "paths", "tools", "when"])] {
        /// Regular expression on the code that would run.
        code: Option<String> = None, optional(parse::code_pattern);
        paths: Vec<String> = Vec::new(), list(parse::glob);
        /// Names of tools; empty means all that do more than read.
        tools: Vec<String> = Vec::new(), list(parse::non_empty);
        when: Option<ApprovalWhen> = None, optional(parse::approval_when);
        decided_by: ApprovalBy = ApprovalBy::Client, value(parse::approval_by);
    }
}

section! {
    TenantConfig {
        name: String = String::new(), required(parse::non_empty);
        /// The first is the default; what empty means is said at `Config::servers_of`.
        servers: Vec<String> = Vec::new(), list(parse::non_empty);
        /// Beyond the servers above, where agents may send the gateway with a token of their own. Each ends with a slash.
        connect_urls: Vec<Url> = Vec::new(), list(net::base);
        permissions: BTreeSet<Permission> = Permission::ALL.into(), list(parse::permission);
        paths: Vec<String> = vec!["**".to_owned()], list(parse::glob);
        toolsets: Vec<String> = Vec::new(), list(parse::toolset);
        requests_per_minute: u32 = 600, number(COUNT);
        burst: u32 = 100, number(COUNT);
        /// Of all principals together; 0 means ten times that of each.
        total_requests_per_minute: u32 = 0, number(COUNT_OR_DERIVED);
        /// Likewise.
        total_burst: u32 = 0, number(COUNT_OR_DERIVED);
        max_requests_in_flight: usize = 512, number(COUNT);
        max_streams: usize = 512, number(COUNT);
        max_sessions: usize = 1000, number(COUNT);
        max_bytes_held: usize = 268_435_456, number(BYTES);
        max_images_in_work: usize = 64, number(COUNT);
        max_concurrent_executions: usize = 16, number(COUNT);
        max_open_rooms: usize = 200, number(COUNT);
        review: Review = Review::Off, value(parse::review);
        approvals: Vec<ApprovalConfig> = Vec::new(), tables(ApprovalConfig::read);
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthConfig {
    pub tokens: Vec<TokenConfig>,
    pub jwt: Option<JwtConfig>,
    pub jupyterhub: Option<JupyterHubConfig>,
    pub oauth: OAuthConfig,
    pub jupyter: JupyterAuthConfig,
}

impl AuthConfig {
    /// Returns whether any way to log in is configured.
    pub fn is_configured(&self) -> bool {
        let section = self.jwt.is_some() || self.jupyterhub.is_some() || self.jupyter.enabled;
        section || !self.tokens.is_empty()
    }
}

impl Section for AuthConfig {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            tokens: reader.sections("tokens"),
            jwt: reader.optional_section("jwt"),
            jupyterhub: reader.optional_section("jupyterhub"),
            oauth: reader.section("oauth"),
            jupyter: reader.section("jupyter"),
        }
    }

    fn compare(&self, other: &Self, path: &str, changed: &mut Vec<String>) {
        changes::compare_auth(self, other, &mut Comparison::new(path, changed));
    }
}

section! {
    /// A bearer token, by its hash or, for development, in the open; one of the two is set.
    TokenConfig [exactly_one(["sha256", "token"])] {
        name: String = String::new(), required(parse::non_empty);
        tenant: String = String::new(), required(parse::non_empty);
        /// 64 hexadecimal digits in lower case.
        sha256: Option<String> = None, optional(parse::sha256);
        token: Option<Secret> = None, optional(parse::bearer);
        permissions: BTreeSet<Permission> = [Permission::Read, Permission::Write, Permission::Execute].into(),
            list(parse::permission);
        paths: Vec<String> = vec!["**".to_owned()], list(parse::glob);
    }
}

impl TokenConfig {
    /// The hash to compare with, whichever way the token was given.
    pub fn digest(&self) -> Option<[u8; 32]> {
        let given = || self.token.as_ref().map(|it| sha256(it.expose()));
        self.sha256.as_deref().and_then(from_hex).or_else(given)
    }
}

section! {
    JwtConfig {
        /// As written, because it is compared with the `iss` claim.
        issuer: String = String::new(), required(net::issuer);
        /// URL of the key set; `None` means discovery at the issuer.
        jwks_url: Option<Url> = None, optional(net::http_url);
        /// Required, since a token that was made for another service must not open this one.
        audience: String = String::new(), required(parse::non_empty);
        tenant_claim: String = "tenant".to_owned(), value(parse::non_empty);
        permissions_claim: String = "scope".to_owned(), value(parse::non_empty);
        name_claim: String = "preferred_username".to_owned(), value(parse::non_empty);
        /// For development: what tokens may be signed with (HS256, HS384, HS512), beside the issuer's keys.
        secret: Option<Secret> = None, optional(parse::hmac_secret);
    }
}

section! {
    JupyterHubConfig {
        /// The Hub's API; ends with a slash.
        url: Url = constant("http://127.0.0.1:8081/hub/api/"), required(net::base);
        tenant: String = String::new(), required(parse::non_empty);
        /// Below which users' servers are found; `None` means where the API is, without its `hub/api/`.
        servers_url: Option<Url> = None, optional(net::base);
        /// The same for people, for links in answers; `None` means where the gateway finds them.
        public_url: Option<Url> = None, optional(net::base);
        /// A token without it is refused; `None` means any token of a user.
        required_scope: Option<String> = None, optional(parse::non_empty);
        permissions: BTreeSet<Permission> = [Permission::Read, Permission::Write, Permission::Execute].into(),
            list(parse::permission);
        paths: Vec<String> = vec!["**".to_owned()], list(parse::glob);
        /// How long the Hub's answer about a token holds.
        cache_ttl: Duration = LONGEST_TTL, value(parse::duration);
        /// PEM file of the authorities that may have signed its certificate; `None` means those of the system.
        ca_file: Option<PathBuf> = None, optional(parse::path);
    }
}

section! {
    /// Login with a browser at the provider of `[auth.jwt]`, or at the Hub of `[auth.jupyterhub]`.
    OAuthConfig {
        enabled: bool = false, value(parse::flag);
        /// What the gateway is at the provider.
        client_id: String = String::new(), value(parse::string);
        /// `None` for a public client.
        client_secret_env: Option<String> = None, optional(parse::variable);
        /// Scopes that the provider is asked for.
        scopes: Vec<String> = vec!["openid".to_owned(), "profile".to_owned()], list(parse::non_empty);
        access_ttl: Duration = Duration::from_secs(60 * 60), value(parse::duration);
        refresh_ttl: Duration = Duration::from_secs(30 * 24 * 60 * 60), value(parse::duration);
        /// `None` derives the key from the client's secret.
        encryption_key_env: Option<String> = None, optional(parse::variable);
        allow_private_client_metadata: bool = false, value(parse::flag);
    }
}

section! {
    JupyterAuthConfig {
        enabled: bool = false, value(parse::flag);
        /// None: one for each server, with the usual limits.
        tenant: Option<String> = None, optional(parse::non_empty);
    }
}

impl JupyterAuthConfig {
    /// Name of the tenant of a server's users.
    pub fn tenant_of(&self, server: &str) -> String {
        self.tenant.clone().unwrap_or_else(|| format!("jupyter:{server}"))
    }
}

#[expect(clippy::expect_used, reason = "the argument is one of two constants of this file")]
fn constant(url: &str) -> Url {
    Url::parse(url).expect("BUG: a constant URL parses")
}
