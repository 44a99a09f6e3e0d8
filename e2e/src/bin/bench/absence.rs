//! A member that was away under load: how long it takes until it votes for all accounts again, and what takes the time.
//!
//! ```text
//!  four members at checkpoint 1 ─► one is killed ─► the others confirm, certify and end their journals there
//!     ─► they confirm some more ─► it starts: state, newest checkpoint ─► waits ─► rebase ─► the rest from its peers
//! ```
//! Real processes, from a genesis without Ethereum. The load is certificates, made with the keys of the whole committee.
//! Nobody has the payments before the newest checkpoint any more, as after a day: so how long the member was away changes
//! only the number of certificates of checkpoints that it reads.

use std::collections::VecDeque;
use std::fs;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use fastpay_client::AuthorityClient;
use fastpay_core::{SequenceNumber, ShardLayout};
use fastpay_e2e::{Authority, Failure, Layout, Network, PATIENCE, Place, wait_for};
use fastpay_node::authority::certification::Archive;
use fastpay_node::authority::config::Config;
use fastpay_node::authority::pruning::{PruningReport, PruningTimes};
use fastpay_node::operator::rebase::rebase;
use fastpay_program::Clock;
use fastpay_rpc::proto::refused::Code;
use fastpay_rpc::proto::submit_response::Response;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::draw::{self, Pair};
use crate::laid::{self, Signers};
use crate::recovery::order;
use crate::statistics::rounded;
use crate::wire::Streams;
use crate::workload::{self, Accounts, Prepared, Voters, payment_of};
use crate::{progress, runtime};

/// The checkpoints that are certified during the absence: more than a member computes one after another.
const CHECKPOINTS: usize = 6;
const FIRST: u64 = 1;
const NEWEST: u64 = FIRST + CHECKPOINTS as u64;
/// The member that is away.
const AWAY: usize = 3;
/// The members that certify make a checkpoint at once while there is enough for one, and wait so long for their first.
/// Each leads for as long, and a second more for so many accounts: nobody may take over from one that computes.
const EVERY_SECONDS: u64 = 60;
const ACCOUNTS_PER_SECOND: usize = 50_000;
const A_WEEK_SECONDS: u64 = 604_800;
/// Peers are asked ten times from one checkpoint to the next.
const POLLS: u64 = 10;
const ACCOUNTS_IN_MEMORY: i64 = 1_000_000;
const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 512;
/// The accounts that are looked at until all are as they should be. All are compared afterwards.
const SAMPLED: usize = 2_000;
/// How often the files of the member are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub accounts: usize,
    /// The orders of each checkpoint, and those beyond the newest one, each of an account of its own.
    pub orders: usize,
    /// How long the member waits between two looks, in seconds. Other waits follow from it.
    pub poll_seconds: u64,
}

/// The figures, in seconds where nothing else is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Absence {
    pub accounts: usize,
    pub state_bytes: u64,
    /// The payments that were executed meanwhile, and those that no checkpoint includes.
    pub payments: usize,
    pub remaining: usize,
    pub checkpoints: usize,
    /// By each of the three others, side by side.
    pub confirmed_per_second: f64,
    /// How many orders a second the checkpoints took while enough waited for the next one.
    pub certified_orders_per_second: f64,
    /// From the start of its process until it has the certified state, whose rows it has verified.
    pub state_seconds: f64,
    /// The newest checkpoint, which it computes.
    pub newest_seconds: f64,
    /// It waits whether anybody brings what it lacks, and for its part of a turn.
    pub waited_seconds: f64,
    pub poll_seconds: u64,
    /// It is rebased, and starts on the new journals.
    pub rebase_seconds: f64,
    /// Then peers bring what no checkpoint includes, and what the newest one does beyond the state.
    pub rest_seconds: f64,
    pub rest_per_second: f64,
    /// From the start of its process until it has everything, and votes for an account that paid meanwhile.
    pub seconds: f64,
    /// The same with the waits of a node with the usual configuration: in the best case, and in the worst.
    pub usual_minutes: (f64, f64),
}

