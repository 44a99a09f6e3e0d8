//! Combines the answers to an order into a verdict: pure, so that every mixture of honest and lying answers can be
//! tested without a network.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AuthorityName, Balance, Certificate, Committee, Digest, Epoch, SequenceNumber, VerifiedCertificate, VerifiedOrder,
    VerifiedVote,
};

use super::{OrderConflict, QuorumError};

/// Why an authority does not fulfil a request now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerFailure {
    /// No connection or no answer.
    #[error("{0}")]
    Silent(String),
    /// Its queue is full. It asks the client to wait this long.
    #[error("it is busy; it can be asked again after {} ms", .0.as_millis())]
    Busy(Duration),
    /// It was restored from an older copy, and does not know yet what it may have voted for from this account.
    #[error("it was restored from an older copy and does not vote until it has recovered its earlier votes")]
    Restored,
    /// Its balance of the account is too low: deposits or payments have not arrived there.
    #[error("it reports a balance of only {0}")]
    InsufficientBalance(Balance),
    /// It has no room for new orders during this time.
    #[error("{whose}; it can be asked again after {} s", .retry_after.as_secs())]
    NoRoom {
        /// The account or address whose share is full.
        whose: Room,
        /// How long it asks to be left alone.
        retry_after: Duration,
    },
    /// It lacks a certificate, and no authority has it, or its epoch ended long ago and too few attest it now.
    #[error("it lacks certificate {0}, which too few authorities show or attest now; finish that order first")]
    Behind(SequenceNumber),
    /// It is locked on another order.
    #[error("it is locked on another order ({0})")]
    Locked(Digest),
    /// It votes in this epoch, but votes are collected for another.
    #[error("it votes in epoch {0}")]
    OtherEpoch(Epoch),
    /// It has no Primary.
    #[error("it runs without a Primary")]
    NoPrimary,
    /// It knows of no request to unlock the number that the account's owner signed.
    #[error("it knows of no unlock request of the account's owner for this number")]
    NotRequested,
    /// A recovery has installed this epoch and ended all earlier ones, and it refuses a certificate of one of these.
    #[error("a recovery has installed epoch {0}, and certificates of earlier epochs count for nothing")]
    EpochEnded(Epoch),
    /// The certificate's epoch, the value, ended too long ago for it to count by itself there, and too few attest it.
    #[error("certificates of epoch {0} do not count by themselves any more, and too few authorities know this one")]
    Unattested(Epoch),
    /// The contract voided the number of the certificate, as it says: no order of it ever happens.
    #[error("it says that the contract voided the number")]
    Voided,
    /// It refused the request as wrong.
    #[error("it refused: {0}")]
    Refused(String),
    /// Its answer proves that it misbehaves.
    #[error("it sent an invalid answer: {0}")]
    Misbehaved(String),
}

/// The limit that leaves an authority without room for new orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Room {
    /// The account's share of its disk is full.
    #[error("this account has reached its limit of orders at an authority")]
    Account,
    /// The share of the client's network address is full.
    #[error("this network address has reached its limit of orders at an authority")]
    Address,
    /// Its disk is nearly full.
    #[error("the authority's disk is nearly full")]
    Disk,
}

impl PeerFailure {
    /// A name from a fixed list; the authority's own text may be private.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Silent(_) => "silent",
            Self::Busy(_) => "busy",
            Self::Restored => "restored",
            Self::InsufficientBalance(_) => "insufficient-balance",
            Self::NoRoom { .. } => "no-room",
            Self::Behind(_) => "behind",
            Self::Locked(_) => "order-pending",
            Self::OtherEpoch(_) => "other-epoch",
            Self::NoPrimary => "no-primary",
            Self::NotRequested => "not-requested",
            Self::EpochEnded(_) => "epoch-ended",
            Self::Unattested(_) => "unattested",
            Self::Voided => "voided",
            Self::Refused(_) => "refused",
            Self::Misbehaved(_) => "misbehaved",
        }
    }

    /// The minimum wait before the same request is sent again.
    pub(super) fn retry_after(&self) -> Duration {
        if let Self::Busy(retry_after) = self { *retry_after } else { Duration::ZERO }
    }
}

