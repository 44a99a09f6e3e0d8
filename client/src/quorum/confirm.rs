//! Settles a certificate, which means that a quorum of one committee confirms it in that committee's epoch. The other
//! authorities are brought up to date in the background, for a bounded time. A number that a quorum has confirmed in
//! one epoch is never voided; confirmations of two epochs do not add up (docs/PROTOCOL.md, K13).
//!
//! An authority confirms every certificate of a number that it has executed. All certificates of a number in the
//! current epoch are for one order. The keys of an earlier committee may be stolen, so f + 1 members must also vote
//! that they executed exactly the order of its certificate (`attest`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use crate::AuthorityClient;
use crate::network::NAMES;
use fastpay_core::{AuthorityName, Committee, Epoch, VerifiedCertificate};
use fastpay_telemetry::{Attribute, Side};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::attest::{Unattested, attest};
use super::tally::{PeerFailure, newer_epoch};
use super::{Backoff, CommitteeClient, Progress, QuorumError};

/// A certificate that a quorum of one committee has confirmed in its epoch.
#[derive(Debug)]
pub struct Settled {
    /// The authorities that have confirmed it so far.
    pub confirmed: Vec<AuthorityName>,
    /// Confirms it at the other authorities, and returns how many have confirmed in all. It continues if dropped; a
    /// program that ends may wait for it.
    pub rest: JoinHandle<usize>,
}

/// The newest failure with each authority.
type Failures = Arc<Mutex<BTreeMap<AuthorityName, PeerFailure>>>;

type Confirming = JoinSet<(AuthorityName, Outcome)>;

/// The outcome of asking one authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Confirmed,
    /// It has confirmed, in a newer epoch than is known here.
    Ahead(Epoch),
    /// It refuses the certificate because its epoch has ended, and too few authorities know it.
    Unattested,
    /// It refuses the certificate because a recovery has ended the certificate's epoch: those from this one on count.
    Ended(Epoch),
    /// It refuses the certificate because the contract voided its number.
    Voided,
    Refused,
}

/// The members that say one thing, and the endpoints that say it and may be members under new names.
#[derive(Debug, Default)]
struct Voices {
    members: BTreeSet<AuthorityName>,
    unnamed: BTreeSet<AuthorityName>,
    /// Endpoints were asked for their names.
    is_named: bool,
}

fn no_quorum(what: &'static str, count: usize, quorum: usize, timed_out: bool, failures: &Failures) -> QuorumError {
    let failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
    let failures = failures.iter().map(|(name, failure)| (*name, failure.clone())).collect();
    QuorumError::NoQuorum { what, count, quorum, timed_out, failures }
}

/// Whether `refusals` of members prove that a transfer is not settled, even if f of them lie: fewer than a quorum can
/// have confirmed it.
fn is_unsettled(committee: &Committee, refusals: usize) -> bool {
    let others = committee.members().len().saturating_sub(refusals);
    others.saturating_add(committee.faults_tolerated()) < committee.quorum()
}

impl QuorumError {
    /// Whether the error proves that the transfer is not settled in this committee's epoch.
    #[must_use]
    pub fn is_unsettled(&self, committee: &Committee) -> bool {
        let failures = match self {
            Self::EpochEnded(_) | Self::Voided { .. } => return true,
            Self::NoQuorum { failures, .. } => failures,
            _ => return false,
        };
        let refused = |(name, failure): &&(AuthorityName, PeerFailure)| {
            use PeerFailure::{EpochEnded, Refused, Unattested, Voided};
            let is_refusal = matches!(failure, Refused(_) | EpochEnded(_) | Unattested(_) | Voided);
            committee.member(name).is_some() && is_refusal
        };
        is_unsettled(committee, failures.iter().filter(refused).count())
    }
}

