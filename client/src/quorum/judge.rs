//! Interprets one answer to an order and decides the next step: pure, so that every lie can be tested without a
//! network.
//!
//! ```text
//!  answer ─► Inquiry::judge ─┬─► Step::Count     into the tally; asked again, or not
//!                            └─► Step::Help      bring it certificates, or find one; then `helped` says what to count
//! ```

use std::sync::Arc;

use fastpay_core::{
    AuthorityName, Committee, Domain, Epoch, SequenceNumber, TransferOrder, VerifiedCertificate, VerifiedOrder, Vote,
};
use fastpay_rpc::Refusal;

use super::catch_up::failure_of;
use super::tally::{PeerAnswer, PeerFailure, Room, may_vote_for};
use crate::ClientError;

/// An order that authorities of one committee are asked to vote for.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// The deployment's domain.
    pub domain: Domain,
    /// The committee of one epoch: votes of two epochs do not add up.
    pub committee: Arc<Committee>,
    /// The order to vote for.
    pub order: VerifiedOrder,
}

/// The next step after an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Count the answer. The authority is asked again unless this answer is its `last`.
    Count {
        /// The answer to count.
        answer: PeerAnswer,
        /// Whether the authority is not asked again.
        last: bool,
    },
    /// Help first, and count the answer after that.
    Help(Help),
}

/// Help that an authority needs before it can vote, or a fact to establish before its answer counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// It lacks the sender's certificates from this number up to the order's number.
    Sent(SequenceNumber),
    /// It reports an insufficient balance: it may lack payments that the sender received. Count this failure if it lacks
    /// none.
    Received(PeerFailure),
    /// It claims that the order's number is used, which is true if anyone has the certificate.
    Certificate,
}

/// The outcome of help.
#[derive(Debug)]
pub enum Helped {
    /// Certificates were submitted to it: the number of received payments, or 1 after [`Help::Sent`].
    Brought(usize),
    /// The certificates could not be submitted.
    Failed(PeerFailure),
    /// The certificate of the order's number, if anyone has it.
    Found(Option<Box<VerifiedCertificate>>),
}

impl Step {
    fn last(answer: PeerAnswer) -> Self {
        Self::Count { answer, last: true }
    }

    fn later(failure: PeerFailure) -> Self {
        Self::Count { answer: PeerAnswer::Later(failure), last: false }
    }

    fn misbehaved(what: impl Into<String>) -> Self {
        Self::last(PeerAnswer::Out(PeerFailure::Misbehaved(what.into())))
    }
}

impl Inquiry {
    /// The next step after an answer of `authority`. `is_patient` while funds may still be on their way to it.
    #[must_use]
    pub fn judge(
        &self,
        authority: AuthorityName,
        answer: Result<(Epoch, Vote), ClientError>,
        is_patient: bool,
    ) -> Step {
        let refusal = match answer {
            Ok((epoch, vote)) if epoch == self.committee.epoch() => return self.judge_vote(authority, vote),
            Ok((epoch, _)) => return self.other_epoch(epoch),
            Err(ClientError::Refused(refusal)) => refusal,
            Err(error @ ClientError::Address { .. }) => {
                return Step::last(PeerAnswer::Out(PeerFailure::Silent(error.to_string())));
            }
            Err(error) => return Step::later(failure_of(error)),
        };
        match refusal {
            Refusal::NotVoting(epoch) if epoch != self.committee.epoch() => self.other_epoch(epoch),
            Refusal::OrderPending(pending) => self.judge_pending(*pending),
            Refusal::SequenceTooHigh(expected) | Refusal::MissingCertificate(expected) => self.judge_gap(expected),
            Refusal::AlreadyConfirmed(_) => Step::Help(Help::Certificate),
            Refusal::InsufficientBalance(balance) => {
                let failure = PeerFailure::InsufficientBalance(balance);
                if is_patient { Step::Help(Help::Received(failure)) } else { Step::last(PeerAnswer::Out(failure)) }
            }
            Refusal::NoPrimary => Step::last(PeerAnswer::Out(PeerFailure::NoPrimary)),
            Refusal::DiskLow(retry_after) => Step::later(PeerFailure::NoRoom { whose: Room::Disk, retry_after }),
            Refusal::AccountBudget(retry_after) => {
                Step::later(PeerFailure::NoRoom { whose: Room::Account, retry_after })
            }
            Refusal::AddressBudget(retry_after) => {
                Step::later(PeerFailure::NoRoom { whose: Room::Address, retry_after })
            }
            Refusal::Busy(_) | Refusal::Stopping | Refusal::UnknownEpoch(_) | Refusal::PrimaryTooOld => {
                Step::later(PeerFailure::Silent(refusal.to_string()))
            }
            Refusal::CatchingUp(None) => Step::later(PeerFailure::Restored),
            Refusal::Malformed(_)
            | Refusal::Invalid(_)
            | Refusal::WrongShard(_)
            | Refusal::NotVoting(_)
            | Refusal::Frozen(_)
            | Refusal::Overruled(_)
            | Refusal::Voided(_)
            | Refusal::EpochEnded(_)
            | Refusal::Unattested(_)
            | Refusal::NotRequested(_)
            | Refusal::WindowOpen(_)
            | Refusal::CatchingUp(Some(_)) => Step::last(PeerAnswer::Out(PeerFailure::Refused(refusal.to_string()))),
        }
    }

