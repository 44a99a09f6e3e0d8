//! Checks statements in batches: all their signatures in one equation of core's.

use std::sync::Arc;

use fastpay_core::{AccountId, Authorization, DigestVerifier, SignedDigest};
use rand_core::CryptoRng;

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::compact::{CompactDecision, OpenError, VerifiedGroup};
use crate::entry::Cursor;
use crate::header::Header;
use crate::identity::{Deployment, Receiver};
use crate::members::Members;
use crate::message::Message;
use crate::request::{Request, RequestError, UncheckedRequest, VerifiedRequest};

/// Keys remembered as points: those of 300 clusters of four, in about 300 KB.
const KEYS_MAX: usize = 1_200;

/// Checks certificates. A verdict depends on the statement alone, never on the rest of the batch or on what was checked
/// before.
#[derive(Debug)]
pub struct StatementVerifier {
    signatures: DigestVerifier,
}

impl Default for StatementVerifier {
    fn default() -> Self {
        Self { signatures: DigestVerifier::new(KEYS_MAX) }
    }
}

impl StatementVerifier {
    /// Checks that a quorum of `members` certified `header`.
    ///
    /// # Errors
    /// See [`CertificateError`].
    pub fn check(
        &mut self,
        header: &Header,
        certificate: &QuorumCertificate,
        members: &Members,
        rng: &mut impl CryptoRng,
    ) -> Result<(), CertificateError> {
        let signed = certificate.signatures(header, members)?;
        certificate.judge(self.signatures.verify(&signed, rng))
    }

    /// Opens compact decisions for `receiver`, each from the cluster of its members. `cursor` is the group that is due
    /// from it. The verdicts are in the order of `decisions`. The requests in them are checked with them.
    pub fn open(
        &mut self,
        receiver: Receiver,
        decisions: Vec<(impl Into<Arc<CompactDecision>>, &Members, Cursor)>,
        rng: &mut impl CryptoRng,
    ) -> Vec<Result<VerifiedGroup, OpenError>> {
        let mut signed: Vec<SignedDigest> = Vec::new();
        let drafts: Vec<_> = decisions
            .into_iter()
            .map(|(decision, members, cursor)| {
                let decision: Arc<CompactDecision> = decision.into();
                let (digest, signatures) = decision.prepare(receiver, members)?;
                let count = signatures.len();
                signed.extend(signatures);
                Ok((decision, cursor, digest, count))
            })
            .collect();
        let mut verdicts = self.signatures.verify(&signed, rng).into_iter();
        drafts
            .into_iter()
            .map(|draft: Result<_, OpenError>| {
                let (decision, cursor, digest, count) = draft?;
                let of_decision: Vec<bool> = verdicts.by_ref().take(count).collect();
                decision.certificate.judge(of_decision)?;
                decision.check_due(&cursor)?;
                let requests = decision.group.messages.iter().filter_map(|message| match message {
                    Message::Request(request) => Some(Arc::new(request.clone())),
                    _ => None,
                });
                let checked = self.verify(requests.collect(), decision.header.deployment, rng);
                let requests = checked.into_iter().collect::<Result<_, _>>().ok();
                Ok(VerifiedGroup::new(decision, digest, requests))
            })
            .collect()
    }

    /// Checks requests as [`Request::verify`] does, their Ed25519 signatures in one batch. The verdicts are in their order.
    pub fn verify(
        &mut self,
        requests: Vec<Arc<Request>>,
        deployment: Deployment,
        rng: &mut impl CryptoRng,
    ) -> Vec<Result<VerifiedRequest, RequestError>> {
        let unchecked: Vec<_> =
            requests.into_iter().map(|request| UncheckedRequest::new(request, deployment)).collect();
        let in_batch = |unchecked: &UncheckedRequest| match unchecked.authorization()? {
            (signer, digest, Authorization::Ed25519 { key, signature }) if AccountId::from_ed25519(key) == signer => {
                Some(SignedDigest { key: *key, digest, signature: *signature })
            }
            _ => None,
        };
        let batch: Vec<SignedDigest> = unchecked.iter().flatten().filter_map(in_batch).collect();
        let mut verdicts = self.signatures.verify(&batch, rng).into_iter();
        let judged = unchecked.into_iter().map(|unchecked| {
            let unchecked = unchecked?;
            let holds = match in_batch(&unchecked) {
                Some(_) => verdicts.next().unwrap_or(false),
                None => unchecked.authorization().is_none_or(|(signer, digest, by)| by.is_by(signer, digest)),
            };
            unchecked.judge(holds)
        });
        judged.collect()
    }
}
