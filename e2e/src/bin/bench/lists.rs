//! Measures how long ten accounts take to pay ten thousand recipients through the wallet over a slow network: real
//! nodes, real wallet folders, and a delay of half the round trip in each direction.

use std::time::{Duration, Instant};

use fastpay_client::Endpoints;
use fastpay_client::QuorumOptions;
use fastpay_core::{AccountKey, Amount, Asset, Committees, Digest, GenesisBalance, Memo, Output, Outputs};
use fastpay_e2e::{Failure, Layout, Network, Place};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{PayoutPage, Wallet};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

/// The round trip from a client to an authority and back.
const ROUND_TRIP: Duration = Duration::from_millis(50);
const PAYERS: u8 = 10;
const PEOPLE_EACH: u64 = 1_000;
const PAGE: usize = 250;

/// The time from the first order to the last settlement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Lists {
    pub payers: u8,
    pub payments: u64,
    pub round_trip_ms: f64,
    pub seconds: f64,
}

pub async fn measure() -> Result<Lists, Failure> {
    let keys: Vec<AccountKey> = (1..=PAYERS).map(|number| AccountKey::ed25519([number; 32])).collect();
    let amount = Amount(u128::from(PEOPLE_EACH));
    let balances = keys.iter().map(|key| GenesisBalance { account: key.account(), asset: Asset::ETHER, amount });
    let layout = Layout { shards: 2, ..Layout::default() };
    let mut network = Network::prepare_standalone(Place::fixed("bench-lists")?, layout, balances.collect())?;
    network.start_authorities().await?;
    let endpoints = delayed(Endpoints::read(&network.endpoints_file()).map_err(Failure::wrong)?).await?;
    let committees = Committees::new(network.committee().clone()).map_err(Failure::wrong)?;
    let mut payers = Vec::new();
    for (number, key) in keys.into_iter().enumerate() {
        let network_of = fastpay_client::Network::new(*network.domain(), committees.clone(), &endpoints);
        let folder = Folder::new(network.place().path(format!("wallet-{number}")));
        payers.push((Wallet::new(folder, network_of.map_err(Failure::wrong)?, QuorumOptions::default()), key));
    }
    let start = Instant::now();
    let mut paying = JoinSet::new();
    for (number, (wallet, key)) in (0..).zip(payers) {
        paying.spawn(async move {
            wallet.pay_many(&key, Digest::ZERO, &pages(number)?, |_| {}).await.map_err(Failure::wrong)
        });
    }
    while let Some(paid) = paying.join_next().await {
        paid.map_err(Failure::wrong)??;
    }
    let seconds = crate::statistics::rounded(start.elapsed().as_secs_f64(), 2);
    let payments = u64::from(PAYERS) * PEOPLE_EACH;
    Ok(Lists { payers: PAYERS, payments, round_trip_ms: ROUND_TRIP.as_secs_f64() * 1e3, seconds })
}

/// One unit to each of a payer's recipients.
fn pages(payer: u64) -> Result<Vec<PayoutPage>, Failure> {
    let person = |number: u64| {
        let mut key = [0xAA; 32];
        if let Some(start) = key.first_chunk_mut() {
            *start = (payer * PEOPLE_EACH + number).to_le_bytes();
        }
        Output { recipient: fastpay_core::AccountId::from_ed25519(&key), amount: Amount(1), memo: Memo::ZERO }
    };
    let people: Vec<Output> = (0..PEOPLE_EACH).map(person).collect();
    let page = |outputs: &[Output]| {
        let outputs = Outputs::new(outputs.to_vec()).map_err(Failure::wrong)?;
        Ok(PayoutPage { asset: Asset::ETHER, outputs })
    };
    people.chunks(PAGE).map(page).collect()
}

/// The same authorities behind delaying proxies.
async fn delayed(mut endpoints: Endpoints) -> Result<Endpoints, Failure> {
    for shard in endpoints.authorities.iter_mut().flat_map(|authority| &mut authority.shards) {
        let target = shard.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(Failure::wrong)?;
        *shard = format!("http://{}", listener.local_addr().map_err(Failure::wrong)?);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let Ok(far) = TcpStream::connect(&target).await else { continue };
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
                pass(near_reads, far_writes);
                pass(far_reads, near_writes);
            }
        });
    }
    Ok(endpoints)
}

/// Forwards what is read, each piece half a round trip later.
fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    let (pieces, mut under_way) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            let piece = buffer.get(..read).unwrap_or_default().to_vec();
            if pieces.send((tokio::time::Instant::now() + ROUND_TRIP / 2, piece)).is_err() {
                return;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((at, piece)) = under_way.recv().await {
            sleep_until(at).await;
            if to.write_all(&piece).await.is_err() {
                return;
            }
        }
    });
}
