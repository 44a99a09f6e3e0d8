//! The operator's own running node, through its own ports.

use std::net::SocketAddr;

use fastpay_client::{ClientError, ClientOptions, ShardClient};

use crate::authority::config::Config;

/// A client of one of the node's own ports, and its address.
///
/// # Errors
/// The address, and why it cannot be asked.
pub(super) fn client(config: &Config, address: SocketAddr) -> Result<(ShardClient, String), (String, ClientError)> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let tls_ca = config.tls.as_ref().and_then(|tls| std::fs::read_to_string(&tls.certificate).ok());
    let address = format!("{scheme}://{address}");
    match ShardClient::new(&address, tls_ca.as_deref(), ClientOptions::default()) {
        Ok(client) => Ok((client, address)),
        Err(error) => Err((address, error)),
    }
}
