//! How many payments one shard settles in a second on one core: for each, an order answered with a vote, and then a
//! certificate answered with a confirmation. A closed loop: each of many workers waits for one answer before its next
//! request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpay_core::{
    AccountKey, Amount, Asset, AuthorityKeys, Balance, Certificate, Digest, Domain, Epoch, GenesisBalance, Memo,
    Payment, SequenceNumber, Transfer, TransferOrder, VerifiedOrder, sign_payment_votes,
};
use fastpay_e2e::{Failure, Layout, Network, Place};
use fastpay_rpc::{AuthorityClient, ClientOptions, ShardClient};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::{Arguments, percentile};

/// Linux counts processor time in these, whatever the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;
/// What every account has at first.
const START: Amount = Amount(1_000_000);

#[derive(Serialize)]
pub struct Outcome {
    pub payments_per_second_per_core: f64,
    pub cpu_us_per_payment: f64,
    pub core_used_percent: f64,
    pub vote_p50_ms_load: f64,
    pub vote_p99_ms_load: f64,
    pub settled_p50_ms_load: f64,
    pub settled_p99_ms_load: f64,
    pub payments: usize,
    pub in_flight: usize,
    pub connections: usize,
    pub vote_batch: usize,
    /// False where node and load shared their cores.
    pub pinned: bool,
}

/// A payment made ahead.
struct Prepared {
    order: TransferOrder,
    certificate: Certificate,
}

/// What one worker will do, in this order.
type Work = Vec<Prepared>;

#[derive(Default)]
struct Times {
    votes: Vec<Duration>,
    settled: Vec<Duration>,
}

pub async fn measure(arguments: &Arguments, core: Option<usize>) -> Result<Outcome, Failure> {
    let accounts: Vec<_> = (0..arguments.accounts as u64).map(account).collect();
    let balance = |key: &AccountKey| GenesisBalance { account: key.account(), asset: Asset::ETHER, amount: START };
    let balances = accounts.iter().map(balance).collect();
    let layout = Layout { shards: 1, ..Layout::default() };
    let mut network = Network::prepare_standalone(Place::fixed("bench-load")?, layout, balances)?;
    let keys: Result<Vec<_>, _> = network.authorities.iter().map(|authority| authority.secret_keys()).collect();
    let keys = keys?;
    let domain = *network.domain();
    let mut rounds = Vec::new();
    for round in 0..arguments.payments_each as u64 {
        rounds.push(prepare(arguments, &network, &domain, &keys, &accounts, round)?);
    }
    let mut rounds = rounds.into_iter();

    let authority = network.authority(0)?;
    if let Some(core) = core {
        authority.bind_to_core(core);
    }
    authority.start()?;
    authority.wait_ready().await?;
    let address = authority.endpoints()?.shards.first().cloned().unwrap_or_default();
    let id = authority.program()?.id();
    let connect = |_| ShardClient::new(&address, None, ClientOptions::default()).map_err(Failure::wrong);
    let clients: Result<Vec<_>, _> = (0..arguments.connections.max(1)).map(connect).collect();
    let clients = Arc::new(clients?);

    if let Some(warm_up) = rounds.next() {
        run(clients.clone(), split(warm_up, arguments.in_flight)).await?;
    }
    let measured: Vec<_> = rounds.flatten().collect();
    let payments = measured.len();
    let (used_before, start) = (processor_time(id), Instant::now());
    let mut times = run(clients, split(measured, arguments.in_flight)).await?;
    let (elapsed, used) = (start.elapsed().as_secs_f64(), processor_time(id) - used_before);
    check(network.authority(0)?.client()?, &accounts, arguments.payments_each as u64).await?;
    times.votes.sort_unstable();
    times.settled.sort_unstable();
    Ok(Outcome {
        payments_per_second_per_core: (payments as f64 / elapsed).round(),
        cpu_us_per_payment: (used * 1e7 / payments as f64).round() / 10.0,
        core_used_percent: (used * 1e3 / elapsed).round() / 10.0,
        vote_p50_ms_load: percentile(&times.votes, 50),
        vote_p99_ms_load: percentile(&times.votes, 99),
        settled_p50_ms_load: percentile(&times.settled, 50),
        settled_p99_ms_load: percentile(&times.settled, 99),
        payments,
        in_flight: arguments.in_flight,
        connections: arguments.connections,
        vote_batch: arguments.vote_batch,
        pinned: core.is_some(),
    })
}

