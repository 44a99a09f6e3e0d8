//! The changes of a committee whose members hand over. Before each one, an owner signs two orders for a number, and shows one
//! of them to just as many honest members as its certificate needs. When the next members vote, they are asked for the
//! other one, and then for the first. The certificate is shown to all at last. Another owner asks each member for its first vote
//! right after it has closed the epoch.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{CertificateSource, CommitteeClient, Network, NoCertificates, QuorumOptions};
use fastpay_core::{AccountId, Amount, Asset, Certificate, Epoch, TransferOrder, VerifiedCertificate};
use tokio::time::{Instant, sleep, timeout};

use super::byzantine;
use super::oracle::{Breach, require};
use super::terms::Term;
use super::world::{World, lock};
use crate::{TestAccount, payment};

/// What each owner has, and pays.
const FUNDS: u128 = 1_000;
const AMOUNT: u128 = 10;
/// A call to an authority takes no longer.
const CALL: Duration = Duration::from_secs(5);
/// An owner goes on without a certificate after this time: somebody is down.
const CERTIFIED: Duration = Duration::from_secs(60);
/// Once all is well a change takes less than this, and so does a payment.
const PATIENCE: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_secs(1);
/// After this time at most, those that are faulty in an epoch, or no longer, behave so.
const AWAY: Duration = Duration::from_secs(20);
/// An authority takes up an epoch within milliseconds after its shards have closed the last one.
const GLANCE: Duration = Duration::from_millis(2);

/// An owner of two orders for one number.
struct Apart {
    orders: [TransferOrder; 2],
    /// Of the first one, which few are shown.
    certificate: Option<VerifiedCertificate>,
}

/// Changes the committee as often as the plan says.
pub async fn change(world: Arc<World>) -> Result<(), Breach> {
    let network = world.network(usize::MAX);
    let mut all = Vec::new();
    for number in 0..world.plan.rotations {
        sleep(world.dice.between(Duration::ZERO, Duration::from_secs(world.plan.storm_s / 2))).await;
        let late = late_order(&world, number);
        let apart = Apart::sign(&world, &network, number).await;
        let next = Epoch(number + 1);
        if !begin_to_lie(&world, next).is_empty() && world.dice.chance(500) {
            begin_to_lie(&world, next).into_iter().for_each(|authority| world.turn(authority, true));
        }
        world.chain.rotate();
        let asked = ask_late(&world, &network, number, late);
        let (followed, (), ()) = tokio::join!(follow(&world, next), asked, turn(&world, next));
        followed?;
        world.follow(&network);
        apart.offer(&world, &network, 1).await;
        apart.offer(&world, &network, 0).await;
        all.push(apart);
    }
    while !world.is_calm() {
        sleep(LOOK).await;
    }
    for apart in all {
        apart.settle(&world, &network).await?;
    }
    Ok(())
}

/// The authorities that misbehave from this epoch on, and do not yet.
fn begin_to_lie(world: &World, epoch: Epoch) -> Vec<usize> {
    let faulty = term(world, epoch).faulty.iter().filter(|(_, since)| **since == epoch.0);
    faulty.map(|(authority, _)| *authority).filter(|authority| world.role_of(*authority).is_none()).collect()
}

/// Once an epoch begins, authorities turn that are faulty in it, and those that were and have new keys are honest.
async fn turn(world: &Arc<World>, epoch: Epoch) {
    let is_honest_again =
        |authority: &usize| world.role_of(*authority).is_some() && !term(world, epoch).faulty.contains_key(authority);
    let back: Vec<_> = (0..world.plan.honest()).filter(is_honest_again).collect();
    if back.is_empty() && begin_to_lie(world, epoch).is_empty() {
        return;
    }
    while world.chain.installed().len() as u64 <= epoch.0 {
        sleep(LOOK / 10).await;
    }
    sleep(world.dice.mostly_short(AWAY)).await;
    begin_to_lie(world, epoch).into_iter().for_each(|authority| world.turn(authority, true));
    back.into_iter().for_each(|authority| world.turn(authority, false));
}

fn term(world: &World, epoch: Epoch) -> &Term {
    &world.chain.terms()[usize::try_from(epoch.0).expect("few epochs")]
}

/// An order that nobody has seen before an epoch ends.
fn late_order(world: &World, epoch: u64) -> TransferOrder {
    let (owner, to) = (TestAccount::ed25519(1_060 + epoch), AccountId::from_ed25519(&[8; 32]));
    world.chain.deposit(0, owner.id(), Asset::ETHER, Amount(FUNDS));
    let order = owner.sign(&world.domain, payment(owner.id(), to, AMOUNT, 0));
    world.oracle().signs(&order);
    order
}

