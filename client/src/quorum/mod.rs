//! Brings an order to its certificate, and a certificate to a quorum of confirmations.
//!
//! ```text
//!  VerifiedOrder ─► ask every authority ─► Tally (pure) ─► VerifiedCertificate ─► confirm everywhere ─► Settled
//!                     │  ▲ refused: bring it up to date (catch_up), wait, ask again       │ the rest goes on
//!                     └──┘                                                               in the background
//! ```
//! One task per authority sends requests; the tally decides. A quorum's answers suffice, so f authorities may be
//! silent, slow or lying. Every answer is verified before the client acts on it: votes, pending orders and
//! certificates by their signatures, a sequence number by the certificate before it.

mod ask;
mod attest;
mod batch;
mod catch_up;
mod confirm;
mod conflict;
mod judge;
mod tally;
mod unlock;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountId, AuthorityName, Balance, Certificate, Epoch, SequenceNumber, Transfer, VerifiedCertificate, VerifiedOrder,
};
use fastpay_telemetry::Tracer;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::network::{NAMES, Network};

pub use attest::{Unattested, attest};
pub use batch::Ballot;
pub use confirm::Settled;
pub use conflict::{ConflictingOrder, OrderConflict};
pub use judge::{Help, Helped, Inquiry, Step};
pub use tally::{PeerAnswer, PeerFailure, Room, Tally, Verdict};
pub use unlock::{UnlockBallot, UnlockDecision, Voidable};

/// Deadlines and delays.
#[derive(Clone, Copy, Debug)]
pub struct QuorumOptions {
    /// The time for a certificate, and again for its settlement.
    pub deadline: Duration,
    /// How long an authority may report an insufficient balance while deposits and payments are on their way to it.
    pub funds_patience: Duration,
    /// How long the authorities beyond a quorum are brought up to date in the background.
    pub background: Duration,
    /// The wait before the first repetition.
    pub backoff_min: Duration,
    /// The longest wait before a later repetition. Each wait is twice as long as the one before, up to this.
    pub backoff_max: Duration,
}

impl Default for QuorumOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            funds_patience: Duration::from_secs(10),
            background: Duration::from_secs(10),
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_secs(1),
        }
    }
}

/// Progress of a transfer, to be shown to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A valid vote was received.
    Vote {
        /// The authority that voted.
        authority: AuthorityName,
        /// How many there are now.
        votes: usize,
        /// The number needed.
        quorum: usize,
    },
    /// The certificate exists.
    Certified,
    /// An authority has confirmed the certificate.
    Confirmed {
        /// The authority that confirmed.
        authority: AuthorityName,
        /// How many there are now.
        confirmations: usize,
        /// The number needed.
        quorum: usize,
    },
    /// An authority lacks an earlier certificate and gets it.
    CatchingUp {
        /// The authority that was brought up to date.
        authority: AuthorityName,
        /// The account whose certificates it was missing.
        account: AccountId,
        /// Its number.
        sequence: SequenceNumber,
    },
    /// An authority is asked again later.
    Waiting {
        /// The authority.
        authority: AuthorityName,
        /// Why.
        failure: PeerFailure,
    },
    /// Another copy of this wallet signed this order and did not finish it; this one finishes it now.
    Adopted(Transfer),
    /// The epoch of this transfer's certificate has ended, and the certificate does not count any more; the same order is
    /// certified again now.
    Renewed(Transfer),
}

/// Receives progress.
pub type Listener = Arc<dyn Fn(&Progress) + Send + Sync>;

/// A store of certificates that is read before authorities are asked. The certificates that it returns are verified.
pub trait CertificateSource: Send + Sync {
    /// The certificate that `account` sent under `sequence`, if it is here.
    fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<Certificate>;
}

/// An empty source.
#[derive(Clone, Copy, Debug)]
pub struct NoCertificates;

impl CertificateSource for NoCertificates {
    fn certificate(&self, _: AccountId, _: SequenceNumber) -> Option<Certificate> {
        None
    }
}

