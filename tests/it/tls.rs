//! TLS on both sides: the gateway's own certificate, and servers whose certificates an authority of the operator's signed.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jupyter_mcp_gateway::http::Timeouts;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, client::TlsStream};
use tokio_util::task::AbortOnDropHandle;

use crate::support::{
    Agent, Era, Gateway, TOKEN,
    command::run,
    eventually,
    gateway::{everything, lab_server},
    hub::{config_for, hub},
    jupyter::install_tls,
    notebook::notebook,
    own_lab::OwnLab,
    running::{Home, Running},
    wire::{initialize, post_without_token, send},
};

/// An authority, and a certificate for this machine that it signed.
pub struct Certificates {
    dir: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let made = Self {
            dir: tempfile::tempdir().expect("a folder"),
            authority: CertifiedIssuer::self_signed(params, key).expect("an authority"),
        };
        fs::write(made.path("ca.pem"), made.authority.pem()).expect("a file");
        made.renew();
        made
    }

    /// Writes another certificate and key in the place of those there are.
    fn renew(&self) {
        let (certificate, key) = self.pair();
        fs::write(self.path("cert.pem"), certificate).expect("a file");
        fs::write(self.path("key.pem"), key).expect("a file");
    }

    fn pair(&self) -> (String, String) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("parameters");
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.authority).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn shown(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The settings of a gateway that uses them.
    fn settings(&self) -> String {
        format!(
            "http.tls_cert = \"{}\"\nhttp.tls_key = \"{}\"\n",
            self.shown("cert.pem"),
            self.shown("key.pem")
        )
    }

    /// Connects as a client that offers these protocols.
    async fn connect(&self, address: SocketAddr, protocols: &[&[u8]]) -> TlsStream<TcpStream> {
        install_tls();
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from(self.authority.der().to_vec()))
            .expect("an authority");
        let mut config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        connector.connect(name, stream).await.expect("a handshake")
    }

    /// The certificate that new connections are shown.
    async fn served(&self, address: SocketAddr) -> Vec<u8> {
        let stream = self.connect(address, &[]).await;
        let (_, connection) = stream.get_ref();
        connection.peer_certificates().expect("a certificate")[0].to_vec()
    }

    /// The certificate in the file.
    fn on_disk(&self) -> Vec<u8> {
        CertificateDer::from_pem_file(self.path("cert.pem"))
            .expect("a certificate")
            .to_vec()
    }
}

fn config(certificates: &Certificates) -> String {
    format!("{}{}{}", certificates.settings(), lab_server("lab"), everything())
}

