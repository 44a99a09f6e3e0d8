//! The latency of one payment at a time with four authorities and the wallet's own client.

use std::sync::Arc;
use std::time::Instant;

use fastpay_client::{CommitteeClient, NoCertificates, QuorumOptions};
use fastpay_core::{AccountKey, Amount, Asset, GenesisBalance, Memo, Payment, SequenceNumber, Transfer};
use fastpay_e2e::{Failure, Layout, Network, Place};
use serde::{Deserialize, Serialize};

use crate::statistics::{Percentiles, Times};

/// The number of payments before the measurement, in which connections are opened and caches filled.
const WARM_UP: u64 = 20;

/// Measured from the order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Idle {
    pub rounds: u64,
    pub vote_ms: Percentiles,
    pub certificate_ms: Percentiles,
    pub settled_ms: Percentiles,
}

pub async fn measure(rounds: u64) -> Result<Idle, Failure> {
    let sender = AccountKey::ed25519([1; 32]);
    let balance =
        GenesisBalance { account: sender.account(), asset: Asset::ETHER, amount: Amount(u128::from(u64::MAX)) };
    let layout = Layout { shards: 1, ..Layout::default() };
    let mut network = Network::prepare_standalone(Place::fixed("bench-idle")?, layout, vec![balance])?;
    network.start_authorities().await?;
    let client = CommitteeClient::new(network.wallet_network()?, Arc::new(NoCertificates), QuorumOptions::default());
    let first = network.authority(0)?.client()?;
    let recipient = AccountKey::ed25519([2; 32]).account();

    let (mut votes, mut certificates, mut settlements) = (Times::default(), Times::default(), Times::default());
    for sequence in 0..WARM_UP + 2 * rounds {
        let transfer = Transfer::Payment(Payment {
            sender: sender.account(),
            recipient,
            asset: Asset::ETHER,
            amount: Amount(1),
            sequence: SequenceNumber(sequence),
            memo: Memo::ZERO,
        });
        let order = sender.order(network.domain(), transfer).verify(network.domain()).map_err(Failure::wrong)?;
        // Alternately measure one authority's vote, and the whole certificate.
        let is_vote_round = sequence % 2 == 1;
        if is_vote_round {
            let start = Instant::now();
            first.shard_of(&sender.account()).order(order.order()).await.map_err(Failure::wrong)?;
            if sequence >= WARM_UP {
                votes.push(start.elapsed());
            }
        }
        let start = Instant::now();
        let certificate = client.certify(&order).await.map_err(Failure::wrong)?;
        let certified = start.elapsed();
        let settled = client.settle(&certificate).await.map_err(Failure::wrong)?;
        if sequence >= WARM_UP && !is_vote_round {
            certificates.push(certified);
            settlements.push(start.elapsed());
        }
        settled.rest.await.map_err(Failure::wrong)?;
    }
    Ok(Idle {
        rounds,
        vote_ms: votes.percentiles(),
        certificate_ms: certificates.percentiles(),
        settled_ms: settlements.percentiles(),
    })
}