pub fn measure(extent: Extent) -> Result<Absence, Failure> {
    let Extent { accounts, orders, poll_seconds } = extent;
    progress(&format!("absence: four folders of {accounts} accounts"));
    let layout = Layout { shards: 1, ..Layout::default() };
    let place = Place::fixed("bench-absence")?;
    let mut network = Network::prepare_standalone(place, layout, vec![laid::genesis()])?;
    let keys = network.authorities.iter().map(|authority| authority.secret_keys()).collect::<Result<Vec<_>, _>>()?;
    let (domain, committee) = (*network.domain(), network.committee().clone());
    let endpoints = network.endpoints_file();
    for authority in &network.authorities {
        authority.set_endpoints(&endpoints)?;
        // All load comes from one address.
        authority.set_limits(&format!("address_journal_bytes_per_day = {}", i64::MAX))?;
        configure(authority, EVERY_SECONDS + (accounts / ACCOUNTS_PER_SECOND) as u64, orders)?;
    }
    let payers = Accounts::new(orders);
    let signers = Signers { domain: &domain, committee: &committee, keys: &keys, payers: &payers };
    let first = network.authority(0)?;
    let journal = laid::journal(first);
    let state_bytes = laid::lay((&Archive::new(&first.archive()), &journal), &signers, accounts, &[])?;

    let runtime = runtime()?;
    runtime.block_on(laid::start_all(&mut network))?;
    network.authority(AWAY)?.kill();

    let voters = Voters { domain: &domain, keys: keys.get(..committee.quorum()).unwrap_or_default(), batch: 32 };
    let payments = orders * CHECKPOINTS;
    progress(&format!("absence: signing {} payments", payments + orders));
    let mut pairs = draw::rounds(orders, CHECKPOINTS + 1);
    pairs.push(Pair { sender: 0, recipient: 1 });
    let prepared = workload::prepare(&pairs, &payers, ShardLayout::new(NonZeroU32::MIN), &voters);
    let (certified, rest) = prepared.split_at_checked(payments).unwrap_or_default();
    let (rest, probe) = rest.split_at_checked(orders).unwrap_or_default();
    let probe = probe.first().ok_or_else(|| Failure::wrong("no order to vote for"))?;

    progress(&format!("absence: three members confirm {payments} payments"));
    let begun = Instant::now();
    runtime.block_on(confirm(&network, certified, 0))?;
    let confirmed_per_second = rounded(payments as f64 / begun.elapsed().as_secs_f64(), 0);
    progress(&format!("absence: they certify {CHECKPOINTS} checkpoints"));
    let certified_orders_per_second = runtime.block_on(certified_at_all(&network, orders))?;
    progress("absence: they end their journals");
    for number in 0..AWAY {
        let authority = network.authority(number)?;
        authority.stop()?;
        let config = Config::read(authority.config(), Default::default()).map_err(Failure::wrong)?;
        // As a node by itself: the newest checkpoint could still be replaced.
        let rebased = runtime.block_on(rebase(&config, &authority.archive(), Some(NEWEST - 1), None, &mut |_| ()));
        rebased.map_err(Failure::wrong)?;
        // Nothing more is certified.
        configure(authority, A_WEEK_SECONDS, orders)?;
        authority.start()?;
    }
    for number in 0..AWAY {
        runtime.block_on(network.authority(number)?.wait_ready())?;
    }
    runtime.block_on(confirm(&network, rest, payments))?;

    progress("absence: it comes back");
    let away = network.authority(AWAY)?;
    configure(away, poll_seconds * POLLS, orders)?;
    let client = runtime.block_on(async { away.client() })?;
    let back = runtime.block_on(come_back(away, &client, &payers, probe))?;
    runtime.block_on(compare(&client, &payers))?;
    let usual = PruningTimes::default();
    let settle = usual.settle.as_secs_f64();
    // A member that is behind begins in each turn, in a quarter of it.
    let waits = (settle, settle + usual.turn.as_secs_f64() * 0.75);
    let work = back.whole - back.waited;
    let brought = (2 * orders) as f64;
    Ok(Absence {
        accounts,
        state_bytes,
        payments,
        remaining: orders,
        checkpoints: CHECKPOINTS,
        confirmed_per_second,
        certified_orders_per_second,
        state_seconds: rounded(back.state, 1),
        newest_seconds: rounded(back.newest, 1),
        waited_seconds: rounded(back.waited, 1),
        poll_seconds,
        rebase_seconds: rounded(back.rebase, 1),
        rest_seconds: rounded(back.rest, 1),
        rest_per_second: rounded(brought / back.rest.max(LOOK.as_secs_f64()), 0),
        seconds: rounded(back.whole, 1),
        usual_minutes: (rounded((work + waits.0) / 60.0, 1), rounded((work + waits.1) / 60.0, 1)),
    })
}

