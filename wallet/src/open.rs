//! Sets a wallet up, and opens it. The committees come from the contract (or the genesis file) and are stored, so that
//! paying works while the Primary cannot be reached.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, Endpoints};
use fastpay_core::{Asset, AuthorityName, Committees, Domain, Epoch, Genesis};
use fastpay_ethereum::{Alarm, DepositsError, EpochReader, Primary, PrimaryError, Token, served_chain};
use fastpay_ledger_client::{CommitteeClient, oldest_state};
use tokio::time::{Instant, sleep};
use url::Url;

use crate::error::WalletError;
use crate::folder::{AssetInfo, Config, ConfigError, Folder, KnownCommittees, PrimarySection};
use crate::wallet::{READ_PATIENCE, Wallet};
use fastpay_client::QuorumOptions;
use fastpay_client::{Network, NetworkError};

/// The decimals of ETH, and of the native asset without a Primary.
const ETHER_DECIMALS: u8 = 18;
/// The maximum time for which `init` waits for the deployment's block to be final.
const DEPLOYMENT_PATIENCE: Duration = Duration::from_secs(10);
const DEPLOYMENT_POLL: Duration = Duration::from_millis(300);

/// Writes the configuration, after reading the committees from the contract and checking that the endpoints serve it.
///
/// # Errors
/// If the Primary does not answer or serves another chain, there is no contract, the endpoints are of another
/// committee, there is a configuration already and `replace` is false, or the folder's history is of another
/// deployment.
pub async fn set_up(folder: &Folder, config: &Config, replace: bool) -> Result<KnownCommittees, WalletError> {
    let path = folder.config_path();
    if path.exists() && !replace {
        return Err(ConfigError::Exists(path).into());
    }
    let endpoints = Endpoints::read(&config.endpoints).map_err(NetworkError::from)?;
    let (domain, committees) = match &config.primary {
        Some(PrimarySection::Ledger(settings)) => {
            let ledger = CommitteeClient::open(&settings.file, settings.committee)?;
            (ledger.domain(), ledger.committees(first_on(&ledger)?, oldest_state()).await?)
        }
        Some(PrimarySection::Ethereum(settings)) => {
            let primary = Primary::connect(settings.connection()).await?;
            let domain = primary.domain();
            (domain, first_committees(primary).await?)
        }
        None => genesis_committees(config)?,
    };
    let network = Network::new(domain, committees.clone(), &endpoints)?;
    if !network.is_all_found() {
        network.learn_names(Instant::now() + READ_PATIENCE).await;
        network.find_members(Instant::now() + READ_PATIENCE).await;
    }
    network.check_reach()?;
    let known = KnownCommittees::new(&domain, committees);
    if !folder.known_committees()?.is_some_and(|before| before.is_of_deployment(&known)) {
        if folder.has_history()? {
            let (home, chain_id, contract) = (folder.home().into(), known.chain_id, known.contract);
            return Err(WalletError::OtherDeployment { home, chain_id, contract });
        }
        // The same address may be another token there.
        folder.forget_assets()?;
    }
    folder.create()?;
    folder.learn_committees(&known)?;
    folder.learn_endpoints(&network.told())?;
    config.write(&path, replace)?;
    Ok(known)
}

/// The committees of a contract that may have been deployed a moment ago. Waits for its block to become final, and
/// otherwise returns the error that it is not.
async fn first_committees(primary: Primary) -> Result<Committees, WalletError> {
    let reader = EpochReader::new(primary);
    let until = Instant::now() + DEPLOYMENT_PATIENCE;
    loop {
        match reader.read(None).await {
            Err(DepositsError::Lagging { .. }) if Instant::now() < until => sleep(DEPLOYMENT_POLL).await,
            outcome => return Ok(outcome?),
        }
    }
}

/// The chain id that the first of these Ethereum nodes serves.
///
/// # Errors
/// If it does not answer.
pub async fn learn_chain_id(rpc_urls: &[Url]) -> Result<u64, WalletError> {
    let url = rpc_urls.first().ok_or(PrimaryError::NoUrl)?;
    Ok(served_chain(url).await?)
}

/// Reads a genesis file.
///
/// # Errors
/// If it is missing or malformed.
pub fn read_genesis(path: &Path) -> Result<Genesis, ConfigError> {
    let content = std::fs::read(path).map_err(|error| ConfigError::Io { path: path.into(), error })?;
    serde_json::from_slice(&content)
        .map_err(|error| ConfigError::Malformed { path: path.into(), reason: error.to_string() })
}

/// The committee of epoch 0 of a ledger.
fn first_on(ledger: &CommitteeClient) -> Result<Committees, WalletError> {
    Ok(Committees::new(ledger.first().clone()).map_err(NetworkError::from)?)
}

fn genesis_committees(config: &Config) -> Result<(Domain, Committees), WalletError> {
    let path = config.genesis.as_deref().ok_or(ConfigError::NoPrimary)?;
    let genesis = read_genesis(path)?;
    let committee = genesis.committee().map_err(NetworkError::from)?;
    Ok((genesis.domain(), Committees::new(committee).map_err(NetworkError::from)?))
}

