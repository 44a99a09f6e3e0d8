//! Has a certificate confirmed: settled once a quorum has, while the others are brought along in the
//! background for a bounded time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::AuthorityClient;
use fastpay_core::{AuthorityName, VerifiedCertificate};
use fastpay_telemetry::{Attribute, Side};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use super::tally::PeerFailure;
use super::{Backoff, CommitteeClient, Progress, QuorumError};

/// A certificate that a quorum has confirmed.
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

type Confirming = JoinSet<(AuthorityName, bool)>;

impl CommitteeClient {
    /// Sends a certificate to all authorities, until a quorum has confirmed it.
    ///
    /// # Errors
    /// [`QuorumError::NoQuorum`]. The certificate is final all the same; settle it again.
    pub async fn settle(&self, certificate: &VerifiedCertificate) -> Result<Settled, QuorumError> {
        let quorum = self.network.committee().quorum();
        let deadline = Instant::now() + self.options.deadline;
        let failures = Failures::default();
        let mut confirming = Confirming::new();
        for authority in self.network.authorities().iter() {
            let client = self.clone();
            confirming.spawn(client.confirm_patiently(authority.clone(), certificate.clone(), failures.clone()));
        }
        let mut confirmed = Vec::new();
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
            if outcome {
                confirmed.push(name);
                self.report(Progress::Confirmed { authority: name, confirmations: confirmed.len(), quorum });
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
    ) -> (AuthorityName, bool) {
        let name = authority.name();
        let mut backoff = Backoff::new(self.options);
        let mut span = self.tracer.open(&certificate.digest(), "fastpay.confirmation", Side::Client);
        span.add(Attribute::Authority(name));
        loop {
            let Err(failure) = self.confirm(&authority, &certificate).await else {
                span.add(Attribute::Outcome("confirmed"));
                return (name, true);
            };
            self.report(Progress::Waiting { authority: name, failure: failure.clone() });
            backoff.wait_at_least(failure.retry_after());
            let is_final = matches!(failure, PeerFailure::Refused(_) | PeerFailure::NoPrimary);
            let kind = failure.kind();
            failures.lock().unwrap_or_else(PoisonError::into_inner).insert(name, failure);
            if is_final {
                span.add(Attribute::Outcome(kind));
                span.fail(kind);
                return (name, false);
            }
            span.event(kind);
            backoff.wait().await;
        }
    }
}

async fn finish(mut confirming: Confirming, mut confirmed: usize, until: Instant) -> usize {
    while let Ok(Some(outcome)) = timeout_at(until, confirming.join_next()).await {
        if matches!(outcome, Ok((_, true))) {
            confirmed = confirmed.saturating_add(1);
        }
    }
    confirmed
}
