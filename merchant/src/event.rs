//! Webhook events and their delivery state.

use serde::Deserialize;

use crate::invoice::State;

/// A change of an invoice that is reported to the shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `evt_` and 32 hexadecimal digits: the same in every attempt.
    pub id: String,
    /// The state of its invoice.
    pub state: State,
    /// The body, byte for byte. Empty once it is not sent any more.
    pub body: String,
}

/// The outcome of an attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Outcome {
    /// The shop accepted it.
    Delivered,
    /// It failed, and is tried again.
    Failed {
        /// Why it failed.
        reason: String,
        /// The time of the next attempt, in milliseconds since 1970.
        next_at_ms: u64,
    },
    /// It failed, and is not tried again.
    GivenUp {
        /// Why the last attempt failed.
        reason: String,
    },
}

/// The state of an event's delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// The number of attempts.
    pub attempts: u32,
    /// The outcome of the last attempt.
    pub last: Option<Outcome>,
}

impl Delivery {
    /// The time of the next attempt, in milliseconds since 1970; `None` once it was accepted or given up.
    #[must_use]
    pub fn due_at_ms(&self) -> Option<u64> {
        match &self.last {
            None => Some(0),
            Some(Outcome::Failed { next_at_ms, .. }) => Some(*next_at_ms),
            Some(Outcome::Delivered | Outcome::GivenUp { .. }) => None,
        }
    }
}
