//! What the journal says, entry by entry.

use fastpay_core::{AccountId, SequenceNumber};
use serde::{Deserialize, Serialize};

use crate::invoice::{Arrival, State, Terms};

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase", deny_unknown_fields)]
pub enum Entry {
    /// The shop asked for an invoice.
    Created(Terms),
    /// A payment came in.
    Arrived(Arrival),
    /// The shop is to be told of a change.
    Announced(Event),
    /// It was told, or not.
    Attempted(Attempt),
    /// The journal was written anew: what was before is in the entries that follow, and in the archive.
    Compacted(Compaction),
    /// An event, and how far its delivery was then.
    Told(Delivery),
    /// Payments of one sender that are in the archive: they are never counted again.
    Archived {
        /// Whose.
        sender: AccountId,
        /// Their numbers.
        sequences: Vec<SequenceNumber>,
        /// Those that are outputs of payouts: the payout's number and the output's.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outputs: Vec<(SequenceNumber, u16)>,
    },
    /// An invoice that is in the archive: its reference makes no second one.
    Retired {
        /// What the shop called it.
        reference: String,
        /// Its id.
        id: String,
    },
}

/// How the journal was written anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Compaction {
    /// How often that was done.
    pub generation: u64,
    /// In so many lines, this one too.
    pub lines: usize,
    /// When the wallet had looked last, in milliseconds since 1970.
    pub looked_at_ms: u64,
}

/// A change that the shop is told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    /// `evt_` and 32 hexadecimal digits: the same in every attempt.
    pub id: String,
    /// Of which invoice.
    pub invoice: String,
    /// What it became.
    pub state: State,
    /// After how many payments.
    pub arrivals: usize,
    /// When the wallet had looked last, in milliseconds since 1970.
    pub looked_at_ms: u64,
    /// What is sent, to the byte; empty where it is not sent any more.
    pub body: String,
}

/// An attempt to tell the shop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// Of which event.
    pub event: String,
    /// In milliseconds since 1970.
    pub at_ms: u64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Outcome {
    /// The shop took it.
    Delivered,
    /// It is tried again.
    Failed {
        /// Why it failed.
        reason: String,
        /// When it is tried again, in milliseconds since 1970.
        next_at_ms: u64,
    },
    /// It is not tried again.
    GivenUp {
        /// Why the last attempt failed.
        reason: String,
    },
}

/// How far an event's delivery is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Delivery {
    /// The event.
    pub event: Event,
    /// How often it was tried.
    pub attempts: u32,
    /// What came of the last attempt.
    pub last: Option<Outcome>,
    /// Its place among all events, in the order of the entries.
    #[serde(skip)]
    pub(super) place: usize,
}

impl Delivery {
    /// Of an event that the shop is to be told of.
    #[must_use]
    pub fn new(event: Event) -> Self {
        Self { event, attempts: 0, last: None, place: 0 }
    }

    /// Of an event that nobody is told of.
    #[must_use]
    pub fn given_up(event: Event, reason: String) -> Self {
        Self { last: Some(Outcome::GivenUp { reason }), ..Self::new(event) }
    }

    /// When it is to be tried, in milliseconds since 1970; none where it is done with.
    #[must_use]
    pub fn due_at_ms(&self) -> Option<u64> {
        match &self.last {
            None => Some(0),
            Some(Outcome::Failed { next_at_ms, .. }) => Some(*next_at_ms),
            Some(Outcome::Delivered | Outcome::GivenUp { .. }) => None,
        }
    }
}
