//! Amounts of one asset, in the form for people and in the form for programs.

use std::fmt::Display;

use fastpay_core::{Amount, Asset};
use serde_json::{Value, json};

use crate::decimal::{format_units, parse_amount};
use crate::error::WalletError;
use crate::folder::AssetInfo;
use crate::wallet::Wallet;

/// Formats and parses amounts of one asset.
#[derive(Clone, Debug)]
pub struct Money {
    asset: Asset,
    info: Option<AssetInfo>,
}

impl Money {
    /// The format of amounts of `asset`. If its decimals are unknown now, amounts are in its smallest unit and labelled
    /// so.
    pub async fn of(wallet: &Wallet, asset: Asset) -> Self {
        let info = match wallet.asset_info(asset).await {
            Ok(info) => Some(info),
            Err(error) => {
                tracing::warn!(%asset, %error, "the asset's decimals are not known; amounts are in its smallest unit");
                None
            }
        };
        Self { asset, info }
    }

    /// Formats a number of smallest units for people.
    #[must_use]
    pub fn text(&self, units: impl Display) -> String {
        match &self.info {
            Some(info) => format!("{} {}", format_units(units, info.decimals), info.symbol),
            None => format!("{units} smallest units of {}", self.asset),
        }
    }

    /// Formats a number of smallest units for programs: `units` is exact, `amount` is the same in whole units.
    #[must_use]
    pub fn json(&self, units: impl Display) -> Value {
        let amount = self.info.as_ref().map(|info| format_units(&units, info.decimals));
        let symbol = self.info.as_ref().map(|info| info.symbol.clone());
        json!({ "asset": self.asset, "symbol": symbol, "amount": amount, "units": units.to_string() })
    }
}

impl Wallet {
    /// Parses an amount that a person wrote in whole units of an asset, such as 1.5.
    ///
    /// # Errors
    /// If it is not an amount, or the asset's decimals cannot be read now.
    pub async fn read_amount(&self, asset: Asset, text: &str) -> Result<Amount, WalletError> {
        Ok(parse_amount(text, self.asset_info(asset).await?.decimals)?)
    }
}
