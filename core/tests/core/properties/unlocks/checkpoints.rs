//! How checkpoints come about: somebody proposes what it has executed, as far as it can be certified, and everybody signs
//! who has executed all of it.

use std::collections::BTreeSet;

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointState, Cut, Installations, InstalledCommittee, PrimaryEvent,
    PrimaryEventKind, Segment, SegmentError,
};
use fastpay_core::{AccountId, Digest, Epoch, Record, SequenceNumber, TransactionIndex};
use fastpay_testkit::TestCommittee;
use rand::prelude::*;

use super::contract::{Event, Slot};
use super::world::{VIEW_AGE_MAX, World};

/// A checkpoint of the committee.
pub struct Checkpointed {
    pub checkpoint: Checkpoint,
    pub state: CheckpointState,
    /// The first has none.
    certificate: Option<CheckpointCertificate>,
}

impl Checkpointed {
    pub fn first(committee: &TestCommittee) -> Self {
        let state = CheckpointState::new(committee.committee.clone()).unwrap();
        Self { checkpoint: Checkpoint::first(&state.summary()), state, certificate: None }
    }
}

impl World {
    /// The digest that an installation names: members announce the newest checkpoint.
    pub fn newest_checkpoint(&self) -> Digest {
        match self.checkpoints.split_last() {
            Some((newest, [_, ..])) => self.committee.domain.checkpoint_digest(&newest.checkpoint),
            _ => Digest::ZERO,
        }
    }

    /// The members have the same keys in each epoch.
    fn installed(&self, epoch: Epoch, compromised_since: Epoch, checkpoint: Digest) -> InstalledCommittee {
        let committee = TestCommittee::with(self.committee.keys.len(), self.committee.domain, epoch).committee;
        InstalledCommittee { committee, compromised_since, checkpoint }
    }

    /// All final events, as segments have them. A redemption waits in the queue until it leaves.
    pub fn final_events(&self) -> Vec<PrimaryEvent> {
        let mut spent = BTreeSet::new();
        let events = (1..).map(TransactionIndex).zip(&self.contract.events[..self.contract.is_final]);
        let of = |slot: &Slot| (slot.0, SequenceNumber(slot.1));
        let events = events.map(|(index, (_, event))| {
            let kind = match event {
                Event::Deposit(deposit) => PrimaryEventKind::Deposit {
                    recipient: deposit.recipient,
                    asset: deposit.asset,
                    amount: deposit.amount,
                },
                Event::Requested(slot, authorization) => {
                    let (account, sequence) = of(slot);
                    let is_authorized = self.is_authorized(*slot, authorization);
                    PrimaryEventKind::UnlockRequested { account, sequence, is_authorized }
                }
                Event::Upheld(slot, digest) => {
                    let (account, sequence) = of(slot);
                    PrimaryEventKind::Upheld { account, sequence, digest: *digest }
                }
                Event::Voided(slot) => {
                    let (account, sequence) = of(slot);
                    PrimaryEventKind::Voided { account, sequence }
                }
                Event::Spent(slot, digest) => {
                    let ((account, sequence), digest) = (of(slot), *digest);
                    if spent.insert(*slot) {
                        PrimaryEventKind::Queued { account, sequence, digest }
                    } else {
                        PrimaryEventKind::Redeemed { account, sequence, digest }
                    }
                }
                Event::Released(slot, digest) => {
                    let (account, sequence) = of(slot);
                    PrimaryEventKind::Released { account, sequence, digest: *digest }
                }
                Event::Installed(epoch, since, checkpoint) => {
                    PrimaryEventKind::Installed(self.installed(*epoch, *since, *checkpoint))
                }
            };
            PrimaryEvent { index, kind }
        });
        events.collect()
    }

    /// The committees up to the newest final block.
    fn installations(&self) -> Installations {
        let mut all = Installations::new(self.committee.committee.clone()).unwrap();
        for (_, event) in &self.contract.events[..self.contract.is_final] {
            if let Event::Installed(epoch, since, checkpoint) = event {
                all.install(self.installed(*epoch, *since, *checkpoint)).unwrap();
            }
        }
        all
    }

    /// Whether a checkpoint counts for whoever knows all final blocks.
    pub fn counts(&self, number: usize) -> bool {
        let certificate = self.checkpoints[number].certificate.as_ref();
        certificate.is_none_or(|one| one.counts(&self.committee.domain, &self.installations()).is_ok())
    }

    /// On an old view of the chain nobody makes or takes a checkpoint.
    pub fn sees_the_chain(&self, at: usize) -> bool {
        let age = self.now.cast_signed() + self.nodes[at].clock_error - self.contract.final_time.cast_signed();
        age <= VIEW_AGE_MAX
    }

    fn records(&self, at: usize) -> impl Iterator<Item = Record> {
        self.nodes[at].authority.shards.iter().flat_map(|shard| shard.journal().records().map(|(_, record)| record))
    }

