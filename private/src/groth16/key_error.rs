//! Why bytes are no key.

use thiserror::Error;

use super::points::MalformedPoint;
use super::verifying_key::DevelopmentKeysRefused;
use crate::public::CommitteeSize;

/// A key that is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// A development key for a chain where money is real.
    #[error(transparent)]
    Development(#[from] DevelopmentKeysRefused),
    /// The bytes are the key of another format, or no key.
    #[error("this is not a key of private payments")]
    Format,
    /// The key is cut off, or too long for its committee.
    #[error("the key has another length than its committee needs")]
    Length,
    /// The number of members is out of range.
    #[error(transparent)]
    Committee(#[from] CommitteeSize),
    /// A point is malformed or outside of its group.
    #[error("a point of the key is malformed: {0}")]
    Point(#[from] MalformedPoint),
    /// γ is not the generator, or α, β or δ is one or its negative: everybody knows a trapdoor of such a key.
    #[error("no ceremony made this key")]
    NoCeremony,
    /// The bytes have another hash than the one certified.
    #[error("this is not the key that the committee certified")]
    Hash,
}
