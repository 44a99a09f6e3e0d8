//! The rule by which a user of FastPay takes a block as final.

use std::str::FromStr;

use alloy::primitives::{B256, U64, U256};
use serde::{Deserialize, Serialize};

/// The rule by which a block counts as final. In TOML: `"finalized"`, `"safe"` or
/// `{ confirmations = 12 }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finality {
    /// The chain's own finality: reversing it would cost a third of all stake. About 13 minutes.
    #[default]
    Finalized,
    /// The chain's "safe" head: justified, not yet finalized. About 7 minutes.
    Safe,
    /// This many blocks on top, for chains without a finality of their own. 0 accepts the newest block.
    Confirmations(u64),
}

impl FromStr for Finality {
    type Err = String;

    /// As an argument: `finalized`, `safe`, or a number of confirmations.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = "give finalized, safe, or a number of confirmations";
        match text {
            "finalized" => Ok(Self::Finalized),
            "safe" => Ok(Self::Safe),
            number => number.parse().map(Self::Confirmations).map_err(|_| wrong.into()),
        }
    }
}

/// A block by its number and hash, with its base fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BlockHead {
    /// The number, counted from 0.
    number: U64,
    /// The hash of its header.
    pub hash: B256,
    /// The base fee in wei per gas (EIP-1559); `None` on an older chain.
    pub base_fee_per_gas: Option<U256>,
    /// The time by the chain's clock.
    timestamp: U64,
    /// The most gas that its transactions may use together.
    gas_limit: U64,
}

impl BlockHead {
    /// The block's number, counted from 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number.to()
    }

    /// The block's time by the chain's clock, in seconds since 1970.
    #[must_use]
    pub fn timestamp(&self) -> u64 {
        self.timestamp.to()
    }

    /// Whether another node returned the same block. With the hash alone, a node could lie about the time.
    pub(crate) fn agrees_with(&self, other: &Self) -> bool {
        self.hash == other.hash && self.timestamp == other.timestamp
    }

    /// The most gas that all its transactions may use together.
    #[must_use]
    pub fn gas_limit(&self) -> u64 {
        self.gas_limit.to()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_reads_as_documented() {
        let check = |text: &str, expected: Option<Finality>| {
            assert_eq!(serde_json::from_str(text).ok(), expected, "{text}");
        };
        check(r#""finalized""#, Some(Finality::Finalized));
        check(r#""safe""#, Some(Finality::Safe));
        check(r#"{"confirmations": 12}"#, Some(Finality::Confirmations(12)));
        check(r#""latest""#, None);
        check(r#"{"confirmations": -1}"#, None);
        let arguments = ["finalized", "safe", "12"].map(str::parse);
        assert_eq!(arguments, [Finality::Finalized, Finality::Safe, Finality::Confirmations(12)].map(Ok));
        assert!(["latest", "-1", ""].iter().all(|wrong| wrong.parse::<Finality>().is_err()));
    }
}
