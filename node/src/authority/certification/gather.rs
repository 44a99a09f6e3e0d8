//! Gathers the certificates that a peer has and this archive lacks. Each is checked as it comes: it is built on the one
//! before, and a quorum of its epoch has signed it. So a peer costs no more than its time until it shows what was
//! signed.

use std::time::Duration;

use fastpay_core::checkpoint::{Checkpoint, CheckpointCertificate};
use fastpay_core::{Committees, Domain};
use tokio::time::timeout;

use super::admit::is_ahead;
use super::peer::{Peer, PeerFailure};

/// The most certificates that are admitted at once, with up to 17 kB each: two days of checkpoints under full load.
/// More are admitted in the next rounds.
const CERTIFICATES_MAX: usize = 8_192;

/// The certificates after `tip`, the newest one here; or from its rival on, if the peer has another one of its number.
/// None if there is nothing in them for this archive. What has come within `limit`, or before an epoch that is not
/// known here, is taken.
pub(super) async fn lacking(
    peer: &Peer,
    tip: &Checkpoint,
    (domain, committees): (&Domain, &Committees),
    limit: Duration,
) -> Result<Vec<CheckpointCertificate>, PeerFailure> {
    let mut found = Vec::new();
    let gathered = timeout(limit, gather(peer, tip, (domain, committees), &mut found)).await;
    let is_ahead = is_ahead(&found, tip, domain);
    match gathered.unwrap_or(Err(PeerFailure::Slow(limit))) {
        Ok(()) | Err(PeerFailure::Slow(_) | PeerFailure::UnknownEpoch(_)) if is_ahead => Ok(found),
        gathered => gathered.map(|()| Vec::new()),
    }
}

async fn gather(
    peer: &Peer,
    tip: &Checkpoint,
    (domain, committees): (&Domain, &Committees),
    found: &mut Vec<CheckpointCertificate>,
) -> Result<(), PeerFailure> {
    let mut previous = *tip;
    for number in (tip.number.max(1)..).take(CERTIFICATES_MAX) {
        let Some(next) = peer.certificate(number, domain, committees).await? else { break };
        if next.checkpoint == *tip {
            continue;
        }
        let built_on = if number == tip.number { tip.previous } else { domain.checkpoint_digest(&previous) };
        if next.checkpoint.previous != built_on {
            return Err(PeerFailure::Fork(number));
        }
        previous = next.checkpoint;
        found.push(next);
    }
    Ok(())
}
