//! A hand-over where every account has paid since the newest checkpoint: for how long payments pause, and how long those
//! who join take.
//!
//! ```text
//!  four members, with a payment of each account beyond checkpoint 1
//!     ─► one is lost, and replaced: three go on, the new one joins with their Closings
//!     ─► all change their keys: all join
//! ```
//! Real processes on a chain, on the same machine. A wallet pays all the time.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use fastpay_core::{AccountId, Amount, Asset, Authority as Member, Memo, ShardLayout};
use fastpay_e2e::{Authority, Failure, Layout, Network, PATIENCE, Payers, Place, http_get, wait_for};
use fastpay_ethereum::IFastPay;
use fastpay_node::authority::certification::Archive;
use fastpay_wallet::Intent;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::draw;
use crate::laid::{self, Signers};
use crate::progress;
use crate::statistics::rounded;
use crate::workload::{self, Accounts, Voters};

const LOST: usize = 3;
/// The council's short delay.
const DELAY_S: u64 = 86_400;
const A_WEEK_SECONDS: u64 = 604_800;
const FUNDS: u64 = 1_000_000;
/// The time between two payments of the wallet, and between two looks.
const STEP: Duration = Duration::from_millis(20);

/// The figures, in seconds where nothing else is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HandOver {
    pub accounts: usize,
    /// One member's Closing, with an entry and an order of each account.
    pub closing_bytes: u64,
    /// The longest time between two payments before, for comparison.
    pub usual_seconds: f64,
    /// One member is replaced: the longest time between two payments.
    pub replaced_seconds: f64,
    /// The new member's time from the start of its process, with nothing, until it votes.
    pub new_member_seconds: f64,
    /// All change their keys: the longest time between two payments.
    pub rekeyed_seconds: f64,
}

pub fn measure(accounts: usize) -> Result<HandOver, Failure> {
    // The wallet needs a thread while this one signs and installs.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.map_err(Failure::wrong)?.block_on(hand_over(accounts))
}

async fn hand_over(accounts: usize) -> Result<HandOver, Failure> {
    progress(&format!("hand-over: four folders of {accounts} accounts"));
    let layout = Layout { shards: 1, block_time: Duration::from_millis(250), ..Layout::default() };
    let mut network = Network::prepare(Place::fixed("bench-handover")?, layout).await?;
    let endpoints = network.endpoints_file();
    for authority in &network.authorities {
        authority.set_endpoints(&endpoints)?;
        authority.set_archive(A_WEEK_SECONDS)?;
    }
    // The one event of the checkpoint.
    deposit(&network, laid::genesis().account, 1).await?;
    lay(&network, accounts)?;
    laid::start_all(&mut network).await?;
    let payers = Payers::new(&network, 2)?;
    for account in payers.accounts() {
        deposit(&network, account, FUNDS).await?;
    }

    let paying = Paying::start(&payers).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let usual_seconds = paying.end().await?;

    progress("hand-over: one member is replaced");
    network.authority(LOST)?.kill();
    network.replace(LOST, 1)?;
    network.authority(LOST)?.set_endpoints(&endpoints)?;
    network.authority(LOST)?.set_archive(A_WEEK_SECONDS)?;
    let members: Vec<Member> = network.authorities.iter().map(Authority::member).collect();
    let paying = Paying::start(&payers).await?;
    install(&network, 1, "none", &members, &[0, 1, 2]).await?;
    for number in 0..LOST {
        votes_in(network.authority(number)?, 1).await?;
    }
    let replaced_seconds = paying.end().await?;
    let begun = Instant::now();
    network.authority(LOST)?.start()?;
    votes_in(network.authority(LOST)?, 1).await?;
    let new_member_seconds = begun.elapsed().as_secs_f64();

    progress("hand-over: all change their keys");
    let members = network.authorities.iter_mut().map(|authority| authority.add_keys("keys-2"));
    let members = members.collect::<Result<Vec<Member>, _>>()?;
    for authority in &mut network.authorities {
        authority.stop()?;
        authority.start()?;
        authority.wait_ready().await?;
        votes_in(authority, 1).await?;
    }
    let paying = Paying::start(&payers).await?;
    install(&network, 2, "keys-2", &members, &[0, 1, 2, LOST]).await?;
    for authority in &network.authorities {
        votes_in(authority, 2).await?;
    }
    let rekeyed_seconds = paying.end().await?;
    Ok(HandOver {
        accounts,
        closing_bytes: largest_file(&network.authority(0)?.data().join("closings"))?,
        usual_seconds: rounded(usual_seconds, 2),
        replaced_seconds: rounded(replaced_seconds, 2),
        new_member_seconds: rounded(new_member_seconds, 1),
        rekeyed_seconds: rounded(rekeyed_seconds, 1),
    })
}

