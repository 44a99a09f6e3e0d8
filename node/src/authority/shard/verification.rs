//! Verifies decoded requests, all queued ones at a time.

use fastpay_core::{Domain, OwnSignature, Request, RequestError, VerifiedRequest, Verifier};
use fastpay_rpc::Refusal;

use crate::authority::voter_status::VoterStatus;

/// Verifies signatures, and remembers the verified ones.
pub(super) struct Verification {
    verifier: Verifier,
}

impl Verification {
    pub fn new(domain: Domain) -> Self {
        Self { verifier: Verifier::new(domain) }
    }

    /// Verifies the requests, in their order. Each is accepted or refused on its own account. While the authority does
    /// not begin from the checkpoint that a recovery adopts, it takes none: what it executed would be forgotten. Nor
    /// does a new member before it has followed the contract into its first epoch.
    pub fn verify(
        &mut self,
        requests: Vec<Request>,
        voter_status: &VoterStatus,
    ) -> Vec<Result<VerifiedRequest, Refusal>> {
        if let Some(recovery) = voter_status.unrecovered() {
            let refuse = |request: &Request| match request {
                Request::Order(_) => Refusal::NotVoting(recovery.epoch),
                Request::Certificate(_) | Request::Attested(_) => Refusal::UnknownEpoch(recovery.epoch),
            };
            return requests.iter().map(|request| Err(refuse(request))).collect();
        }
        if let Some(epoch) = voter_status.observes() {
            return requests.iter().map(|_| Err(Refusal::UnknownEpoch(epoch))).collect();
        }
        let verified = self.verifier.verify(requests, voter_status.committees(), &mut rand::rng());
        let refuse = |error| match error {
            RequestError::UnknownEpoch(epoch) => Refusal::UnknownEpoch(epoch),
            RequestError::EpochEnded { since, .. } => Refusal::EpochEnded(since),
            invalid => Refusal::Invalid(invalid.to_string()),
        };
        verified.into_iter().map(|verified| verified.map_err(refuse)).collect()
    }

    /// Notes a signature of this authority's own, which need not be checked in a certificate.
    pub fn remember(&mut self, own: OwnSignature) {
        self.verifier.remember(own);
    }
}
