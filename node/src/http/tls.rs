//! The port's own encryption.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not PEM, or none of what is wanted in it.
    #[error("the certificate or its key is not PEM: {0}")]
    Pem(#[from] pem::Error),
    /// They do not go together.
    #[error("the certificate and its key cannot be used: {0}")]
    Unfit(#[from] rustls::Error),
}

/// What a server needs to encrypt, from a certificate chain and its key (PEM).
///
/// # Errors
/// See [`TlsError`].
pub fn server_config(certificate: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(key)?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    Ok(Arc::new(config))
}
