//! A store in PostgreSQL that is reached by TLS: who answers is checked, as `sslmode=verify-full` says.

use std::{net::SocketAddr, process::Stdio, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use test_postgres::TestDatabase;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use crate::{
    support::{
        Agent, Era, Gateway,
        command::{Ended, ended, gateway_command},
        eventually,
        jupyter::install_tls,
    },
    tls::Certificates,
};

/// Request of a PostgreSQL client for TLS, which goes before everything else.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

/// TLS in front of the tests' PostgreSQL, whose build has none, as a pooler has it.
async fn behind_tls(certificates: &Certificates, host: &str, database: SocketAddr) -> SocketAddr {
    install_tls();
    let certificate = CertificateDer::from_pem_file(certificates.path("cert.pem")).expect("a certificate");
    let key = PrivateKeyDer::from_pem_file(certificates.path("key.pem")).expect("a key");
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).expect("a certificate");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((host, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(pass_on(acceptor.clone(), client, database));
        }
    });
    address
}

async fn pass_on(acceptor: TlsAcceptor, mut client: TcpStream, database: SocketAddr) -> std::io::Result<()> {
    let mut request = [0; 8];
    client.read_exact(&mut request).await?;
    assert_eq!(request, SSL_REQUEST, "nothing is said before TLS");
    client.write_all(b"S").await?;
    let mut client = acceptor.accept(client).await?;
    let mut server = TcpStream::connect(database).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

async fn migrate(url: String) -> Ended {
    let mut command = gateway_command();
    command.arg("migrate").env("JMG__STORE__URL", url).stdin(Stdio::null());
    // The TLS in front of the database is served by this test's own runtime.
    let running = tokio::task::spawn_blocking(move || command.output().expect("the binary runs"));
    ended(running.await.expect("no panic"))
}

#[tokio::test]
async fn the_store_is_reached_by_tls_and_who_answers_is_checked() {
    let (certificates, others) = (Certificates::new(), Certificates::new());
    let database = TestDatabase::create();
    let plain = database.url();
    let (head, name) = plain.rsplit_once('/').expect("a database");
    let (user, server) = head.rsplit_once('@').expect("a server");
    let database_address: SocketAddr = server.parse().expect("an address");
    let address = behind_tls(&certificates, "127.0.0.1", database_address).await;
    // This machine too, but the certificate does not say so.
    let unnamed = behind_tls(&certificates, "127.0.0.2", database_address).await;
    let url = |host: &str, port: u16, authority: &str| {
        format!("{user}@{host}:{port}/{name}?sslmode=verify-full&sslrootcert={authority}")
    };
    let authority = certificates.path("ca.pem").display().to_string();
    let strange = others.path("ca.pem").display().to_string();

    for (host, port, authority, why) in [
        ("127.0.0.1", address.port(), &strange, "certificate"),
        ("127.0.0.2", unnamed.port(), &authority, "certificate"),
        ("127.0.0.1", database_address.port(), &authority, "TLS"),
    ] {
        let refused = migrate(url(host, port, authority)).await;
        assert_eq!(refused.code, Some(70), "{}", refused.stderr);
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert!(!refused.stderr.contains("hunter2"), "{}", refused.stderr);
    }
    assert_eq!(
        database
            .sql("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
            .trim(),
        "0",
        "nothing was written"
    );

    let url = url("localhost", address.port(), &authority);
    let made = migrate(url.clone()).await;
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let gateway = Gateway::with(&format!("[store]\nurl = \"{url}\"")).await;
    let agent = Agent::connect(&gateway, Era::Modern).await;
    agent.call("list_servers", serde_json::json!({})).await.ok();
    eventually("the call is in the database", async || {
        (database.sql("SELECT count(*) FROM audit").trim() == "1").then_some(())
    })
    .await;
}