    /// The answer to count after help; `None` if the authority is to be asked again at once.
    #[must_use]
    pub fn helped(&self, help: Help, came: Helped) -> Option<Step> {
        match (help, came) {
            (_, Helped::Found(Some(certificate))) => Some(Step::last(PeerAnswer::Finished(certificate))),
            (_, Helped::Found(None)) => {
                let what = "it claims that the number is used, but nobody has its certificate";
                Some(Step::later(PeerFailure::Misbehaved(what.into())))
            }
            (Help::Received(failure), Helped::Brought(0) | Helped::Failed(_)) => Some(Step::later(failure)),
            (_, Helped::Failed(failure)) => Some(Step::later(failure)),
            (_, Helped::Brought(_)) => None,
        }
    }

    /// It votes in another epoch than the current one. An authority that lags will vote in the current one later.
    fn other_epoch(&self, epoch: Epoch) -> Step {
        if epoch > self.committee.epoch() {
            Step::Count { answer: PeerAnswer::Ahead(epoch), last: false }
        } else {
            Step::later(PeerFailure::OtherEpoch(epoch))
        }
    }

    fn judge_vote(&self, authority: AuthorityName, vote: Vote) -> Step {
        match vote.verify(&self.domain, &self.committee, &self.order) {
            Ok(vote) if may_vote_for(&self.committee, authority, vote.vote().authority) => {
                Step::last(PeerAnswer::Vote(vote))
            }
            Ok(_) => Step::misbehaved("the vote of another authority"),
            Err(error) => Step::misbehaved(error.to_string()),
        }
    }

    /// It is locked on an order: if that is an earlier one, it lags; if another of this number, the sender signed two.
    fn judge_pending(&self, pending: TransferOrder) -> Step {
        let transfer = self.order.transfer();
        let pending = match pending.verify(&self.domain) {
            Ok(pending) if pending.transfer().sender() == transfer.sender() => pending,
            Ok(_) => return Step::misbehaved("a pending order of another account"),
            Err(error) => return Step::misbehaved(format!("an invalid pending order: {error}")),
        };
        let sequence = pending.transfer().sequence();
        if sequence < transfer.sequence() {
            self.judge_gap(sequence)
        } else if sequence > transfer.sequence() {
            Step::Help(Help::Certificate)
        } else if pending.digest() == self.order.digest() {
            Step::misbehaved("a refusal because of the same order")
        } else {
            Step::Count { answer: PeerAnswer::Locked(Box::new(pending)), last: false }
        }
    }

    fn judge_gap(&self, expected: SequenceNumber) -> Step {
        if expected >= self.order.transfer().sequence() {
            return Step::misbehaved("a gap where there is none");
        }
        Step::Help(Help::Sent(expected))
    }
}
