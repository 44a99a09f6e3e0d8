//! What a leader proposes: groups of other clusters with their proofs, and clients' requests. The header names its hash.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_ledger_statement::{CompactDecision, Request, Wire};

/// A proposal has at most so many requests: one group holds as many of their answers.
pub const REQUESTS_MAX: usize = 4_096;

/// A payload, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Payload {
    /// Of other clusters, each due.
    pub decisions: Vec<CompactDecision>,
    /// Of clients.
    pub requests: Vec<Request>,
}

impl Wire for Payload {
    /// Four groups of the largest size fit with their proofs, and a rotation does beside three.
    const BYTES_MAX: usize = (4 << 20) + (256 << 10);
}

impl Payload {
    /// So many bytes of groups and requests fit, beside the version and two lengths.
    pub const BYTES_MAX_OF_INPUTS: usize = Self::BYTES_MAX - 16;

    /// Whether a request of so many bytes fits beside what a payload of `bytes` has.
    #[must_use]
    pub fn has_room(count: usize, bytes: usize, added: usize) -> bool {
        count < REQUESTS_MAX && bytes.saturating_add(added) <= Self::BYTES_MAX_OF_INPUTS
    }
}
