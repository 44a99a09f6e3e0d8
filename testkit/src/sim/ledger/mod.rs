//! A ledger as the Primary: a coordinator, two shards and a settlement cluster, by the real rules and certificates, and a
//! gRPC service for each of their members, reached over the simulated network.
//!
//! ```text
//!  owners' reserves (`people`) ─► members (`member`) ─► clusters (`cluster`) ─► groups ─► GroupReader ─► authorities
//!                                      └─ one of each cluster lies; any may be behind or away in the storm
//! ```
//! After each height: reserves + omnibus + what is between clusters = issued. Another ledger of the same members is
//! decided beside it; the liars hand over its groups.

mod cluster;
mod member;
mod people;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy::primitives::{B256, U256};
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Balance, Certificate, Committee, Domain, PrimaryAddress, SequenceNumber,
};
use fastpay_ledger_client::{Client, CommitteeClient};
use fastpay_ledger_state::overdrafts;
use fastpay_ledger_statement::{
    Action, Bond, ClusterId, CommitteeNumber, CompactDecision, Deployment, FoundedCommittee, Genesis, Instruction,
    Issue, Layout, MemberKey, MemberKeys, Message, Partition, Receiver, Request, SafetyParameters, StateKey, Time,
};
use fastpay_node::authority::funding::{FundingSource, LedgerDeployment, LedgerSource};
use tokio::sync::mpsc;
use tokio::time::sleep;

use self::cluster::{Cluster, MEMBERS};
use self::member::{Link, Member, of_committee};
use super::chain::OWNERS_MAX;
use super::dice::Dice;
use super::oracle::{Breach, require};
use super::plan::Plan;
use super::world::{ASSETS, World, lock};
use crate::TestCommittee;
use crate::anvil::rich_key;

pub use people::{live, reserve};

/// The FastPay committee.
pub const COMMITTEE: CommitteeNumber = CommitteeNumber(0);
const SETTLEMENT: ClusterId = ClusterId(3);
const COORDINATOR: ClusterId = ClusterId(4);
const CLUSTERS: [ClusterId; 4] = [ClusterId(1), ClusterId(2), SETTLEMENT, COORDINATOR];
/// An installation waits for a minute, and for less where the guardian endorses it, which nobody does here.
const PARAMETERS: SafetyParameters = SafetyParameters {
    votes_validity_ms: 30 * 86_400_000,
    unlock_window_ms: 3 * 86_400_000,
    endorsed_delay_ms: 30_000,
    announced_delay_ms: 60_000,
    lapse_ms: 14 * 86_400_000,
    unlock_bond: Bond { asset: Asset::ETHER, amount: Amount(10) },
};
/// Two heights of a cluster are about so far apart.
const PACE: Duration = Duration::from_millis(800);
/// The longest time for which a cluster decides nothing, or a member is behind.
const STALL_MAX: Duration = Duration::from_secs(30);
const LAG_MAX: usize = 40;
/// What each owner has of each asset.
const ISSUED: u128 = 1_000_000;
/// What somebody funds on the other ledger.
const FOREIGN: u128 = 500_000;

/// What is to be done on the ledger.
pub enum Wish {
    /// The first committee installs the second.
    Rotate(Box<TestCommittee>, Box<TestCommittee>),
    /// A certified redemption is to be paid.
    Redeem(Box<Certificate>),
}

/// See the [module](self).
pub struct Ledger {
    layout: Layout,
    clusters: Mutex<BTreeMap<ClusterId, Cluster>>,
    /// Another ledger with the settlement cluster's members.
    other: Mutex<Cluster>,
    /// The place of each member.
    members: BTreeMap<MemberKey, (ClusterId, usize)>,
    wishes: mpsc::UnboundedSender<Wish>,
}

fn member_keys(cluster: ClusterId) -> Vec<MemberKeys> {
    let seed = |member: usize| [u8::try_from(cluster.0 as usize * 16 + member).expect("few clusters"); 32];
    let mut keys: Vec<_> = (0..MEMBERS).map(|member| MemberKeys::from_seed(seed(member))).collect();
    keys.sort_by_key(MemberKeys::public);
    keys
}

/// The key of an owner's reserve: the one with which it would send transactions.
pub fn owner_key(owner: u32) -> AccountKey {
    AccountKey::ethereum(rich_key(owner).to_bytes().0).expect("it is a key")
}

