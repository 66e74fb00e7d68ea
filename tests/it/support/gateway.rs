//! A gateway in this process, on a free port, configured by TOML as an operator would.

use std::net::SocketAddr;

use axum::Router;
use jupyter_client::Secret;
use jupyter_mcp_gateway::{
    app::App,
    config::{Config, Env, StoreConfig, TenantConfig},
    http::{Drain, Timeouts},
    telemetry::Metrics,
};
use rmcp::ServerHandler;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
};

use super::{TIMEOUT, jupyter::install_tls, lab, within};

/// The token that every gateway of these tests accepts unless its config says otherwise.
pub const TOKEN: &str = "test-token-of-ana";

pub struct Gateway {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    drain: Drain,
    task: JoinHandle<()>,
}

/// `[[servers]]` for the shared JupyterLab under a name.
pub fn lab_server(name: &str) -> String {
    server(name, lab().url(), lab().token())
}

pub fn server(name: &str, url: &str, token: &str) -> String {
    format!("[[servers]]\nname = \"{name}\"\nurl = \"{url}\"\ntoken = \"{token}\"\nrequest_timeout = \"15s\"\n")
}

/// A tenant with everything and its one token.
pub fn everything() -> String {
    format!(
        "[[tenants]]\nname = \"all\"\n[[auth.tokens]]\nname = \"ana\"\ntenant = \"all\"\ntoken = \"{TOKEN}\"\npermissions = [\"read\", \"write\", \"execute\", \"admin\"]\n"
    )
}

impl Gateway {
    /// In front of the shared JupyterLab, everything allowed to [`TOKEN`].
    pub async fn start() -> Self {
        Self::with("").await
    }

    /// Starts a gateway with more settings.
    pub async fn with(more: &str) -> Self {
        Self::configured(&format!("{more}\n{}{}", lab_server("lab"), everything())).await
    }

    /// In front of another JupyterLab, or of the shared one by another way.
    pub async fn to(url: &str, token: &str) -> Self {
        Self::configured(&format!("{}{}", server("lab", url, token), everything())).await
    }

    /// With exactly this config but for the address.
    pub async fn configured(toml: &str) -> Self {
        let (config, env) = load(toml);
        let app = within(TIMEOUT, "a gateway", App::bind(&config, &env, metrics())).await;
        let app = app.expect("a gateway");
        Self::run(app)
    }

    /// With exactly this config and environment, at a port that its public URL names.
    pub async fn on_port(port: u16, toml: &str, env: &[(&str, &str)]) -> Self {
        install_tls();
        let env: Env = env
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let mut config = Config::from_toml(toml, "test.toml", &env).expect("a valid config");
        config.http.listen = SocketAddr::from(([127, 0, 0, 1], port));
        let app = within(TIMEOUT, "a gateway", App::bind(&config, &env, metrics())).await;
        Self::run(app.expect("a gateway"))
    }

    /// In front of the shared JupyterLab, with other times for clients.
    pub async fn with_timeouts(more: &str, timeouts: Timeouts) -> Self {
        let (config, env) = load(&format!("{more}\n{}{}", lab_server("lab"), everything()));
        let app = App::bind(&config, &env, metrics()).await.expect("a gateway");
        Self::run(app.with_timeouts(timeouts))
    }

    /// The production stack around another MCP handler, with something in front of it.
    pub async fn around<H: ServerHandler>(
        more: &str,
        factory: impl Fn() -> H + Clone + Send + Sync + 'static,
        front: impl FnOnce(Router) -> Router,
    ) -> Self {
        let (config, env) = load(&format!("{more}\n{}", everything()));
        let app = App::bind_with(&config, &env, metrics(), factory)
            .await
            .expect("a gateway");
        Self::run(app.map_router(front))
    }

    fn run(app: App) -> Self {
        let (address, drain) = (app.address().expect("an address"), app.drain());
        Self {
            address,
            metrics: app.metrics_address(),
            drain,
            task: tokio::spawn(app.run()),
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A URL on the address that only metrics have.
    pub fn metrics_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.metrics.expect("an address of their own"))
    }

    /// The status of a request that is sent as it stands, but for `{address}`, which is where it goes.
    pub async fn status_of(&self, request: &str) -> u16 {
        let mut socket = TcpStream::connect(self.address).await.expect("a connection");
        let request = request.replace("{address}", &self.address.to_string());
        socket.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        status.unwrap_or_else(|| panic!("no status: {answer}"))
    }

    pub fn drain(&self) -> &Drain {
        &self.drain
    }

    /// Waits until the gateway has drained and left.
    pub async fn gone(self) {
        self.task.await.expect("the gateway ends well");
    }
}

fn load(toml: &str) -> (Config, Env) {
    let env = Env::new();
    let mut config = Config::from_toml(toml, "test.toml", &env).expect("a valid config");
    config.http.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    // Nor the rates of an operator who says nothing: tests are faster than models.
    let usual = TenantConfig::default();
    for tenant in &mut config.tenants {
        if (tenant.requests_per_minute, tenant.burst) == (usual.requests_per_minute, usual.burst) {
            (tenant.requests_per_minute, tenant.burst) = (1_000_000, 1_000_000);
        }
    }
    // No test means the file that an operator gets who says nothing.
    if config.store.url == StoreConfig::default().url {
        config.store.url = Secret::new("sqlite::memory:");
    }
    (config, env)
}

pub fn metrics() -> Metrics {
    Metrics::new("test", None).expect("metrics")
}
