//! What one authority knows of one account [FP §4.1].

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::{Asset, Balance, SequenceNumber};
use crate::history::History;
use crate::order::TransferOrder;

/// The order that an account is locked on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PendingOrder {
    /// What the authority voted for.
    pub order: TransferOrder,
    /// The order's digest, by which a repeated order is recognised.
    pub digest: Digest,
}

/// An account's state. Its size does not grow with its history, only with the assets it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Account {
    /// The order that this authority voted for and has seen no certificate in place of.
    pub pending: Option<Box<PendingOrder>>,
    /// What it holds. An asset that it never held is absent.
    pub balances: BTreeMap<Asset, Balance>,
    /// The certificates confirmed from it; entry s has sequence number s.
    pub sent: History,
    /// The certificates received by it, in order of arrival here.
    pub received: History,
    /// Its deposits, in the order of their index.
    pub deposits: History,
}

impl Account {
    /// The sequence number of the next order that this authority would vote for.
    #[must_use]
    pub fn next_sequence(&self) -> SequenceNumber {
        SequenceNumber(self.sent.count())
    }

    /// What it holds of one asset.
    #[must_use]
    pub fn balance(&self, asset: Asset) -> Balance {
        self.balances.get(&asset).copied().unwrap_or_default()
    }
}