/// Why an order has no certificate, or a certificate no quorum of confirmations, yet.
#[derive(Clone, Debug, thiserror::Error)]
pub enum QuorumError {
    /// Authorities are locked on different orders of the same account and number.
    #[error("{0}")]
    Conflict(Box<OrderConflict>),
    /// Another order of the number is certified.
    #[error(
        "sequence number {} of account {} was used for another transfer, by another copy of this wallet; this one \
         was not executed and never will be. Check `fastpay history`, then order it again",
        .certificate.transfer().sequence(), .certificate.transfer().sender()
    )]
    Superseded {
        /// The certificate of the other order.
        certificate: Box<VerifiedCertificate>,
    },
    /// The account's balance is too low.
    #[error(
        "the account's balance does not cover this: an authority reports {balance} of the asset's smallest unit. \
         The order keeps its number; add funds and run `fastpay resume`"
    )]
    InsufficientBalance {
        /// The highest balance that f + 1 authorities report or exceed.
        balance: Balance,
    },
    /// More than f authorities report alike that they have no room for a new order.
    #[error(
        "{whose}, as more than f authorities say; nothing is lost, and the order keeps its number: run `fastpay resume` \
         in {} min", .retry_after.as_secs().div_ceil(60).max(1)
    )]
    NoRoom {
        /// The account or address whose share is full.
        whose: Room,
        /// A wait that f + 1 authorities ask for or exceed.
        retry_after: Duration,
    },
    /// The committee has no Primary, so nothing can be redeemed.
    #[error("this committee runs without a Primary: nothing can be redeemed")]
    NoPrimary,
    /// The committee has changed, and the votes of f + 1 authorities are for a newer epoch than is known here.
    #[error(
        "the authorities vote in epoch {epoch} and this wallet knows of epoch {known}: the Primary does not show \
         the new committee in a final block yet. Nothing is lost: run `fastpay resume` to go on"
    )]
    NewEpoch {
        /// The authorities' epoch.
        epoch: Epoch,
        /// The newest epoch known here.
        known: Epoch,
    },
    /// A recovery has ended the epoch of the certificate, as at least one honest authority says: it counts for nothing.
    /// Its order may be certified anew, unless its number was taken.
    #[error(
        "a recovery has replaced the committee that certified this in epoch {0}, and the certificate counts for nothing \
         any more; the order can be certified again: run `fastpay resume`"
    )]
    EpochEnded(Epoch),
    /// The epoch of the certificate has ended, and too few authorities know the certificate or have executed its order. The
    /// order may be certified anew, unless another one, or an archive, has its number.
    #[error(
        "this was certified in epoch {0}, which has ended, and too few authorities say that they executed it; it can be \
         certified again, unless its number was taken: run `fastpay resume`"
    )]
    Outdated(Epoch),
    /// The number of a certificate of an earlier epoch was used long ago, as at least one honest authority says, and all
    /// have pruned for what.
    #[error(
        "authorities have pruned what was executed under sequence number {} of account {}, and no archive answers: this \
         order may have been paid. Do not order it again. Use an endpoints file that lists an authority with an archive, \
         and run `fastpay resume`",
        .certificate.transfer().sequence(), .certificate.transfer().sender()
    )]
    Pruned {
        /// The certificate: of the order that was executed, or of one that retired keys may have certified.
        certificate: Box<VerifiedCertificate>,
    },
    /// The contract voided the number of the certificate, as at least one honest authority says: its order never happens.
    #[error(
        "the contract voided sequence number {} of account {}, as more than f authorities say: this was not executed and \
         never will be. Run `fastpay resume` with an Ethereum node that answers to note it",
        .certificate.transfer().sequence(), .certificate.transfer().sender()
    )]
    Voided {
        /// The certificate, which an attacker may have kept hidden.
        certificate: Box<VerifiedCertificate>,
    },
    /// Too few good answers.
    #[error("{count} of the {quorum} {what} that are needed came {}; nothing is lost: run `fastpay resume` to go on. {}",
        if *.timed_out { "in time" } else { "and no more can come" }, list(.failures))]
    NoQuorum {
        /// The kind of answer.
        what: &'static str,
        /// How many came.
        count: usize,
        /// The number needed.
        quorum: usize,
        /// Whether waiting longer might have helped.
        timed_out: bool,
        /// The failure of each authority.
        failures: Vec<(AuthorityName, PeerFailure)>,
    },
}

fn list(failures: &[(AuthorityName, PeerFailure)]) -> String {
    let lines = failures.iter().map(|(name, failure)| format!("{}: {failure}", short(name)));
    lines.collect::<Vec<_>>().join("; ")
}

/// An authority's name, shortened for people.
#[must_use]
pub fn short(name: &AuthorityName) -> String {
    name.to_string().chars().take(10).collect()
}

/// A client of the whole committee. Cheap to clone.
#[derive(Clone)]
pub struct CommitteeClient {
    network: Network,
    source: Arc<dyn CertificateSource>,
    options: QuorumOptions,
    listener: Option<Listener>,
    tracer: Tracer,
}

impl fmt::Debug for CommitteeClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommitteeClient").field("network", &self.network).finish_non_exhaustive()
    }
}

impl CommitteeClient {
    /// A client that reads certificates from `source` before it asks authorities.
    #[must_use]
    pub fn new(network: Network, source: Arc<dyn CertificateSource>, options: QuorumOptions) -> Self {
        Self { network, source, options, listener: None, tracer: Tracer::off() }
    }