/// Writes the first authority's folder: a checkpoint, and a payment of each account beyond it.
fn lay(network: &Network, accounts: usize) -> Result<(), Failure> {
    let keys = network.authorities.iter().map(|authority| authority.secret_keys()).collect::<Result<Vec<_>, _>>()?;
    let (domain, committee) = (*network.domain(), network.committee().clone());
    let payers = Accounts::new(accounts);
    let voters = Voters { domain: &domain, keys: keys.get(..committee.quorum()).unwrap_or_default(), batch: 32 };
    let payments = workload::prepare(&draw::rounds(accounts, 1), &payers, ShardLayout::new(NonZeroU32::MIN), &voters);
    let signers = Signers { domain: &domain, committee: &committee, keys: &keys, payers: &payers };
    let first = network.authorities.first().ok_or_else(|| Failure::wrong("no authority"))?;
    laid::lay((&Archive::new(&first.archive()), &laid::journal(first)), &signers, accounts, &payments).map(drop)
}

async fn deposit(network: &Network, account: AccountId, wei: u64) -> Result<(), Failure> {
    let call = IFastPay::depositEtherCall { recipient: account.0.into() };
    network.chain()?.send(network.contract()?, U256::from(wei), call.abi_encode().into()).await
}

async fn install(
    network: &Network,
    epoch: u64,
    folder: &str,
    members: &[Member],
    voters: &[usize],
) -> Result<(), Failure> {
    let rotation = network.propose(folder, members, voters, (epoch, epoch)).await?;
    network.sign(&rotation)?;
    network.announce(&rotation).await?;
    network.chain()?.pass(DELAY_S + 1).await?;
    network.install(&rotation).await
}

/// Waits until an authority votes in an epoch.
async fn votes_in(authority: &Authority, epoch: u64) -> Result<(), Failure> {
    let http = authority.endpoints()?.http.clone().ok_or_else(|| Failure::wrong("it serves no HTTP"))?;
    let since = [format!("\"epoch\":\"{epoch}\""), format!("\"epoch\":{epoch}")];
    wait_for(PATIENCE, async || {
        let (_, ready) = http_get(&http, "/ready").await?;
        let votes = ready.contains("\"votes\":true") && since.iter().any(|since| ready.contains(since));
        if votes { Ok(()) } else { Err(ready) }
    })
    .await
}

/// A wallet that pays without end.
struct Paying {
    stop: Arc<AtomicBool>,
    longest: JoinHandle<f64>,
}

impl Paying {
    /// Returns once it has paid.
    async fn start(payers: &Payers) -> Result<Self, Failure> {
        let to = *payers.accounts().last().ok_or_else(|| Failure::wrong("nobody to pay"))?;
        wait_for(PATIENCE, async || pay(payers, to).await.map_err(|error| error.to_string())).await?;
        let (stop, payers) = (Arc::new(AtomicBool::new(false)), payers.clone());
        let stopped = stop.clone();
        let longest = tokio::spawn(async move {
            let (mut last, mut longest) = (Instant::now(), 0.0_f64);
            loop {
                // One that fails is finished by the next attempt.
                if pay(&payers, to).await.is_ok() {
                    longest = longest.max(last.elapsed().as_secs_f64());
                    last = Instant::now();
                    if stopped.load(Ordering::Relaxed) {
                        return longest;
                    }
                }
                tokio::time::sleep(STEP).await;
            }
        });
        Ok(Self { stop, longest })
    }

    /// Returns the longest time from one payment to the next, in seconds.
    async fn end(self) -> Result<f64, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        self.longest.await.map_err(Failure::wrong)
    }
}

/// Makes one payment.
async fn pay(payers: &Payers, recipient: AccountId) -> Result<Duration, Failure> {
    payers.send(0, Intent::Pay { recipient, asset: Asset::ETHER, amount: Amount(1), memo: Memo::ZERO }).await
}

fn largest_file(folder: &Path) -> Result<u64, Failure> {
    let io = |error| Failure::Io { path: folder.into(), error };
    let mut largest = 0;
    for entry in fs::read_dir(folder).map_err(io)? {
        largest = largest.max(entry.and_then(|entry| entry.metadata()).map_err(io)?.len());
    }
    Ok(largest)
}
