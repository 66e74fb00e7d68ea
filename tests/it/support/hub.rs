//! The JupyterHub that all tests share: a real one, with its proxy, users and tokens. It is started by the first test that
//! needs it and ends with the test process, however that ends. Each test has users of its own.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicU32, Ordering},
    },
};

use jupyter_mcp_gateway::app::lab::{Venv, VenvSpec};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::{
    TIMEOUT, eventually,
    jupyter::install_tls,
    node::{Packages, node_modules, real_node},
    own_lab::free_port,
    within,
};

const PACKAGES: Packages = Packages {
    name: "hub-proxy",
    manifest: include_str!("../../hub/package.json"),
    lockfile: include_str!("../../hub/package-lock.json"),
};
/// Token of the service by which users and tokens are made.
const OPERATOR: &str = "token-of-the-operator-of-the-hub";

pub struct Hub {
    port: u16,
    home: PathBuf,
    /// Ends the Hub and all that it has started when this process ends.
    _process: Child,
}

/// The environment of the Hub and of its users' servers.
fn venv() -> Venv {
    static VENV: LazyLock<Venv> = LazyLock::new(|| {
        let lab = VenvSpec::lab();
        let spec = VenvSpec {
            name: "hub",
            requirements: format!("{}\n{}", lab.requirements, include_str!("../../hub/requirements.txt")),
            constraints: format!("{}\n{}", lab.constraints, include_str!("../../hub/constraints.txt")),
        };
        Venv::ensure(&spec, &mut |line| println!("{line}")).expect("the environment of the Hub")
    });
    VENV.clone()
}

pub async fn hub() -> &'static Hub {
    static HUB: OnceCell<Hub> = OnceCell::const_new();
    HUB.get_or_init(async || {
        let hub = tokio::task::spawn_blocking(Hub::spawn).await.expect("no panic");
        hub.wait_until_ready().await;
        hub
    })
    .await
}

impl Hub {
    fn spawn() -> Self {
        install_tls();
        let venv = venv();
        let proxy = node_modules(&PACKAGES, &venv).join("configurable-http-proxy/bin/configurable-http-proxy");
        let home = tempfile::tempdir().expect("a folder").keep();
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hub/config.py");
        let ports = [free_port(), free_port(), free_port()];
        let log = File::create(home.join("hub.log")).expect("a log");
        // Cleaned up with the Hub, which a shell waits for: what is shared for the whole run is never dropped.
        let script = "trap '' HUP INT TERM; \"$@\"; rm -rf \"$TEST_HUB_HOME\"";
        let process = Command::new("sh")
            .args(["-c", script, "sh"])
            .arg(venv.python())
            .arg(config.with_file_name("run.py"))
            .arg(&config)
            .env("TEST_HUB_HOME", &home)
            .env("TEST_HUB_PORTS", ports.map(|port| port.to_string()).join(" "))
            .env("TEST_HUB_TOKEN", OPERATOR)
            .env(
                "TEST_HUB_PROXY",
                format!("{}|{}", real_node(&venv).display(), proxy.display()),
            )
            .current_dir(&home)
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("a shell");
        Self {
            port: ports[0],
            home,
            _process: process,
        }
    }

