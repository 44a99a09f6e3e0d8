//! Checks statements in batches: all their signatures in one equation of core's.

use fastpay_core::{DigestVerifier, SignedDigest};
use rand_core::CryptoRng;

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::compact::{CompactDecision, OpenError, VerifiedGroup};
use crate::entry::Cursor;
use crate::header::Header;
use crate::identity::Receiver;
use crate::members::Members;

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
    /// from it. The verdicts are in the order of `decisions`.
    pub fn open(
        &mut self,
        receiver: Receiver,
        decisions: Vec<(CompactDecision, &Members, Cursor)>,
        rng: &mut impl CryptoRng,
    ) -> Vec<Result<VerifiedGroup, OpenError>> {
        let mut signed: Vec<SignedDigest> = Vec::new();
        let drafts: Vec<_> = decisions
            .into_iter()
            .map(|(decision, members, cursor)| {
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
                Ok(VerifiedGroup::new(decision, digest))
            })
            .collect()
    }
}
