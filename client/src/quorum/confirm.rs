//! Has a certificate confirmed: settled once a quorum of one committee has in its own epoch, while the others are
//! brought along in the background for a bounded time. A number that a quorum has confirmed in one epoch is never voided;
//! confirmations of two epochs do not add up (docs/PROTOCOL.md, K13).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::AuthorityClient;
use fastpay_core::{AuthorityName, Epoch, VerifiedCertificate};
use fastpay_telemetry::{Attribute, Side};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::tally::{PeerFailure, newer_epoch};
use super::{Backoff, CommitteeClient, Progress, QuorumError};

/// A certificate that a quorum of one committee has confirmed in its epoch.
#[derive(Debug)]
pub struct Settled {
    /// The authorities that have confirmed it so far.
    pub confirmed: Vec<AuthorityName>,
    /// Goes on with the other authorities; ends with how many have confirmed in all. Dropping it lets it go
    /// on; a program that ends may wait for it.
    pub rest: JoinHandle<usize>,
}

/// The newest failure with each authority.
type Failures = Arc<Mutex<BTreeMap<AuthorityName, PeerFailure>>>;

type Confirming = JoinSet<(AuthorityName, Outcome)>;

/// The end of asking one authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Confirmed,
    /// It has confirmed, in a newer epoch than is known here.
    Ahead(Epoch),
    Failed,
}

impl CommitteeClient {
    /// Sends a certificate to all authorities, until a quorum has confirmed it in the committee's epoch.
    ///
    /// # Errors
    /// [`QuorumError::NoQuorum`]: settle it again. [`QuorumError::NewEpoch`]: follow it, and settle again.
    pub async fn settle(&self, certificate: &VerifiedCertificate) -> Result<Settled, QuorumError> {
        let committee = self.network.committee();
        let quorum = committee.quorum();
        let deadline = Instant::now() + self.options.deadline;
        let failures = Failures::default();
        let mut confirming = Confirming::new();
        for authority in self.network.authorities().iter() {
            let client = self.clone();
            confirming.spawn(client.confirm_patiently(authority.clone(), certificate.clone(), failures.clone()));
        }
        let (mut confirmed, mut ahead) = (Vec::new(), Vec::new());
        loop {
            let (name, outcome) = match timeout_at(deadline, confirming.join_next()).await {
                Ok(Some(Ok(outcome))) => outcome,
                Ok(Some(Err(_))) => continue,
                Ok(None) | Err(_) => {
                    let timed_out = !confirming.is_empty();
                    let count = confirmed.len();
                    let failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
                    let failures = failures.iter().map(|(name, failure)| (*name, failure.clone())).collect();
                    return Err(QuorumError::NoQuorum { what: "confirmations", count, quorum, timed_out, failures });
                }
            };
            match outcome {
                Outcome::Confirmed => {
                    confirmed.push(name);
                    self.report(Progress::Confirmed { authority: name, confirmations: confirmed.len(), quorum });
                }
                Outcome::Ahead(epoch) => {
                    ahead.push(epoch);
                    if let Some(epoch) = newer_epoch(&committee, ahead.iter().copied()) {
                        return Err(QuorumError::NewEpoch { epoch, known: committee.epoch() });
                    }
                }
                Outcome::Failed => {}
            }
            if confirmed.len() >= quorum {
                let until = Instant::now() + self.options.background;
                let rest = tokio::spawn(finish(confirming, confirmed.len(), until));
                return Ok(Settled { confirmed, rest });
            }
        }
    }

    async fn confirm_patiently(
        self,
        authority: AuthorityClient,
        certificate: VerifiedCertificate,
        failures: Failures,
    ) -> (AuthorityName, Outcome) {
        let (name, known) = (authority.name(), self.network.committee().epoch());
        let mut backoff = Backoff::new(self.options);
        let mut span = self.tracer.open(&certificate.digest(), "fastpay.confirmation", Side::Client);
        span.add(Attribute::Authority(name));
        loop {
            let failure = match self.confirm(&authority, &certificate).await {
                Ok(epoch) if epoch == known => {
                    span.add(Attribute::Outcome("confirmed"));
                    return (name, Outcome::Confirmed);
                }
                // One that is behind may follow the chain until it is asked again.
                Ok(epoch) => PeerFailure::OtherEpoch(epoch),
                Err(failure) => failure,
            };
            self.report(Progress::Waiting { authority: name, failure: failure.clone() });
            backoff.wait_at_least(failure.retry_after());
            let end = match failure {
                PeerFailure::OtherEpoch(epoch) if epoch > known => Some(Outcome::Ahead(epoch)),
                PeerFailure::Refused(_) | PeerFailure::NoPrimary => Some(Outcome::Failed),
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