/// A verified answer, or the lack of one.
#[derive(Debug, PartialEq, Eq)]
pub enum PeerAnswer {
    /// A valid vote of this very authority.
    Vote(VerifiedVote),
    /// The number has a certificate already, of this order or another.
    Finished(Box<VerifiedCertificate>),
    /// It is locked on another order, which the sender signed.
    Locked(Box<VerifiedOrder>),
    /// It votes in this newer epoch, and will be asked again.
    Ahead(Epoch),
    /// It will be asked again.
    Later(PeerFailure),
    /// It will not be asked again.
    Out(PeerFailure),
}

impl PeerAnswer {
    /// A name from a fixed list.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Vote(_) => "voted",
            Self::Finished(_) => "already-confirmed",
            Self::Locked(_) => "order-pending",
            Self::Ahead(_) => "other-epoch",
            Self::Later(failure) | Self::Out(failure) => failure.kind(),
        }
    }
}

/// The verdict on all answers so far.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Wait for further answers.
    Wait,
    /// The order is certified.
    Certified(Box<VerifiedCertificate>),
    /// Another order of this number is certified.
    Superseded(Box<VerifiedCertificate>),
    /// An honest authority votes in this epoch, or a newer one.
    NewEpoch(Epoch),
    /// A quorum is no longer possible.
    Impossible,
}

/// The answers to one order.
#[derive(Debug)]
pub struct Tally {
    committee: Arc<Committee>,
    order: VerifiedOrder,
    /// By signer; all other maps are by the authority that answered, which may have left the committee.
    votes: BTreeMap<AuthorityName, VerifiedVote>,
    ahead: BTreeMap<AuthorityName, Epoch>,
    locked: BTreeMap<AuthorityName, VerifiedOrder>,
    out: BTreeMap<AuthorityName, PeerFailure>,
    failures: BTreeMap<AuthorityName, PeerFailure>,
}

impl Tally {
    /// A tally without answers.
    #[must_use]
    pub fn new(committee: Arc<Committee>, order: VerifiedOrder) -> Self {
        let (votes, locked, ahead) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { committee, order, votes, ahead, locked, out: BTreeMap::new(), failures: BTreeMap::new() }
    }

    /// How many members have voted.
    #[must_use]
    pub fn votes(&self) -> usize {
        self.votes.len()
    }

    /// Counts an authority's answer.
    pub fn count(&mut self, authority: AuthorityName, answer: PeerAnswer) -> Verdict {
        match answer {
            PeerAnswer::Vote(vote) => {
                self.locked.remove(&authority);
                self.failures.remove(&authority);
                self.votes.insert(vote.vote().authority, vote);
                let votes: Vec<_> = self.votes.values().cloned().collect();
                if let Some(certificate) = Certificate::from_votes(&self.order, &self.committee, &votes) {
                    return Verdict::Certified(Box::new(certificate));
                }
            }
            PeerAnswer::Finished(certificate) if certificate.digest() == self.order.digest() => {
                return Verdict::Certified(certificate);
            }
            PeerAnswer::Finished(certificate) => return Verdict::Superseded(certificate),
            PeerAnswer::Locked(other) => {
                self.failures.insert(authority, PeerFailure::Locked(other.digest()));
                self.locked.insert(authority, *other);
            }
            PeerAnswer::Ahead(epoch) => {
                self.locked.remove(&authority);
                self.failures.insert(authority, PeerFailure::OtherEpoch(epoch));
                self.ahead.insert(authority, epoch);
                let told = self.ahead.iter().filter(|(name, _)| self.committee.member(name).is_some());
                if let Some(epoch) = newer_epoch(&self.committee, told.map(|(_, epoch)| *epoch)) {
                    return Verdict::NewEpoch(epoch);
                }
            }
            PeerAnswer::Later(failure) => {
                self.locked.remove(&authority);
                self.failures.insert(authority, failure);
            }
            PeerAnswer::Out(failure) => {
                self.failures.insert(authority, failure.clone());
                self.out.insert(authority, failure);
            }
        }
        if self.reachable() < self.committee.quorum() { Verdict::Impossible } else { Verdict::Wait }
    }

