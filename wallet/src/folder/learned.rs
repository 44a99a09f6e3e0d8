//! What the wallet was told by the Primary and keeps, so that paying does not wait for the Primary: the
//! committee, and the decimals of tokens.

use std::collections::BTreeMap;

use fastpay_core::{Asset, Authority, Committee, CommitteeError, Domain, Epoch, PrimaryAddress};
use serde::{Deserialize, Serialize};

use super::error::FolderError;
use super::{Folder, durable};

/// The committee as the contract listed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownCommittee {
    /// The chain's id.
    pub chain_id: u64,
    /// The contract.
    pub contract: PrimaryAddress,
    /// The epoch.
    pub epoch: Epoch,
    /// The members.
    pub members: Vec<Authority>,
}

impl KnownCommittee {
    /// What the contract says of its committee, to be stored.
    #[must_use]
    pub fn new(domain: &Domain, committee: &Committee) -> Self {
        Self {
            chain_id: domain.chain_id(),
            contract: domain.contract(),
            epoch: committee.epoch(),
            members: committee.members().to_vec(),
        }
    }

    /// The committee.
    ///
    /// # Errors
    /// Where the stored list is none.
    pub fn committee(&self) -> Result<Committee, CommitteeError> {
        Committee::new(self.epoch, self.members.clone())
    }
}

/// How an asset is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssetInfo {
    /// Its short name, which anyone can choose: the address is what identifies a token.
    pub symbol: String,
    /// Its decimals.
    pub decimals: u8,
}

impl Folder {
    /// The committee that was learned last.
    ///
    /// # Errors
    /// Where the file is damaged.
    pub fn known_committee(&self) -> Result<Option<KnownCommittee>, FolderError> {
        self.read_learned("committee.json")
    }

    /// Keeps what the contract says of its committee.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn learn_committee(&self, committee: &KnownCommittee) -> Result<(), FolderError> {
        self.write_learned("committee.json", committee)
    }

    /// What is known of an asset.
    ///
    /// # Errors
    /// Where the file is damaged.
    pub fn known_asset(&self, asset: Asset) -> Result<Option<AssetInfo>, FolderError> {
        let mut known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        Ok(known.remove(&asset.to_string()))
    }

    /// All assets of which something is known.
    ///
    /// # Errors
    /// Where the file is damaged.
    pub fn known_assets(&self) -> Result<Vec<Asset>, FolderError> {
        let known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        Ok(known.keys().filter_map(|asset| asset.parse().ok().map(Asset)).collect())
    }

    /// Keeps what a token says of itself.
    ///
    /// # Errors
    /// Where the disk refuses.
    pub fn learn_asset(&self, asset: Asset, info: &AssetInfo) -> Result<(), FolderError> {
        let mut known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        if known.insert(asset.to_string(), info.clone()).as_ref() == Some(info) {
            return Ok(());
        }
        self.write_learned("assets.json", &known)
    }

    fn read_learned<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, FolderError> {
        let path = self.home.join(name);
        let Some(content) = durable::read(&path).map_err(|error| FolderError::io(&path, error))? else {
            return Ok(None);
        };
        serde_json::from_slice(&content).map(Some).map_err(|error| FolderError::damaged(&path, error))
    }

    fn write_learned(&self, name: &str, value: &impl Serialize) -> Result<(), FolderError> {
        let path = self.home.join(name);
        let content = serde_json::to_vec_pretty(value).map_err(|error| FolderError::damaged(&path, error))?;
        durable::create_folder(&self.home)
            .and_then(|()| durable::replace(&path, &content))
            .map_err(|error| FolderError::io(&path, error))
    }
}
