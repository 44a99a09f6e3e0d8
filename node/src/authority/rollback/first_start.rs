//! Determines whether a deployment was in use before an authority starts with a new data folder.
//!
//! A new folder remembers no vote. That memory is complete if its keys were made beside it and never had another folder
//! (`detect::Age::First`), or if nobody can have voted yet. Otherwise the authority may have voted with a lost folder,
//! and the new one counts as an older copy of it.
//!
//! ```text
//!  new folder ─► epoch above 0? ─► events on the contract? ─► use seen by a peer? ─► nothing: the folder is whole
//!                     └─────────────────┴──────────────────────────┴─► in use: marked as an older copy
//! ```
//! With a Primary, the contract decides: without a deposit there is nothing to vote for. Every configured Ethereum node
//! must answer from its newest block, which must be recent; one node that reports an event suffices. On a ledger, a recent
//! state is certified. Without a Primary,
//! value begins with the accounts of the genesis, so the very first order comes from one of them; the peers are asked
//! about these. A peer that does not answer decides nothing: when a new committee starts, no peer answers yet.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_client::{Asked, AuthorityClient, Endpoints};
use fastpay_core::{AccountId, AuthorityName, Epoch, TransactionIndex};
use fastpay_ethereum::{Primary, PrimaryConfig, PrimaryError};
use fastpay_ledger_statement::Time;

use super::catch_up::OPTIONS;
use super::detect::StaleReason;
use crate::authority::deployment::Deployment;
use crate::authority::funding::LedgerDeployment;

/// The wait before an Ethereum node that gave no answer is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A node whose newest block is older than this is still reading the chain. An hour is 300 blocks.
const HEAD_AGE_MAX: Duration = Duration::from_secs(3_600);

/// Why the deployment counts as in use; `None` if nobody can have voted yet. Waits until every Ethereum node has
/// answered.
///
/// # Errors
/// If the URLs of the Ethereum nodes cannot be used.
pub async fn in_use(
    deployment: &Deployment,
    epoch: Epoch,
    endpoints: Option<&Path>,
    names: &[AuthorityName],
) -> Result<Option<StaleReason>, PrimaryError> {
    if epoch > Epoch(0) {
        return Ok(Some(StaleReason::LaterEpoch(epoch)));
    }
    let founders = match deployment {
        Deployment::OnPrimary { config, .. } => {
            if let Some(index) = last_event(config).await? {
                return Ok(Some(StaleReason::Events(index)));
            }
            Vec::new()
        }
        Deployment::OnLedger { ledger, .. } => {
            let index = last_event_on(ledger).await;
            if index > TransactionIndex(0) {
                return Ok(Some(StaleReason::Events(index)));
            }
            Vec::new()
        }
        Deployment::StandAlone(genesis) => {
            let mut founders: Vec<_> = genesis.deposits().map(|deposit| deposit.recipient).collect();
            founders.sort_unstable();
            founders.dedup();
            founders
        }
    };
    Ok(peer_with_use(endpoints, names, &founders).await.map(StaleReason::Peer))
}

/// The newest event of the contract that any node knows.
async fn last_event(config: &PrimaryConfig) -> Result<Option<TransactionIndex>, PrimaryError> {
    for url in &config.rpc_urls {
        let node = Primary::connect_lazily(PrimaryConfig { rpc_urls: vec![url.clone()], ..config.clone() })?;
        loop {
            let unknown = match events_of(&node).await {
                Ok(Some(TransactionIndex(0))) => break,
                Ok(Some(index)) => return Ok(Some(index)),
                Ok(None) => "its newest block is more than an hour old: it lags".to_owned(),
                Err(error) => error.to_string(),
            };
            tracing::warn!(
                url = url.origin().ascii_serialization(),
                reason = unknown,
                "the data folder is new, and this Ethereum node does not say yet whether the contract is in use"
            );
            tokio::time::sleep(ASK_AGAIN_AFTER).await;
        }
    }
    Ok(None)
}

/// The newest event of the committee in a state of the ledger that is recent and certified.
async fn last_event_on(ledger: &LedgerDeployment) -> TransactionIndex {
    loop {
        let oldest = now().saturating_sub(HEAD_AGE_MAX).as_millis();
        match ledger.ledger().newest_event(Time(u64::try_from(oldest).unwrap_or(u64::MAX))).await {
            Ok(index) => return index,
            Err(reason) => {
                tracing::warn!(%reason, "the data folder is new, and the ledger does not say yet whether it is in use");
                tokio::time::sleep(ASK_AGAIN_AFTER).await;
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a chain's time is compared with ours")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// How many events a node knows. `None` if it knows of none and its newest block is too old.
async fn events_of(node: &Primary) -> Result<Option<TransactionIndex>, PrimaryError> {
    let head = node.latest_head().await?;
    let index = node.last_transaction_index().await?;
    let is_old = now().saturating_sub(Duration::from_secs(head.timestamp())) > HEAD_AGE_MAX;
    Ok((index > TransactionIndex(0) || !is_old).then_some(index))
}

/// A peer that reports something to vote for. All are asked at once.
async fn peer_with_use(
    endpoints: Option<&Path>,
    names: &[AuthorityName],
    founders: &[AccountId],
) -> Option<AuthorityName> {
    // The file, and the authorities in it, may be added after the first start.
    let endpoints = Endpoints::read(endpoints?).ok()?;
    let others = endpoints.authorities.iter().filter(|entry| !names.contains(&entry.name));
    let peers: Vec<_> = others.filter_map(|entry| AuthorityClient::new(entry, OPTIONS).ok()).collect();
    let mut asked = Asked::each(&peers, |peer| {
        let founders = founders.to_vec();
        async move { has_use(&peer, &founders).await }
    });
    while let Some((name, is_used)) = asked.answer().await {
        if is_used {
            return Some(name);
        }
    }
    None
}

/// Whether a peer has applied events of the contract, or, without a Primary, knows an order of one of `founders`.
async fn has_use(peer: &AuthorityClient, founders: &[AccountId]) -> bool {
    if founders.is_empty() {
        let Some(shard) = peer.shards().first() else { return false };
        return shard.status().await.is_ok_and(|status| status.synchronized > TransactionIndex(0));
    }
    for founder in founders {
        match peer.shard_of(founder).account(*founder).await {
            Ok(state) if state.next_sequence.0 > 0 || state.pending.is_some() || state.catching_up => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    false
}
