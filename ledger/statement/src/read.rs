//! Reads without a round: a value, or its absence, with the path to a certified state root [LEDGER 10].

use borsh::{BorshDeserialize, BorshSerialize};
use rand_core::CryptoRng;

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::encoding::Wire;
use crate::entry::{Evidence, StateKey, StateProof};
use crate::header::Header;
use crate::identity::{ClusterId, Height, Time};
use crate::members::Members;
use crate::partition::Partition;
use crate::verifier::StatementVerifier;

/// What a member answers to a read, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ReadProof {
    /// The height whose state is read.
    pub header: Header,
    /// Of the header.
    pub certificate: QuorumCertificate,
    /// From the entry to the header's state root.
    pub proof: StateProof,
}

impl Wire for ReadProof {
    /// The longest value and path, and 171 votes.
    const BYTES_MAX: usize = 128 << 10;
}

/// What a cluster's state had at a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// After this height. Later ones may have changed it: only a request that goes through a round is newer.
    pub height: Height,
    /// The time of that height.
    pub time: Time,
    /// The encoded value; `None` if there was none.
    pub value: Option<Vec<u8>>,
}

impl ReadProof {
    /// Checks that the members' cluster keeps `key`, and had this there at a height of `oldest` or later.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn verify(
        self,
        key: &StateKey,
        oldest: Time,
        partition: &Partition,
        members: &Members,
        verifier: &mut StatementVerifier,
        rng: &mut impl CryptoRng,
    ) -> Result<Reading, ReadError> {
        let Self { header, certificate, proof } = self;
        if header.time < oldest {
            return Err(ReadError::TooOld { oldest, found: header.time });
        }
        // Another cluster could prove truthfully that it has nothing there.
        if let Some(expected) = partition.of_entry(key).filter(|expected| *expected != header.cluster) {
            return Err(ReadError::OtherCluster { expected, found: header.cluster });
        }
        verifier.check(&header, &certificate, members, rng)?;
        if proof.root(key.digest()) != Some(header.state) {
            return Err(ReadError::Path);
        }
        let value = match proof.evidence {
            Evidence::Present(value) => Some(value),
            Evidence::Nothing | Evidence::Other { .. } => None,
        };
        Ok(Reading { height: header.height, time: header.time, value })
    }
}

/// Why a read is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Older than the reader takes.
    #[error("the state is of {found} ms, older than {oldest} ms; ask another member, or send the read as a request")]
    TooOld {
        /// The oldest time that the reader takes.
        oldest: Time,
        /// The header's.
        found: Time,
    },
    /// The cluster does not keep the key.
    #[error("the state is of cluster {found}; cluster {expected} keeps the key: ask that one")]
    OtherCluster {
        /// The cluster that keeps the key.
        expected: ClusterId,
        /// The header's.
        found: ClusterId,
    },
    /// The value was altered, or is of another key or height.
    #[error("the value is not under the header's state root; ask another member")]
    Path,
    /// The header is not certified.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}
