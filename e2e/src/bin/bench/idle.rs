//! How long one payment takes when nothing else happens, with all four authorities and the wallet's own driver.

use std::sync::Arc;
use std::time::Instant;

use fastpay_core::{AccountKey, Amount, Asset, GenesisBalance, Memo, Payment, SequenceNumber, Transfer};
use fastpay_e2e::{Failure, Layout, Network, Place};
use fastpay_wallet::{DriveOptions, Driver, NoCertificates};
use serde::Serialize;

use crate::{Arguments, percentile};

/// Not measured: connections are opened, caches filled.
const WARM_UP: u64 = 20;

#[derive(Serialize)]
pub struct Outcome {
    pub vote_p50_ms_idle: f64,
    pub vote_p99_ms_idle: f64,
    pub certificate_p50_ms_idle: f64,
    pub certificate_p99_ms_idle: f64,
    pub settled_p50_ms_idle: f64,
    pub settled_p99_ms_idle: f64,
}

pub async fn measure(arguments: &Arguments) -> Result<Outcome, Failure> {
    let sender = AccountKey::ed25519([1; 32]);
    let balance =
        GenesisBalance { account: sender.account(), asset: Asset::ETHER, amount: Amount(u128::from(u64::MAX)) };
    let layout = Layout { shards: 1, ..Layout::default() };
    let mut network = Network::prepare_standalone(Place::fixed("bench-idle")?, layout, vec![balance])?;
    network.start_authorities().await?;
    let driver = Driver::new(network.wallet_network()?, Arc::new(NoCertificates), DriveOptions::default());
    let first = network.authority(0)?.client()?;
    let recipient = AccountKey::ed25519([2; 32]).account();

    let (mut votes, mut certificates, mut settlements) = (Vec::new(), Vec::new(), Vec::new());
    for sequence in 0..WARM_UP + 2 * arguments.idle_rounds {
        let transfer = Transfer::Payment(Payment {
            sender: sender.account(),
            recipient,
            asset: Asset::ETHER,
            amount: Amount(1),
            sequence: SequenceNumber(sequence),
            memo: Memo::ZERO,
        });
        let order = sender.order(network.domain(), transfer).verify(network.domain()).map_err(Failure::wrong)?;
        // In turn: one authority's vote alone, and the whole certificate.
        let is_vote_round = sequence % 2 == 1;
        if is_vote_round {
            let start = Instant::now();
            first.shard_of(&sender.account()).order(order.order()).await.map_err(Failure::wrong)?;
            if sequence >= WARM_UP {
                votes.push(start.elapsed());
            }
        }
        let start = Instant::now();
        let certificate = driver.certify(&order).await.map_err(Failure::wrong)?;
        let certified = start.elapsed();
        let settled = driver.settle(&certificate).await.map_err(Failure::wrong)?;
        if sequence >= WARM_UP && !is_vote_round {
            certificates.push(certified);
            settlements.push(start.elapsed());
        }
        settled.rest.await.map_err(Failure::wrong)?;
    }
    for times in [&mut votes, &mut certificates, &mut settlements] {
        times.sort_unstable();
    }
    Ok(Outcome {
        vote_p50_ms_idle: percentile(&votes, 50),
        vote_p99_ms_idle: percentile(&votes, 99),
        certificate_p50_ms_idle: percentile(&certificates, 50),
        certificate_p99_ms_idle: percentile(&certificates, 99),
        settled_p50_ms_idle: percentile(&settlements, 50),
        settled_p99_ms_idle: percentile(&settlements, 99),
    })
}
