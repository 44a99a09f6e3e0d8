//! `kill -9` with a million accounts: the time until the authority votes again, and its memory use.

use std::time::{Duration, Instant};

use fastpay_core::{AccountId, Amount, Asset, GenesisBalance, TransferOrder};
use fastpay_e2e::{Failure, wait_for};
use fastpay_rpc::proto::SubmitRequest;
use fastpay_rpc::proto::submit_request::Request;
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::draw;
use crate::machine::Cores;
use crate::meter::resident_bytes;
use crate::server::{Server, Size};
use crate::statistics::{Spread, rounded};
use crate::workload::{self, Accounts, Prepared, Voters};
use crate::{progress, runtime};

/// The number of accounts that pay.
const PAYERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(120);

/// The figures after a crash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recovery {
    pub accounts: usize,
    /// The time from the start of the process to the first vote, including reading the genesis file.
    pub seconds: Spread,
    pub crashes: usize,
    /// The memory after the last recovery.
    pub resident_mib: f64,
    /// The memory before the first crash, when each account has just been changed.
    pub resident_mib_before: f64,
}

pub fn measure(accounts: usize, crashes: usize, cores: Cores) -> Result<Recovery, Failure> {
    progress(&format!("recovery: {accounts} accounts"));
    let payers = Accounts::new(PAYERS);
    let mut balances = payers.balances();
    balances.extend((0..accounts.saturating_sub(PAYERS) as u64).map(bystander));
    let control = runtime()?;
    let size = Size { authorities: 4, shards: 1, core: cores.server };
    let mut server = control.block_on(Server::start("bench-recovery", size, balances))?;
    let (domain, keys) = (server.domain(), server.other_keys()?);
    let voters = Voters { domain: &domain, keys: &keys, batch: 1 };
    let payments = workload::prepare(&draw::rounds(PAYERS, 1), &payers, server.layout(), &voters);
    let mut orders = payments.iter().map(order);
    let mut next = || orders.next().ok_or_else(|| Failure::wrong("too few orders for so many crashes"))?;
    control.block_on(vote(&mut server, &next()?, PATIENCE))?;
    let resident = |server: &Server| rounded(resident_bytes(server.process()) as f64 / f64::from(1 << 20), 0);
    let resident_mib_before = resident(&server);
    let mut seconds = Vec::new();
    for _ in 0..crashes {
        server.kill()?;
        let order = next()?;
        let start = Instant::now();
        server.start_again()?;
        control.block_on(vote(&mut server, &order, PATIENCE))?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    let seconds = Spread::of(seconds).rounded(2);
    Ok(Recovery { accounts, seconds, crashes, resident_mib: resident(&server), resident_mib_before })
}

/// An account that makes no payment and has no valid key.
pub fn bystander(number: u64) -> GenesisBalance {
    let mut account = [0xA5; 32];
    if let Some(start) = account.first_chunk_mut() {
        // Spread, as hashes are.
        *start = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    }
    GenesisBalance { account: AccountId(account), asset: Asset::ETHER, amount: Amount(1) }
}

/// The decoded order of a payment.
pub fn order(prepared: &Prepared) -> Result<TransferOrder, Failure> {
    match SubmitRequest::decode(prepared.order.clone()).map_err(Failure::wrong)?.request {
        Some(Request::Order(order)) => order.try_into().map_err(Failure::wrong),
        _ => Err(Failure::wrong("not an order")),
    }
}

/// Retries until the authority votes.
pub async fn vote(server: &mut Server, order: &TransferOrder, patience: Duration) -> Result<(), Failure> {
    let client = server.client()?;
    wait_for(patience, || {
        let (shard, order) = (client.shard_of(&order.transfer.sender()).clone(), order.clone());
        async move { shard.order(&order).await.map(drop).map_err(|error| error.to_string()) }
    })
    .await
}
