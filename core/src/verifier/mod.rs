//! Batch-verifies requests for an authority, skipping signatures that are already verified.
//!
//! ```text
//!  requests ─► checks ─► known to be met? ─no─► Ed25519: one equation for all ─┬─► verdicts, in order
//!     │ order known?        (remembered)         secp256k1: one by one ─────────┘   (what is met is remembered)
//!     └─► then neither its digest nor its sender's signature is worked out again
//! ```
//!
//! A verdict depends on the request alone, never on the rest of the batch or on the caches. It equals the verdict of
//! [`TransferOrder::verify`](crate::TransferOrder::verify) and [`Certificate::verify`](crate::Certificate::verify).
//! The caches remember only that an order is valid or that a check passed, keyed by everything that this depends on,
//! including the signature's bytes.
//!
//! No lock, no clock, no randomness of its own: it belongs to one thread, which passes a generator in.

mod batch_round;
mod digests;
mod recent;
#[cfg(test)]
mod tests;
mod work;

use std::cmp::Ordering;
use std::sync::Arc;

use rand_core::CryptoRng;

use crate::Digest;
use crate::attestation::AttestedCertificate;
use crate::certificate::{Certificate, CertificateError, VerifiedCertificate};
use crate::epochs::Committees;
use crate::merkle::Nodes;
use crate::order::{OrderError, TransferOrder};
use crate::request::{Request, RequestError, VerifiedRequest};
use crate::signature::KeyPoint;
use crate::signature_check::{PendingVerification, SignatureCheck};
use crate::statement::Domain;
use crate::transfer::Transfer;
use crate::vote::OwnSignature;
use batch_round::BatchRound;
pub use digests::{DigestVerifier, SignedDigest};
use recent::{KeyHash, Recent};

/// Number of valid orders remembered in a generation, of about 300 bytes each, and of valid votes, of about 180: more
/// than a shard votes for in a second, which is longer than it takes until an order's certificate arrives. Seven
/// eighths of a power of two is what fits into a hash table without growing it.
const SIGNATURES_PER_GENERATION_MAX: usize = 57_344;
/// Number of payouts remembered, of up to 21,000 bytes each: about as much memory as other orders take.
const PAYOUTS_PER_GENERATION_MAX: usize = 896;
/// Number of keys remembered as points in a generation, of about 200 bytes each: those of active senders and of
/// authorities.
const KEYS_PER_GENERATION_MAX: usize = 57_344;

/// Checks requests in batches. See the [module](self).
#[derive(Debug)]
pub struct Verifier {
    domain: Domain,
    /// Valid orders and their digests: of one payment or redemption, and of payouts.
    orders: [Recent<Arc<TransferOrder>, Digest>; 2],
    /// Checks of votes that passed.
    votes: Recent<SignatureCheck, ()>,
    keys: Recent<[u8; 32], KeyPoint>,
    nodes: Nodes,
}

impl Verifier {
    /// A verifier for the requests of a deployment.
    #[must_use]
    pub fn new(domain: Domain) -> Self {
        Self::with_memory(domain, SIGNATURES_PER_GENERATION_MAX, KEYS_PER_GENERATION_MAX)
    }

    /// As [`Verifier::new`], with the given bounds on the caches: at most twice as many entries of each kind.
    #[must_use]
    pub fn with_memory(domain: Domain, signatures_per_generation_max: usize, keys_per_generation_max: usize) -> Self {
        let payouts_max = signatures_per_generation_max.min(PAYOUTS_PER_GENERATION_MAX);
        let orders = [Recent::new(signatures_per_generation_max), Recent::new(payouts_max)];
        let votes = Recent::new(signatures_per_generation_max);
        Self { domain, orders, votes, keys: Recent::new(keys_per_generation_max), nodes: Nodes::remembered() }
    }

    /// Remembers a signature of the authority's own, so that it is not checked when it comes back in a
    /// certificate.
    pub fn remember(&mut self, own: OwnSignature) {
        let hash = self.votes.hash(&own.0);
        self.votes.insert(hash, own.0, ());
    }

    /// Verifies requests together. The verdicts are in the order of `requests`, and each is the verdict that the
    /// request would get alone. A certificate is verified against the committee of its own epoch, and refused if a
    /// recovery has ended that epoch.
    pub fn verify(
        &mut self,
        requests: Vec<Request>,
        committees: &Committees,
        rng: &mut impl CryptoRng,
    ) -> Vec<Result<VerifiedRequest, RequestError>> {
        let mut round = BatchRound::default();
        let drafts: Vec<_> = requests.into_iter().map(|request| self.draft(request, committees, &mut round)).collect();
        round.judge(&mut self.keys, rng);
        let verdicts = drafts.into_iter().map(|draft| self.settle(draft?, &round)).collect();
        for (hash, check) in round.into_votes_met() {
            self.votes.insert(hash, check, ());
        }
        verdicts
    }

