//! The symbols and decimals of the assets that the service knows. It asks no node.

use axum::Json;
use axum::extract::State as Shared;
use fastpay_core::Asset;
use fastpay_rpc::json::Bytes20;
use fastpay_wallet::folder::{AssetInfo, Folder, FolderError};
use serde::Serialize;
use utoipa::ToSchema;

use super::invoices::SharedShop;
use super::problem::{ApiError, OfService};
use crate::ledger_error::LedgerError;

const ETHER_DECIMALS: u8 = 18;

/// How amounts of an asset are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssetForm {
    /// The address of an ERC-20, or zero for ETH.
    asset: Bytes20,
    /// Its short name, which anybody can choose for a token.
    symbol: String,
    /// The number of decimals.
    decimals: u8,
}

/// The assets that the service knows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AssetList {
    /// ETH first.
    assets: Vec<AssetForm>,
}

/// The symbol and decimals of an asset, as far as the wallet's folder contains them.
pub(super) fn known(folder: &Folder, asset: Asset) -> Result<Option<AssetForm>, FolderError> {
    let info = match asset {
        Asset::ETHER => Some(AssetInfo { symbol: "ETH".into(), decimals: ETHER_DECIMALS }),
        token => folder.known_asset(token)?,
    };
    Ok(info.map(|AssetInfo { symbol, decimals }| AssetForm { asset: asset.into(), symbol, decimals }))
}

impl AssetForm {
    pub(super) fn parts(self) -> (String, u8) {
        (self.symbol, self.decimals)
    }
}

/// Assets
///
/// How amounts are written of ETH, of the tokens that the owner's wallet knew when the service was set up, and of those
/// that invoices name.
#[utoipa::path(get, path = "/v1/assets", tag = "Service", operation_id = "listAssets",
    responses((status = 200, description = "The assets that the service knows.", body = AssetList), OfService))]
pub(super) async fn list(Shared(shop): SharedShop) -> Result<Json<AssetList>, ApiError> {
    let folder = shop.wallet.folder();
    let tokens = folder.known_assets().map_err(LedgerError::from)?.into_iter().filter(|asset| *asset != Asset::ETHER);
    let all = std::iter::once(Asset::ETHER).chain(tokens);
    let assets: Result<Vec<_>, _> = all.filter_map(|asset| known(folder, asset).transpose()).collect();
    Ok(Json(AssetList { assets: assets.map_err(LedgerError::from)? }))
}