    /// How many votes are still possible. A locked authority votes for no other order before the one that it is locked
    /// on is finished, and then this order is superseded.
    fn reachable(&self) -> usize {
        let members = self.committee.members().iter().map(|member| member.name);
        let may_vote = |name: &AuthorityName| !self.locked.contains_key(name) && !self.out.contains_key(name);
        members.filter(|name| self.votes.contains_key(name) || may_vote(name)).count()
    }

    /// The orders of this number and the authorities that are locked on them.
    fn conflict(&self) -> OrderConflict {
        let mut conflict = OrderConflict::new(&self.committee);
        conflict.enter(&self.order);
        self.votes.keys().for_each(|name| conflict.hold(&self.order, *name));
        self.locked.iter().for_each(|(name, other)| conflict.hold(other, *name));
        conflict
    }

    /// Why there is no certificate.
    #[must_use]
    pub fn error(&self, timed_out: bool) -> QuorumError {
        let (size, quorum) = (self.committee.members().len(), self.committee.quorum());
        let blocking = size.saturating_sub(quorum);
        // f + 1 reports contain an honest one.
        let trusted = self.committee.one_honest();
        let is_member = |name: &&AuthorityName| self.committee.member(name).is_some();
        let said: Vec<_> =
            self.failures.iter().filter(|(name, _)| is_member(name)).map(|(_, failure)| failure).collect();
        if self.locked.keys().filter(is_member).count() > blocking || (timed_out && !self.locked.is_empty()) {
            return QuorumError::Conflict(Box::new(self.conflict()));
        }
        if said.iter().filter(|failure| ***failure == PeerFailure::NoPrimary).count() >= trusted {
            return QuorumError::NoPrimary;
        }
        for room in [Room::Account, Room::Address, Room::Disk] {
            let mut waits: Vec<_> = said.iter().filter_map(|failure| wait_for(failure, room)).collect();
            waits.sort_unstable();
            // At least one honest authority asks for this long or longer.
            if let Some(retry_after) = waits.iter().nth_back(self.committee.faults_tolerated())
                && waits.len() > blocking
            {
                return QuorumError::NoRoom { whose: room, retry_after: *retry_after };
            }
        }
        let mut balances: Vec<_> = said.iter().filter_map(|failure| balance_of(failure)).collect();
        balances.sort_unstable();
        if let Some(balance) = balances.iter().nth_back(self.committee.faults_tolerated())
            && balances.len() > blocking
        {
            return QuorumError::InsufficientBalance { balance: *balance };
        }
        let failures = self.failures.iter().map(|(name, failure)| (*name, failure.clone())).collect();
        QuorumError::NoQuorum { what: "votes", count: self.votes.len(), quorum, timed_out, failures }
    }
}

/// The newest of these epochs, which members told, that at least one honest one has reached.
pub(super) fn newer_epoch(committee: &Committee, told: impl Iterator<Item = Epoch>) -> Option<Epoch> {
    let mut epochs: Vec<_> = told.collect();
    epochs.sort_unstable();
    // One of f + 1 authorities is honest, so the lowest of the f + 1 highest epochs has begun.
    epochs.iter().nth_back(committee.faults_tolerated()).copied()
}

/// Whether `shown_by` may show a valid vote of `voter`: its own, or any vote while its own current name is not known.
/// The signature identifies the voter.
pub(super) fn may_vote_for(committee: &Committee, shown_by: AuthorityName, voter: AuthorityName) -> bool {
    voter == shown_by || committee.member(&shown_by).is_none()
}