    /// The cache for orders of this kind.
    fn memory_of(&mut self, order: &TransferOrder) -> &mut Recent<Arc<TransferOrder>, Digest> {
        let [single, payouts] = &mut self.orders;
        if matches!(order.transfer, Transfer::Payout(_)) { payouts } else { single }
    }

    /// Checks everything of a request but its signatures, and adds the signatures that are not yet verified to the
    /// round.
    fn draft(
        &mut self,
        request: Request,
        committees: &Committees,
        round: &mut BatchRound,
    ) -> Result<Draft, RequestError> {
        let orders = self.memory_of(request.order());
        let order_hash = orders.hash(request.order());
        let known = orders.get(order_hash, request.order());
        let PendingVerification { value, checks } = match request {
            Request::Order(order) => order.prepare(&self.domain, known)?.map(VerifiedRequest::Order),
            Request::Certificate(certificate) => {
                self.prepare(certificate, committees, known)?.map(VerifiedRequest::Certificate)
            }
            Request::Attested(attested) => {
                let AttestedCertificate { certificate, attestation } = *attested;
                let prepared = self.prepare(certificate, committees, known)?;
                let (current, transfer) = (committees.current(), prepared.value.transfer());
                match attestation.epoch.cmp(&current.epoch()) {
                    Ordering::Greater => return Err(RequestError::UnknownEpoch(attestation.epoch)),
                    // These votes count for nothing any more.
                    Ordering::Less => prepared.map(VerifiedRequest::Certificate),
                    Ordering::Equal => {
                        let number = (transfer.sender(), transfer.sequence());
                        attestation.check(&self.domain, current, number, prepared.value.digest())?;
                        prepared.map(VerifiedRequest::Attested)
                    }
                }
            }
        };
        let mut needs = Vec::new();
        for check in checks {
            let hash = check.is_vote().then(|| self.votes.hash(&check));
            if hash.is_some_and(|hash| self.votes.get(hash, &check).is_some()) {
                continue;
            }
            let place = round.place(check, hash, &self.domain, &mut self.keys);
            needs.push(place);
            // The first bad signature is the verdict: the others would be checked for nothing.
            if round.is_bad(place) {
                break;
            }
        }
        Ok(Draft { value, needs, order_known: known.is_some(), order_hash })
    }

    /// Checks everything of a certificate but its signatures, against the committee of its own epoch.
    fn prepare(
        &mut self,
        certificate: Certificate,
        committees: &Committees,
        known: Option<Digest>,
    ) -> Result<PendingVerification<VerifiedCertificate>, RequestError> {
        let (epoch, since) = (certificate.epoch, committees.counting_since());
        if epoch < since {
            return Err(RequestError::EpochEnded { epoch, since });
        }
        let committee = committees.get(epoch).ok_or(RequestError::UnknownEpoch(epoch))?;
        Ok(certificate.prepare(&self.domain, committee, known, &mut self.nodes)?)
    }

    /// The verdict on a request after its signatures are checked. A valid order is remembered until its certificate
    /// arrives.
    fn settle(&mut self, draft: Draft, round: &BatchRound) -> Result<VerifiedRequest, RequestError> {
        let verified = match (draft.needs.into_iter().find_map(|place| round.bad(place)), draft.value) {
            (None, verified) => verified,
            (Some(bad), VerifiedRequest::Order(_)) => return Err(OrderError::Signature(bad).into()),
            (Some(bad), VerifiedRequest::Certificate(_) | VerifiedRequest::Attested(_)) => {
                return Err(CertificateError::Signature(bad).into());
            }
        };
        match &verified {
            VerifiedRequest::Order(order) if !draft.order_known => {
                self.memory_of(order.order()).insert(draft.order_hash, order.shared(), order.digest());
            }
            VerifiedRequest::Order(_) => {}
            // It is hardly asked for again: so only orders under way are remembered, and few are quickly found.
            VerifiedRequest::Certificate(certificate) | VerifiedRequest::Attested(certificate) => {
                let order = &certificate.certificate().order;
                self.memory_of(order).remove(draft.order_hash, order);
            }
        }
        Ok(verified)
    }
}

/// A request whose signatures are still to be checked: those at these places of the round, in order.
struct Draft {
    value: VerifiedRequest,
    needs: Vec<usize>,
    order_known: bool,
    order_hash: KeyHash,
}
