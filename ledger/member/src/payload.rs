//! What a leader proposes: groups of other clusters with their proofs, and clients' requests. The header names its hash.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_ledger_statement::{CompactDecision, Request, Wire};

/// A proposal has at most so many requests: one group holds as many of their answers.
pub const REQUESTS_MAX: usize = 4_096;

/// A payload, not yet checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Payload {
    /// Of other clusters, each due.
    pub decisions: Vec<Arc<CompactDecision>>,
    /// Of clients.
    pub requests: Vec<Arc<Request>>,
}

impl Wire for Payload {
    /// Three groups of the largest size fit with their proofs, and more than 1 MiB of requests: see `room`.
    const BYTES_MAX: usize = (4 << 20) + (256 << 10);
}
