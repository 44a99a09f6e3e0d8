//! Redemptions reach the contract once in any weather: over a simulated chain that reorganises, forgets and jumps in
//! price, through Ethereum nodes that lag, leave and fail, with relayers that are killed at any moment.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{B256, U256};
use fastpay_client::{AuthorityClient, Carrier, ClientOptions, ShardClient};
use fastpay_core::{Amount, Asset, Domain, Epoch, Redemption, SequenceNumber};
use fastpay_ethereum::{Finality, IFastPay, PrimaryConfig, SenderConfig};
use fastpay_program::Clock;
use fastpay_relayer::{Config, Relayer};
use fastpay_rpc::proto::shard_server::ShardServer;
use fastpay_testkit::anvil::{CHAIN_ID, rich_key};
use fastpay_testkit::fake::{FakeAuthority, FakeCommittee};
use fastpay_testkit::primary::{ChainConfig, SLOT_S, SimulatedContract, SimulatedNode, SimulatedPrimary, Weather};
use fastpay_testkit::{TestAccount, TestCommittee, redemption};
use fastrand::Rng;
use tokio::task::{JoinHandle, LocalSet};
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, StdError, http};

use crate::scene::{ETHER, RECIPIENT};

const OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(2), request_timeout: Duration::from_secs(3) };
/// Slots with weather.
const STORM: u64 = 50;
/// The number of redemptions, each of [`VALUE`] wei.
const REDEMPTIONS: u64 = 12;
const VALUE: u128 = 1_000;

/// The way to an authority in the same thread.
#[derive(Clone)]
struct Direct(ShardServer<FakeAuthority>);

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("direct")
    }
}

impl Carrier for Direct {
    fn carry(&self, call: http::Request<Body>) -> BoxFuture<http::Response<Body>, StdError> {
        let mut server = self.0.clone();
        Box::pin(async move { Ok(server.call(call).await?) })
    }
}

/// Four authorities, and a contract that holds an ETH for the one who redeems.
struct Sea {
    primary: SimulatedPrimary,
    contract: SimulatedContract,
    nodes: Vec<SimulatedNode>,
    committee: TestCommittee,
    authorities: Vec<FakeAuthority>,
    owner: TestAccount,
    folder: tempfile::TempDir,
}

impl Sea {
    fn new(seed: u64) -> Self {
        let primary = SimulatedPrimary::new(ChainConfig { finalized_depth: 4, ..ChainConfig::default() });
        let contract = primary.deploy(&TestCommittee::new(4).committee);
        let committee = TestCommittee::with(4, Domain::new(CHAIN_ID, contract.address()), Epoch(0));
        let owner = TestAccount::ed25519(9);
        contract.deposit_ether(&rich_key(5), owner.id(), Amount(ETHER));
        primary.mine(1);
        primary.finalize();
        let nodes = vec![primary.node("first", seed), primary.node("second", seed + 1)];
        let authorities = FakeCommittee::new(committee.clone()).authorities;
        Self { primary, contract, nodes, committee, authorities, owner, folder: memory_folder() }
    }

    /// Shows a redemption at some of the authorities.
    fn publish(&self, sequence: u64, random: &mut Rng) {
        let order = Redemption { fee: Amount(3), ..redemption(self.owner.id(), RECIPIENT, VALUE, sequence) };
        let certificate = self.committee.certificate(&self.owner.sign(&self.committee.domain, order));
        let first = random.usize(..4);
        for (number, authority) in self.authorities.iter().enumerate() {
            if number == first || random.bool() {
                authority.publish(&certificate);
            }
        }
    }

    fn config(&self, key: u32) -> Config {
        // Nodes come with the connection.
        let primary = PrimaryConfig::new(Vec::new(), CHAIN_ID, self.contract.address());
        Config {
            sender: SenderConfig { stuck_after_ms: 30_000, max_fee_cap_gwei: 1_000, ..SenderConfig::default() },
            poll_interval_ms: 2_000,
            metrics: None,
            ..crate::scene::config(&self.folder.path().join(key.to_string()), primary)
        }
    }

