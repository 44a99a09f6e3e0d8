//! A hand-over between committees where every account has paid and nothing is archived, so that each member's Closing
//! has an entry of each account: for how long payments pause, and how long those who join take.
//!
//! ```text
//!  one account pays all others ─► each of them pays one ─► a wallet pays all the time
//!     ─► one member is lost, and replaced: three go on, the new one joins with their Closings
//!     ─► all change their keys: all join
//! ```
//! Real processes on a chain, on the same machine. The payments are certificates, made with the members' keys.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use alloy::primitives::U256;
use alloy::sol_types::SolCall;
use fastpay_core::{Authority as Member, PAYOUT_OUTPUTS_MAX, ShardLayout};
use fastpay_e2e::{Authority, Failure, Layout, Network, PATIENCE, Place, User, http_get, wait_for};
use fastpay_ethereum::IFastPay;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::absence::confirm_at;
use crate::draw::{self, Pair};
use crate::progress;
use crate::statistics::rounded;
use crate::workload::{self, Accounts, Prepared, SPREAD, Voters};

const LOST: usize = 3;
/// The council's short delay.
const DELAY_S: u64 = 86_400;
/// The payments that are prepared at a time.
const CHUNK: usize = 50_000;
const ACCOUNTS_IN_MEMORY: i64 = 1_000_000;
/// What the wallet pays each time.
const WEI: &str = "0.000000000000000001";

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
    let layout = Layout { shards: 1, block_time: Duration::from_millis(250), ..Layout::default() };
    let mut network = Network::prepare(Place::fixed("bench-handover")?, layout).await?;
    let endpoints = network.endpoints_file();
    for authority in &network.authorities {
        configure(authority, &endpoints)?;
    }
    network.start_authorities().await?;
    let payer = Arc::new(User::new(&network, "payer").await?);
    payer.import_rich_key("own", 0).await?;
    let to = payer.new_ed25519_key("other").await?.to_string();
    payer.fastpay(["deposit", "1", "--from", "own"]).await?;
    fund(&network, accounts).await?;

    let paying = Paying::start(&payer, &to).await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let usual_seconds = paying.end().await?;

    progress("hand-over: one member is replaced");
    network.authority(LOST)?.kill();
    network.replace(LOST, 1)?;
    configure(network.authority(LOST)?, &endpoints)?;
    let members: Vec<Member> = network.authorities.iter().map(Authority::member).collect();
    let paying = Paying::start(&payer, &to).await?;
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
        votes_in(authority, 1).await?;
    }
    let paying = Paying::start(&payer, &to).await?;
    install(&network, 2, "keys-2", &members, &[0, 1, 2, LOST]).await?;
    for authority in &network.authorities {
        votes_in(authority, 2).await?;
    }
    let rekeyed_seconds = paying.end().await?;
    Ok(HandOver {
        accounts,
        closing_bytes: largest_file(&network.authority(0)?.data().join("closings"))?,
        usual_seconds: rounded(usual_seconds, 1),
        replaced_seconds: rounded(replaced_seconds, 1),
        new_member_seconds: rounded(new_member_seconds, 1),
        rekeyed_seconds: rounded(rekeyed_seconds, 1),
    })
}

fn configure(authority: &Authority, endpoints: &Path) -> Result<(), Failure> {
    authority.set_endpoints(endpoints)?;
    let path = authority.config();
    let io = |error| Failure::Io { path: path.clone(), error };
    let mut table: toml::Table = fs::read_to_string(path).map_err(io)?.parse().map_err(Failure::wrong)?;
    table.insert("accounts_in_memory".into(), ACCOUNTS_IN_MEMORY.into());
    fs::write(path, table.to_string()).map_err(io)?;
    // All load comes from one address.
    authority.set_limits(&format!("address_journal_bytes_per_day = {}", i64::MAX))
}

