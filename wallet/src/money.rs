//! Amounts of one asset as people write and read them, and as programs do.

use std::fmt::Display;

use fastpay_core::{Amount, Asset};
use serde_json::{Value, json};

use crate::decimal::{format_units, parse_amount};
use crate::error::WalletError;
use crate::folder::AssetInfo;
use crate::wallet::Wallet;

/// Amounts of one asset, written for people and programs.
#[derive(Clone, Debug)]
pub struct Money {
    asset: Asset,
    info: Option<AssetInfo>,
}

impl Money {
    /// The format of amounts of `asset`. If its decimals are unknown now, amounts are in its smallest unit and
    /// labelled so.
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

    /// A number of smallest units, for people.
    #[must_use]
    pub fn text(&self, units: impl Display) -> String {
        match &self.info {
            Some(info) => format!("{} {}", format_units(units, info.decimals), info.symbol),
            None => format!("{units} smallest units of {}", self.asset),
        }
    }

    /// The same for programs: `units` is exact, `amount` is the same in whole units.
    #[must_use]
    pub fn json(&self, units: impl Display) -> Value {
        let amount = self.info.as_ref().map(|info| format_units(&units, info.decimals));
        let symbol = self.info.as_ref().map(|info| info.symbol.clone());
        json!({ "asset": self.asset, "symbol": symbol, "amount": amount, "units": units.to_string() })
    }
}

impl Wallet {
    /// Reads an amount that a person wrote in whole units of an asset, such as 1.5.
    ///
    /// # Errors
    /// If it is none, or the asset's decimals cannot be learned now.
    pub async fn read_amount(&self, asset: Asset, text: &str) -> Result<Amount, WalletError> {
        Ok(parse_amount(text, self.asset_info(asset).await?.decimals)?)
    }
}
