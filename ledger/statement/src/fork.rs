//! The proof that a cluster decided twice at one height [LEDGER 11]. It takes f + 1 traitors, and names them.

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
    /// The members who voted for both: at least f + 1.
    pub traitors: Vec<MemberIndex>,
}

impl Fork {
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
        let voted_twice = |member: &MemberIndex| of_second.votes.iter().any(|(other, _)| other == member);
        let traitors = of_first.votes.iter().map(|(member, _)| *member).filter(voted_twice).collect();
        Ok(Some(Self { ids, traitors }))
    }
}