/// Pays each account from the first one, and has each other one pay once.
async fn fund(network: &Network, accounts: usize) -> Result<(), Failure> {
    progress(&format!("hand-over: {accounts} accounts are paid, and pay"));
    let keys = network.authorities.iter().map(Authority::secret_keys).collect::<Result<Vec<_>, _>>()?;
    let (domain, payers) = (*network.domain(), Accounts::new(accounts));
    let quorum = keys.get(..network.committee().quorum()).unwrap_or_default();
    let voters = Voters { domain: &domain, keys: quorum, batch: 32 };
    let first = payers.ids().first().ok_or_else(|| Failure::wrong("no accounts"))?;
    let call = IFastPay::depositEtherCall { recipient: first.0.into() };
    // The last order pays some a second time.
    let wei = accounts + PAYOUT_OUTPUTS_MAX;
    network.chain()?.send(network.contract()?, U256::from(wei), call.abi_encode().into()).await?;
    let recipient = |order: usize| order * PAYOUT_OUTPUTS_MAX % accounts * SPREAD % accounts;
    let orders = 0..accounts.div_ceil(PAYOUT_OUTPUTS_MAX);
    let pairs: Vec<_> = orders.map(|order| Pair { sender: 0, recipient: recipient(order) }).collect();
    let layout = ShardLayout::new(NonZeroU32::MIN);
    let funding = workload::prepare_payouts(&pairs, &payers, layout, &voters, PAYOUT_OUTPUTS_MAX);
    confirm(network, &funding).await?;
    let pairs: Vec<_> = draw::rounds(accounts, 1).into_iter().filter(|pair| pair.sender != 0).collect();
    for pairs in pairs.chunks(CHUNK) {
        confirm(network, &workload::prepare(pairs, &payers, layout, &voters)).await?;
    }
    Ok(())
}

async fn confirm(network: &Network, payments: &[Prepared]) -> Result<(), Failure> {
    let addresses = |authority: &Authority| authority.endpoints().map(|endpoints| endpoints.shards.clone());
    let all = network.authorities.iter().map(addresses).collect::<Result<Vec<_>, _>>()?;
    let at = |addresses| confirm_at(addresses, payments, 0);
    match all.as_slice() {
        [one, two, three, four] => tokio::try_join!(at(one), at(two), at(three), at(four)).map(drop),
        _ => Err(Failure::wrong("there are not four authorities")),
    }
}

async fn install(
    network: &Network,
    epoch: u64,
    folder: &str,
    members: &[Member],
    voters: &[usize],
) -> Result<(), Failure> {
    let rotation = network.propose(folder, members, voters, (epoch, epoch))?;
    network.sign(&rotation)?;
    network.announce(&rotation)?;
    network.chain()?.pass(DELAY_S + 1).await?;
    network.install(&rotation).await
}

/// Waits until an authority votes in an epoch.
async fn votes_in(authority: &Authority, epoch: u64) -> Result<(), Failure> {
    let http = authority.endpoints()?.http.clone().ok_or_else(|| Failure::wrong("it serves no HTTP"))?;
    let since = [format!("\"epoch\":\"{epoch}\""), format!("\"epoch\":{epoch}")];
    wait_for(3 * PATIENCE, async || {
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
    async fn start(payer: &Arc<User>, to: &str) -> Result<Self, Failure> {
        wait_for(PATIENCE, async || pay(payer, to).await.map_err(|error| error.to_string())).await?;
        let (stop, payer, to) = (Arc::new(AtomicBool::new(false)), payer.clone(), to.to_owned());
        let stopped = stop.clone();
        let longest = tokio::spawn(async move {
            let (mut last, mut longest) = (Instant::now(), 0.0_f64);
            loop {
                if pay(&payer, &to).await.is_ok() {
                    longest = longest.max(last.elapsed().as_secs_f64());
                    last = Instant::now();
                    if stopped.load(Ordering::Relaxed) {
                        return longest;
                    }
                }
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

/// Makes one payment; one that fails is finished first by the next command.
async fn pay(payer: &User, to: &str) -> Result<(), Failure> {
    payer.fastpay(["pay", to, WEI, "--from", "own"]).await.map(drop)
}

fn largest_file(folder: &Path) -> Result<u64, Failure> {
    let io = |error| Failure::Io { path: folder.into(), error };
    let mut largest = 0;
    for entry in fs::read_dir(folder).map_err(io)? {
        largest = largest.max(entry.and_then(|entry| entry.metadata()).map_err(io)?.len());
    }
    Ok(largest)
}