/// Configures the archive anew, and so few accounts in memory that four nodes fit into one machine.
fn configure(authority: &Authority, every_seconds: u64, orders_max: usize) -> Result<(), Failure> {
    let path = authority.config();
    let io = |error| Failure::Io { path: path.clone(), error };
    let mut table: toml::Table = fs::read_to_string(path).map_err(io)?.parse().map_err(Failure::wrong)?;
    let mut archive = toml::Table::new();
    archive.insert("folder".into(), "archive".into());
    archive.insert("every_seconds".into(), i64::try_from(every_seconds).map_err(Failure::wrong)?.into());
    archive.insert("orders_max".into(), i64::try_from(orders_max).map_err(Failure::wrong)?.into());
    table.insert("archive".into(), archive.into());
    table.insert("accounts_in_memory".into(), ACCOUNTS_IN_MEMORY.into());
    fs::write(path, table.to_string()).map_err(io)
}

/// Has each of the first authorities confirm these payments, which follow the first `before` ones.
async fn confirm(network: &Network, payments: &[Prepared], before: usize) -> Result<(), Failure> {
    let addresses = |authority: &Authority| authority.endpoints().map(|endpoints| endpoints.shards.clone());
    let all = network.authorities.iter().take(AWAY).map(addresses).collect::<Result<Vec<_>, _>>()?;
    match all.as_slice() {
        [one, two, three] => {
            let at = |addresses| confirm_at(addresses, payments, before);
            tokio::try_join!(at(one), at(two), at(three)).map(drop)
        }
        _ => Err(Failure::wrong("there are not three authorities")),
    }
}

/// Has one authority confirm these payments: each sender's in their order, on one connection.
pub async fn confirm_at(addresses: &[String], payments: &[Prepared], before: usize) -> Result<(), Failure> {
    let (streams, mut answers) = Streams::open(addresses, CONNECTIONS).await?;
    let mut due: VecDeque<&Prepared> = payments.iter().collect();
    let (mut under_way, mut again) = (0_usize, Vec::new());
    loop {
        while again.is_empty()
            && under_way < IN_FLIGHT
            && let Some(payment) = due.pop_front()
        {
            streams.send(payment.shard, payment.place.sender, payment.certificate.clone());
            under_way += 1;
        }
        if under_way == 0 {
            if again.is_empty() {
                return Ok(());
            }
            // What followed a refused one of the same sender was refused, too: all are sent again, in their order.
            again.sort_unstable();
            again.drain(..).rev().filter_map(|place| payments.get(place)).for_each(|payment| due.push_front(payment));
            sleep(LOOK).await;
            continue;
        }
        let answer = answers.recv().await.ok_or_else(|| Failure::wrong("no more answers"))??;
        under_way -= 1;
        let (number, _) = payment_of(answer.id);
        match answer.response {
            Response::Confirmed(_) => {}
            Response::Refused(refused)
                if [Code::Busy, Code::MissingCertificate].map(i32::from).contains(&refused.code) =>
            {
                again.extend((number as usize).checked_sub(before));
            }
            other => return Err(Failure::Wrong(format!("payment {number} was answered with {other:?}"))),
        }
    }
}