    /// The same client, with progress reported to `listener`.
    #[must_use]
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// The same client, with a span of `tracer` for each request to an authority.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.tracer = tracer;
        self
    }

    /// The tracer.
    #[must_use]
    pub fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// The network of authorities.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The deadlines and delays.
    #[must_use]
    pub fn options(&self) -> &QuorumOptions {
        &self.options
    }

    /// Reports progress to the listener.
    pub fn report(&self, progress: Progress) {
        tracing::debug!(?progress);
        if let Some(listener) = &self.listener {
            listener(&progress);
        }
    }

    /// Collects votes until there is a certificate. The order must be on disk before this is called.
    ///
    /// # Errors
    /// See [`QuorumError`]. The same order may always be sent again.
    pub async fn certify(&self, order: &VerifiedOrder) -> Result<VerifiedCertificate, QuorumError> {
        let deadline = Instant::now() + self.options.deadline;
        if self.network.check_reach().is_err() {
            self.network.learn_names(deadline.min(Instant::now() + NAMES)).await;
        }
        // One epoch's committee throughout: votes of two epochs do not add up.
        let committee = self.network.committee();
        let mut tally = Tally::new(committee.clone(), order.clone());
        let inquiry = Inquiry { domain: *self.network.domain(), committee: committee.clone(), order: order.clone() };
        let (answers, mut answered) = mpsc::channel(64);
        let mut asking = JoinSet::new();
        for authority in self.network.authorities().iter() {
            asking.spawn(self.clone().ask(authority.clone(), inquiry.clone(), answers.clone()));
        }
        drop(answers);
        loop {
            let Ok(Some((authority, answer))) = timeout_at(deadline, answered.recv()).await else {
                return Err(tally.error(true));
            };
            let authority = self.network.present_name(authority);
            self.report_answer(&tally, authority, &answer);
            match tally.count(authority, answer) {
                Verdict::Wait => {}
                Verdict::Certified(certificate) => {
                    self.report(Progress::Certified);
                    return Ok(*certificate);
                }
                Verdict::Superseded(certificate) => return Err(QuorumError::Superseded { certificate }),
                Verdict::NewEpoch(epoch) => {
                    let known = committee.epoch();
                    return Err(QuorumError::NewEpoch { epoch, known });
                }
                Verdict::Impossible => return Err(tally.error(false)),
            }
        }
    }

    fn report_answer(&self, tally: &Tally, authority: AuthorityName, answer: &PeerAnswer) {
        match answer {
            PeerAnswer::Vote(_) => {
                let (votes, quorum) = (tally.votes().saturating_add(1), self.network.committee().quorum());
                self.report(Progress::Vote { authority, votes, quorum });
            }
            PeerAnswer::Later(failure) | PeerAnswer::Out(failure) => {
                self.report(Progress::Waiting { authority, failure: failure.clone() });
            }
            PeerAnswer::Ahead(epoch) => {
                self.network.hint(*epoch);
                self.report(Progress::Waiting { authority, failure: PeerFailure::OtherEpoch(*epoch) });
            }
            PeerAnswer::Finished(_) | PeerAnswer::Locked(_) => {}
        }
    }
}

/// Waits between repetitions: twice as long each time, and jittered, so that clients do not repeat at the same moment.
pub struct Backoff {
    next: Duration,
    options: QuorumOptions,
}

impl Backoff {
    /// A retry schedule by the options.
    #[must_use]
    pub fn new(options: QuorumOptions) -> Self {
        Self { next: options.backoff_min, options }
    }

    fn reset(&mut self) {
        self.next = self.options.backoff_min;
    }

    /// Makes the next wait as long as an authority asks for, within our own bound.
    fn wait_at_least(&mut self, asked: Duration) {
        self.next = self.next.max(asked).min(self.options.backoff_max);
    }

    /// Waits, and doubles the next wait.
    pub async fn wait(&mut self) {
        // `fastrand` is global, so that a simulation can seed it.
        let jitter = 0.5 + fastrand::f64() / 2.0;
        tokio::time::sleep(self.next.mul_f64(jitter)).await;
        self.next = self.next.saturating_mul(2).min(self.options.backoff_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_that_is_busy_is_given_the_time_that_it_asks_for_within_our_bound() {
        let options = QuorumOptions::default();
        let mut backoff = Backoff::new(options);
        backoff.wait_at_least(Duration::ZERO);
        assert_eq!(backoff.next, options.backoff_min);
        backoff.wait_at_least(options.backoff_min * 3);
        assert_eq!(backoff.next, options.backoff_min * 3);
        backoff.wait_at_least(Duration::from_secs(u64::MAX));
        assert_eq!(backoff.next, options.backoff_max);
    }
}
