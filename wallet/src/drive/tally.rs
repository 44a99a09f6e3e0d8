//! What the answers to an order amount to: pure, so that every mixture of honest and lying answers can be
//! tested without a network.

use std::collections::BTreeMap;

use fastpay_core::{
    AuthorityName, Balance, Certificate, Committee, Digest, SequenceNumber, VerifiedCertificate, VerifiedOrder, Vote,
};

use super::DriveError;

/// Why an authority does not do now what it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No connection or no answer.
    #[error("{0}")]
    Silent(String),
    /// It has too little money on the account; deposits or payments have not arrived there.
    #[error("it knows of a balance of {0} only")]
    InsufficientBalance(Balance),
    /// It lacks earlier certificates, and nobody else has them.
    #[error("it waits for the certificate of sequence number {0}, which is not to be found: finish that order first")]
    Behind(SequenceNumber),
    /// It is locked on another order.
    #[error("it is locked on another order ({0})")]
    Locked(Digest),
    /// It has no Primary.
    #[error("it runs without a Primary")]
    NoPrimary,
    /// It says that the request is wrong.
    #[error("it refused: {0}")]
    Refused(String),
    /// It answered what no correct authority answers.
    #[error("it gave a wrong answer: {0}")]
    Misbehaved(String),
}

/// A verified answer, or the lack of one.
#[derive(Debug)]
pub(crate) enum Heard {
    /// A valid vote of this very authority.
    Vote(Vote),
    /// The number has a certificate already, of this order or another.
    Finished(Box<VerifiedCertificate>),
    /// It is locked on another order that the sender did sign.
    Locked(Box<VerifiedOrder>),
    /// It will be asked again.
    Later(Trouble),
    /// It will not be asked again.
    Out(Trouble),
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Listen on.
    Wait,
    /// The order is final.
    Certified(Box<VerifiedCertificate>),
    /// Another order is final under this number.
    Superseded(Box<VerifiedCertificate>),
    /// No quorum can come any more.
    Impossible,
}

/// The answers to one order.
#[derive(Debug)]
pub(crate) struct Tally {
    committee: Committee,
    order: VerifiedOrder,
    votes: BTreeMap<AuthorityName, Vote>,
    locked: BTreeMap<AuthorityName, VerifiedOrder>,
    out: BTreeMap<AuthorityName, Trouble>,
    troubles: BTreeMap<AuthorityName, Trouble>,
}

impl Tally {
    pub(crate) fn new(committee: Committee, order: VerifiedOrder) -> Self {
        let (votes, locked) = (BTreeMap::new(), BTreeMap::new());
        Self { committee, order, votes, locked, out: BTreeMap::new(), troubles: BTreeMap::new() }
    }

    pub(crate) fn votes(&self) -> usize {
        self.votes.len()
    }

    pub(crate) fn hear(&mut self, authority: AuthorityName, heard: Heard) -> Verdict {
        match heard {
            Heard::Vote(vote) => {
                self.locked.remove(&authority);
                self.troubles.remove(&authority);
                self.votes.insert(authority, vote);
                let votes = self.votes.values().cloned().collect();
                if let Some(certificate) = Certificate::from_votes(&self.order, &self.committee, votes) {
                    return Verdict::Certified(Box::new(certificate));
                }
            }
            Heard::Finished(certificate) if certificate.digest() == self.order.digest() => {
                return Verdict::Certified(certificate);
            }
            Heard::Finished(certificate) => return Verdict::Superseded(certificate),
            Heard::Locked(other) => {
                self.troubles.insert(authority, Trouble::Locked(other.digest()));
                self.locked.insert(authority, *other);
            }
            Heard::Later(trouble) => {
                self.locked.remove(&authority);
                self.troubles.insert(authority, trouble);
            }
            Heard::Out(trouble) => {
                self.troubles.insert(authority, trouble.clone());
                self.out.insert(authority, trouble);
            }
        }
        if self.reachable() < self.committee.quorum() { Verdict::Impossible } else { Verdict::Wait }
    }

    /// How many votes there can still be: a locked authority gives none before the other order is finished,
    /// and then this one is superseded.
    fn reachable(&self) -> usize {
        let members = self.committee.members().iter().map(|member| member.name);
        members.filter(|name| !self.locked.contains_key(name) && !self.out.contains_key(name)).count()
    }

    /// Why there is no certificate.
    pub(crate) fn failure(&self, timed_out: bool) -> DriveError {
        let (size, quorum) = (self.committee.members().len(), self.committee.quorum());
        let blocking = size.saturating_sub(quorum);
        // f + 1 reports contain an honest one.
        let trusted = self.committee.faults_tolerated().saturating_add(1);
        if let Some(other) = self.locked.values().next()
            && (self.locked.len() > blocking || timed_out)
        {
            return DriveError::Conflict { other: Box::new(other.order().clone()), locked: self.locked.len(), size };
        }
        if self.troubles.values().filter(|trouble| **trouble == Trouble::NoPrimary).count() >= trusted {
            return DriveError::NoPrimary;
        }
        let mut balances: Vec<_> = self.troubles.values().filter_map(balance_of).collect();
        balances.sort_unstable();
        if let Some(balance) = balances.iter().nth_back(self.committee.faults_tolerated())
            && balances.len() > blocking
        {
            return DriveError::InsufficientBalance { balance: *balance };
        }
        let troubles = self.troubles.iter().map(|(name, trouble)| (*name, trouble.clone())).collect();
        DriveError::NoQuorum { what: "votes", heard: self.votes.len(), quorum, timed_out, troubles }
    }
}

fn balance_of(trouble: &Trouble) -> Option<Balance> {
    match trouble {
        Trouble::InsufficientBalance(balance) => Some(*balance),
        _ => None,
    }
}