impl Wallet {
    /// Opens the wallet that was set up in `folder`, without network access: the committees are those stored by
    /// [`set_up`] and [`Wallet::follow`]. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If there is no wallet, or its files are malformed.
    pub fn open(folder: Folder, options: QuorumOptions) -> Result<Self, WalletError> {
        let config = folder.config()?;
        let endpoints = Endpoints::read(&config.endpoints).map_err(NetworkError::from)?;
        let (chain_id, contract) = match &config.primary {
            None => {
                let (domain, committees) = genesis_committees(&config)?;
                return Ok(Self::new(folder, Network::new(domain, committees, &endpoints)?, options));
            }
            Some(PrimarySection::Ethereum(settings)) => (settings.chain_id, settings.contract),
            Some(PrimarySection::Ledger(settings)) => {
                let domain = CommitteeClient::open(&settings.file, settings.committee)?.domain();
                (domain.chain_id(), domain.contract())
            }
        };
        let known = folder.known_committees()?.ok_or_else(|| ConfigError::Missing(folder.home().into()))?;
        if (known.chain_id, known.contract) != (chain_id, contract) {
            return Err(WalletError::OtherDeployment { home: folder.home().into(), chain_id, contract });
        }
        let network = Network::new(Domain::new(known.chain_id, known.contract), known.committees.clone(), &endpoints)?;
        network.adopt(known.committees, known.names);
        if let Some(closing) = known.closing {
            network.count_closing(closing);
        }
        network.learn(folder.known_endpoints()?);
        Ok(Self::new(folder, network, options))
    }

