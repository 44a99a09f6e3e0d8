//! Facts from the Primary that the wallet caches, so that paying does not wait for the Primary: the committees, and the
//! decimals of tokens.

use std::collections::BTreeMap;
use std::io::ErrorKind;

use fastpay_core::{Asset, AuthorityName, Committees, Domain, Epoch, PrimaryAddress, SignedEndpoint};
use fastpay_program::files;
use fastpay_rpc::json::MemberEndpoints;
use serde::{Deserialize, Serialize};

use super::Folder;
use super::error::FolderError;
use super::json;

/// Where members can be reached that the endpoints file does not list, as they say themselves.
const ENDPOINTS_FILE: &str = "members.json";

/// The committees as the contract listed them, in final blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KnownCommittees {
    /// The chain's id.
    pub chain_id: u64,
    /// The contract.
    pub contract: PrimaryAddress,
    /// The members of each epoch, from the first.
    pub committees: Committees,
    /// The current names of endpoints, by their names in the file.
    #[serde(default)]
    pub names: BTreeMap<AuthorityName, AuthorityName>,
    /// The epoch before the current one, if its keys were not out: its checkpoints count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Epoch>,
}

impl KnownCommittees {
    /// The contract's committees, in the form to store.
    #[must_use]
    pub fn new(domain: &Domain, committees: Committees) -> Self {
        let (chain_id, contract) = (domain.chain_id(), domain.contract());
        Self { chain_id, contract, committees, names: BTreeMap::new(), closing: None }
    }

    /// Whether both are of one contract on one chain. The first committee is compared, too: a test chain may restart
    /// under the same number, with its contract at the same address.
    #[must_use]
    pub fn is_of_deployment(&self, other: &Self) -> bool {
        let first = |known: &Self| known.committees.iter().next().cloned();
        (self.chain_id, self.contract, first(self)) == (other.chain_id, other.contract, first(other))
    }
}

/// How an asset is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssetInfo {
    /// Its symbol, which anyone can choose: only the address identifies a token.
    pub symbol: String,
    /// Its decimals.
    pub decimals: u8,
}

impl Folder {
    /// The stored committees.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn known_committees(&self) -> Result<Option<KnownCommittees>, FolderError> {
        self.read_learned("committees.json")
    }

    /// Stores the contract's committees.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn learn_committees(&self, committees: &KnownCommittees) -> Result<(), FolderError> {
        self.write_learned("committees.json", committees)
    }

    /// Where members said that they can be reached, unverified.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn known_endpoints(&self) -> Result<Vec<SignedEndpoint>, FolderError> {
        let known: Option<MemberEndpoints> = self.read_learned(ENDPOINTS_FILE)?;
        Ok(known.unwrap_or_default().read().collect())
    }

    /// Stores where members say that they can be reached.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn learn_endpoints(&self, endpoints: &[SignedEndpoint]) -> Result<(), FolderError> {
        self.write_learned(ENDPOINTS_FILE, &MemberEndpoints::new(endpoints))
    }

    /// The stored properties of an asset.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn known_asset(&self, asset: Asset) -> Result<Option<AssetInfo>, FolderError> {
        let mut known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        Ok(known.remove(&asset.to_string()))
    }

    /// All assets with stored properties.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn known_assets(&self) -> Result<Vec<Asset>, FolderError> {
        let known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        Ok(known.keys().filter_map(|asset| asset.parse().ok().map(Asset)).collect())
    }

    /// The tokens known to this wallet with this symbol. Anyone can choose a symbol, so there may be several.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn assets_named(&self, symbol: &str) -> Result<Vec<Asset>, FolderError> {
        let known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        let named = known.iter().filter(|(_, info)| info.symbol == symbol);
        Ok(named.filter_map(|(asset, _)| asset.parse().ok().map(Asset)).collect())
    }

    /// Stores the properties of a token.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn learn_asset(&self, asset: Asset, info: &AssetInfo) -> Result<(), FolderError> {
        let mut known: BTreeMap<String, AssetInfo> = self.read_learned("assets.json")?.unwrap_or_default();
        if known.insert(asset.to_string(), info.clone()).as_ref() == Some(info) {
            return Ok(());
        }
        self.write_learned("assets.json", &known)
    }

    /// Removes the stored properties of tokens.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub fn forget_assets(&self) -> Result<(), FolderError> {
        let path = self.home.join("assets.json");
        match files::remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(FolderError::io(&path, error)),
            _ => Ok(()),
        }
    }

    fn read_learned<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, FolderError> {
        json::read(&self.home.join(name))
    }

    fn write_learned(&self, name: &str, value: &impl Serialize) -> Result<(), FolderError> {
        self.create()?;
        json::replace(&self.home.join(name), value)
    }
}
