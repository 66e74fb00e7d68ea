//! Owns the settings as a whole and the sections about the gateway itself, with their defaults.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use jupyter_client::Secret;
use url::Url;

use super::access::{AuthConfig, ServerConfig, TenantConfig};
use super::changes::{self, Comparison};
use super::net;
use super::parse;
use super::reader::{Range, Reader, Section};
use super::section::section;

pub(super) const COUNT: Range = (1, 1_000_000);
pub(super) const BYTES: Range = (1024, 1 << 32);
const STORE_BYTES: Range = (1 << 20, 1 << 40);
const VERSIONS: Range = (100, 1_000_000);
const LOG: Range = (100, 100_000_000);
/// One for what is written in order, one for whoever reads meanwhile.
const DATABASE_CONNECTIONS: Range = (2, 200);
const PIXELS: Range = (16, 16_384);
const TEXT_BYTES: Range = (2048, 1 << 24);
const IMAGES: Range = (0, 1000);
/// hyper reads no headers with a buffer below 8 KiB.
const HEADER_BYTES: Range = (8192, 1 << 20);
/// serde_json gives up at 128 levels by itself.
const DEPTH: Range = (4, 128);

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    pub http: HttpConfig,
    pub mcp: McpConfig,
    pub console: ConsoleConfig,
    pub servers: Vec<ServerConfig>,
    pub tenants: Vec<TenantConfig>,
    pub auth: AuthConfig,
    pub sessions: SessionsConfig,
    pub execution: ExecutionConfig,
    pub images: ImagesConfig,
    pub answers: AnswersConfig,
    pub events: EventsConfig,
    pub store: StoreConfig,
    pub audit: AuditConfig,
    pub telemetry: TelemetryConfig,
}

impl Config {
    /// The servers of a tenant, its default first. A tenant that names none has all of them, unless it is that of a Hub's
    /// users: they have their own, and must not get those of others for want of a line.
    pub fn servers_of<'a>(&'a self, tenant: &'a TenantConfig) -> Vec<&'a ServerConfig> {
        if tenant.servers.is_empty() {
            let is_of_hub = self
                .auth
                .jupyterhub
                .as_ref()
                .is_some_and(|hub| hub.tenant == tenant.name);
            return self.servers.iter().filter(|_| !is_of_hub).collect();
        }
        let find = |name: &String| self.servers.iter().find(|server| server.name == *name);
        tenant.servers.iter().filter_map(find).collect()
    }

    /// The tenants of the config, and those that users of Jupyter servers are in without being in one of these.
    pub fn all_tenants(&self) -> Vec<TenantConfig> {
        let mut tenants = self.tenants.clone();
        if !self.auth.jupyter.enabled || self.auth.jupyter.tenant.is_some() {
            return tenants;
        }
        for server in &self.servers {
            let name = self.auth.jupyter.tenant_of(&server.name);
            if self.tenant(&name).is_none() {
                let servers = vec![server.name.clone()];
                tenants.push(TenantConfig {
                    name,
                    servers,
                    ..TenantConfig::default()
                });
            }
        }
        tenants
    }

    pub fn tenant(&self, name: &str) -> Option<&TenantConfig> {
        self.tenants.iter().find(|tenant| tenant.name == name)
    }
}

impl Section for Config {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            http: reader.section("http"),
            mcp: reader.section("mcp"),
            console: reader.section("console"),
            servers: reader.sections("servers"),
            tenants: reader.sections("tenants"),
            auth: reader.section("auth"),
            sessions: reader.section("sessions"),
            execution: reader.section("execution"),
            images: reader.section("images"),
            answers: reader.section("answers"),
            events: reader.section("events"),
            store: reader.section("store"),
            audit: reader.section("audit"),
            telemetry: reader.section("telemetry"),
        }
    }

    fn compare(&self, other: &Self, path: &str, changed: &mut Vec<String>) {
        changes::compare_all(self, other, &mut Comparison::new(path, changed));
    }
}

section! {
    HttpConfig {
        listen: SocketAddr = (Ipv4Addr::LOCALHOST, 8585).into(), value(net::address);
        /// Ends with a slash.
        public_url: Option<Url> = None, optional(net::base);
        /// In lower case, with the port where one was given.
        allowed_hosts: Vec<String> = Vec::new(), list(net::host);
        /// As browsers send them: no slash at the end, no default port.
        allowed_origins: Vec<String> = Vec::new(), list(net::origin);
        max_body_bytes: usize = 4_194_304, number(BYTES);
        max_header_bytes: usize = 32_768, number(HEADER_BYTES);
        max_json_depth: usize = 64, number(DEPTH);
        max_connections: usize = 4096, number(COUNT);
        max_connections_per_address: usize = 256, number(COUNT);
        /// Networks whose `X-Forwarded-For` is believed.
        trusted_proxies: Vec<IpNet> = Vec::new(), list(net::network);
        /// PEM files of the certificate and its key; both or none are set.
        tls_cert: Option<PathBuf> = None, optional(parse::path);
        tls_key: Option<PathBuf> = None, optional(parse::path);
        drain_timeout: Duration = Duration::from_secs(20), value(parse::duration);
        /// Address of `/metrics`; `None` means that of the server itself.
        metrics_listen: Option<SocketAddr> = None, optional(net::address);
    }
}