    async fn wait_until_ready(&self) {
        let what = format!("the Hub is ready (see {})", self.home.join("hub.log").display());
        within(TIMEOUT, &what, async {
            loop {
                let asked = Client::new().get(format!("{}hub/api/", self.url())).send().await;
                if asked.is_ok_and(|answer| answer.status() == StatusCode::OK) {
                    return;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        })
        .await;
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// `[auth.jupyterhub]`, a tenant for its users, and more keys of the former.
    pub fn config(&self, more: &str) -> String {
        config_for(&self.url(), more)
    }

    /// Asks the Hub something as its operator.
    pub async fn ask(&self, method: Method, path: &str, body: Value) -> Value {
        // A client for each, since it belongs to the runtime of a test.
        let request = Client::new().request(method.clone(), format!("{}hub/api/{path}", self.url()));
        let request = request.header("authorization", format!("token {OPERATOR}")).json(&body);
        let answer = within(TIMEOUT, path, request.send()).await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        assert!(status.is_success(), "{method} {path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// A new service, at which people can log in and are sent back to a URL: its client id and secret.
    pub async fn service(&self, redirect_uri: &str, scopes: &[&str]) -> (String, String) {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("gateway{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let (client_id, secret) = (format!("service-{name}"), format!("the secret of the service {name}"));
        let service = json!({
            "oauth_client_id": client_id,
            "oauth_redirect_uri": redirect_uri,
            "oauth_client_allowed_scopes": scopes,
            "api_token": secret,
        });
        self.ask(Method::POST, &format!("services/{name}"), service).await;
        (client_id, secret)
    }

    /// A new user, whom nobody else has met.
    pub async fn user(&'static self, name: &str) -> HubUser {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{name}{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.ask(Method::POST, &format!("users/{name}"), json!({})).await;
        let mut user = HubUser {
            hub: self,
            token: String::new(),
            token_id: String::new(),
            name,
        };
        (user.token, user.token_id) = user.new_token(json!({})).await;
        user
    }
}

/// `[auth.jupyterhub]` for a Hub at a URL.
pub fn config_for(url: &str, more: &str) -> String {
    format!("[[tenants]]\nname = \"hub\"\n[auth.jupyterhub]\nurl = \"{url}hub/api\"\ntenant = \"hub\"\n{more}\n")
}

/// A user of the Hub with a token.
pub struct HubUser {
    hub: &'static Hub,
    pub name: String,
    pub token: String,
    token_id: String,
}

impl HubUser {
    /// Another token, and its id.
    pub async fn new_token(&self, request: Value) -> (String, String) {
        let made = self
            .hub
            .ask(Method::POST, &format!("users/{}/tokens", self.name), request)
            .await;
        let text = |key: &str| made[key].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        (text("token"), text("id"))
    }

    /// Ends all tokens that services got for them, as they can in the Hub.
    pub async fn revoke_logins(&self) {
        let all = self
            .hub
            .ask(Method::GET, &format!("users/{}/tokens", self.name), json!({}))
            .await;
        let tokens = all["api_tokens"].as_array().expect("tokens").iter();
        let of_services = tokens.filter(|token| token["oauth_client"].to_string().contains("gateway"));
        for token in of_services {
            let id = token["id"].as_str().expect("an id");
            let path = format!("users/{}/tokens/{id}", self.name);
            self.hub.ask(Method::DELETE, &path, json!({})).await;
        }
    }

    /// Removes them from the Hub.
    pub async fn remove(&self) {
        self.hub
            .ask(Method::DELETE, &format!("users/{}", self.name), json!({}))
            .await;
    }

    pub async fn revoke_token(&self) {
        let path = format!("users/{}/tokens/{}", self.name, self.token_id);
        self.hub.ask(Method::DELETE, &path, json!({})).await;
    }

    /// The folder of their servers on disk.
    pub fn home(&self) -> PathBuf {
        let home = self.hub.home.join("users").join(&self.name);
        std::fs::create_dir_all(&home).expect("a folder");
        home
    }

    /// Starts their default server without the gateway.
    pub async fn start(&self) {
        self.hub
            .ask(Method::POST, &format!("users/{}/server", self.name), json!({}))
            .await;
        eventually(&format!("the server of {} runs", self.name), async || {
            self.is_running().await.then_some(())
        })
        .await;
    }

    /// Stops their default server, as they do in the Hub or as culling does.
    pub async fn stop(&self) {
        self.hub
            .ask(Method::DELETE, &format!("users/{}/server", self.name), json!({}))
            .await;
        eventually(&format!("the server of {} is stopped", self.name), async || {
            let model = self.model().await;
            model["servers"][""].is_null().then_some(())
        })
        .await;
    }

    async fn is_running(&self) -> bool {
        self.model().await["servers"][""]["ready"] == true
    }

    async fn model(&self) -> Value {
        self.hub
            .ask(Method::GET, &format!("users/{}", self.name), json!({}))
            .await
    }

    /// The time of the last traffic to their default server, as the proxy tells it.
    pub async fn last_traffic(&self) -> String {
        let routes = self.hub.ask(Method::GET, "proxy", json!({})).await;
        let route = &routes[format!("/user/{}/", self.name)];
        route["data"]["last_activity"]
            .as_str()
            .unwrap_or_else(|| panic!("{routes}"))
            .to_owned()
    }
}