    /// A relayer as if just started, in the state that the last one with this key left.
    fn start(&self, key: u32) -> JoinHandle<()> {
        let clients = self.committee.keys.iter().zip(&self.authorities).map(|(keys, authority)| {
            let carrier = Arc::new(Direct(ShardServer::new(authority.clone())));
            AuthorityClient::of(keys.public().name, vec![ShardClient::carried(carrier, OPTIONS)]).unwrap()
        });
        let primary = self.primary.connect(&self.nodes, self.contract.address(), Finality::Finalized);
        let clock = Clock::at(self.primary.time_s() * 1_000);
        let mut relayer = Relayer::over(self.config(key), rich_key(key), primary, clients.collect(), clock).unwrap();
        tokio::task::spawn_local(async move { relayer.run(std::future::pending()).await.unwrap() })
    }

    fn redeemed(&self) -> u64 {
        let is_redeemed = |sequence: &u64| self.contract.is_redeemed(self.owner.id(), SequenceNumber(*sequence));
        (0..REDEMPTIONS).filter(is_redeemed).count() as u64
    }
}

/// A folder without a disk below it, if there is such: what a crash does to a disk is not what is tried here.
fn memory_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Whatever happened to the chain, no wei is paid twice or lost.
fn is_sound(sea: &Sea) {
    let events = sea.contract.events::<IFastPay::Redeemed>();
    let mut sequences: Vec<_> = events.iter().map(|event| event.sequence).collect();
    sequences.sort_unstable();
    sequences.dedup();
    assert_eq!(sequences.len(), events.len(), "none is paid twice");
    let paid = U256::from(VALUE) * U256::from(events.len());
    assert_eq!(sea.contract.total_balance(Asset::ETHER), U256::from(ETHER) - paid);
    assert_eq!(sea.contract.holds(Asset::ETHER), U256::from(ETHER) - paid);
    let fees = U256::from(3) * U256::from(events.len());
    assert_eq!(sea.primary.balance(RECIPIENT), paid - fees);
}

/// Runs one or two relayers through the weather of a seed until all is redeemed. Returns the digest of all that the
/// nodes were asked and answered.
async fn sail(seed: u64) -> B256 {
    let mut random = Rng::with_seed(seed);
    let sea = Sea::new(seed);
    let mut weather = Weather::new(sea.primary.clone(), sea.nodes.clone(), seed).with_keys(vec![rich_key(0)]);
    let keys: &[u32] = if seed.is_multiple_of(2) { &[0] } else { &[0, 3] };
    let mut running: Vec<_> = keys.iter().map(|key| sea.start(*key)).collect();
    let mut published = 0;
    for slot in 0.. {
        assert!(slot < 3_000, "seed {seed}: {} of {published} are redeemed", sea.redeemed());
        if published < REDEMPTIONS && random.u32(..3) == 0 {
            sea.publish(published, &mut random);
            published += 1;
        }
        let time_s = sea.primary.time_s() + SLOT_S;
        if slot < STORM {
            weather.slot(time_s)
        } else {
            weather.calm_slot(time_s)
        }
        is_sound(&sea);
        let part = Duration::from_millis(random.u64(..SLOT_S * 1_000));
        tokio::time::sleep(part).await;
        let number = random.usize(..keys.len());
        assert!(!running[number].is_finished(), "seed {seed}: a relayer ended");
        if slot < STORM && random.u32(..4) == 0 {
            running[number].abort();
            assert!((&mut running[number]).await.unwrap_err().is_cancelled());
            running[number] = sea.start(keys[number]);
        }
        tokio::time::sleep(Duration::from_secs(SLOT_S) - part).await;
        if slot > STORM && published == REDEMPTIONS && sea.redeemed() == REDEMPTIONS {
            break;
        }
    }
    // What is final stays: nothing is left to be done or undone.
    for _ in 0..10 {
        weather.calm_slot(sea.primary.time_s() + SLOT_S);
        tokio::time::sleep(Duration::from_secs(SLOT_S)).await;
    }
    is_sound(&sea);
    assert_eq!(sea.redeemed(), REDEMPTIONS);
    running.into_iter().for_each(|task| task.abort());
    sea.primary.digest()
}

#[tokio::test(start_paused = true)]
async fn in_any_weather_every_redemption_is_paid_once_and_a_seed_repeats_itself() {
    for seed in 0..8 {
        let digest = LocalSet::new().run_until(sail(seed)).await;
        if seed < 2 {
            assert_eq!(LocalSet::new().run_until(sail(seed)).await, digest, "seed {seed} repeats itself");
        }
    }
}
