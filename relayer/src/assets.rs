//! The assets that the operator lists, with their value in ETH. The relayer submits nothing for an unlisted token: that
//! may be worthless and expensive to transfer.

use std::collections::BTreeMap;

use alloy::primitives::U256;
use fastpay_core::{Amount, Asset};
use serde::Deserialize;

/// The maximum number of digits of a rate.
const DIGITS_MAX: usize = 38;

/// The value of the smallest unit of an asset, in wei of ETH, as a decimal number: 1 for ETH; 400000000 for a token of
/// six decimals that is worth 0.0004 ETH.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate {
    mantissa: u128,
    /// Ten to the number of digits behind the point.
    divisor: U256,
}

impl Rate {
    /// The rate of ETH.
    pub const ONE: Self = Self { mantissa: 1, divisor: U256::ONE };

    /// The value of an amount in wei, rounded down.
    fn worth(self, amount: Amount) -> u128 {
        let wei = U256::from(amount.0).saturating_mul(U256::from(self.mantissa));
        wei.checked_div(self.divisor).unwrap_or_default().saturating_to()
    }

    /// The smallest amount that is worth this many wei.
    fn amount_for(self, wei: u128) -> Amount {
        let units = U256::from(wei).saturating_mul(self.divisor);
        Amount(units.div_ceil(U256::from(self.mantissa)).saturating_to())
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a rate; give a decimal number above 0 with at most {DIGITS_MAX} digits");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(whole) || !is_digits(fraction) || whole.len() + fraction.len() > DIGITS_MAX {
            return Err(wrong());
        }
        let mantissa: u128 = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
        let divisor = U256::from(10).pow(U256::from(fraction.len()));
        if mantissa == 0 { Err(wrong()) } else { Ok(Self { mantissa, divisor }) }
    }
}

/// The assets that are served.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Assets(BTreeMap<Asset, Rate>);

impl Default for Assets {
    /// ETH alone.
    fn default() -> Self {
        Self([(Asset::ETHER, Rate::ONE)].into())
    }
}

impl FromIterator<(Asset, Rate)> for Assets {
    fn from_iter<I: IntoIterator<Item = (Asset, Rate)>>(assets: I) -> Self {
        Self(assets.into_iter().collect())
    }
}

impl Assets {
    /// Whether redemptions of an asset are submitted.
    #[must_use]
    pub fn serves(&self, asset: Asset) -> bool {
        self.0.contains_key(&asset)
    }

    /// The value of an amount in wei, rounded down. `None` if the asset is not served.
    #[must_use]
    pub fn worth(&self, asset: Asset, amount: Amount) -> Option<u128> {
        self.0.get(&asset).map(|rate| rate.worth(amount))
    }

    /// The smallest amount of each asset that is worth `wei(asset)`.
    pub(crate) fn amounts_for(&self, wei: impl Fn(Asset) -> u128) -> Vec<(Asset, Amount)> {
        self.0.iter().map(|(asset, rate)| (*asset, rate.amount_for(wei(*asset)))).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The assets that are served on a ledger, each with the smallest fee. To hand a redemption to a ledger costs nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Fees(BTreeMap<Asset, Amount>);

impl Default for Fees {
    /// The native asset for nothing.
    fn default() -> Self {
        Self([(Asset::ETHER, Amount::ZERO)].into())
    }
}

impl FromIterator<(Asset, Amount)> for Fees {
    fn from_iter<I: IntoIterator<Item = (Asset, Amount)>>(fees: I) -> Self {
        Self(fees.into_iter().collect())
    }
}

impl Fees {
    /// The smallest fee, in the asset's smallest unit; `None` if the asset is not served.
    #[must_use]
    pub fn least(&self, asset: Asset) -> Option<Amount> {
        self.0.get(&asset).copied()
    }

    /// The smallest fee of each asset.
    pub(crate) fn all(&self) -> Vec<(Asset, Amount)> {
        self.0.iter().map(|(asset, fee)| (*asset, *fee)).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Result<Rate, String> {
        Rate::try_from(text.to_owned())
    }

    #[test]
    fn rates_are_decimal_numbers_above_zero() {
        assert_eq!(rate("1").unwrap().worth(Amount(7)), 7);
        assert_eq!(rate("400000000").unwrap().worth(Amount(2)), 800_000_000);
        assert_eq!(rate("0.0004").unwrap().worth(Amount(9_999)), 3);
        assert_eq!(rate("1.50").unwrap().worth(Amount(3)), 4);
        let nines = "9".repeat(DIGITS_MAX - 1);
        assert_eq!(rate(&nines).unwrap().worth(Amount(u128::MAX)), u128::MAX);
        for wrong in ["", "0", "0.0", "-1", "+1", "1e3", ".5", "1.", "1.2.3", "0x1", " 1", &"1".repeat(DIGITS_MAX)] {
            assert!(rate(wrong).unwrap_err().contains("is not a rate"), "{wrong}");
        }
    }

    #[test]
    fn an_amount_for_a_value_in_wei_is_the_smallest_that_covers_it() {
        for text in ["1", "400000000", "0.0004", "3.7", "0.000000000000000001"] {
            let rate = rate(text).unwrap();
            for wei in [1, 2, 999, 65_499_000_000_000] {
                let Amount(units) = rate.amount_for(wei);
                assert!(rate.worth(Amount(units)) >= wei, "{text} {wei}");
                assert!(rate.worth(Amount(units - 1)) < wei, "{text} {wei}");
            }
        }
        assert_eq!(rate("0.0000000000000000000000000000000001").unwrap().amount_for(u128::MAX), Amount(u128::MAX));
    }

    #[test]
    fn eth_alone_is_served_by_default() {
        let assets = Assets::default();
        assert_eq!(assets.worth(Asset::ETHER, Amount(5)), Some(5));
        assert_eq!(assets.worth(Asset([1; 20].into()), Amount(5)), None);
        assert_eq!(assets.amounts_for(|_| 9), [(Asset::ETHER, Amount(9))]);
    }
}