    /// The present content of the endpoints file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn endpoints(&self) -> Result<Endpoints, WalletError> {
        Ok(Endpoints::read(&self.folder().config()?.endpoints).map_err(NetworkError::from)?)
    }

    /// The labels of the authorities in the endpoints file, by their names there and by their current ones.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn labels(&self) -> Result<BTreeMap<AuthorityName, String>, WalletError> {
        let names = self.network().names();
        let mut labels = BTreeMap::new();
        for AuthorityEndpoints { name, label, .. } in self.endpoints()?.authorities {
            let Some(label) = label else { continue };
            labels.extend(names.get(&name).map(|now| (*now, label.clone())));
            labels.insert(name, label);
        }
        Ok(labels)
    }

    /// A connection to the Primary, after following the rotations of the committee.
    ///
    /// # Errors
    /// In stand-alone mode; if the Primary does not answer; or if its contract never had the committees that this
    /// wallet knows.
    pub async fn primary(&self) -> Result<Primary, WalletError> {
        let config = self.folder().config()?;
        let primary = Primary::connect(config.primary()?.connection()).await?;
        let known = self.network().committees();
        // Another chain may answer under the same number. On the right one, a committee that was once final still is.
        if primary.committee(known.current().epoch()).await? != **known.current() {
            return Err(WalletError::OtherCommittee);
        }
        match self.read_committees(&primary, &known).await {
            Ok((committees, closing)) => self.learn(committees, closing).await?,
            // One of several nodes is away or behind: the known committees stay valid.
            Err(DepositsError::Alarm(Alarm::EpochLost { .. })) => {}
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "cannot find out now whether the committee has changed")
            }
            Err(error) => return Err(error.into()),
        }
        Ok(primary)
    }

    /// The committees, and the epoch before the current one if its checkpoints count.
    async fn read_committees(
        &self,
        primary: &Primary,
        known: &Committees,
    ) -> Result<(Committees, Option<Epoch>), DepositsError> {
        let reader = EpochReader::new(primary.clone());
        let committees = reader.read(Some(known)).await?;
        // What was so once stays so until another epoch begins.
        let closing = match self.network().certifying().get(1) {
            Some(closing) if committees == *known => Some(closing.epoch()),
            // Without the answer, the committees count, and only checkpoints of the epoch before do not.
            _ => reader.closing(&committees).await.unwrap_or_else(|error| {
                tracing::warn!(%error, "whether the committee before counts cannot be told now");
                None
            }),
        };
        Ok((committees, closing))
    }

    /// The ledger, if the Primary is one, after following the rotations of the committee.
    ///
    /// # Errors
    /// If its file cannot be used, or lists another committee than this wallet knows.
    pub async fn ledger(&self) -> Result<Option<CommitteeClient>, WalletError> {
        let config = self.folder().config()?;
        let Some(settings) = config.ledger() else { return Ok(None) };
        let ledger = CommitteeClient::open(&settings.file, settings.committee)?;
        if ledger.domain() != *self.network().domain() {
            return Err(WalletError::OtherCommittee);
        }
        match ledger.committees(self.network().committees(), oldest_state()).await {
            // Without checkpoints, only certificates of the current committee count.
            Ok(committees) => self.learn(committees, None).await?,
            Err(error) => tracing::warn!(%error, "cannot find out now whether the committee has changed"),
        }
        Ok(Some(ledger))
    }

    /// Follows the Primary's rotations of the committee.
    ///
    /// # Errors
    /// As [`Wallet::primary`] and [`Wallet::ledger`].
    pub async fn follow(&self) -> Result<(), WalletError> {
        match self.ledger().await? {
            Some(_) => Ok(()),
            None => self.primary().await.map(drop),
        }
    }

    /// Reads the contract if an authority named a newer epoch. Returns whether there is one.
    pub(crate) async fn follow_hint(&self) -> bool {
        if self.network().hinted_epoch().is_none() {
            return false;
        }
        let before = self.network().committee().epoch();
        if let Err(error) = self.follow().await {
            tracing::warn!(%error, "an authority reports a new committee, and the Primary does not answer");
        }
        self.network().drop_hint();
        self.network().committee().epoch() > before
    }

    /// Asks the authorities, and asks once more after too few answers if the members are others by now.
    ///
    /// # Errors
    /// That of the question; [`NetworkError::TooFewEndpoints`] where that is why there are too few answers.
    pub(crate) async fn among_members<T, F: Future<Output = Result<T, WalletError>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Result<T, WalletError> {
        let answers = match ask().await {
            Err(WalletError::TooFewAnswers { .. }) if self.seek_members().await => ask().await,
            answers => answers,
        };
        if let Err(WalletError::TooFewAnswers { .. }) = answers {
            self.network().check_reach()?;
        }
        answers
    }

    /// After too few answers: reads the contract, and asks where members are that the endpoints file does not list. Returns
    /// whether there is a newer committee, another address, or a quorum under names that were not known.
    pub(crate) async fn seek_members(&self) -> bool {
        let network = self.network();
        let (epoch, told, was_reached) = (network.committee().epoch(), network.told(), network.check_reach().is_ok());
        if let Err(error) = self.follow().await {
            tracing::debug!(%error, "whether there is another committee cannot be found out now");
        }
        network.drop_hint();
        if !network.is_all_listed() && network.told() == told {
            self.find_members().await;
        }
        // Members that change their keys give their new names once they have read the rotation, as this wallet has.
        let until = Instant::now() + READ_PATIENCE;
        while network.check_reach().is_err() && Instant::now() < until {
            sleep(self.client().options().backoff_max).await;
            network.learn_names(until).await;
        }
        let is_reached = network.check_reach().is_ok();
        network.committee().epoch() > epoch || network.told() != told || is_reached && !was_reached
    }

    /// Asks the authorities where members are that the endpoints file does not list. Returns whether anything new is known.
    async fn find_members(&self) -> bool {
        let is_new = self.network().find_members(Instant::now() + READ_PATIENCE).await;
        if is_new && let Err(error) = self.folder().learn_endpoints(&self.network().told()) {
            tracing::warn!(%error, "where members are cannot be kept; they are asked for again");
        }
        is_new
    }

    async fn learn(&self, committees: Committees, closing: Option<Epoch>) -> Result<(), WalletError> {
        let network = self.network();
        network.adopt(committees.clone(), network.names());
        let is_counted = closing.is_some_and(|closing| network.count_closing(closing));
        network.learn_names(Instant::now() + READ_PATIENCE).await;
        let now = network.names();
        // One that was cut short may have taken it up and not stored it.
        let stored = self.folder().known_committees()?;
        if is_counted || stored.is_none_or(|stored| stored.committees != committees || stored.names != now) {
            let learned = KnownCommittees { names: now, closing, ..KnownCommittees::new(network.domain(), committees) };
            self.folder().learn_committees(&learned)?;
        }
        if !network.is_all_found() {
            self.find_members().await;
        }
        Ok(())
    }

    /// The symbol and decimals of an asset. A token is asked once, and its answer is stored.
    ///
    /// # Errors
    /// If the token has no decimals, or is unknown and the Primary does not answer.
    pub async fn asset_info(&self, asset: Asset) -> Result<AssetInfo, WalletError> {
        let config = self.folder().config()?;
        if asset == Asset::ETHER {
            let symbol = if config.primary().is_ok() { "ETH" } else { "native" };
            return Ok(AssetInfo { symbol: symbol.into(), decimals: ETHER_DECIMALS });
        }
        if let Some(info) = self.folder().known_asset(asset)? {
            return Ok(info);
        }
        let Ok(settings) = config.primary() else {
            // Without a contract, such an asset is counted in its smallest unit.
            return Ok(AssetInfo { symbol: "units".into(), decimals: 0 });
        };
        let primary = Primary::connect(settings.connection()).await?;
        let metadata = Token::new(primary, asset.0).metadata().await?;
        let info = AssetInfo { symbol: metadata.symbol, decimals: metadata.decimals };
        self.folder().learn_asset(asset, &info)?;
        Ok(info)
    }
}