impl Ledger {
    /// A ledger on which owners of accounts, and banks, have money.
    pub fn new(plan: &Plan, first: &Committee, wishes: mpsc::UnboundedSender<Wish>) -> Self {
        let owners = (0..OWNERS_MAX as u32).map(owner_key).chain((0..people::BANKS).map(people::bank_key));
        let issue = |owner: AccountId| ASSETS.map(|asset| Issue { owner, asset, amount: Amount(ISSUED) });
        let public = |cluster| member_keys(cluster).iter().map(MemberKeys::public).collect::<Vec<_>>();
        let (first, guardian, parameters) = (first.clone(), PrimaryAddress::ZERO, PARAMETERS);
        let founded = FoundedCommittee { first, guardian, parameters };
        let genesis = Genesis {
            clusters: CLUSTERS.map(|cluster| (cluster, public(cluster))).into(),
            partition: Partition {
                settlement: SETTLEMENT,
                first_shard: ClusterId(1),
                other_shards: vec![ClusterId(2)],
            },
            namespaces: BTreeMap::new(),
            committees: [(COMMITTEE, founded)].into(),
            issued: owners.map(|key| key.account()).flat_map(issue).collect(),
        };
        let dice = Dice::new(plan.seed ^ 0x1ed9_e700);
        let layout = |us| Layout::new(genesis.clone(), us).expect("the genesis is valid");
        let cluster = |us| {
            let liar = dice.chance(700).then(|| dice.below(MEMBERS));
            (us, Cluster::new(layout(us), member_keys(us), liar))
        };
        let alone = Partition { settlement: SETTLEMENT, first_shard: SETTLEMENT, other_shards: Vec::new() };
        let other = Layout::new(Genesis { partition: alone, ..genesis.clone() }, SETTLEMENT);
        let other = Cluster::new(other.expect("the genesis is valid"), member_keys(SETTLEMENT), None);
        let places = CLUSTERS.iter().flat_map(|cluster| {
            let keys = public(*cluster).into_iter().enumerate();
            keys.map(|(at, key)| (key, (*cluster, at)))
        });
        Self {
            layout: layout(SETTLEMENT),
            clusters: Mutex::new(CLUSTERS.map(cluster).into()),
            other: Mutex::new(other),
            members: places.collect(),
            wishes,
        }
    }

    /// The ledger's deployment.
    pub fn deployment(&self) -> Deployment {
        self.layout.deployment()
    }

    /// The domain of the committee.
    pub fn domain(&self) -> Domain {
        self.deployment().domain(COMMITTEE)
    }

    /// Has something done.
    pub fn wish(&self, wish: Wish) {
        let _ = self.wishes.send(wish);
    }

    /// Looks at a cluster, or changes it.
    fn cluster<T>(&self, cluster: ClusterId, what: impl FnOnce(&mut Cluster) -> T) -> T {
        what(lock(&self.clusters).get_mut(&cluster).expect("there are four"))
    }

    /// What accounts have of an asset in all.
    pub fn omnibus(&self, asset: Asset) -> U256 {
        let key = StateKey::Omnibus(COMMITTEE, asset);
        let held: Option<Balance> = self.cluster(SETTLEMENT, |cluster| {
            cluster.state().read(&key).map(|held| borsh::from_slice(held).expect("it is a balance"))
        });
        held.unwrap_or_default().to_string().parse().expect("no balance is negative")
    }

    /// A digest of all that was decided.
    pub fn digest(&self) -> B256 {
        let newest = |cluster: &Cluster| cluster.heights.last().map(|newest| newest.header.id());
        let ids: Vec<_> = lock(&self.clusters).values().filter_map(newest).collect();
        alloy::primitives::keccak256(borsh::to_vec(&ids).expect("memory takes every write"))
    }

    /// The time of a group for the committee, in seconds since 1970.
    pub fn group_time(&self, number: u64) -> Option<u64> {
        let at = usize::try_from(number.checked_sub(1)?).ok()?;
        self.cluster(SETTLEMENT, |cluster| {
            cluster.sent.get(&of_committee())?.get(at).map(|(_, decision)| decision.header.time.0 / 1_000)
        })
    }

    /// How many groups the committee was sent.
    pub fn groups(&self) -> u64 {
        self.cluster(SETTLEMENT, |cluster| cluster.sent.get(&of_committee()).map_or(0, |sent| sent.len() as u64))
    }

    /// The groups of the other ledger.
    fn foreign(&self, to: Receiver, from: u64) -> Vec<CompactDecision> {
        lock(&self.other).groups(0, to, from)
    }

    /// A client of the committee, over the simulated network.
    pub fn committee(&self, world: &Arc<World>, client: usize) -> CommitteeClient {
        let link = |key: &MemberKey| {
            let (cluster, at) = self.members[key];
            let member = Member { world: world.clone(), cluster, at };
            Arc::new(Link { member, client }) as Arc<dyn fastpay_ledger_client::Carrier>
        };
        let client = Client::carried(self.layout.clone(), link);
        CommitteeClient::new(client, COMMITTEE).expect("the genesis lists it")
    }

