//! Identities: authorities, accounts of both kinds, addresses on the Primary, and the shard that owns an account.
//!
//! An account's identifier is a hash of its owner's verification key [FP §3.2], in two kinds that
//! cannot collide: 12 zero bytes and an Ethereum address, or a Keccak-256 hash under a prefix of ours.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::{Address, Keccak256, hex};
use bech32::{Bech32m, Hrp};
use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::amount::{newtype, serde_as_text};

/// An address on the Primary.
pub type PrimaryAddress = Address;

/// The human-readable part of an Ed25519 account's text form.
const ACCOUNT_PREFIX: Hrp = Hrp::parse_unchecked("fp");

/// An authority's Ed25519 verification key, which is its name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct AuthorityName(pub [u8; 32]);

impl fmt::Display for AuthorityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", hex::encode(self.0))
    }
}

impl fmt::Debug for AuthorityName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AuthorityName {
    type Err = ParseIdentityError;
    fn from_str(text: &str) -> Result<Self, ParseIdentityError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ParseIdentityError::Authority(text.to_owned()))?;
        Ok(Self(bytes))
    }
}

/// An account's address: what money is sent to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct AccountId(pub [u8; 32]);

impl AccountId {
    /// The Ethereum account of the zero address. Nobody can hold its key.
    pub const ZERO: Self = Self([0; 32]);

    /// The pool of private payments: keccak256 of `fastpay/private-pool`. It has no key, and accepts payments of its own
    /// kind only, so no output of a payout may go there.
    pub const PRIVATE_POOL: Self = Self(hex!("fde8602a28dbca793f6faee4af64cd449f0096f5219dd57c09802b155be12873"));

    /// The account owned by an Ed25519 verification key.
    #[must_use]
    pub fn from_ed25519(verification_key: &[u8; 32]) -> Self {
        let mut hasher = Keccak256::new();
        hasher.update(b"fastpay/ed25519");
        hasher.update(verification_key);
        Self(hasher.finalize().0)
    }

    /// The account owned by the secp256k1 key of an Ethereum address.
    #[must_use]
    pub fn from_ethereum(address: PrimaryAddress) -> Self {
        Self(address.into_word().0)
    }

    /// The Ethereum address that owns this account, if it is of that kind.
    #[must_use]
    pub fn ethereum_address(&self) -> Option<PrimaryAddress> {
        let (prefix, address) = self.0.split_first_chunk::<12>()?;
        (*prefix == [0; 12]).then(|| Address::from_slice(address))
    }
}

impl fmt::Display for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ethereum_address() {
            Some(address) => address.fmt(f),
            None => bech32::encode_lower_to_fmt::<Bech32m, _>(f, ACCOUNT_PREFIX, &self.0).map_err(|_| fmt::Error),
        }
    }
}

impl fmt::Debug for AccountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for AccountId {
    type Err = ParseIdentityError;

    /// Reads both text forms. An Ethereum address in mixed case must have a right checksum
    /// (EIP-55); one in a single case carries none and is taken as it is.
    fn from_str(text: &str) -> Result<Self, ParseIdentityError> {
        let error = || ParseIdentityError::Account(text.to_owned());
        if let Some(digits) = text.strip_prefix("0x") {
            let address: Address = text.parse().map_err(|_| error())?;
            let single_case = digits == digits.to_ascii_lowercase() || digits == digits.to_ascii_uppercase();
            if !single_case && address.to_checksum(None) != text {
                return Err(ParseIdentityError::Checksum(text.to_owned()));
            }
            return Ok(Self::from_ethereum(address));
        }
        let decoded = bech32::primitives::decode::CheckedHrpstring::new::<Bech32m>(text).map_err(|_| error())?;
        decoded.validate_segwit_padding().map_err(|_| error())?;
        let bytes: Vec<u8> = decoded.byte_iter().collect();
        let account = Self(bytes.try_into().map_err(|_| error())?);
        if decoded.hrp() != ACCOUNT_PREFIX || account.ethereum_address().is_some() {
            return Err(error());
        }
        Ok(account)
    }
}

serde_as_text!(AuthorityName, AccountId);

