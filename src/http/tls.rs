//! The certificate of the gateway: read at start, and again when it is told to or when its files have changed. A pair
//! of files that cannot be used leaves the one before in use.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tokio::{task::spawn_blocking, time::sleep};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// Interval between looks at the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("http.tls_cert: cannot read a certificate from {path}: {why}")]
    Certificate { path: String, why: String },
    #[error("http.tls_key: cannot read a private key from {path}: {why}")]
    Key { path: String, why: String },
    #[error("http.tls_key: the key in {key} cannot be used with the certificate in {cert}: {why}")]
    Pair { cert: String, key: String, why: String },
}

/// The files of a certificate and its key.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The certificate that new connections are shown.
pub struct Tls {
    files: TlsFiles,
    current: RwLock<Current>,
}

struct Current {
    config: Arc<ServerConfig>,
    /// The files when they were read last, whether they could be used or not.
    stamps: [Option<Stamp>; 2],
}

type Stamp = (SystemTime, u64);

impl TlsFiles {
    /// Reads both, and makes of them what connections need.
    pub fn load(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let certificates = self.certificates()?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| TlsError::Key {
            path: shown(&self.key),
            why: error.to_string(),
        })?;
        let mismatch = |error: rustls::Error| TlsError::Pair {
            cert: shown(&self.cert),
            key: shown(&self.key),
            why: error.to_string(),
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(mismatch)?
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .map_err(mismatch)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let unreadable = |why: String| TlsError::Certificate {
            path: shown(&self.cert),
            why,
        };
        let found = CertificateDer::pem_file_iter(&self.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        match found.map_err(|error| unreadable(error.to_string()))? {
            found if found.is_empty() => Err(unreadable("it holds no certificate in PEM form".to_owned())),
            found => Ok(found),
        }
    }

    fn stamps(&self) -> [Option<Stamp>; 2] {
        let stamp = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok()?, metadata.len()))
        };
        [stamp(&self.cert), stamp(&self.key)]
    }
}

impl Tls {
    pub fn new(files: TlsFiles) -> Result<Self, TlsError> {
        let stamps = files.stamps();
        let config = files.load()?;
        Ok(Self {
            files,
            current: RwLock::new(Current { config, stamps }),
        })
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.current.read().config))
    }

    /// Reads the files again, and uses them from now on if they can be used. Connections that are open stay.
    pub fn reload(&self) -> Result<(), TlsError> {
        let stamps = self.files.stamps();
        let loaded = self.files.load();
        let mut current = self.current.write();
        current.stamps = stamps;
        current.config = loaded?;
        Ok(())
    }

    /// Reads the files again whenever they have changed, until `stop` is cancelled.
    pub async fn watch(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(sleep(CHECK_INTERVAL)).await.is_some() {
            let tls = Arc::clone(&self);
            // The files may be on a file system that does not answer.
            let _ = spawn_blocking(move || tls.reload_if_changed()).await;
        }
    }

    fn reload_if_changed(&self) {
        if self.files.stamps() == self.current.read().stamps {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!("the certificate has changed; new connections use it"),
            Err(error) => tracing::error!(%error, "the changed certificate cannot be used; keeping the old one"),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