impl CommitteeClient {
    /// Sends a certificate to all authorities, until a quorum has confirmed it in the committee's epoch. If it is of an
    /// earlier epoch, f + 1 members must have executed exactly its order.
    ///
    /// # Errors
    /// [`QuorumError::NoQuorum`]: settle it again. [`QuorumError::NewEpoch`]: follow it, and settle again.
    /// [`QuorumError::EpochEnded`], [`QuorumError::Outdated`]: certify its order again. [`QuorumError::Voided`]: its order
    /// never happens.
    pub async fn settle(&self, certificate: &VerifiedCertificate) -> Result<Settled, QuorumError> {
        let committee = self.network.committee();
        let quorum = committee.quorum();
        let deadline = Instant::now() + self.options.deadline;
        let failures = Failures::default();
        let mut confirming = Confirming::new();
        for authority in self.network.authorities().iter() {
            let client = self.clone();
            let (authority, certificate) = (authority.clone(), certificate.clone());
            confirming.spawn(client.confirm_patiently(authority, certificate, committee.epoch(), failures.clone()));
        }
        let (mut confirmed, mut ended, mut voided) = (Voices::default(), Voices::default(), Voices::default());
        let (mut ahead, mut refused, mut unattested) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let (mut counting_since, trusted) = (Epoch(u64::MAX), committee.one_honest());
        let no_quorum = |confirmed: &Voices, timed_out| {
            no_quorum("confirmations", confirmed.members.len(), quorum, timed_out, &failures)
        };
        loop {
            let (name, outcome) = match timeout_at(deadline, confirming.join_next()).await {
                Ok(Some(Ok(outcome))) => outcome,
                Ok(Some(Err(_))) => continue,
                Ok(None) => return Err(no_quorum(&confirmed, false)),
                Err(_) => return Err(no_quorum(&confirmed, !confirming.is_empty())),
            };
            let name = self.network.present_name(name);
            let is_member = committee.member(&name).is_some();
            match outcome {
                Outcome::Confirmed => {
                    self.hear(&mut confirmed, name, quorum, &committee, deadline).await;
                    if is_member {
                        let confirmations = confirmed.members.len();
                        self.report(Progress::Confirmed { authority: name, confirmations, quorum });
                    }
                }
                Outcome::Ended(since) => {
                    counting_since = counting_since.min(since);
                    self.hear(&mut ended, name, trusted, &committee, deadline).await;
                    // One of them is honest, and an epoch that has ended never counts again.
                    if ended.members.len() >= trusted {
                        self.network.count_since(counting_since);
                        return Err(QuorumError::EpochEnded(certificate.certificate().epoch));
                    }
                }
                Outcome::Voided => {
                    self.hear(&mut voided, name, trusted, &committee, deadline).await;
                    // One of them is honest, and a void number stays void.
                    if voided.members.len() >= trusted {
                        return Err(QuorumError::Voided { certificate: Box::new(certificate.clone()) });
                    }
                }
                Outcome::Ahead(_) | Outcome::Refused | Outcome::Unattested if !is_member => {}
                Outcome::Ahead(epoch) => {
                    ahead.insert(name, epoch);
                    if let Some(epoch) = newer_epoch(&committee, ahead.values().copied()) {
                        return Err(QuorumError::NewEpoch { epoch, known: committee.epoch() });
                    }
                }
                Outcome::Refused | Outcome::Unattested => {
                    refused.insert(name);
                    unattested.extend((outcome == Outcome::Unattested).then_some(name));
                    // One of them is honest, and too few know the certificate.
                    if unattested.len() >= trusted {
                        self.network.outdate(certificate);
                        return Err(QuorumError::Outdated(certificate.certificate().epoch));
                    }
                }
            }
            let refusing: BTreeSet<_> = refused.iter().chain(&ended.members).chain(&voided.members).collect();
            if is_unsettled(&committee, refusing.len()) {
                return Err(no_quorum(&confirmed, false));
            }
            if confirmed.members.len() >= quorum {
                self.check_executed(certificate, &committee, deadline).await?;
                self.network.count_again(certificate);
                let until = Instant::now() + self.options.background;
                let confirmed: Vec<_> = confirmed.members.into_iter().collect();
                let rest = tokio::spawn(finish(confirming, confirmed.len(), until));
                return Ok(Settled { confirmed, rest });
            }
        }
    }

