//! The proof that a cluster decided twice at one height [LEDGER 11]. It takes f + 1 traitors.
//!
//! Two precommits of one round accuse: no honest member signs both. Two precommits of different rounds do not: a member
//! may precommit another value in a later round after a quorum has prevoted it there. Then the traitors are among those
//! who prevoted or precommitted against their lock, and only the engine's logs of prevotes show who they are.

use fastpay_core::Digest;
use rand_core::CryptoRng;

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::header::Header;
use crate::identity::MemberIndex;
use crate::members::Members;
use crate::verifier::StatementVerifier;

/// Two certified headers of one height. Only [`Fork::prove`] makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    /// The ids of the headers.
    pub ids: [Digest; 2],
    /// The rounds of the certificates, in the same order.
    pub rounds: [u32; 2],
    /// The members who signed both: at least f + 1. That alone accuses nobody.
    pub signers: Vec<MemberIndex>,
}

impl Fork {
    /// The members that this fork proves to be traitors: those who signed two headers in one round. Empty where the
    /// rounds differ.
    #[must_use]
    pub fn traitors(&self) -> &[MemberIndex] {
        let [first, second] = self.rounds;
        if first == second { &self.signers } else { &[] }
    }

    /// The fork that two certificates prove, or `None` if they are of different heights or of one header.
    ///
    /// # Errors
    /// If a certificate is not valid.
    pub fn prove(
        members: &Members,
        certified: [(&Header, &QuorumCertificate); 2],
        verifier: &mut StatementVerifier,
        rng: &mut impl CryptoRng,
    ) -> Result<Option<Self>, CertificateError> {
        let [(first, of_first), (second, of_second)] = certified;
        for (header, certificate) in certified {
            verifier.check(header, certificate, members, rng)?;
        }
        let ids = [first.id(), second.id()];
        if first.height != second.height || first.id() == second.id() {
            return Ok(None);
        }
        let signed_both = |member: &MemberIndex| of_second.votes.iter().any(|(other, _)| other == member);
        let signers = of_first.votes.iter().map(|(member, _)| *member).filter(signed_both).collect();
        Ok(Some(Self { ids, rounds: [of_first.round, of_second.round], signers }))
    }
}