    /// What an authority's follower reads.
    pub fn source(&self, world: &Arc<World>, authority: usize) -> FundingSource {
        let client = world.owners.len() + world.plan.relayers + authority;
        let deployment = LedgerDeployment::of(self.committee(world, client));
        LedgerSource::new(&deployment).expect("there is a settlement cluster").into()
    }

    /// One height of a cluster, after which no money is made or lost.
    fn step(&self, world: &World, us: ClusterId) -> Result<(), Breach> {
        let (dice, now) = (&world.dice, Time(world.chain.now_ms(world)));
        let mut clusters = lock(&self.clusters);
        let mut cluster = clusters.remove(&us).expect("there are four");
        let mut groups = Vec::new();
        for other in clusters.values() {
            groups.extend(cluster.due(other, dice)?);
        }
        let outputs = cluster.decide(now, groups, dice)?;
        clusters.insert(us, cluster);
        self.is_conserved(&clusters)?;
        drop(clusters);
        for group in outputs.groups().iter().filter(|group| group.to == of_committee()) {
            world.trace.note("group", format_args!("{} of {} events", group.number, group.messages.len()));
            for message in &group.messages {
                let Message::Event(event) = message else { return Err(Breach("it is no event".into())) };
                world.chain.heard(world, event);
            }
        }
        Ok(())
    }

    fn is_conserved(&self, clusters: &BTreeMap<ClusterId, Cluster>) -> Result<(), Breach> {
        for asset in ASSETS {
            let holdings = clusters.values().filter_map(|cluster| cluster.state().holdings().remove(&asset));
            let total = holdings.fold(Balance::ZERO, |sum, held| sum.plus(held.share()));
            let issued = Balance::from(self.layout.issued(asset));
            require!(total == issued, "{total} of the asset {asset} exists on the ledger, and {issued} was issued");
        }
        let states = clusters.iter().map(|(number, cluster)| (*number, cluster.state().clone())).collect();
        let overdrawn = overdrafts(&states);
        require!(overdrawn.is_empty(), "a cluster took more than it was sent: {overdrawn:?}");
        Ok(())
    }

    /// One height of the other ledger, on which somebody funds an account.
    fn step_other(&self, world: &World) -> Result<(), Breach> {
        let mut other = lock(&self.other);
        let key = owner_key(0);
        let (signer, account, asset) = (key.account(), world.owners[0].id(), ASSETS[0]);
        let (committee, amount) = (COMMITTEE, Amount(FOREIGN));
        let next = other.state().read(&StateKey::Sequence(signer)).map(borsh::from_slice::<SequenceNumber>);
        let sequence = next.transpose().expect("it is a number").unwrap_or_default();
        let action = match sequence.0 {
            0 => Action::Open,
            1 => Action::Fund { committee, account, asset, amount },
            _ => Action::Transfer { to: AccountId::from_ethereum(PrimaryAddress::ZERO), asset, amount: Amount(1) },
        };
        let deployment = other.layout.deployment();
        let instruction = Instruction { deployment, shard: SETTLEMENT, signer, sequence, action };
        let request = Request::Instruct(Box::new(instruction.signed(&key))).verify(deployment);
        other.hear(request.expect("it is signed"));
        other.decide(Time(world.chain.now_ms(world)), Vec::new(), &world.dice).map(drop)
    }
}

/// Decides heights until the run ends.
pub async fn decide(world: Arc<World>) {
    for cluster in CLUSTERS {
        tokio::spawn(decide_one(world.clone(), cluster));
    }
    let ledger = world.chain.ledger().expect("the Primary is a ledger");
    loop {
        if let Err(breach) = ledger.step_other(&world) {
            return world.trace.violation(breach);
        }
        sleep(PACE * 10).await;
    }
}

async fn decide_one(world: Arc<World>, cluster: ClusterId) {
    let ledger = world.chain.ledger().expect("the Primary is a ledger");
    loop {
        sleep(PACE).await;
        if let Err(breach) = ledger.step(&world, cluster) {
            return world.trace.violation(breach);
        }
        let dice = &world.dice;
        let is_calm = world.is_calm();
        ledger.cluster(cluster, |cluster| {
            for lag in &mut cluster.lags {
                *lag = match is_calm {
                    true => 0,
                    false if dice.chance(50) => dice.below(LAG_MAX),
                    false if dice.chance(100) => 0,
                    false => *lag,
                };
            }
        });
        if !is_calm && dice.chance(20) {
            world.trace.note("stalled", cluster);
            sleep(dice.mostly_short(STALL_MAX)).await;
        }
    }
}