impl HttpConfig {
    /// The scheme of the gateway's own address.
    pub fn scheme(&self) -> &'static str {
        match self.tls_cert {
            Some(_) => "https",
            None => "http",
        }
    }
}

section! {
    McpConfig {
        max_sessions_per_principal: usize = 100, number(COUNT);
        max_sessions: usize = 10_000, number(COUNT);
        session_idle_timeout: Duration = Duration::from_secs(30 * 60), value(parse::duration);
        route_headers: bool = false, value(parse::flag);
        content_only_clients: Vec<String> = content_only_clients(), list(parse::non_empty);
    }
}

section! {
    /// The page for people.
    ConsoleConfig {
        enabled: bool = true, value(parse::flag);
        session_idle_timeout: Duration = Duration::from_secs(8 * 60 * 60), value(parse::duration);
    }
}

section! {
    SessionsConfig {
        idle_timeout: Duration = Duration::from_secs(5 * 60), value(parse::duration);
        max_open_rooms: usize = 1000, number(COUNT);
        presence_timeout: Duration = Duration::from_secs(60), value(parse::duration);
    }
}

section! {
    ExecutionConfig {
        default_wait: Duration = Duration::from_secs(60), value(parse::duration);
        task_after: Duration = Duration::from_secs(20), value(parse::duration);
        input_timeout: Duration = Duration::from_secs(10 * 60), value(parse::duration);
        max_output_bytes: usize = 10_485_760, number(BYTES);
        shutdown_started_kernels: bool = false, value(parse::flag);
    }
}

section! {
    /// Limits of the images in outputs that a model is shown.
    ImagesConfig {
        enabled: bool = true, value(parse::flag);
        max_width: u32 = 700, number(PIXELS);
        max_height: u32 = 700, number(PIXELS);
        max_bytes: usize = 1_048_576, number(BYTES);
    }
}

section! {
    /// Limits of the text that a model is shown in one answer.
    AnswersConfig {
        max_text_bytes: usize = 49_152, number(TEXT_BYTES);
        max_images: usize = 8, number(IMAGES);
    }
}

section! {
    EventsConfig {
        max_events_per_stream: usize = 1000, number(COUNT);
        max_bytes: usize = 67_108_864, number(BYTES);
        ttl: Duration = Duration::from_secs(60 * 60), value(parse::duration);
        /// `None` means in memory. A secret because it may contain a password.
        url: Option<Secret> = None, optional(net::events_url);
    }
}

section! {
    StoreConfig {
        /// A secret because it may contain a password.
        url: Secret = Secret::new("sqlite://gateway.db"), value(net::store_url);
        keep: Duration = Duration::from_secs(30 * 24 * 60 * 60), value(parse::duration);
        max_bytes: usize = 1_073_741_824, number(STORE_BYTES);
        max_bytes_per_principal: usize = 67_108_864, number(STORE_BYTES);
        history: bool = true, value(parse::flag);
        history_keep: Duration = Duration::from_secs(90 * 24 * 60 * 60), value(parse::duration);
        history_max_versions: usize = 20_000, number(VERSIONS);
        history_max_bytes_per_document: usize = 67_108_864, number(STORE_BYTES);
        history_max_bytes: usize = 1_073_741_824, number(STORE_BYTES);
        activity_keep: Duration = Duration::from_secs(30 * 24 * 60 * 60), value(parse::duration);
        activity_max: usize = 100_000, number(LOG);
        audit_keep: Duration = Duration::from_secs(90 * 24 * 60 * 60), value(parse::duration);
        audit_max: usize = 1_000_000, number(LOG);
        max_connections: u32 = 8, number(DATABASE_CONNECTIONS);
    }
}

section! {
    AuditConfig {
        /// JSON lines beside the store; `None` means none.
        file: Option<PathBuf> = None, optional(parse::path);
        /// Whether calls are refused that cannot be recorded.
        required: bool = false, value(parse::flag);
    }
}

section! {
    TelemetryConfig {
        log_format: LogFormat = LogFormat::Auto, value(parse::log_format);
        /// Directives of tracing's `EnvFilter`.
        log_level: String = "info".to_owned(), value(parse::log_level);
        /// `None` means that of the environment, or the name of the program.
        service_name: Option<String> = None, optional(parse::non_empty);
        otlp_endpoint: Option<Url> = None, optional(net::http_url);
        /// `None` means that of the environment, or the one that the port stands for.
        otlp_protocol: Option<OtlpProtocol> = None, optional(parse::otlp_protocol);
        /// Whether logs are sent too.
        otlp_logs: bool = false, value(parse::flag);
    }
}

/// Clients that are known to show a model only structured content where there is some.
fn content_only_clients() -> Vec<String> {
    let names = [
        "claude-code",
        "codex",
        "opencode",
        "copilot",
        "github-copilot",
        "Visual Studio Code",
    ];
    names.map(str::to_owned).into()
}

/// How telemetry is sent to a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    Grpc,
    HttpProtobuf,
}

impl OtlpProtocol {
    /// The names that OpenTelemetry gives them.
    pub const NAMES: [&str; 2] = ["grpc", "http/protobuf"];

    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "grpc" => Some(Self::Grpc),
            "http/protobuf" => Some(Self::HttpProtobuf),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Pretty on a terminal, JSON otherwise.
    Auto,
    Pretty,
    Json,
}
