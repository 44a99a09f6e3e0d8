//! More accounts than fit in memory: their use of memory and disk, the cost of loading them, the pauses by checkpoints,
//! and the recovery time after `kill -9`.
//!
//! A genesis file of millions of accounts would take longer to read than the whole measurement. So the accounts'
//! deposits are written to the journal, as the node itself would, and the first start builds the checkpoint store.

use std::path::Path;
use std::time::{Duration, Instant};

use fastpay_core::{Deposit, GenesisBalance, JournalPosition, Link, Record, SynchronizationOrder, TransactionIndex};
use fastpay_e2e::Failure;
use fastpay_node::authority::storage::{Journal, JournalOptions, JournalWrite};
use serde::{Deserialize, Serialize};

use crate::arguments::Arguments;
use crate::draw::Pair;
use crate::generator::{self, Outcome, Watched};
use crate::load::closed;
use crate::machine::Cores;
use crate::meter::{on_core, resident_bytes};
use crate::recovery::{bystander, order, vote};
use crate::server::{Server, Size};
use crate::statistics::{Spread, rounded};
use crate::wire::Streams;
use crate::workload::{self, Accounts, Prepared, Voters};
use crate::{progress, runtime};

/// The number of deposits per write while the journal is created.
const DEPOSITS_PER_BATCH: usize = 10_000;
/// The time limit of the first start, which reads the whole journal.
const PATIENCE: Duration = Duration::from_secs(1_800);
const CRASHES: usize = 3;

/// The result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    pub accounts: usize,
    /// The first start, which reads every account from the journal and writes it to the store.
    pub rebuild_seconds: f64,
    /// The number of accounts in memory after it.
    pub accounts_in_memory: u64,
    pub resident_bytes_per_account: f64,
    pub journal_bytes_per_account: f64,
    pub store_bytes_per_account: f64,
    /// Payments between accounts that are only on disk.
    pub cold: Load,
    /// Payments between the same accounts once all are in memory.
    pub warm: Load,
    /// An upper bound of the pauses in seconds: the smallest bucket limit of the histogram that no pause exceeded.
    pub checkpoint_pause_seconds_max: Option<f64>,
    /// The time from the start of the process to the first vote, after `kill -9` under load.
    pub recovery_seconds: Spread,
}

/// A closed loop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    pub payments_per_second: Spread,
    pub server_cpu_us_per_payment: Spread,
}

pub fn measure(arguments: &Arguments, cores: Cores) -> Result<State, Failure> {
    let accounts = arguments.state_accounts;
    let (plan, prepared) = closed(arguments.in_flight, arguments.payments(), arguments.parts());
    let people = Accounts::new(2 * prepared + CRASHES + 2);
    let balances = people.balances();
    let first = balances.first().cloned().into_iter().collect();
    let size = Size { authorities: 4, shards: 1, core: cores.server };
    let mut server = Server::prepare("bench-state", size, first)?;
    progress(&format!("state: the journal of {accounts} accounts"));
    let others = (0..accounts.saturating_sub(balances.len()) as u64).map(bystander);
    fill(&server.shard_folder()?.join("journal"), balances.into_iter().chain(others))?;

    progress("state: signing payments");
    let (domain, keys) = (server.domain(), server.other_keys()?);
    let voters = Voters { domain: &domain, keys: &keys, batch: arguments.vote_batch };
    let layout = server.layout();
    let prepare = |pairs: Vec<Pair>| workload::prepare(&pairs, &people, layout, &voters);
    let there = prepare((0..prepared).map(|i| Pair { sender: i, recipient: prepared + i }).collect());
    let back = prepare((0..prepared).map(|i| Pair { sender: prepared + i, recipient: i }).collect());
    let probes = prepare((0..CRASHES + 2).map(|i| Pair { sender: 2 * prepared + i, recipient: i }).collect());
    let mut probes = probes.iter();

    let control = runtime()?;
    let mut start = |server: &mut Server| -> Result<f64, Failure> {
        let order = order(probes.next().ok_or_else(|| Failure::wrong("too few orders for so many starts"))?)?;
        let begun = Instant::now();
        server.start_again()?;
        control.block_on(vote(server, &order, PATIENCE))?;
        Ok(begun.elapsed().as_secs_f64())
    };
    progress("state: the first start");
    let rebuild_seconds = rounded(start(&mut server)?, 1);
    let metrics = control.block_on(server.metrics())?;
    let accounts_in_memory = number(&metrics, "fastpay_accounts_in_memory{").unwrap_or_default() as u64;
    let resident = resident_bytes(server.process());
    server.kill()?;
    start(&mut server)?;

    let mut run = |what: &str, payments: &[Prepared]| -> Result<Load, Failure> {
        progress(&format!("state: {what}"));
        let watched = Watched { process: server.process(), core: cores.server };
        let (addresses, connections) = (server.addresses()?, arguments.connections);
        let outcome = on_core(cores.generator, || {
            runtime()?.block_on(async {
                let (streams, answers) = Streams::open(&addresses, connections).await?;
                generator::run(plan, payments, streams, answers, watched).await
            })
        })?;
        Ok(load(&outcome))
    };
    let cold = run("payments between accounts on disk", &there)?;
    let warm = run("payments between accounts in memory", &back)?;
    let metrics = control.block_on(server.metrics())?;
    let mut recoveries = Vec::new();
    for _ in 0..CRASHES {
        server.kill()?;
        recoveries.push(start(&mut server)?);
    }
    server.kill()?;
    let folder = server.shard_folder()?;
    let per_account = |bytes: u64, accounts: u64| rounded(bytes as f64 / accounts.max(1) as f64, 0);
    Ok(State {
        accounts,
        rebuild_seconds,
        accounts_in_memory,
        resident_bytes_per_account: per_account(resident, accounts_in_memory),
        journal_bytes_per_account: per_account(folder_bytes(&folder.join("journal")), accounts as u64),
        store_bytes_per_account: per_account(folder_bytes(&folder.join("checkpoint")), accounts as u64),
        cold,
        warm,
        checkpoint_pause_seconds_max: pause_max(&metrics),
        recovery_seconds: Spread::of(recoveries).rounded(2),
    })
}