/// Waits until the checkpoints are certified at all three. Returns how many orders a second they took.
async fn certified_at_all(network: &Network, orders: usize) -> Result<f64, Failure> {
    let archives: Vec<_> =
        network.authorities.iter().take(AWAY).map(|authority| Archive::new(&authority.archive())).collect();
    let mut first = None;
    let until = Instant::now() + PATIENCE;
    loop {
        let has = |number| archives.iter().all(|archive| archive.certificate_path(number).exists());
        if first.is_none() && has(FIRST + 1) {
            first = Some(Instant::now());
        }
        if let Some(first) = first
            && has(NEWEST)
        {
            return Ok(rounded((orders * (CHECKPOINTS - 1)) as f64 / first.elapsed().as_secs_f64(), 0));
        }
        if Instant::now() > until {
            return Err(Failure::wrong("the checkpoints are not certified; see the logs"));
        }
        sleep(LOOK).await;
    }
}

/// The times of a return, in seconds.
struct Back {
    state: f64,
    newest: f64,
    waited: f64,
    rebase: f64,
    rest: f64,
    whole: f64,
}

/// Starts the authority that was away, and follows it until it has everything and votes.
async fn come_back(
    authority: &mut Authority,
    client: &AuthorityClient,
    payers: &Accounts,
    probe: &Prepared,
) -> Result<Back, Failure> {
    let clock = Clock::system();
    let since = |begun_ms: u64, end_ms: u64| end_ms.saturating_sub(begun_ms) as f64 / 1e3;
    let (archive, data) = (Archive::new(&authority.archive()), authority.data());
    let begun = clock.now_ms();
    authority.start()?;
    until(|| archive.certificate_path(NEWEST - 1).exists()).await?;
    let state = clock.now_ms();
    until(|| archive.certificate_path(NEWEST).exists()).await?;
    let newest = clock.now_ms();
    let report = || PruningReport::read(&data);
    until(|| report().checkpoint == NEWEST - 1 && report().underway.is_none()).await?;
    let PruningReport { at_ms: again, pause_ms, .. } = report();
    let ids = payers.ids();
    let step = ids.len().div_ceil(SAMPLED).max(1);
    for id in ids.iter().step_by(step).chain(ids.last()) {
        wait_for(PATIENCE, || has_all(client, *id)).await?;
    }
    let order = order(probe)?;
    wait_for(PATIENCE, || {
        let (shard, order) = (client.shard_of(&order.transfer.sender()).clone(), order.clone());
        async move { shard.order(&order).await.map(drop).map_err(|error| error.to_string()) }
    })
    .await?;
    let end = clock.now_ms();
    let stopped = again.saturating_sub(pause_ms);
    Ok(Back {
        state: since(begun, state),
        newest: since(state, newest),
        waited: since(newest, stopped),
        rebase: since(stopped, again),
        rest: since(again, end),
        whole: since(begun, end),
    })
}

async fn until(is_so: impl Fn() -> bool) -> Result<(), Failure> {
    let until = Instant::now() + 3 * PATIENCE;
    while !is_so() {
        if Instant::now() > until {
            return Err(Failure::wrong("the authority does not come back; see its log"));
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// Whether the authority has executed all payments of an account.
async fn has_all(client: &AuthorityClient, id: fastpay_core::AccountId) -> Result<(), String> {
    let all = SequenceNumber(CHECKPOINTS as u64 + 1);
    let state = client.shard_of(&id).account(id).await.map_err(|error| error.to_string())?;
    let next = state.next_sequence;
    if next == all { Ok(()) } else { Err(format!("{id} made {next} payments, not {all}")) }
}

/// Checks that it has all payments.
async fn compare(client: &AuthorityClient, payers: &Accounts) -> Result<(), Failure> {
    for id in payers.ids() {
        has_all(client, *id).await.map_err(Failure::Wrong)?;
    }
    Ok(())
}