#[tokio::test]
async fn both_versions_of_http_are_served_inside_of_tls() {
    let certificates = Certificates::new();
    let gateway = Gateway::configured(&config(&certificates)).await;
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    for protocols in [&[&b"http/1.1"[..]][..], &[]] {
        let mut stream = certificates.connect(gateway.address(), protocols).await;
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    let mut stream = certificates.connect(gateway.address(), &[b"h2", b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.write_all(preface).await.expect("sent");
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.expect("a frame");
    assert_eq!(frame[3], 4, "settings");
    // Who speaks without TLS gets no answer.
    let mut plain = TcpStream::connect(gateway.address()).await.expect("a connection");
    plain.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_given_up() {
    let certificates = Certificates::new();
    let timeouts = Timeouts {
        handshake: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let gateway = Gateway::with_timeouts(&certificates.settings(), timeouts).await;
    for sent in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
        socket.write_all(sent).await.expect("sent");
        let mut answer = Vec::new();
        let closed = timeout(Duration::from_secs(5), socket.read_to_end(&mut answer)).await;
        assert!(closed.is_ok(), "still open");
    }
    let mut stream = certificates.connect(gateway.address(), &[]).await;
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut metrics = String::new();
    let _ = stream.read_to_string(&mut metrics).await;
    let counted =
        |line: &str| line.starts_with("jmg_http_connections_closed_total{") && line.contains("handshake_timeout");
    assert!(metrics.lines().any(counted), "{metrics}");
}

#[tokio::test]
async fn files_that_change_are_read_again_and_a_broken_pair_changes_nothing() {
    let certificates = Certificates::new();
    let gateway = Gateway::configured(&config(&certificates)).await;
    let address = gateway.address();
    let first = certificates.served(address).await;
    assert_eq!(first, certificates.on_disk());
    let mut old = certificates.connect(address, &[]).await;
    certificates.renew();
    eventually("the new certificate is served", async || {
        let served = certificates.served(address).await;
        (served != first && served == certificates.on_disk()).then_some(())
    })
    .await;
    let second = certificates.served(address).await;
    // Open connections stay.
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    old.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let _ = old.read_to_string(&mut answer).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    // A certificate without its key, as it is for a moment while both are written.
    fs::write(certificates.path("cert.pem"), certificates.pair().0).expect("a file");
    // Longer than the interval between checks of the files.
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(certificates.served(address).await, second);
}

#[tokio::test]
async fn a_hangup_reads_the_certificate_again() {
    let (home, certificates) = (Home::new(), Certificates::new());
    let file = home.path("gateway.toml");
    let authority = certificates.shown("ca.pem");
    let server = format!("[[servers]]\nname = \"far\"\nurl = \"https://127.0.0.1:9/\"\nca_file = {authority:?}\n");
    let text = format!("store.url = \"sqlite::memory:\"\n{}{server}", config(&certificates));
    fs::write(&file, text).expect("a config");
    let mut command = home.serve();
    command.arg("--config").arg(&file);
    let running = Running::start(command).await;
    let url = running.url();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let address: SocketAddr = url["https://".len()..]
        .trim_end_matches("/mcp")
        .parse()
        .expect("an address");
    assert_eq!(certificates.served(address).await, certificates.on_disk());
    let healthy = run(&["health", "--url", &format!("https://{address}/healthz")]);
    assert_eq!(
        (healthy.code, healthy.stdout.trim()),
        (Some(0), "ok"),
        "{}",
        healthy.stderr
    );
    certificates.renew();
    running.signal("-HUP");
    eventually("the config is read", async || running.logged("reloaded").then_some(())).await;
    assert_eq!(certificates.served(address).await, certificates.on_disk());
    // Authorities of Jupyter servers are read at start only, which is told.
    assert!(!running.logged("needs a restart"));
    let mut authority = fs::read_to_string(certificates.path("ca.pem")).expect("a file");
    authority.push('\n');
    fs::write(certificates.path("ca.pem"), authority).expect("a file");
    running.signal("-HUP");
    eventually("what is not read again is named", async || {
        running.logged("needs a restart: servers[1].ca_file").then_some(())
    })
    .await;
    let good = certificates.on_disk();
    fs::write(certificates.path("cert.pem"), "nonsense").expect("a file");
    running.signal("-HUP");
    eventually("the broken pair is told", async || {
        running
            .logged("http.tls_cert: cannot read a certificate from")
            .then_some(())
    })
    .await;
    assert_eq!(certificates.served(address).await, good);
}

#[test]
fn a_pair_that_cannot_be_used_is_refused_by_name() {
    let certificates = Certificates::new();
    fs::write(certificates.path("other.pem"), certificates.pair().1).expect("a file");
    fs::write(certificates.path("empty.pem"), "").expect("a file");
    let check = |settings: &str| {
        let file = certificates.path("gateway.toml");
        fs::write(&file, settings).expect("a config");
        let checked = run(&["check-config", "--config", &file.display().to_string()]);
        (checked.code, checked.stderr)
    };
    let pair = |cert: &str, key: &str| {
        let path = |name: &str| certificates.shown(name);
        format!("[http]\ntls_cert = \"{}\"\ntls_key = \"{}\"\n", path(cert), path(key))
    };
    for (settings, told) in [
        (
            "[http]\ntls_cert = \"a.pem\"\n".to_owned(),
            vec!["http.tls_cert: needs http.tls_key too"],
        ),
        (
            "[http]\ntls_key = \"a.pem\"\n".to_owned(),
            vec!["http.tls_key: needs http.tls_cert too"],
        ),
        (pair("no.pem", "key.pem"), vec!["http.tls_cert: cannot read", "no.pem"]),
        (
            pair("empty.pem", "key.pem"),
            vec!["http.tls_cert: cannot read", "empty.pem"],
        ),
        (pair("cert.pem", "no.pem"), vec!["http.tls_key: cannot read", "no.pem"]),
        (
            pair("cert.pem", "cert.pem"),
            vec!["http.tls_key: cannot read", "cert.pem"],
        ),
        (
            pair("cert.pem", "other.pem"),
            vec!["http.tls_key: the key in", "other.pem", "cert.pem"],
        ),
    ] {
        let (code, stderr) = check(&settings);
        assert_eq!(code, Some(64), "{settings}: {stderr}");
        assert!(told.iter().all(|told| stderr.contains(told)), "{settings}: {stderr}");
        assert!(stderr.contains("gateway.toml"), "{stderr}");
    }
    assert_eq!(check(&pair("cert.pem", "key.pem")).0, Some(0));
    let server = |more: &str| format!("[[servers]]\nname = \"lab\"\n{more}\n");
    let (code, stderr) = check(&server(&format!(
        "url = \"https://lab:8888/\"\nca_file = {:?}",
        certificates.shown("empty.pem")
    )));
    assert_eq!(code, Some(64), "{stderr}");
    assert!(
        stderr.contains("servers[0].ca_file: cannot read") && stderr.contains("empty.pem"),
        "{stderr}"
    );
    let (code, stderr) = check(&server("url = \"http://lab:8888/\""));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("warning: servers[0].url: \"lab\" is reached without TLS"),
        "{stderr}"
    );
    for url in [
        "https://lab:8888/",
        "http://127.0.0.1:8888/",
        "http://[::1]:8888/",
        "http://localhost:8888/",
    ] {
        let (code, stderr) = check(&server(&format!("url = \"{url}\"")));
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{url}");
    }
}

/// A JupyterLab that serves TLS with the certificate.
async fn secure_lab(certificates: &Certificates) -> OwnLab {
    let argument = |key: &str, path: &Path| format!("--ServerApp.{key}={}", path.display());
    let arguments = [
        argument("certfile", &certificates.path("cert.pem")),
        argument("keyfile", &certificates.path("key.pem")),
    ];
    OwnLab::start(&[&arguments[0], &arguments[1]]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_with_an_authority_of_its_own_is_edited_and_runs_code() {
    let certificates = Certificates::new();
    let jupyter = secure_lab(&certificates).await;
    jupyter.write("a.ipynb", &notebook(&["6 * 7"]));
    let url = jupyter.url().replace("http://", "https://");
    let server = |more: &str| {
        format!(
            "[[servers]]\nname = \"lab\"\nurl = \"{url}\"\ntoken = \"{}\"\n{more}\n{}",
            jupyter.token(),
            everything()
        )
    };
    let trusting = Gateway::configured(&server(&format!("ca_file = {:?}", certificates.shown("ca.pem")))).await;
    let agent = Agent::with_token(&trusting, TOKEN, Era::Modern).await;
    let run = json!({ "path": "a.ipynb", "ranges": [{ "start": 0 }] });
    let ran = agent.call("execute_nb_cells", run).await;
    assert!(!ran.is_error && ran.text().contains("42"), "{}", ran.text());
    let other = Gateway::configured(&server("")).await;
    let stranger = Agent::with_token(&other, TOKEN, Era::Modern).await;
    let refused = stranger.call("list_documents", json!({})).await.error();
    assert!(refused.contains("cannot be reached"), "{refused}");
}

/// TLS in front of a service that has none.
async fn secured(certificates: &Certificates, service: String) -> (SocketAddr, AbortOnDropHandle<()>) {
    install_tls();
    let chain = vec![CertificateDer::from_pem_file(certificates.path("cert.pem")).expect("a certificate")];
    let key = PrivateKeyDer::from_pem_file(certificates.path("key.pem")).expect("a key");
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key);
    let acceptor = TlsAcceptor::from(Arc::new(config.expect("a pair")));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let task = tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (acceptor, service) = (acceptor.clone(), service.clone());
            tokio::spawn(async move {
                let mut client = acceptor.accept(socket).await?;
                let mut server = TcpStream::connect(service).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    (address, AbortOnDropHandle::new(task))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_with_an_authority_of_its_own_is_asked() {
    let (hub, certificates) = (hub().await, Certificates::new());
    let (address, _proxy) = secured(&certificates, hub.address()).await;
    let user = hub.user("tia").await;
    let url = format!("https://{address}/");
    let authority = format!("ca_file = {:?}", certificates.shown("ca.pem"));
    for (more, status) in [(authority.as_str(), 200), ("", 503)] {
        let gateway = Gateway::configured(&config_for(&url, more)).await;
        let request = post_without_token(&gateway, initialize()).bearer_auth(&user.token);
        assert_eq!(send(request).await.status, status, "{more}");
    }
}
