//! The committee's checkpoints: somebody proposes what it has executed, and all sign it who have executed it too. Each
//! member's part is made from what is on its disk. How nodes find each other's votes and archives is no part of a run.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointState, Cut, PrimaryEvent, Segment, SegmentEntry, SegmentError,
};
use fastpay_core::{Digest, SequenceNumber, TransactionIndex};
use fastpay_node::authority::certification::read_over;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::time::{sleep, timeout};

use super::oracle::{Breach, Oracle, require};
use super::world::{World, lock};
use crate::TestCommittee;

/// The maximum time between two checkpoints.
const EVERY: Duration = Duration::from_secs(20);
/// The maximum time in which the chain is read.
const READ_PATIENCE: Duration = Duration::from_secs(60);

/// A checkpoint of the committee.
#[derive(Clone)]
pub struct Checkpointed {
    /// What was certified.
    pub checkpoint: Checkpoint,
    /// Its state.
    pub state: CheckpointState,
    /// The first has none.
    pub certificate: Option<CheckpointCertificate>,
    /// What happened since the checkpoint before.
    pub segment: Segment,
    /// All events up to its cut.
    events: Vec<PrimaryEvent>,
}

impl Checkpointed {
    /// The first committee alone.
    #[must_use]
    pub fn first(committee: &TestCommittee) -> Self {
        let state = CheckpointState::new(committee.committee.clone()).expect("the first committee");
        Self {
            checkpoint: Checkpoint::first(&state.summary()),
            state,
            certificate: None,
            segment: Segment::default(),
            events: Vec::new(),
        }
    }

    /// The events between an earlier checkpoint and this one.
    #[must_use]
    pub fn events_since(&self, earlier: &Self) -> Vec<PrimaryEvent> {
        self.events[earlier.events.len()..].to_vec()
    }
}

/// Certifies checkpoints until the run ends.
pub async fn certify(world: Arc<World>) {
    loop {
        sleep(world.dice.between(Duration::from_secs(1), EVERY)).await;
        let Some(newest) = lock(&world.checkpoints).last().cloned() else { continue };
        let proposer = world.dice.below(world.plan.honest());
        let (primary, clock) = (world.chain.connect(&world), world.clock_of(proposer));
        let (mut told, mut seen) = (|_| (), |_: &_, _| ());
        let read = read_over(primary, None, newest.state.cut().up_to, clock, &mut told, &mut seen);
        let Ok(Ok((after, ..))) = timeout(READ_PATIENCE, read).await else { continue };
        match next(&world, &newest, &after, proposer) {
            Ok(None) => {}
            Ok(Some(next)) => {
                world.trace.note("checkpoint", format_args!("{} of a{proposer}", next.checkpoint.number));
                lock(&world.checkpoints).push(next);
            }
            Err(breach) => return world.trace.violation(breach),
        }
    }
}

/// The next checkpoint, if a quorum signs it.
fn next(
    world: &World,
    last: &Checkpointed,
    after: &[PrimaryEvent],
    proposer: usize,
) -> Result<Option<Checkpointed>, Breach> {
    let oracle = world.oracle();
    let chain = after.last().map_or(last.state.cut().up_to, |event| event.index);
    let Some((state, segment, root)) = propose(world, &oracle, last, after, proposer)? else { return Ok(None) };
    let (domain, epoch, cut) = (world.domain, state.installations().epoch(), state.cut().clone());
    let counts = |one: &CheckpointCertificate| one.counts(&domain, state.installations()).is_ok();
    let committee = state.installations().current().committee.clone();
    // An epoch that began after the cut has members of its own.
    let is_newest = world.chain.installed().len() as u64 == epoch.0 + 1 && cut.up_to <= chain;
    if !last.certificate.as_ref().is_none_or(counts) || !is_newest {
        return Ok(None);
    }
    let checkpoint = last.checkpoint.next(&domain, epoch, &state.summary(), root).expect("few checkpoints");
    let mut votes = Vec::new();
    for authority in 0..world.plan.authorities() {
        if authority < world.plan.honest() {
            let may_lack_votes = world.plan.is_restored && authority + 1 == world.plan.honest();
            let books = oracle.books(authority);
            let has_all = cut.next.iter().all(|(account, next)| books.sent(*account) >= next.0);
            let is_there = applied(world, &oracle, authority) >= cut.up_to && world.epoch_of(authority) == epoch.0;
            if may_lack_votes || !has_all || !is_there {
                continue;
            }
            let own = own_segment(&oracle, authority, after, (last.state.cut(), &cut));
            require!(own == segment, "authorities {authority} and {proposer} have other segments for one cut");
        }
        votes.push(checkpoint.sign(world.keys_in(authority, epoch).expect("all are members"), &domain));
    }
    let certificate = CheckpointCertificate::from_votes(checkpoint, &domain, &committee, votes);
    Ok(certificate.map(|certificate| {
        let included = after.iter().filter(|event| event.index <= cut.up_to).cloned();
        let events = last.events.iter().cloned().chain(included).collect();
        Checkpointed { checkpoint, state, certificate: Some(certificate), segment, events }
    }))
}

