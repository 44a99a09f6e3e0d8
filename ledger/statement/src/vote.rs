//! What a member of a cluster signs to vote. The engine's vote of the same content is encoded to this statement, and
//! signed as its digest.

use borsh::BorshSerialize;
use fastpay_core::Digest;

use crate::encoding::digest;
use crate::identity::{ClusterId, Deployment, Height};

/// The kind of a vote. Only precommits certify.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
pub enum VoteKind {
    /// The value is valid, and may be decided.
    Prevote,
    /// A quorum has prevoted the value.
    Precommit,
}

/// A vote. Two that differ in any field have different digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
pub struct VoteStatement {
    /// The deployment.
    pub deployment: Deployment,
    /// The cluster.
    pub cluster: ClusterId,
    /// The height.
    pub height: Height,
    /// The engine's round at this height, from 0.
    pub round: u32,
    /// Prevote or precommit.
    pub kind: VoteKind,
    /// The header's id; `None` for nil.
    pub value: Option<Digest>,
}

impl VoteStatement {
    /// What the member's key signs: 32 bytes, which are the whole message of the Ed25519 signature.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest!("fastpay ledger vote v1", self)
    }
}
