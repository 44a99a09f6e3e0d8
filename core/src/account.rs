//! State of one account at one authority [FP §4.1].
//!
//! There are millions of them in memory, so that what most have is inside of the value: one asset, and
//! two positions of each history. An account that is not locked and not busier has no other memory.

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use smallvec::SmallVec;

use crate::Digest;
use crate::amount::{Asset, Balance, SequenceNumber};
use crate::history::History;
use crate::order::TransferOrder;

/// The order that an account is locked on.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PendingOrder {
    /// The order that the authority voted for.
    pub order: Arc<TransferOrder>,
    /// The order's digest, by which a repeated order is recognised.
    pub digest: Digest,
}

/// An account's state. Its size does not grow with its history, only with the assets it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Account {
    /// The order that this authority voted for and has seen no certificate in place of.
    pub pending: Option<Box<PendingOrder>>,
    /// Balances by asset. An asset that the account never held is absent.
    pub balances: Balances,
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

    /// The balance of one asset.
    #[must_use]
    pub fn balance(&self, asset: Asset) -> Balance {
        self.balances.get(asset).unwrap_or_default()
    }
}

/// All balances of an account, in the order of assets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balances(SmallVec<[(Asset, Balance); 1]>);

impl Balances {
    /// The balance of an asset that it holds, or held once.
    #[must_use]
    pub fn get(&self, asset: Asset) -> Option<Balance> {
        let at = self.find(asset).ok()?;
        self.0.get(at).map(|(_, balance)| *balance)
    }

    /// All assets that it holds, or held once, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Asset, Balance)> {
        self.0.iter().copied()
    }

    pub(crate) fn change(&mut self, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        let at = self.find(asset).unwrap_or_else(|at| {
            self.0.insert(at, (asset, Balance::ZERO));
            at
        });
        if let Some((_, balance)) = self.0.get_mut(at) {
            *balance = change(*balance);
        }
    }

    fn find(&self, asset: Asset) -> std::result::Result<usize, usize> {
        self.0.binary_search_by_key(&asset, |(held, _)| *held)
    }
}

impl FromIterator<(Asset, Balance)> for Balances {
    fn from_iter<T: IntoIterator<Item = (Asset, Balance)>>(held: T) -> Self {
        let mut balances = Self::default();
        held.into_iter().for_each(|(asset, held)| balances.change(asset, |balance| balance.plus(held)));
        balances
    }
}

impl BorshSerialize for Balances {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        self.0.as_slice().serialize(writer)
    }
}

impl BorshDeserialize for Balances {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Self> {
        let held = Vec::<(Asset, Balance)>::deserialize_reader(reader)?;
        if !held.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(Error::new(ErrorKind::InvalidData, "assets are not sorted"));
        }
        Ok(Self(held.into_iter().collect()))
    }
}