/// The newest event that all shards of an authority have applied.
fn applied(world: &World, oracle: &Oracle, authority: usize) -> TransactionIndex {
    let of_shards = &oracle.books(authority).applied;
    let shards = usize::try_from(world.plan.shards[authority]).expect("few shards");
    if of_shards.len() < shards {
        return TransactionIndex(0);
    }
    of_shards.values().copied().min().unwrap_or_default()
}

/// What an authority has executed between two cuts, by its records.
fn own_segment(oracle: &Oracle, authority: usize, after: &[PrimaryEvent], (from, to): (&Cut, &Cut)) -> Segment {
    let events = after.iter().filter(|event| event.index <= to.up_to).cloned().map(SegmentEntry::Event);
    let orders = oracle.books(authority).orders.iter();
    let numbers = orders.filter_map(|((account, number), order)| {
        let (account, sequence) = (*account, SequenceNumber(*number));
        let is_between = (from.next(&account)..to.next(&account)).contains(&sequence);
        is_between.then(|| match order {
            Some(order) => SegmentEntry::Executed(order.clone()),
            None => SegmentEntry::Void { account, sequence },
        })
    });
    Segment { entries: events.chain(numbers).collect() }
}

/// All that an authority has executed, as far as it can be certified.
fn propose(
    world: &World,
    oracle: &Oracle,
    last: &Checkpointed,
    after: &[PrimaryEvent],
    proposer: usize,
) -> Result<Option<(CheckpointState, Segment, Digest)>, Breach> {
    let from = last.state.cut();
    let chain = after.last().map_or(from.up_to, |event| event.index);
    let up_to = applied(world, oracle, proposer).min(chain);
    let books = oracle.books(proposer);
    if up_to < from.up_to || from.next.iter().any(|(account, next)| books.sent(*account) < next.0) {
        return Ok(None);
    }
    let next = books.sent.iter().filter(|(_, next)| **next > 0);
    let mut cut = Cut { up_to, next: next.map(|(account, next)| (*account, SequenceNumber(*next))).collect() };
    let mut rng = StdRng::seed_from_u64(last.checkpoint.number);
    loop {
        let segment = own_segment(oracle, proposer, after, (from, &cut));
        let (account, next) = match last.state.clone().apply(segment.clone(), &world.domain, &mut rng) {
            Ok((state, root)) => return Ok(Some((state, segment, root))),
            Err(SegmentError::Empty) => return Ok(None),
            Err(
                SegmentError::Frozen { account, sequence }
                | SegmentError::Overruled { account, sequence, .. }
                | SegmentError::NotVoided { account, sequence },
            ) => (account, sequence),
            Err(SegmentError::NegativeBalance { account, .. }) if cut.next(&account) > from.next(&account) => {
                (account, SequenceNumber(cut.next(&account).0 - 1))
            }
            Err(SegmentError::NegativeBalance { .. }) => return Ok(None),
            Err(error) => return Err(Breach(format!("what authority {proposer} executed is not certified: {error}"))),
        };
        cut.next.insert(account, next);
        cut.next.retain(|_, next| next.0 > 0);
    }
}