fn wait_for(failure: &PeerFailure, room: Room) -> Option<Duration> {
    match failure {
        PeerFailure::NoRoom { whose, retry_after } if *whose == room => Some(*retry_after),
        _ => None,
    }
}

fn balance_of(failure: &PeerFailure) -> Option<Balance> {
    match failure {
        PeerFailure::InsufficientBalance(balance) => Some(*balance),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{SequenceNumber, TransferOrder};
    use fastpay_testkit::{TestAccount, TestCommittee, payment};

    struct Case {
        committee: TestCommittee,
        order: TransferOrder,
        other: TransferOrder,
        tally: Tally,
    }

    fn case() -> Case {
        let committee = TestCommittee::new(4);
        let (alice, bob) = (TestAccount::numbered(0), TestAccount::numbered(1));
        let order = alice.sign(&committee.domain, fastpay_core::Transfer::Payment(payment(alice.id(), bob.id(), 5, 0)));
        let other = alice.sign(&committee.domain, fastpay_core::Transfer::Payment(payment(alice.id(), bob.id(), 6, 0)));
        let tally = Tally::new(Arc::new(committee.committee.clone()), committee.verified(&order));
        Case { committee, order, other, tally }
    }

    impl Case {
        fn name(&self, index: usize) -> AuthorityName {
            self.committee.committee.members()[index].name
        }

        fn vote(&mut self, index: usize) -> Verdict {
            let (name, vote) = (self.name(index), self.committee.vote(index, &self.order));
            let TestCommittee { domain, committee, .. } = &self.committee;
            let vote = vote.verify(domain, committee, &self.committee.verified(&self.order)).unwrap();
            self.tally.count(name, PeerAnswer::Vote(vote))
        }

        fn lock(&mut self, index: usize) -> Verdict {
            let (name, other) = (self.name(index), self.committee.verified(&self.other));
            self.tally.count(name, PeerAnswer::Locked(Box::new(other)))
        }

        fn out(&mut self, index: usize, failure: PeerFailure) -> Verdict {
            self.tally.count(self.name(index), PeerAnswer::Out(failure))
        }
    }

    #[test]
    fn a_quorum_of_different_authorities_decides() {
        let mut case = case();
        assert_eq!(case.vote(1), Verdict::Wait);
        assert_eq!(case.vote(1), Verdict::Wait);
        assert_eq!(case.vote(3), Verdict::Wait);
        let Verdict::Certified(certificate) = case.vote(0) else { panic!() };
        let TestCommittee { domain, committee, .. } = &case.committee;
        certificate.into_certificate().verify(domain, committee).unwrap();
    }

    #[test]
    fn one_lock_is_survived_and_two_are_a_conflict() {
        let mut locked = case();
        assert_eq!(locked.lock(0), Verdict::Wait);
        assert_eq!(locked.lock(1), Verdict::Impossible);
        let QuorumError::Conflict(conflict) = locked.tally.error(false) else { panic!() };
        assert_eq!(conflict.leader().unwrap().order(), &locked.other, "nobody holds ours");
        assert_eq!(
            conflict.contenders().iter().map(|c| (c.holders.len(), c.reach)).collect::<Vec<_>>(),
            [(2, 4), (0, 2)]
        );
        // A locked authority that was released votes after all.
        let mut released = case();
        assert_eq!(released.lock(0), Verdict::Wait);
        assert_eq!(released.vote(0), Verdict::Wait);
        assert_eq!(released.lock(1), Verdict::Wait);
        assert_eq!(released.vote(2), Verdict::Wait);
        assert!(matches!(released.vote(3), Verdict::Certified(_)));
    }

    #[test]
    fn a_certificate_for_the_number_ends_it_either_way() {
        let mut ours = case();
        let certificate = Box::new(ours.committee.certified(&ours.order));
        assert!(matches!(ours.tally.count(ours.name(0), PeerAnswer::Finished(certificate)), Verdict::Certified(_)));
        let mut theirs = case();
        let certificate = Box::new(theirs.committee.certified(&theirs.other));
        assert!(matches!(
            theirs.tally.count(theirs.name(0), PeerAnswer::Finished(certificate)),
            Verdict::Superseded(_)
        ));
    }

    #[test]
    fn one_authority_cannot_make_up_an_epoch_and_two_are_believed_as_far_as_both_go() {
        let mut case = case();
        assert_eq!(case.tally.count(case.name(0), PeerAnswer::Ahead(Epoch(9))), Verdict::Wait);
        assert_eq!(case.tally.count(case.name(0), PeerAnswer::Ahead(Epoch(9))), Verdict::Wait);
        assert_eq!(case.tally.count(case.name(1), PeerAnswer::Ahead(Epoch(1))), Verdict::NewEpoch(Epoch(1)));
        // The others' votes in our epoch still make a certificate, while one is ahead.
        let mut one_ahead = super::tests::case();
        assert_eq!(one_ahead.tally.count(one_ahead.name(0), PeerAnswer::Ahead(Epoch(1))), Verdict::Wait);
        assert_eq!((one_ahead.vote(1), one_ahead.vote(2)), (Verdict::Wait, Verdict::Wait));
        assert!(matches!(one_ahead.vote(3), Verdict::Certified(_)));
    }

    /// One member lies, and one that has left the committee.
    #[test]
    fn who_left_the_committee_makes_up_no_epoch_and_no_reason() {
        let left = AuthorityName([9; 32]);
        let mut case = case();
        assert_eq!(case.tally.count(case.name(0), PeerAnswer::Ahead(Epoch(9))), Verdict::Wait);
        assert_eq!(case.tally.count(left, PeerAnswer::Ahead(Epoch(9))), Verdict::Wait);
        let mut refused = super::tests::case();
        for by in [refused.name(0), left] {
            assert_eq!(refused.tally.count(by, PeerAnswer::Out(PeerFailure::NoPrimary)), Verdict::Wait);
        }
        assert!(matches!(refused.tally.error(true), QuorumError::NoQuorum { .. }));
        let mut locked = super::tests::case();
        let other = Box::new(locked.committee.verified(&locked.other));
        assert_eq!(locked.lock(0), Verdict::Wait);
        assert_eq!(locked.tally.count(left, PeerAnswer::Locked(other)), Verdict::Wait);
        assert!(matches!(locked.tally.error(false), QuorumError::NoQuorum { .. }));
        assert_eq!(locked.lock(1), Verdict::Impossible);
        assert!(matches!(locked.tally.error(false), QuorumError::Conflict(_)));
    }

    #[test]
    fn the_reason_of_a_failure_is_what_an_honest_authority_says() {
        let poor = |balance| PeerFailure::InsufficientBalance(Balance::from(fastpay_core::Amount(balance)));
        let mut one_liar = case();
        assert_eq!(one_liar.out(0, poor(0)), Verdict::Wait);
        assert_eq!(one_liar.out(1, PeerFailure::Silent("gone".into())), Verdict::Impossible);
        assert!(matches!(one_liar.tally.error(false), QuorumError::NoQuorum { count: 0, .. }));
        let mut poverty = case();
        assert_eq!(poverty.out(0, poor(0)), Verdict::Wait);
        assert_eq!(poverty.out(1, poor(3)), Verdict::Impossible);
        let QuorumError::InsufficientBalance { balance } = poverty.tally.error(false) else { panic!() };
        assert_eq!(balance, Balance::ZERO);
        let mut standalone = case();
        assert_eq!(standalone.out(0, PeerFailure::NoPrimary), Verdict::Wait);
        assert_eq!(standalone.out(1, PeerFailure::NoPrimary), Verdict::Impossible);
        assert!(matches!(standalone.tally.error(false), QuorumError::NoPrimary));
        let behind = PeerFailure::Behind(SequenceNumber(0));
        assert!(behind.to_string().contains("finish that order first"));
    }
}