/// The text is not an identity of the kind that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseIdentityError {
    /// Not an account in either text form.
    #[error("{0:?} is not an account; give a complete address that starts with fp1 or 0x")]
    Account(String),
    /// An Ethereum address whose capitals do not fit its digits.
    #[error("{0:?} has an invalid checksum: a character was mistyped; copy the address again")]
    Checksum(String),
    /// Not an authority's name.
    #[error("{0:?} is not an authority's name; give its Ed25519 key as 64 hexadecimal digits")]
    Authority(String),
}

newtype! {
    /// The number of a shard within its authority, from 0.
    pub struct ShardId(u32);
}

/// How an authority divides accounts among its shards. Each authority chooses its own number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardLayout {
    count: std::num::NonZeroU32,
}

impl ShardLayout {
    /// A layout of `count` shards.
    #[must_use]
    pub fn new(count: std::num::NonZeroU32) -> Self {
        Self { count }
    }

    /// The number of shards.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count.get()
    }

    /// All shards, from the first.
    pub fn shards(self) -> impl Iterator<Item = ShardId> {
        (0..self.count.get()).map(ShardId)
    }

    /// The shard that owns `account`: the last four bytes of its identifier, which are hash bytes in
    /// both kinds, modulo the number of shards.
    #[must_use]
    pub fn shard_of(self, account: &AccountId) -> ShardId {
        let tail = account.0.last_chunk::<4>().copied().unwrap_or_default();
        ShardId(u32::from_be_bytes(tail) % self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_account_are_read_as_they_are_shown() {
        let ed25519 = AccountId::from_ed25519(&[7; 32]);
        let ethereum: AccountId = "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045".parse().unwrap();
        assert!(ed25519.to_string().starts_with("fp1"));
        assert_eq!(ethereum.to_string(), "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045");
        for account in [ed25519, ethereum] {
            assert_eq!(account.to_string().parse(), Ok(account));
        }
        assert_eq!("0xd8da6bf26964af9d7eed9e03e53415d37aa96045".parse(), Ok(ethereum));
    }

    #[test]
    fn the_private_pool_is_the_hash_of_its_name() {
        assert_eq!(AccountId::PRIVATE_POOL.0, alloy_primitives::keccak256("fastpay/private-pool").0);
    }

    #[test]
    fn mistyped_accounts_are_refused() {
        let good = AccountId::from_ed25519(&[7; 32]).to_string();
        let swapped = good.replacen(good.chars().nth(10).unwrap(), "q", 1);
        assert_ne!(good, swapped);
        assert!(swapped.parse::<AccountId>().is_err());
        assert_eq!(
            "0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045".parse::<AccountId>(),
            Err(ParseIdentityError::Checksum("0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045".into()))
        );
        for wrong in ["", "0x", "0x12", "fp1", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"] {
            assert!(wrong.parse::<AccountId>().is_err(), "{wrong}");
        }
        // An account has one text form only: no stray bits after its last byte …
        assert_eq!(ed25519_with_padding(0).parse(), Ok(AccountId::from_ed25519(&[7; 32])));
        assert!(ed25519_with_padding(1).parse::<AccountId>().is_err());
        // … and an Ethereum account is shown as an address.
        let disguised = bech32::encode::<Bech32m>(ACCOUNT_PREFIX, &[0; 32]).unwrap();
        assert!(disguised.parse::<AccountId>().is_err());
    }

    /// The account of the key 0x07…07 with these bits after its last byte, under a right checksum.
    fn ed25519_with_padding(bits: u8) -> String {
        use bech32::primitives::iter::{ByteIterExt, Fe32IterExt};
        let account = AccountId::from_ed25519(&[7; 32]);
        let mut digits: Vec<bech32::Fe32> = account.0.iter().copied().bytes_to_fes().collect();
        let last = digits.pop().unwrap();
        digits.push(bech32::Fe32::try_from(last.to_u8() | bits).unwrap());
        digits.into_iter().with_checksum::<Bech32m>(&ACCOUNT_PREFIX).chars().collect()
    }

    #[test]
    fn every_account_has_one_shard() {
        let layout = ShardLayout::new(3.try_into().unwrap());
        for byte in 0..=255 {
            assert!(layout.shards().any(|shard| shard == layout.shard_of(&AccountId::from_ed25519(&[byte; 32]))));
        }
    }
}
