//! Certificate authorities of one server, in the place of those of the system.

use std::{fmt, path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};

/// Those who may have signed the certificate of a server.
#[derive(Clone)]
pub struct Authorities(Arc<ClientConfig>);

impl Authorities {
    /// Reads the certificates of a PEM file; an error says what is wrong with it.
    pub fn read(file: &Path) -> Result<Self, String> {
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| error.to_string())?;
        let mut roots = RootCertStore::empty();
        for certificate in certificates {
            let certificate = certificate.map_err(|error| error.to_string())?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        if roots.is_empty() {
            return Err("it holds no certificate in PEM form".to_owned());
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    pub(crate) fn config(&self) -> &Arc<ClientConfig> {
        &self.0
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorities")
    }
}