/// Writes deposits to an empty journal.
fn fill(journal: &Path, balances: impl Iterator<Item = GenesisBalance>) -> Result<(), Failure> {
    let options = JournalOptions::default();
    let mut journal = Journal::open(journal, options, JournalPosition::default()).map_err(Failure::wrong)?;
    for (index, balance) in (1_u64..).zip(balances) {
        let deposit = Deposit {
            index: TransactionIndex(index),
            recipient: balance.account,
            asset: balance.asset,
            amount: balance.amount,
        };
        let (after, up_to) = (TransactionIndex(index - 1), TransactionIndex(index));
        let order = SynchronizationOrder { after, up_to, deposit: Some(deposit) };
        let record = Record::Synchronization { order, deposits: Some(Link { number: 0, previous: None, skip: None }) };
        journal.append(&borsh::to_vec(&record).map_err(Failure::wrong)?).map_err(Failure::wrong)?;
        if index.is_multiple_of(DEPOSITS_PER_BATCH as u64) {
            journal.commit().map_err(Failure::wrong)?;
        }
    }
    journal.commit().map_err(Failure::wrong)
}

fn load(outcome: &Outcome) -> Load {
    let parts = &outcome.parts;
    Load {
        payments_per_second: Spread::of(parts.iter().map(|part| part.counts.settled as f64 / part.seconds)).rounded(0),
        server_cpu_us_per_payment: Spread::of(
            parts.iter().map(|part| part.server.processor() * 1e6 / part.settled_or_one()),
        )
        .rounded(1),
    }
}

/// The value of the first metric whose line has this prefix.
fn number(metrics: &str, name: &str) -> Option<f64> {
    metrics.lines().find(|line| line.starts_with(name))?.rsplit(' ').next()?.parse().ok()
}

/// The smallest bucket limit that no pause exceeded; `None` if a pause exceeded all.
fn pause_max(metrics: &str) -> Option<f64> {
    let count = number(metrics, "fastpay_checkpoint_pause_seconds_count{")?;
    let mut buckets = metrics.lines().filter(|line| line.starts_with("fastpay_checkpoint_pause_seconds_bucket{"));
    let full = buckets.find(|line| line.rsplit(' ').next().and_then(|value| value.parse().ok()) == Some(count))?;
    full.split("le=\"").nth(1)?.split('"').next()?.parse().ok().filter(|limit: &f64| limit.is_finite())
}

fn folder_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        // The allocated bytes: a file may be longer than its content.
        Ok(metadata) => std::os::unix::fs::MetadataExt::blocks(&metadata) * 512,
        Err(_) => 0,
    };
    entries.map(size).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pause_is_below_the_first_limit_that_has_all() {
        let line = |limit: &str, count: u32| {
            format!("fastpay_checkpoint_pause_seconds_bucket{{le=\"{limit}\",shard=\"0\"}} {count}\n")
        };
        let buckets = [line("0.001", 3), line("0.002", 5), line("0.004", 5), line("+Inf", 5)].concat();
        let metrics = format!("fastpay_checkpoint_pause_seconds_count{{shard=\"0\"}} 5\n{buckets}");
        assert_eq!(pause_max(&metrics), Some(0.002));
        assert_eq!(pause_max(&metrics.replace("} 5\n", "} 6\n").replace(&line("+Inf", 6), "")), Some(0.002));
        assert_eq!(pause_max(""), None);
    }
}