    fn applied(&self, at: usize) -> TransactionIndex {
        let applied = self.nodes[at].authority.shards.iter().map(|shard| shard.ledger().synchronized);
        applied.min().unwrap_or_default()
    }

    fn next_of(&self, at: usize, account: &AccountId) -> SequenceNumber {
        SequenceNumber(self.oracle.books[at].next.get(account).copied().unwrap_or_default())
    }

    /// Somebody proposes a checkpoint, and all sign it who may.
    pub fn certify(&mut self) {
        let proposer = self.rng.random_range(0..self.nodes.len());
        let Some((state, segment, root)) = self.propose(proposer) else { return };
        let epoch = state.installations().epoch();
        let (domain, last) = (self.committee.domain, self.checkpoints.last().expect("there is the first"));
        let checkpoint = last.checkpoint.next(&domain, epoch, &state.summary(), root).expect("few checkpoints");
        let counts = |one: &CheckpointCertificate| one.counts(&domain, state.installations()).is_ok();
        if !last.certificate.as_ref().is_none_or(counts) || self.installations().epoch() != epoch {
            return;
        }
        let honest = (0..self.nodes.len()).filter(|at| self.signs(*at, &segment, &state));
        let signers = honest.chain(self.nodes.len()..self.committee.keys.len());
        let votes = signers.map(|at| checkpoint.sign(&self.committee.keys[at], &domain)).collect();
        let committee = &state.installations().current().committee;
        if let Some(certificate) = CheckpointCertificate::from_votes(checkpoint, &domain, committee, votes) {
            self.tally.certified += 1;
            self.checkpoints.push(Checkpointed { checkpoint, state, certificate: Some(certificate) });
        }
    }

    /// What an authority has executed, or a part of it, as far as it can be certified.
    fn propose(&mut self, at: usize) -> Option<(CheckpointState, Segment, Digest)> {
        let base = self.checkpoints.last().expect("there is the first").state.clone();
        let (from, applied) = (base.cut().clone(), self.applied(at));
        if applied < from.up_to || self.is_behind(at, &from) {
            return None;
        }
        let all = self.chance(70);
        let up_to = if all { applied.0 } else { self.rng.random_range(from.up_to.0..=applied.0) };
        let mut cut = Cut { up_to: TransactionIndex(up_to), ..Cut::default() };
        for owner in &self.owners {
            let (first, own) = (from.next(&owner.id()), self.next_of(at, &owner.id()));
            let next = if all { own.0 } else { self.rng.random_range(first.0..=own.0) };
            cut.next.insert(owner.id(), SequenceNumber(next));
        }
        loop {
            cut.next.retain(|_, next| next.0 > 0);
            let segment = Segment::from_records(self.final_events(), self.records(at), &from, &cut);
            let (account, next) = match base.clone().apply(segment.clone(), &self.committee.domain, &mut self.rng) {
                Ok((state, root)) => return Some((state, segment, root)),
                Err(SegmentError::Empty) => return None,
                Err(
                    SegmentError::Frozen { account, sequence }
                    | SegmentError::Overruled { account, sequence, .. }
                    | SegmentError::NotVoided { account, sequence },
                ) => (account, sequence),
                Err(SegmentError::NegativeBalance { account, .. }) if cut.next(&account) > from.next(&account) => {
                    (account, SequenceNumber(cut.next(&account).0 - 1))
                }
                Err(SegmentError::NegativeBalance { .. }) => return None,
                Err(error) => panic!("what authority {at} executed cannot be certified: {error}"),
            };
            cut.next.insert(account, next);
        }
    }

    /// Whether a checkpoint includes a number.
    pub fn is_included(&self, slot: Slot) -> bool {
        self.checkpoints.last().is_some_and(|newest| SequenceNumber(slot.1) < newest.state.cut().next(&slot.0))
    }

    /// Whether an authority has not executed all of a cut.
    pub fn is_behind(&self, at: usize, cut: &Cut) -> bool {
        cut.next.iter().any(|(account, next)| self.next_of(at, account) < *next)
    }

    /// Whether an authority signs the checkpoint of a segment. It computes the segment from its own journals.
    fn signs(&self, at: usize, segment: &Segment, state: &CheckpointState) -> bool {
        let (from, cut) = (&self.checkpoints.last().expect("there is the first").state, state.cut());
        let epochs = self.nodes[at].authority.shards.iter().map(|shard| shard.ledger().unlocks.epoch());
        let is_in_epoch = epochs.into_iter().all(|epoch| epoch == state.installations().epoch());
        let has_all = self.applied(at) >= cut.up_to && !self.is_behind(at, cut);
        if self.nodes[at].is_restored || !self.sees_the_chain(at) || !is_in_epoch || !has_all {
            return false;
        }
        let own = Segment::from_records(self.final_events(), self.records(at), from.cut(), cut);
        assert_eq!(own, *segment, "authority {at} has another segment");
        true
    }
}
