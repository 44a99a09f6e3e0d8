//! The conversation with one authority about one order: ask for its vote, do what its refusal calls for,
//! and ask again, until the tally has decided.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{AuthorityClient, ClientError};
use fastpay_core::{AccountId, AuthorityName, Committee, Epoch, SequenceNumber, TransferOrder, VerifiedOrder, Vote};
use fastpay_rpc::Refusal;
use fastpay_telemetry::{Attribute, OpenSpan, Side};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::tally::{PeerAnswer, PeerFailure};
use super::{Backoff, CommitteeClient};

/// What to do after a refusal.
enum Next {
    /// Say so; the conversation is over.
    Finish(PeerAnswer),
    /// Say so and ask again later.
    Later(PeerAnswer),
    /// The authority was brought up to date: ask again at once.
    Again,
}

/// It votes, in another epoch than ours: later in ours, where it lags.
fn other_epoch(epoch: Epoch, committee: &Committee) -> PeerAnswer {
    if epoch > committee.epoch() { PeerAnswer::Ahead(epoch) } else { PeerAnswer::Later(PeerFailure::OtherEpoch(epoch)) }
}

fn conclude(span: &mut OpenSpan, answer: &PeerAnswer) {
    span.add(Attribute::Outcome(answer.kind()));
    if let PeerAnswer::Out(failure) = answer {
        span.fail(failure.kind());
    }
}

/// What was done about an authority that says that the money is not there.
struct Poverty {
    since: Instant,
    /// What was brought to it, or what it has: not to be brought again, should it lie.
    known: HashSet<(AccountId, SequenceNumber)>,
}

impl CommitteeClient {
    /// Ends when the tally no longer listens, or nothing more can come from this authority.
    pub(super) async fn ask(
        self,
        authority: AuthorityClient,
        committee: Arc<Committee>,
        order: VerifiedOrder,
        heard: mpsc::Sender<(AuthorityName, PeerAnswer)>,
    ) {
        let name = authority.name();
        let sender = order.transfer().sender();
        let mut backoff = Backoff::new(self.options);
        let mut poverty = None;
        // Over with this conversation, also where that is cut off because a quorum has answered.
        let mut span = self.tracer.open(&order.digest(), "fastpay.vote", Side::Client);
        span.add(Attribute::Authority(name));
        loop {
            let next = match authority.shard_of(&sender).order(order.order()).await {
                Ok((epoch, vote)) if epoch == committee.epoch() => {
                    Next::Finish(self.check_vote(name, &committee, &order, vote))
                }
                Ok((epoch, _)) => Next::Later(other_epoch(epoch, &committee)),
                Err(ClientError::Refused(Refusal::NotVoting(epoch))) if epoch != committee.epoch() => {
                    Next::Later(other_epoch(epoch, &committee))
                }
                Err(error) => {
                    backoff.wait_at_least(error.retry_after());
                    self.after_refusal(&authority, &order, error, &mut poverty).await
                }
            };
            match next {
                Next::Finish(answer) => {
                    conclude(&mut span, &answer);
                    let _ = heard.send((name, answer)).await;
                    return;
                }
                Next::Later(answer) => {
                    span.event(answer.kind());
                    if heard.send((name, answer)).await.is_err() {
                        return;
                    }
                }
                Next::Again => backoff.reset(),
            }
            // Also after progress: an authority that lies about it must not make this loop spin.
            backoff.wait().await;
        }
    }

    fn check_vote(&self, name: AuthorityName, committee: &Committee, order: &VerifiedOrder, vote: Vote) -> PeerAnswer {
        // An endpoint that is not known by its new name yet has only its signature to show, and that is enough.
        let may_be = |voter| voter == name || committee.member(&name).is_none();
        match vote.verify(self.network.domain(), committee, order) {
            Ok(vote) if may_be(vote.vote().authority) => PeerAnswer::Vote(vote),
            Ok(_) => self.misbehaved(name, "the vote of another authority"),
            Err(error) => self.misbehaved(name, &error.to_string()),
        }
    }

    fn misbehaved(&self, name: AuthorityName, what: &str) -> PeerAnswer {
        tracing::warn!(authority = %name, what, "an authority gave a wrong answer; it is ignored");
        PeerAnswer::Out(PeerFailure::Misbehaved(what.to_owned()))
    }

