//! Accepts connections within the bounds, and identifies the caller.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::authority::metrics::NetworkMetrics;
use crate::authority::network::{ConnectionQuota, ConnectionSlot};
use crate::authority::shard::ClientReputation;

/// The client that asks.
#[derive(Clone)]
pub(super) struct Caller {
    /// The reputation of its address.
    pub peer: Arc<ClientReputation>,
    /// Its address.
    pub address: IpAddr,
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(parts.extensions.get::<Self>().cloned().expect("every request comes over a connection"))
    }
}

/// Admits at most `connections_max` connections, and from one address as many as are free.
pub(super) fn admit(
    connections_max: usize,
    metrics: Arc<NetworkMetrics>,
) -> impl Fn(IpAddr) -> Option<(Caller, ConnectionSlot)> {
    let quota = ConnectionQuota::new(connections_max);
    move |address| {
        let Some(slot) = quota.take(address) else {
            metrics.connections_refused.inc();
            return None;
        };
        Some((Caller { peer: slot.peer().clone(), address }, slot))
    }
}
