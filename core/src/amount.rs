//! Numbers with a meaning: amounts, balances, sequence numbers. No operator on them can overflow.

use std::fmt;
use std::io;
use std::str::FromStr;

use alloy_primitives::{Address, B256, I256};
use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

/// A kind of number or address, printed and stored as what it wraps.
macro_rules! newtype {
    ($(#[$meta:meta])* pub struct $name:ident($inner:ty);) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(borsh::BorshSerialize, borsh::BorshDeserialize, serde::Serialize, serde::Deserialize)]
        pub struct $name(pub $inner);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
pub(crate) use newtype;

/// Free bytes for the user: an invoice number, its hash, or zero.
pub type Memo = B256;

newtype! {
    /// The committee's period, counted from 0.
    pub struct Epoch(u64);
}

newtype! {
    /// The number of a transfer order among those of its sender, counted from 0 without gap.
    pub struct SequenceNumber(u64);
}

impl SequenceNumber {
    /// The number after this one, or none after the largest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

newtype! {
    /// The number that the contract gave a deposit: 1, 2, 3 … without gap; 0 is "before the first".
    pub struct TransactionIndex(u64);
}

impl TransactionIndex {
    /// The index after this one, or none after the largest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

newtype! {
    /// An asset: an ERC-20 token by its contract's address, or ETH as the zero address.
    pub struct Asset(Address);
}

impl Asset {
    /// The Primary's own coin; in stand-alone mode, the native asset.
    pub const ETHER: Self = Self(Address::ZERO);
}

/// A value moved, in the asset's smallest unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Amount(pub u128);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `self - other`, or none where `other` is larger.
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// `self + other`, or `None` if the sum has more than 128 bits.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }
}

/// A value held, in the asset's smallest unit.
///
/// May be negative: a valid certificate is never refused for lack of funds, because the credit that
/// covers it may not have arrived here yet [FP §4.2]. It has 256 bits so that no order of arrival can
/// overflow it: an authority applies at most 2^64 records, each of less than 2^128.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Balance(I256);

impl Balance {
    /// Nothing held.
    pub const ZERO: Self = Self(I256::ZERO);

    /// True where an order of `amount` may be voted for.
    #[must_use]
    pub fn covers(self, amount: Amount) -> bool {
        self >= Self::from(amount)
    }

    /// After receiving `amount`.
    #[must_use]
    pub fn credit(self, amount: Amount) -> Self {
        Self(self.0.wrapping_add(Self::from(amount).0))
    }

    /// After spending `amount`.
    #[must_use]
    pub fn debit(self, amount: Amount) -> Self {
        Self(self.0.wrapping_sub(Self::from(amount).0))
    }

    /// The sum of two balances, for totals.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }

    /// The same with the other sign, for totals.
    #[must_use]
    pub fn negated(self) -> Self {
        Self(self.0.wrapping_neg())
    }

    /// The amount that could be spent now: zero where the balance is negative, and at most the
    /// largest amount that an order can move.
    #[must_use]
    pub fn spendable(self) -> Amount {
        if self.0.is_negative() { Amount::ZERO } else { Amount(u128::try_from(self.0.into_raw()).unwrap_or(u128::MAX)) }
    }

    /// Two's complement, most significant byte first.
    #[must_use]
    pub fn to_be_bytes(self) -> [u8; 32] {
        self.0.to_be_bytes()
    }

    /// The inverse of [`Balance::to_be_bytes`].
    #[must_use]
    pub fn from_be_bytes(bytes: [u8; 32]) -> Self {
        Self(I256::from_be_bytes(bytes))
    }
}

impl From<Amount> for Balance {
    fn from(amount: Amount) -> Self {
        Self(I256::from_raw(alloy_primitives::U256::from(amount.0)))
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Balance {
    type Err = ParseAmountError;
    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        I256::from_dec_str(text).map(Self).map_err(|_| ParseAmountError(text.to_owned()))
    }
}

impl BorshSerialize for Balance {
    fn serialize<W: io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(&self.to_be_bytes())
    }
}

impl BorshDeserialize for Balance {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
        <[u8; 32]>::deserialize_reader(reader).map(Self::from_be_bytes)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Amount {
    type Err = ParseAmountError;
    fn from_str(text: &str) -> Result<Self, ParseAmountError> {
        text.parse().map(Self).map_err(|_| ParseAmountError(text.to_owned()))
    }
}

/// The text is not a whole number of the asset's smallest unit in range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a whole number in range; give the amount in the asset's smallest unit")]
pub struct ParseAmountError(String);

/// In JSON an amount or balance is a decimal string: numbers there lose precision above 2^53.
macro_rules! serde_as_text {
    ($($name:ident),*) => { $(
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: std::borrow::Cow<'de, str> = Deserialize::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )* };
}
pub(crate) use serde_as_text;
serde_as_text!(Amount, Balance);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_survives_any_order_of_credits_and_debits() {
        let huge = Amount(u128::MAX);
        let below = Balance::ZERO.debit(huge).debit(huge).debit(huge);
        assert!(!below.covers(Amount(1)));
        assert_eq!(below.spendable(), Amount::ZERO);
        assert_eq!(below.credit(huge).credit(huge).credit(huge), Balance::ZERO);
        assert_eq!(Balance::from_be_bytes(below.to_be_bytes()), below);
        assert_eq!(below.to_string().parse::<Balance>().unwrap(), below);
        assert_eq!(Balance::from(huge).credit(huge).spendable(), huge);
    }

    #[test]
    fn amounts_are_decimal_text_in_json() {
        assert_eq!(serde_json::to_string(&Amount(u128::MAX)).unwrap(), format!("\"{}\"", u128::MAX));
        assert_eq!(serde_json::from_str::<Amount>("\"7\"").unwrap(), Amount(7));
        for wrong in ["\"-1\"", "\"1.5\"", "\"\"", "\"340282366920938463463374607431768211456\"", "7"] {
            assert!(serde_json::from_str::<Amount>(wrong).is_err(), "{wrong}");
        }
    }
}
