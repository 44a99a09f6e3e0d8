//! Addresses: what a payee gives to a payer. `fpp1…` in bech32m: the owner, and the key that notes are encrypted to.

use std::fmt;
use std::str::FromStr;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32m, Hrp};
use thiserror::Error;

use crate::field::{field_from_bytes, field_to_bytes};
use crate::owner::Owner;

const PREFIX: Hrp = Hrp::parse_unchecked("fpp");

/// Where a private payment can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The owner of coins paid to this address.
    pub owner: Owner,
    /// The X25519 key of the notes that say what they are.
    pub notes: [u8; 32],
}

/// Text that is no address. The text is not repeated: an address is private.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseAddressError {
    /// Not bech32m, a wrong checksum, or another prefix.
    #[error("this is not a private address: it begins with fpp1 and ends in a checksum that fits")]
    Text,
    /// Another number of bytes than 64.
    #[error("this private address has another length")]
    Length,
    /// The owner is not a field element in canonical form.
    #[error("this private address names no possible owner")]
    Owner,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [field_to_bytes(self.owner.0), self.notes].concat();
        bech32::encode_lower_to_fmt::<Bech32m, _>(f, PREFIX, &bytes).map_err(|_| fmt::Error)
    }
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let decoded = CheckedHrpstring::new::<Bech32m>(text).map_err(|_| ParseAddressError::Text)?;
        if decoded.hrp() != PREFIX {
            return Err(ParseAddressError::Text);
        }
        let bytes: Vec<u8> = decoded.byte_iter().collect();
        let bytes: [u8; 64] = bytes.try_into().map_err(|_| ParseAddressError::Length)?;
        let (owner, notes) = bytes.split_at(32);
        let owner: [u8; 32] = owner.try_into().map_err(|_| ParseAddressError::Length)?;
        let notes = notes.try_into().map_err(|_| ParseAddressError::Length)?;
        let owner = field_from_bytes(&owner).map_err(|_| ParseAddressError::Owner)?;
        let address = Self { owner: Owner(owner), notes };
        // One address has one text, except for its case.
        if address.to_string() == text.to_lowercase() { Ok(address) } else { Err(ParseAddressError::Text) }
    }
}
