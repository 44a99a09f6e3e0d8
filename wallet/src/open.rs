//! Setting a wallet up, and opening it: what the committee is comes from the contract (or the genesis file)
//! and is kept, so that paying works while the Primary cannot be reached.

use std::path::Path;
use std::time::Duration;

use alloy::primitives::U64;
use alloy::rpc::client::RpcClient;
use fastpay_core::{Asset, Committee, Domain, Genesis};
use fastpay_ethereum::{Primary, PrimaryError, Token};
use fastpay_rpc::Endpoints;
use url::Url;

use crate::drive::DriveOptions;
use crate::error::WalletError;
use crate::folder::{AssetInfo, Config, ConfigError, Folder, KnownCommittee};
use crate::network::{Network, NetworkError};
use crate::wallet::Wallet;

/// How ETH is written, and the native asset without a Primary.
const ETHER_DECIMALS: u8 = 18;
const CHAIN_ID_TIMEOUT: Duration = Duration::from_secs(10);

/// Writes the configuration, after learning the committee from the contract and checking that the endpoints
/// serve it.
///
/// # Errors
/// Where the Primary does not answer or serves another chain, there is no contract, the endpoints are of
/// another committee, or there is a configuration already and `replace` is false.
pub async fn set_up(folder: &Folder, config: &Config, replace: bool) -> Result<KnownCommittee, WalletError> {
    let path = folder.config_path();
    if path.exists() && !replace {
        return Err(ConfigError::Exists(path).into());
    }
    let endpoints = Endpoints::read(&config.endpoints).map_err(NetworkError::from)?;
    let (domain, committee) = match &config.primary {
        Some(settings) => {
            let primary = Primary::connect(settings.connection()).await?;
            (primary.domain(), primary.committee(primary.epoch().await?).await?)
        }
        None => genesis_committee(config)?,
    };
    Network::new(domain, committee.clone(), &endpoints)?;
    let known = KnownCommittee::new(&domain, &committee);
    folder.create()?;
    folder.learn_committee(&known)?;
    config.write(&path, replace)?;
    Ok(known)
}

/// The chain id that the first of some Ethereum nodes serves.
///
/// # Errors
/// Where it does not answer.
pub async fn learn_chain_id(rpc_urls: &[Url]) -> Result<u64, WalletError> {
    let url = rpc_urls.first().ok_or(PrimaryError::NoUrl)?;
    let node = url.origin().ascii_serialization();
    let failed = |reason: String| PrimaryError::Unreachable { node: node.clone(), reason };
    let asked = RpcClient::new_http(url.clone()).request_noparams::<U64>("eth_chainId");
    let answer = tokio::time::timeout(CHAIN_ID_TIMEOUT, asked).await;
    let answer = answer.map_err(|_| failed(format!("no answer within {} s", CHAIN_ID_TIMEOUT.as_secs())))?;
    Ok(answer.map_err(|error| failed(error.to_string()))?.to())
}

/// Reads a genesis file.
///
/// # Errors
/// Where it is missing or malformed.
pub fn read_genesis(path: &Path) -> Result<Genesis, ConfigError> {
    let content = std::fs::read(path).map_err(|error| ConfigError::Io { path: path.into(), error })?;
    serde_json::from_slice(&content)
        .map_err(|error| ConfigError::Malformed { path: path.into(), reason: error.to_string() })
}

fn genesis_committee(config: &Config) -> Result<(Domain, Committee), WalletError> {
    let path = config.genesis.as_deref().ok_or(ConfigError::NoPrimary)?;
    let genesis = read_genesis(path)?;
    let committee = genesis.committee().map_err(NetworkError::from)?;
    Ok((genesis.domain(), committee))
}

impl Wallet {
    /// The wallet that was set up in `folder`. Asks nobody: the committee is the one learned by [`set_up`].
    /// Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where there is none, or its files are malformed.
    pub fn open(folder: Folder, options: DriveOptions) -> Result<Self, WalletError> {
        let config = folder.config()?;
        let endpoints = Endpoints::read(&config.endpoints).map_err(NetworkError::from)?;
        let (domain, committee) = match &config.primary {
            Some(settings) => {
                let known = folder.known_committee()?.ok_or_else(|| ConfigError::Missing(folder.home().into()))?;
                if (known.chain_id, known.contract) != (settings.chain_id, settings.contract) {
                    return Err(WalletError::CommitteeChanged);
                }
                let committee = known.committee().map_err(NetworkError::from)?;
                (Domain::new(known.chain_id, known.contract), committee)
            }
            None => genesis_committee(&config)?,
        };
        let network = Network::new(domain, committee, &endpoints)?;
        Ok(Self::new(folder, network, options))
    }

    /// A connection to the Primary, after checking that its contract has the committee that this wallet
    /// knows.
    ///
    /// # Errors
    /// In stand-alone mode; where the Primary does not answer; or where the committee is another.
    pub async fn primary(&self) -> Result<Primary, WalletError> {
        let config = self.folder().config()?;
        let primary = Primary::connect(config.primary()?.connection()).await?;
        let committee = primary.committee(primary.epoch().await?).await?;
        if committee != *self.network().committee() {
            return Err(WalletError::CommitteeChanged);
        }
        Ok(primary)
    }

    /// How amounts of an asset are written. A token is asked once; its answer is kept.
    ///
    /// # Errors
    /// Where the token has no decimals, or is not known yet and the Primary does not answer.
    pub async fn asset_info(&self, asset: Asset) -> Result<AssetInfo, WalletError> {
        let config = self.folder().config()?;
        if asset == Asset::ETHER {
            let symbol = if config.primary.is_some() { "ETH" } else { "native" };
            return Ok(AssetInfo { symbol: symbol.into(), decimals: ETHER_DECIMALS });
        }
        if let Some(info) = self.folder().known_asset(asset)? {
            return Ok(info);
        }
        let Some(settings) = &config.primary else {
            // Nobody to ask: such an asset is counted in its smallest unit.
            return Ok(AssetInfo { symbol: "units".into(), decimals: 0 });
        };
        let primary = Primary::connect(settings.connection()).await?;
        let metadata = Token::new(primary, asset.0).metadata().await?;
        let info = AssetInfo { symbol: metadata.symbol, decimals: metadata.decimals };
        self.folder().learn_asset(asset, &info)?;
        Ok(info)
    }
}