    /// Checks that f + 1 members executed the order of a certificate that a quorum has confirmed, if it is of an earlier
    /// epoch.
    async fn check_executed(
        &self,
        certificate: &VerifiedCertificate,
        committee: &Committee,
        deadline: Instant,
    ) -> Result<(), QuorumError> {
        let (of, digest) = (certificate.certificate(), certificate.digest());
        if of.epoch >= committee.epoch() {
            return Ok(());
        }
        let mut backoff = Backoff::new(self.options);
        loop {
            let authorities = self.network.authorities();
            match timeout_at(deadline, attest(authorities.iter(), self.network.domain(), committee, of, digest)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(Unattested::Unknown)) => {
                    self.network.outdate(certificate);
                    return Err(QuorumError::Outdated(of.epoch));
                }
                Ok(Err(Unattested::Pruned)) => {
                    return Err(QuorumError::Pruned { certificate: Box::new(certificate.clone()) });
                }
                Ok(Err(Unattested::NewEpoch(epoch))) => {
                    return Err(QuorumError::NewEpoch { epoch, known: committee.epoch() });
                }
                // Silence says nothing.
                Ok(Err(Unattested::Late)) => backoff.wait().await,
                Err(_) => {
                    return Err(no_quorum(
                        "votes for the executed order",
                        0,
                        committee.one_honest(),
                        true,
                        &Failures::default(),
                    ));
                }
            }
        }
    }

    /// Adds the voice of an endpoint. If those of endpoints without a member's name would make up as many as are `needed`,
    /// asks these once for their names: those that have left the committee do not count.
    async fn hear(
        &self,
        voices: &mut Voices,
        name: AuthorityName,
        needed: usize,
        committee: &Committee,
        deadline: Instant,
    ) {
        let Voices { members, unnamed, is_named } = voices;
        if committee.member(&name).is_some() {
            members.insert(name)
        } else {
            unnamed.insert(name)
        };
        let is_short = members.len() < needed && members.len().saturating_add(unnamed.len()) >= needed;
        if is_short && !std::mem::replace(is_named, true) {
            self.network.learn_names(deadline.min(Instant::now() + NAMES)).await;
            let present = unnamed.iter().map(|name| self.network.present_name(*name));
            (*members, *unnamed) =
                members.iter().copied().chain(present).partition(|name| committee.member(name).is_some());
        }
    }

    async fn confirm_patiently(
        self,
        authority: AuthorityClient,
        certificate: VerifiedCertificate,
        known: Epoch,
        failures: Failures,
    ) -> (AuthorityName, Outcome) {
        let name = authority.name();
        let mut backoff = Backoff::new(self.options);
        let mut span = self.tracer.open(&certificate.digest(), "fastpay.confirmation", Side::Client);
        span.add(Attribute::Authority(name));
        loop {
            let failure = match self.confirm(&authority, &certificate).await {
                Ok(epoch) if epoch.is_none_or(|epoch| epoch == known) => {
                    span.add(Attribute::Outcome("confirmed"));
                    return (name, Outcome::Confirmed);
                }
                // An authority that is behind may follow the chain before it is asked again.
                Ok(epoch) => PeerFailure::OtherEpoch(epoch.unwrap_or(known)),
                Err(failure) => failure,
            };
            self.report(Progress::Waiting { authority: name, failure: failure.clone() });
            backoff.wait_at_least(failure.retry_after());
            let end = match failure {
                PeerFailure::OtherEpoch(epoch) | PeerFailure::EpochEnded(epoch) if epoch > known => {
                    self.network.hint(epoch);
                    Some(Outcome::Ahead(epoch))
                }
                // The certificate of an earlier number may be the one that it refuses.
                PeerFailure::EpochEnded(since) if since > certificate.certificate().epoch => {
                    Some(Outcome::Ended(since))
                }
                PeerFailure::Unattested(_) => Some(Outcome::Unattested),
                PeerFailure::Voided => Some(Outcome::Voided),
                PeerFailure::EpochEnded(_) | PeerFailure::Refused(_) | PeerFailure::NoPrimary => Some(Outcome::Refused),
                _ => None,
            };
            let kind = failure.kind();
            failures.lock().unwrap_or_else(PoisonError::into_inner).insert(name, failure);
            if let Some(end) = end {
                span.add(Attribute::Outcome(kind));
                span.fail(kind);
                return (name, end);
            }
            span.event(kind);
            backoff.wait().await;
        }
    }
}

async fn finish(mut confirming: Confirming, mut confirmed: usize, until: Instant) -> usize {
    while let Ok(Some(outcome)) = timeout_at(until, confirming.join_next()).await {
        if matches!(outcome, Ok((_, Outcome::Confirmed))) {
            confirmed = confirmed.saturating_add(1);
        }
    }
    confirmed
}