/// That the node did what it said: every account made all its payments, and no value came or went.
async fn check(client: AuthorityClient, accounts: &[AccountKey], payments_each: u64) -> Result<(), Failure> {
    let mut sum = Balance::ZERO;
    for key in accounts {
        let state = client.shard_of(&key.account()).account(key.account()).await.map_err(Failure::wrong)?;
        if state.next_sequence != SequenceNumber(payments_each) || state.pending.is_some() {
            return Err(Failure::Wrong(format!("{} made {} payments", key.account(), state.next_sequence)));
        }
        sum = sum.plus(state.balance(Asset::ETHER));
    }
    let expected = accounts.iter().fold(Balance::ZERO, |sum, _| sum.credit(START));
    if sum == expected { Ok(()) } else { Err(Failure::Wrong(format!("{sum} is left of {expected}"))) }
}

fn account(number: u64) -> AccountKey {
    let mut seed = [3; 32];
    if let Some(start) = seed.first_chunk_mut() {
        *start = number.to_le_bytes();
    }
    AccountKey::ed25519(seed)
}

/// One payment of every account, with its certificate.
fn prepare(
    arguments: &Arguments,
    network: &Network,
    domain: &Domain,
    keys: &[AuthorityKeys],
    accounts: &[AccountKey],
    round: u64,
) -> Result<Work, Failure> {
    let mut orders: Vec<VerifiedOrder> = Vec::new();
    for (number, key) in accounts.iter().enumerate() {
        // A recipient far away among the accounts, another one each round.
        let recipient = (number * 31 + 7 + round as usize * 101) % accounts.len();
        let recipient = accounts.get(recipient).ok_or_else(|| Failure::wrong("no accounts"))?;
        let transfer = Transfer::Payment(Payment {
            sender: key.account(),
            recipient: recipient.account(),
            asset: Asset::ETHER,
            amount: Amount(1),
            sequence: SequenceNumber(round),
            memo: Memo::ZERO,
        });
        orders.push(key.order(domain, transfer).verify(domain).map_err(Failure::wrong)?);
    }
    let mut work = Vec::new();
    for batch in orders.chunks(arguments.vote_batch.max(1)) {
        let digests: Vec<Digest> = batch.iter().map(VerifiedOrder::digest).collect();
        // Not by the authority that is measured: it checks all the votes of every certificate.
        let voters = keys.iter().skip(1).take(network.committee().quorum());
        let votes: Vec<_> = voters.map(|keys| sign_payment_votes(keys, domain, Epoch(0), &digests)).collect();
        for (index, order) in batch.iter().enumerate() {
            let mut votes: Vec<_> = votes.iter().filter_map(|votes| votes.get(index).cloned()).collect();
            votes.sort_by_key(|vote| vote.authority);
            let certificate = Certificate { order: order.order().clone(), epoch: Epoch(0), votes };
            work.push(Prepared { order: order.order().clone(), certificate });
        }
    }
    Ok(work)
}

/// Divides the work so that each account stays with one worker: its payments must keep their order.
fn split(work: Work, workers: usize) -> Vec<Work> {
    let mut split: Vec<Work> = (0..workers.max(1)).map(|_| Vec::new()).collect();
    for prepared in work {
        let sender = prepared.order.transfer.sender();
        let hash = u64::from_le_bytes(sender.0.first_chunk().copied().unwrap_or_default());
        let worker = (hash % workers.max(1) as u64) as usize;
        if let Some(part) = split.get_mut(worker) {
            part.push(prepared);
        }
    }
    split
}

async fn run(clients: Arc<Vec<ShardClient>>, split: Vec<Work>) -> Result<Times, Failure> {
    let mut working = JoinSet::new();
    for (worker, work) in split.into_iter().enumerate() {
        let client = clients.get(worker % clients.len()).cloned();
        let Some(client) = client else { continue };
        working.spawn(async move {
            let mut times = Times::default();
            for Prepared { order, certificate } in work {
                let start = Instant::now();
                client.order(&order).await.map_err(Failure::wrong)?;
                times.votes.push(start.elapsed());
                client.confirm(&certificate).await.map_err(Failure::wrong)?;
                times.settled.push(start.elapsed());
            }
            Ok(times)
        });
    }
    let mut all = Times::default();
    while let Some(done) = working.join_next().await {
        let times: Result<Times, Failure> = done.map_err(Failure::wrong)?;
        let times = times?;
        all.votes.extend(times.votes);
        all.settled.extend(times.settled);
    }
    Ok(all)
}

/// What a process has used so far, in seconds; zero where the system does not tell.
fn processor_time(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name, in parentheses, may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS_PER_SECOND
}