/// Asks each honest member for its vote when its shard has closed the epoch, before it takes up the next one.
async fn ask_late(world: &Arc<World>, network: &Network, epoch: u64, order: TransferOrder) {
    let (account, mut asked) = (order.transfer.sender(), BTreeSet::new());
    let term = term(world, Epoch(epoch));
    while world.chain.installed().len() as u64 <= epoch + 1 {
        sleep(LOOK / 10).await;
    }
    loop {
        let honest = term.behind.iter().copied().filter(|authority| world.role_of(*authority).is_none());
        let left: Vec<_> = honest.filter(|authority| world.epoch_of(*authority) <= epoch).collect();
        if left.is_empty() {
            return;
        }
        for authority in left {
            if world.oracle().has_closed(authority, account, epoch) && asked.insert(authority) {
                let shard = network.authorities()[authority].shard_of(&account).clone();
                let order = order.clone();
                tokio::spawn(async move { timeout(CALL, shard.order(&order)).await });
            }
        }
        sleep(GLANCE).await;
    }
}

/// Waits until a committee is installed and all its honest members vote. Who signs the next one waits for that, too. One that
/// came back with an older copy of its folder may have to wait for another epoch.
async fn follow(world: &Arc<World>, epoch: Epoch) -> Result<(), Breach> {
    let term = term(world, epoch);
    let is_whole = |authority: &usize| !(world.plan.is_restored && authority + 1 == world.plan.honest());
    let honest = || term.behind.iter().filter(|authority| term.begins_honest(**authority));
    let mut calm_since = None;
    loop {
        let late: Vec<_> = honest().filter(|one| is_whole(one) && !world.votes_in(**one, epoch)).collect();
        if late.is_empty() {
            world.trace.note("handed over", epoch);
            return Ok(());
        }
        if world.is_calm() {
            let since = *calm_since.get_or_insert_with(Instant::now);
            require!(since.elapsed() < PATIENCE, "authorities {late:?} do not vote in epoch {epoch}");
        }
        sleep(LOOK).await;
    }
}

impl Apart {
    /// Signs, and collects the votes for the first order.
    async fn sign(world: &Arc<World>, network: &Network, number: u64) -> Self {
        let (owner, to) = (TestAccount::ed25519(1_040 + number), AccountId::from_ed25519(&[8; 32]));
        world.chain.deposit(0, owner.id(), Asset::ETHER, Amount(FUNDS));
        let sign = |amount| owner.sign(&world.domain, payment(owner.id(), to, amount, 0));
        let orders = [sign(AMOUNT), sign(AMOUNT + 1)];
        orders.iter().for_each(|order| world.oracle().signs(order));
        // Who lies may say that it is locked on the other one.
        lock(&world.memory).order(orders[1].clone());
        let term = term(world, Epoch(number));
        let (committee, verified) = (&term.committee.committee, term.committee.verified(&orders[0]));
        let mut votes = Vec::new();
        let check = |vote: fastpay_core::Vote| vote.verify(&world.domain, committee, &verified).ok();
        let mut honest = Vec::new();
        for authority in &term.behind {
            if world.role_of(*authority).is_none() {
                honest.push(*authority);
            } else {
                let epoch = usize::try_from(number).expect("few epochs");
                votes.extend(check(byzantine::vote(world, *authority, epoch, &orders[0])));
            }
        }
        let began = Instant::now();
        while !honest.is_empty() && votes.len() < committee.quorum() && began.elapsed() < CERTIFIED {
            let authority = honest[world.dice.below(honest.len())];
            let shard = network.authorities()[authority].shard_of(&owner.id()).clone();
            if let Ok(Ok((_, vote))) = timeout(CALL, shard.order(&orders[0])).await {
                votes.extend(check(vote));
                honest.retain(|one| *one != authority);
            } else {
                sleep(LOOK).await;
            }
        }
        let certificate = Certificate::from_votes(&verified, committee, &votes);
        world.trace.note("apart", format_args!("#{number} certified: {}", certificate.is_some()));
        let apart = Self { orders, certificate };
        if world.dice.chance(300)
            && let Some(certificate) = &apart.certificate
        {
            let shown = world.dice.pick(&term.behind);
            let shard = network.authorities()[*shown].shard_of(&owner.id()).clone();
            let _ = timeout(CALL, shard.confirm(certificate.certificate())).await;
        }
        apart
    }

    /// Asks all for a vote for one of the orders.
    async fn offer(&self, world: &World, network: &Network, order: usize) {
        for authority in 0..world.plan.authorities() {
            let order = &self.orders[order];
            let shard = network.authorities()[authority].shard_of(&order.transfer.sender()).clone();
            let answer = timeout(CALL, shard.order(order)).await;
            world.trace.note("offered", format_args!("a{authority}: {:?}", answer.map(|answer| answer.map(drop))));
        }
    }

    /// Shows the certificate to all.
    async fn settle(self, world: &Arc<World>, network: &Network) -> Result<(), Breach> {
        let Some(certificate) = self.certificate else { return Ok(()) };
        let source: Arc<dyn CertificateSource> = Arc::new(NoCertificates);
        let client = CommitteeClient::new(network.clone(), source, QuorumOptions::default());
        let began = Instant::now();
        while let Err(error) = client.settle(&certificate).await {
            require!(began.elapsed() < PATIENCE, "a certificate of an epoch that has ended is not settled: {error}");
            world.follow(network);
            sleep(LOOK).await;
        }
        Ok(())
    }
}