    async fn after_refusal(
        &self,
        authority: &AuthorityClient,
        order: &VerifiedOrder,
        error: ClientError,
        poverty: &mut Option<Poverty>,
    ) -> Next {
        let refusal = match error {
            ClientError::Refused(refusal) => refusal,
            ClientError::Address { .. } => {
                return Next::Finish(PeerAnswer::Out(PeerFailure::Silent(error.to_string())));
            }
            ClientError::Malformed(what) => return Next::Later(PeerAnswer::Later(PeerFailure::Misbehaved(what))),
            ClientError::Unreachable(_)
            | ClientError::TimedOut(_)
            | ClientError::NotFound
            | ClientError::Unreadable(_) => {
                return Next::Later(PeerAnswer::Later(PeerFailure::Silent(error.to_string())));
            }
        };
        match refusal {
            Refusal::OrderPending(pending) => self.after_pending(authority, order, *pending).await,
            Refusal::SequenceTooHigh(expected) | Refusal::MissingCertificate(expected) => {
                self.after_gap(authority, order, expected).await
            }
            Refusal::AlreadyConfirmed(_) => self.after_confirmed(authority, order).await,
            Refusal::InsufficientBalance(balance) => {
                let poverty = poverty.get_or_insert_with(|| Poverty { since: Instant::now(), known: HashSet::new() });
                let failure = PeerFailure::InsufficientBalance(balance);
                if poverty.since.elapsed() >= self.options.funds_patience {
                    return Next::Finish(PeerAnswer::Out(failure));
                }
                match self.push_received(authority, order.transfer().sender(), &mut poverty.known).await {
                    Ok(0) | Err(_) => Next::Later(PeerAnswer::Later(failure)),
                    Ok(_) => Next::Again,
                }
            }
            Refusal::NoPrimary => Next::Finish(PeerAnswer::Out(PeerFailure::NoPrimary)),
            Refusal::Busy(_)
            | Refusal::Stopping
            | Refusal::UnknownEpoch(_)
            | Refusal::CatchingUp(None)
            | Refusal::DiskLow(_)
            | Refusal::AccountBudget(_)
            | Refusal::AddressBudget(_) => Next::Later(PeerAnswer::Later(PeerFailure::Silent(refusal.to_string()))),
            Refusal::Malformed(_)
            | Refusal::Invalid(_)
            | Refusal::WrongShard(_)
            | Refusal::NotVoting(_)
            | Refusal::CatchingUp(Some(_)) => Next::Finish(PeerAnswer::Out(PeerFailure::Refused(refusal.to_string()))),
        }
    }

    /// It is locked. On an earlier order: then it lags. On another order of this number: then the sender
    /// has signed two.
    async fn after_pending(&self, authority: &AuthorityClient, order: &VerifiedOrder, pending: TransferOrder) -> Next {
        let name = authority.name();
        let transfer = order.transfer();
        let pending = match pending.verify(self.network.domain()) {
            Ok(pending) if pending.transfer().sender() == transfer.sender() => pending,
            Ok(_) => return Next::Finish(self.misbehaved(name, "a pending order of another account")),
            Err(error) => {
                return Next::Finish(self.misbehaved(name, &format!("a pending order that is not one: {error}")));
            }
        };
        let sequence = pending.transfer().sequence();
        if sequence < transfer.sequence() {
            self.after_gap(authority, order, sequence).await
        } else if sequence > transfer.sequence() {
            self.after_confirmed(authority, order).await
        } else if pending.digest() == order.digest() {
            Next::Finish(self.misbehaved(name, "a refusal because of this very order"))
        } else {
            Next::Later(PeerAnswer::Locked(Box::new(pending)))
        }
    }

    async fn after_gap(&self, authority: &AuthorityClient, order: &VerifiedOrder, expected: SequenceNumber) -> Next {
        let transfer = order.transfer();
        if expected >= transfer.sequence() {
            return Next::Finish(self.misbehaved(authority.name(), "a gap where there is none"));
        }
        match self.push_sent(authority, transfer.sender(), expected, transfer.sequence()).await {
            Ok(()) => Next::Again,
            Err(failure) => Next::Later(PeerAnswer::Later(failure)),
        }
    }

    /// It claims that the number is used; a certificate of it proves that.
    async fn after_confirmed(&self, authority: &AuthorityClient, order: &VerifiedOrder) -> Next {
        let transfer = order.transfer();
        match self.network.find_certificate(transfer.sender(), transfer.sequence()).await {
            Some(certificate) => Next::Finish(PeerAnswer::Finished(Box::new(certificate))),
            None => {
                let what = "the number is said to be used, but nobody has its certificate";
                tracing::warn!(authority = %authority.name(), what, "an authority cannot prove what it says");
                Next::Later(PeerAnswer::Later(PeerFailure::Misbehaved(what.to_owned())))
            }
        }
    }
}
