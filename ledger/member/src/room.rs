//! What has room in a proposal. One rule: a leader takes what has room, in the order in which it knows it, and skips what
//! has none; the others accuse it of leaving out what has room [LEDGER 2]. Room only shrinks while a proposal is filled,
//! so an honest leader leaves out nothing that has room in the end, whatever order the others know.
//!
//! Groups and requests have shares of their own, so neither keeps the other out. A single request always has room. More
//! have it while no receiver has much waiting: then requests alone are always valid, and a group is beside them.

use fastpay_ledger_state::{State, WAITING_BYTES_MAX, WAITING_MESSAGES_MAX};
use fastpay_ledger_statement::{CompactDecision, Layout, Wire};

use crate::payload::{Payload, REQUESTS_MAX};

/// The groups of a proposal have at most so many bytes: three of the largest fit.
pub const GROUP_BYTES_MAX: usize = 3 * CompactDecision::BYTES_MAX;
/// Its requests have at most so many: the rest.
pub const REQUEST_BYTES_MAX: usize = Payload::BYTES_MAX - GROUP_BYTES_MAX - 16;

/// The room for requests in the proposal after a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    requests: usize,
    bytes: usize,
}

impl Room {
    /// The room after a state. Requests may fill half of what can wait for the receiver that has most waiting.
    #[must_use]
    pub fn after(state: &State, layout: &Layout) -> Self {
        let waiting: Vec<_> = layout.receivers().map(|to| state.waiting(to)).collect();
        let messages = waiting.iter().map(|waiting| waiting.messages).max().unwrap_or_default();
        let bytes = waiting.iter().map(|waiting| waiting.bytes).max().unwrap_or_default();
        let left = |max: u64, used: u64| usize::try_from((max / 2).saturating_sub(used)).unwrap_or(usize::MAX);
        Self {
            requests: left(WAITING_MESSAGES_MAX, messages).min(REQUESTS_MAX),
            bytes: left(WAITING_BYTES_MAX, bytes).min(REQUEST_BYTES_MAX),
        }
    }

    /// Whether a request of so many bytes has room beside `count` that have `bytes`.
    #[must_use]
    pub fn has(&self, count: usize, bytes: usize, added: usize) -> bool {
        count == 0 || (count < self.requests && bytes.saturating_add(added) <= self.bytes)
    }

    /// Whether no further request has room beside `count`.
    #[must_use]
    pub fn is_full(&self, count: usize) -> bool {
        count > 0 && count >= self.requests
    }

    /// Whether a group of so many bytes has room beside groups that have `bytes`.
    #[must_use]
    pub fn has_group(bytes: usize, added: usize) -> bool {
        bytes.saturating_add(added) <= GROUP_BYTES_MAX
    }
}

#[cfg(test)]
impl Room {
    /// Room for so many requests and bytes.
    pub(crate) fn tight(requests: usize, bytes: usize) -> Self {
        Self { requests, bytes }
    }
}
