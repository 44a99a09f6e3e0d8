//! Encryption of the ports: one certificate chain and key for all of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tonic::transport::Identity;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::authority::config::TlsFiles;

/// Why the certificate and its key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A file is not PEM, or lacks the wanted item.
    #[error("the certificate or its key is not PEM: {0}")]
    Pem(#[from] pem::Error),
    /// A certificate is missing or not X.509.
    #[error("the certificate file contains no readable X.509 certificate: {0}")]
    Certificate(String),
    /// The certificate and the key do not match.
    #[error("the certificate and its key cannot be used: {0}")]
    Unfit(#[from] rustls::Error),
}

/// A certificate chain and its key, PEM.
pub struct Tls {
    certificate: Vec<u8>,
    key: Vec<u8>,
    http: bool,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError::Unreadable`].
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| TlsError::Unreadable { path: path.into(), error });
        Ok(Self { certificate: read(&files.certificate)?, key: read(&files.key)?, http: files.http })
    }

    /// When the chain expires, in seconds since 1970: clients refuse it once any of its certificates has expired.
    ///
    /// # Errors
    /// [`TlsError::Pem`], [`TlsError::Certificate`].
    pub fn ends_at(&self) -> Result<i64, TlsError> {
        let unreadable = |why: &dyn ToString| TlsError::Certificate(why.to_string());
        let ends = CertificateDer::pem_slice_iter(&self.certificate).map(|der| {
            let der = der?;
            let (_, certificate) = X509Certificate::from_der(&der).map_err(|error| unreadable(&error))?;
            Ok(certificate.validity().not_after.timestamp())
        });
        let ends = ends.collect::<Result<Vec<_>, TlsError>>()?;
        ends.into_iter().min().ok_or_else(|| unreadable(&"it is empty"))
    }

    /// The identity for the shards' ports.
    #[must_use]
    pub fn shards(&self) -> Identity {
        Identity::from_pem(&self.certificate, &self.key)
    }

    /// The configuration for the HTTP port; `None` if that is not encrypted.
    ///
    /// # Errors
    /// [`TlsError::Pem`], [`TlsError::Unfit`].
    pub fn http(&self) -> Result<Option<Arc<ServerConfig>>, TlsError> {
        if !self.http {
            return Ok(None);
        }
        let chain = CertificateDer::pem_slice_iter(&self.certificate).collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Some(Arc::new(config)))
    }
}
