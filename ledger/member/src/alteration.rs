//! Each way to alter what a cluster has certified: a lying member goes through them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fastpay_core::{Digest, Ed25519Signature};
use fastpay_ledger_statement::{
    Answers, CompactDecision, Header, MemberIndex, MemberKeys, Outcome, QuorumCertificate, Receiver, VoteKind,
    VoteStatement, Wire,
};

/// A way to alter a group or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alteration {
    /// Groups: the last message is missing. Answers: the result is another one.
    LeftOut,
    Repeated,
    Altered,
    OtherTree,
    OtherHeight,
    OtherRound,
    OtherReceiver,
    OtherDeployment,
    TooFewVoters,
    RepeatedVoter,
    UnknownVoter,
    ForgedVote,
    /// The liar's vote is a prevote that it did sign.
    Prevote,
    /// The liar's vote is a precommit that it did sign, for another header.
    OtherVote,
    ForeignCertificate,
    /// What it handed over first.
    Replay,
}

impl Alteration {
    pub(crate) const ALL: [Self; 16] = [
        Self::LeftOut,
        Self::Repeated,
        Self::Altered,
        Self::OtherTree,
        Self::OtherHeight,
        Self::OtherRound,
        Self::OtherReceiver,
        Self::OtherDeployment,
        Self::TooFewVoters,
        Self::RepeatedVoter,
        Self::UnknownVoter,
        Self::ForgedVote,
        Self::Prevote,
        Self::OtherVote,
        Self::ForeignCertificate,
        Self::Replay,
    ];

    /// One after the other.
    pub(crate) fn next() -> Self {
        static TURN: AtomicUsize = AtomicUsize::new(0);
        let turn = TURN.fetch_add(1, Ordering::Relaxed) % Self::ALL.len();
        let alteration = Self::ALL.get(turn).copied().unwrap_or(Self::Altered);
        tracing::warn!("the lie of this turn: {alteration:?}");
        alteration
    }

    pub(crate) fn of_groups(self, keys: &MemberKeys, mut groups: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        static FIRST: Mutex<Option<CompactDecision>> = Mutex::new(None);
        let Some(encoded) = groups.first_mut() else { return groups };
        let mut decision = CompactDecision::decode(encoded).expect("the store has what it was given");
        let mut first = FIRST.lock().expect("nothing panics under this lock");
        let before = first.get_or_insert_with(|| decision.clone());
        let CompactDecision { header, group, path, certificate } = &mut decision;
        match self {
            Self::LeftOut => drop(group.messages.pop()),
            Self::Repeated => group.messages.extend_from_within(..1.min(group.messages.len())),
            Self::Altered => group.messages.reverse(),
            Self::OtherReceiver => group.to = Receiver::Clients,
            Self::OtherTree => path.siblings.push(Digest::ZERO),
            Self::ForeignCertificate => *certificate = before.certificate.clone(),
            Self::Replay => decision = before.clone(),
            _ => self.of_certified(keys, header, certificate),
        }
        if self == Self::Altered {
            decision.group.previous = Digest::repeat_byte(1);
        }
        *encoded = decision.encode();
        groups
    }

    pub(crate) fn of_answers(self, keys: &MemberKeys, mut answers: Answers) -> Answers {
        static FIRST: Mutex<Option<Answers>> = Mutex::new(None);
        let mut first = FIRST.lock().expect("nothing panics under this lock");
        let before = first.get_or_insert_with(|| answers.clone());
        let Answers { head, path, header, certificate, answers: list } = &mut answers;
        match self {
            Self::LeftOut | Self::Altered => list.iter_mut().for_each(|(answer, _)| {
                answer.result = Ok(Outcome::Transferred);
            }),
            Self::Repeated => head.count = head.count.saturating_add(1),
            Self::OtherReceiver => head.to = Receiver::Cluster(header.cluster),
            Self::OtherTree => path.siblings.push(Digest::ZERO),
            Self::ForeignCertificate => *certificate = before.certificate.clone(),
            Self::Replay => {
                let list = std::mem::take(list);
                answers = Answers { answers: list, ..before.without_answers() };
            }
            _ => self.of_certified(keys, header, certificate),
        }
        answers
    }

    fn of_certified(self, keys: &MemberKeys, header: &mut Header, certificate: &mut QuorumCertificate) {
        let QuorumCertificate { round, votes } = certificate;
        let own = |kind, value| {
            let Header { deployment, cluster, height, .. } = *header;
            keys.sign(VoteStatement { deployment, cluster, height, round: *round, kind, value }.digest())
        };
        let signature = match self {
            Self::Prevote => own(VoteKind::Prevote, Some(header.id())),
            Self::OtherVote => own(VoteKind::Precommit, Some(Digest::ZERO)),
            _ => Ed25519Signature([7; 64]),
        };
        match self {
            Self::OtherHeight => header.height.0 = header.height.0.saturating_add(1),
            Self::OtherDeployment => header.deployment.0 = Digest::ZERO,
            Self::OtherRound => *round = round.saturating_add(1),
            Self::TooFewVoters => drop(votes.pop()),
            Self::RepeatedVoter => votes.truncate(1),
            _ => {}
        }
        if self == Self::RepeatedVoter {
            votes.extend_from_within(..);
            votes.extend_from_within(..1);
        }
        // The liar is member 0, whose vote is the first one where the certificate has it.
        match (self, votes.as_mut_slice()) {
            (Self::UnknownVoter, [.., last]) => last.0 = MemberIndex(u8::MAX),
            (Self::ForgedVote | Self::Prevote | Self::OtherVote, [first, ..]) => first.1 = signature,
            _ => {}
        }
    }
}
