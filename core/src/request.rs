//! Requests that clients submit to a shard: orders and certificates, which are verified in one batch.

use crate::amount::Epoch;
use crate::attestation::{AttestationError, AttestedCertificate};
use crate::certificate::{Certificate, CertificateError, VerifiedCertificate};
use crate::order::{OrderError, TransferOrder, VerifiedOrder};

/// An order or a certificate, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Asks for a vote.
    Order(TransferOrder),
    /// Asks for a confirmation.
    Certificate(Certificate),
    /// The same, with the votes of f + 1 members of the current committee that the certificate exists.
    Attested(Box<AttestedCertificate>),
}

impl Request {
    /// The order that it is, or is about.
    #[must_use]
    pub fn order(&self) -> &TransferOrder {
        match self {
            Self::Order(order) => order,
            Self::Certificate(certificate) => &certificate.order,
            Self::Attested(attested) => &attested.certificate.order,
        }
    }
}

/// An order or a certificate that is valid. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifiedRequest {
    /// Asks for a vote.
    Order(VerifiedOrder),
    /// Asks for a confirmation.
    Certificate(VerifiedCertificate),
    /// The same, of a certificate that f + 1 members of the current committee attest.
    Attested(VerifiedCertificate),
}

/// Why a request is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The order is invalid.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// A certificate, or votes that it exists, by a committee that is not known here (yet).
    #[error("the committee of epoch {0} is not known here; send the certificate again later")]
    UnknownEpoch(Epoch),
    /// A certificate of an epoch that a recovery has ended.
    #[error(
        "certificates of epoch {epoch} count for nothing since a recovery installed epoch {since}: what was rebuilt is \
         in the archive, and the order can be submitted again if it is not"
    )]
    EpochEnded {
        /// The certificate's epoch.
        epoch: Epoch,
        /// The epoch that the recovery installed.
        since: Epoch,
    },
    /// The certificate is invalid.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The votes that come with the certificate are invalid.
    #[error(transparent)]
    Attestation(#[from] AttestationError),
}
