//! The relayer's configuration: a TOML file, with single values overridden by flags or environment.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use alloy::primitives::U256;
use alloy::primitives::utils::parse_ether;
use fastpay_core::PrimaryAddress;
use fastpay_ethereum::{Finality, PrimaryConfig, SenderConfig};
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_program::configuration;
use fastpay_rpc::REDEMPTION_BATCH_MAX;
use fastpay_telemetry::TraceSettings;
use serde::Deserialize;
use url::Url;

use crate::assets::{Assets, Fees};
use crate::policy::{BelowCost, Policy};

const WEI_PER_GWEI: u128 = 1_000_000_000;

/// Keys of earlier releases, and what replaces them.
const GONE: [(&str, &str); 2] = [("default_minimum_fee", MINIMUM_FEES_NOW), ("minimum_fees", MINIMUM_FEES_NOW)];
const MINIMUM_FEES_NOW: &str = "[assets] lists the assets that are served, each with the value of its smallest unit in \
    wei of ETH, and [bundle] below_cost sets what happens to a redemption whose fee does not cover the gas";

/// Tables that are for one kind of Primary alone.
const OF_ETHEREUM: [&str; 4] = ["assets", "bundle", "sender", "unlock"];
const OF_LEDGER: [&str; 1] = ["fees"];

/// The relayer's configuration, with that of its Primary. Paths are relative to the file's folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config<P = PrimaryConfig> {
    /// The contract and the Ethereum nodes, or the ledger.
    pub primary: P,
    /// The JSON file of the authorities' endpoints.
    pub endpoints: PathBuf,
    /// The folder of the state that must survive a restart.
    pub data_dir: PathBuf,
    /// The gas key.
    pub key: KeyConfig,
    /// The address that serves metrics. Without it, none are served. Keep it private.
    pub metrics: Option<SocketAddr>,
    /// The public address for wallets: it serves the fees (`GET /v1/fees`), and takes requests to unlock accounts
    /// (`POST /v1/unlocks`). Without it, neither is available.
    pub http: Option<SocketAddr>,
    /// The collector of redemption traces. Without it, none are sent.
    pub traces: Option<TraceSettings>,
    /// How transactions are paid for.
    #[serde(default)]
    pub sender: SenderConfig,
    /// When and how redemptions are bundled.
    #[serde(default)]
    pub bundle: BundleConfig,
    /// Settings for unlocking accounts.
    #[serde(default)]
    pub unlock: UnlockConfig,
    /// The assets that are served, by address, each with the wei of ETH that its smallest unit is worth. The default is
    /// ETH alone; a list replaces it, so it must name ETH, too.
    #[serde(default)]
    pub assets: Assets,
    /// On a ledger: the assets that are served, by address, each with the smallest fee in its smallest unit. The default is
    /// the native asset for nothing.
    #[serde(default)]
    pub fees: Fees,
    /// The interval between reads of redemption logs and Primary, in milliseconds.
    #[serde(default = "default_poll_interval_ms")]
    pub poll_interval_ms: u64,
}

/// The Primary, by its `kind`: `"ethereum"`, which need not be given, or `"ledger"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "PrimaryFields")]
pub enum PrimarySection {
    /// A contract on Ethereum.
    Ethereum(PrimaryConfig),
    /// A committee on a ledger.
    Ledger(LedgerSettings),
}

/// A committee on a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerSettings {
    /// The file that describes the ledger: its genesis, and the addresses of its members.
    pub file: PathBuf,
    /// The number of the committee in it.
    pub committee: CommitteeNumber,
}

/// The fields of `[primary]`, of either kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrimaryFields {
    #[serde(default)]
    kind: PrimaryKind,
    rpc_urls: Option<Vec<Url>>,
    chain_id: Option<u64>,
    contract: Option<PrimaryAddress>,
    finality: Option<Finality>,
    request_timeout_ms: Option<u64>,
    file: Option<PathBuf>,
    committee: Option<CommitteeNumber>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PrimaryKind {
    #[default]
    Ethereum,
    Ledger,
}

impl TryFrom<PrimaryFields> for PrimarySection {
    type Error = String;

    fn try_from(fields: PrimaryFields) -> Result<Self, String> {
        let PrimaryFields { kind, rpc_urls, chain_id, contract, finality, request_timeout_ms, file, committee } =
            fields;
        let missing = |field: &str| format!("missing field `{field}`");
        let of_ledger = [("file", file.is_some()), ("committee", committee.is_some())];
        let of_ethereum = [
            ("rpc_urls", rpc_urls.is_some()),
            ("chain_id", chain_id.is_some()),
            ("contract", contract.is_some()),
            ("finality", finality.is_some()),
            ("request_timeout_ms", request_timeout_ms.is_some()),
        ];
        let others = match kind {
            PrimaryKind::Ethereum => &of_ledger[..],
            PrimaryKind::Ledger => &of_ethereum[..],
        };
        if let Some((field, _)) = others.iter().find(|(_, is_given)| *is_given) {
            return Err(of_other_kind(field));
        }
        Ok(match kind {
            PrimaryKind::Ethereum => {
                let rpc_urls = rpc_urls.ok_or_else(|| missing("rpc_urls"))?;
                let chain_id = chain_id.ok_or_else(|| missing("chain_id"))?;
                let contract = contract.ok_or_else(|| missing("contract"))?;
                let mut config = PrimaryConfig::new(rpc_urls, chain_id, contract);
                config.finality = finality.unwrap_or_default();
                config.request_timeout_ms = request_timeout_ms.unwrap_or(config.request_timeout_ms);
                Self::Ethereum(config)
            }
            PrimaryKind::Ledger => Self::Ledger(LedgerSettings {
                file: file.ok_or_else(|| missing("file"))?,
                committee: committee.ok_or_else(|| missing("committee"))?,
            }),
        })
    }
}

fn of_other_kind(name: &str) -> String {
    format!("`{name}` is for the other kind of Primary")
}

fn default_poll_interval_ms() -> u64 {
    2_000
}

/// The gas key's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyConfig {
    /// A keystore (Web3 secret storage), or 64 hexadecimal digits in a file readable by its owner alone.
    pub file: PathBuf,
    /// A file whose first line is the keystore's passphrase. Without it, the passphrase comes from
    /// `FASTPAY_RELAYER_PASSPHRASE` or a prompt.
    pub passphrase_file: Option<PathBuf>,
}

/// When and how redemptions are bundled.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BundleConfig {
    /// The maximum number of redemptions, up to as many as authorities vote for at once. In a committee of four, a
    /// redemption costs about 66,000 gas alone and 24,000 among a hundred.
    pub items_max: usize,
    /// The longest time that a redemption waits for company, for cheaper gas or until its fee suffices, in
    /// milliseconds.
    pub wait_ms_max: u64,
    /// Above this gas price (base fee and tip, in gwei), every redemption waits as long as it may.
    pub patient_above_gwei: Option<u64>,
    /// What happens to a redemption whose fee does not cover its share of the gas after that time.
    pub below_cost: BelowCost,
    /// Whether to execute queued redemptions that other relayers submitted, too: those relayers get the fees.
    pub execute_others: bool,
    /// The maximum number of transactions that are not final yet.
    pub in_flight_max: usize,
}

impl Default for BundleConfig {
    fn default() -> Self {
        Self {
            items_max: 100,
            wait_ms_max: 60_000,
            patient_above_gwei: None,
            below_cost: BelowCost::default(),
            execute_others: false,
            in_flight_max: 16,
        }
    }
}

/// Settings for unlocking accounts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UnlockConfig {
    /// The maximum spent on a day in UTC, in wei: the bonds of owners' requests, and gas that no returned bond pays
    /// for. If it is zero, nothing is followed, accepted or sent. In the file, it is ETH as decimal text.
    #[serde(rename = "daily_budget_ether", deserialize_with = "ether")]
    pub daily_budget_wei: U256,
    /// Whether to void numbers whose bonds go back to others.
    pub void_others: bool,
}

impl UnlockConfig {
    /// No unlocking.
    pub const OFF: Self = Self { daily_budget_wei: U256::ZERO, void_others: false };
}

impl Default for UnlockConfig {
    /// 0.02 ETH a day: three requests while gas is cheap.
    fn default() -> Self {
        Self { daily_budget_wei: U256::from(20_000_000_000_000_000_u64), void_others: false }
    }
}

fn ether<'de, D: serde::Deserializer<'de>>(from: D) -> Result<U256, D::Error> {
    let text = String::deserialize(from)?;
    parse_ether(&text).map_err(|_| serde::de::Error::custom(format!("{text:?} is not an amount of ETH")))
}

impl BundleConfig {
    pub(crate) fn policy(&self) -> Policy {
        let patient_above_wei = self.patient_above_gwei.map(|gwei| u128::from(gwei).saturating_mul(WEI_PER_GWEI));
        let Self { items_max, wait_ms_max, below_cost, .. } = *self;
        Policy { items_max, wait_ms_max, patient_above_wei, below_cost }
    }
}

/// Values given by flags or environment. They override the file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Overrides {
    /// The URL of an Ethereum node, instead of the configured ones. Can be repeated.
    #[arg(
        long = "rpc-url",
        env = "FASTPAY_RELAYER_RPC_URLS",
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = configuration::NodeUrl
    )]
    pub rpc_urls: Vec<Url>,
    /// The JSON file of the authorities' endpoints.
    #[arg(long, env = "FASTPAY_RELAYER_ENDPOINTS")]
    pub endpoints: Option<PathBuf>,
    /// The folder of the relayer's state.
    #[arg(long, env = "FASTPAY_RELAYER_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// The file of the gas key.
    #[arg(long, env = "FASTPAY_RELAYER_KEY_FILE")]
    pub key_file: Option<PathBuf>,
    /// The address and port that serve metrics.
    #[arg(long, env = "FASTPAY_RELAYER_METRICS")]
    pub metrics: Option<SocketAddr>,
    /// The address and port that serve fees and unlock requests to wallets.
    #[arg(long, env = "FASTPAY_RELAYER_HTTP")]
    pub http: Option<SocketAddr>,
    /// A file whose first line is the gas key's passphrase.
    #[arg(long, env = "FASTPAY_RELAYER_PASSPHRASE_FILE")]
    pub passphrase_file: Option<PathBuf>,
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file is missing or cannot be read.
    #[error(
        "cannot read the configuration {path}: {error}; give its path with --config, or make one with `fastpay-relayer init`"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file has an unknown key, misses one, or has a value of the wrong kind.
    #[error("the configuration {path} is invalid: {error}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect and its place.
        error: String,
    },
}

impl<P> Config<P> {
    /// The same with another Primary.
    #[must_use]
    pub fn with<Q>(self, primary: Q) -> Config<Q> {
        let Self { endpoints, data_dir, key, metrics, http, traces, sender, bundle, unlock, assets, fees, .. } = self;
        let poll_interval_ms = self.poll_interval_ms;
        Config {
            primary,
            endpoints,
            data_dir,
            key,
            metrics,
            http,
            traces,
            sender,
            bundle,
            unlock,
            assets,
            fees,
            poll_interval_ms,
        }
    }
}

impl Config<PrimarySection> {
    /// Reads the file and applies the overrides.
    ///
    /// # Errors
    /// If the file cannot be read or is wrong.
    pub fn read(path: &Path, overrides: Overrides) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?;
        let malformed = |error: String| ConfigError::Malformed { path: path.to_owned(), error };
        if let Some((key, now)) = gone(&text) {
            return Err(malformed(format!("`{key}` was replaced: {now}")));
        }
        let mut config: Self = configuration::read(&text).map_err(|error| malformed(error.to_string()))?;
        let others = match config.primary {
            PrimarySection::Ethereum(_) => &OF_LEDGER[..],
            PrimarySection::Ledger(_) => &OF_ETHEREUM[..],
        };
        if let Some(name) = first_of(&text, others) {
            return Err(malformed(of_other_kind(name)));
        }
        if config.assets.is_empty() || config.fees.is_empty() {
            return Err(malformed("[assets], or [fees] on a ledger, must list an asset".into()));
        }
        if config.bundle.items_max == 0 || config.bundle.in_flight_max == 0 {
            return Err(malformed("bundle.items_max and bundle.in_flight_max must be at least 1".into()));
        }
        if config.bundle.items_max > REDEMPTION_BATCH_MAX {
            return Err(malformed(format!("bundle.items_max must be at most {REDEMPTION_BATCH_MAX}")));
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        for relative in [&mut config.endpoints, &mut config.data_dir, &mut config.key.file] {
            *relative = folder.join(&*relative);
        }
        config.key.passphrase_file = config.key.passphrase_file.map(|file| folder.join(file));
        if let PrimarySection::Ledger(settings) = &mut config.primary {
            settings.file = folder.join(&settings.file);
        }
        config.apply(overrides).map_err(malformed)?;
        Ok(config)
    }

    fn apply(&mut self, overrides: Overrides) -> Result<(), String> {
        let Overrides { rpc_urls, endpoints, data_dir, key_file, metrics, http, passphrase_file } = overrides;
        if !rpc_urls.is_empty() {
            let PrimarySection::Ethereum(primary) = &mut self.primary else { return Err(of_other_kind("rpc-url")) };
            primary.rpc_urls = rpc_urls;
        }
        self.endpoints = endpoints.unwrap_or(std::mem::take(&mut self.endpoints));
        self.data_dir = data_dir.unwrap_or(std::mem::take(&mut self.data_dir));
        self.key.file = key_file.unwrap_or(std::mem::take(&mut self.key.file));
        self.metrics = metrics.or(self.metrics);
        self.http = http.or(self.http);
        self.key.passphrase_file = passphrase_file.or(self.key.passphrase_file.take());
        Ok(())
    }
}

/// The first key in the file that an earlier release understood and this one does not.
fn gone(text: &str) -> Option<(&'static str, &'static str)> {
    let table: toml::Table = text.parse().ok()?;
    GONE.into_iter().find(|(key, _)| table.contains_key(*key))
}

/// The first of these tables that the file has.
fn first_of<'a>(text: &str, tables: &[&'a str]) -> Option<&'a str> {
    let table: toml::Table = text.parse().ok()?;
    tables.iter().copied().find(|name| table.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{Amount, Asset};

    const MINIMAL: &str = r#"
        endpoints = "endpoints.json"
        data_dir = "/data"
        [primary]
        rpc_urls = ["http://127.0.0.1:8545"]
        chain_id = 31337
        contract = "0x0101010101010101010101010101010101010101"
        [key]
        file = "gas.key"
    "#;

    fn read_any(text: &str, overrides: Overrides) -> Result<(PathBuf, Config<PrimarySection>), ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("relayer.toml");
        std::fs::write(&path, text).unwrap();
        Config::read(&path, overrides).map(|config| (folder.path().to_owned(), config))
    }

    fn read(text: &str, overrides: Overrides) -> Result<(PathBuf, Config), ConfigError> {
        let (folder, config) = read_any(text, overrides)?;
        let PrimarySection::Ethereum(primary) = config.primary.clone() else { panic!("a ledger") };
        Ok((folder, config.with(primary)))
    }

    #[test]
    fn a_ledger_is_read_and_what_is_for_ethereum_is_refused_there() {
        let ledger = "endpoints = \"e.json\"\ndata_dir = \"/data\"\n[key]\nfile = \"reserve.key\"\n\
            [fees]\n\"0x0000000000000000000000000000000000000000\" = \"3\"\n\
            [primary]\nkind = \"ledger\"\nfile = \"l.toml\"\ncommittee = 2\n";
        let (folder, config) = read_any(ledger, Overrides::default()).unwrap();
        let PrimarySection::Ledger(settings) = config.primary else { panic!("a ledger") };
        assert_eq!(settings, LedgerSettings { file: folder.join("l.toml"), committee: CommitteeNumber(2) });
        assert_eq!(config.fees.least(Asset::ETHER), Some(Amount(3)));
        let refused = |text: &str, overrides: Overrides, words: &str| {
            let error = read_any(text, overrides).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        for field in ["rpc_urls = []", "chain_id = 1", "finality = \"finalized\"", "request_timeout_ms = 1"] {
            let (name, _) = field.split_once(' ').unwrap();
            refused(&format!("{ledger}{field}\n"), Overrides::default(), &format!("`{name}` is for the other kind"));
        }
        for table in OF_ETHEREUM {
            refused(&format!("{ledger}[{table}]\n"), Overrides::default(), &format!("`{table}` is for the other kind"));
        }
        let rpc_urls = vec!["http://127.0.0.1:1".parse().unwrap()];
        refused(ledger, Overrides { rpc_urls, ..Overrides::default() }, "`rpc-url` is for the other kind");
        refused(&format!("{MINIMAL}\n[fees]\n"), Overrides::default(), "`fees` is for the other kind");
        for field in ["file = \"l.toml\"", "committee = 0"] {
            let (name, _) = field.split_once(' ').unwrap();
            let text = MINIMAL.replace("[primary]", &format!("[primary]\n{field}"));
            refused(&text, Overrides::default(), &format!("`{name}` is for the other kind"));
            let missing = ledger.replace(&format!("{name} ="), &format!("# {name} ="));
            refused(&missing, Overrides::default(), &format!("missing field `{name}`"));
        }
    }

    #[test]
    fn the_least_configuration_has_defaults_and_paths_beside_the_file() {
        let (folder, config) = read(MINIMAL, Overrides::default()).unwrap();
        assert_eq!(config.endpoints, folder.join("endpoints.json"));
        assert_eq!(config.data_dir, Path::new("/data"));
        assert_eq!(config.assets, Assets::default());
        assert_eq!((config.bundle.items_max, config.bundle.below_cost), (100, BelowCost::Leave));
    }

    #[test]
    fn assets_and_finality_are_read() {
        let text = format!(
            "{}\n[assets]\n\"{}\" = \"0.5\"\n",
            MINIMAL.replace("[primary]", "[primary]\nfinality = { confirmations = 3 }"),
            Asset([1; 20].into())
        );
        let (_, config) = read(&text, Overrides::default()).unwrap();
        assert_eq!(config.assets.worth(Asset([1; 20].into()), Amount(7)), Some(3));
        assert!(!config.assets.serves(Asset::ETHER), "a list replaces the default");
        assert_eq!(config.primary.finality, fastpay_ethereum::Finality::Confirmations(3));
    }

    #[test]
    fn where_traces_go_is_read_and_what_makes_no_sense_is_refused() {
        let traces = format!("{MINIMAL}\n[traces]\nendpoint = \"http://127.0.0.1:4317\"\n");
        assert!(read(&traces, Overrides::default()).unwrap().1.traces.is_some());
        let error = read(&format!("{traces}ratio = 3\n"), Overrides::default()).unwrap_err().to_string();
        assert!(error.contains("is not a ratio"), "{error}");
        assert!(read(MINIMAL, Overrides::default()).unwrap().1.traces.is_none());
    }

    #[test]
    fn patience_and_thrift_are_read() {
        let text = format!("{MINIMAL}\n[bundle]\npatient_above_gwei = 20\nbelow_cost = \"leave\"\n");
        let policy = read(&text, Overrides::default()).unwrap().1.bundle.policy();
        assert_eq!((policy.patient_above_wei, policy.below_cost), (Some(20_000_000_000), BelowCost::Leave));
    }

    #[test]
    fn what_unlocking_may_cost_is_read() {
        let of = |text: &str| read(&format!("{MINIMAL}{text}"), Overrides::default()).unwrap().1.unlock;
        assert_eq!(of("").daily_budget_wei, parse_ether("0.02").unwrap());
        let unlock = of("\n[unlock]\ndaily_budget_ether = \"1.5\"\nvoid_others = true\n");
        assert_eq!((unlock.daily_budget_wei, unlock.void_others), (parse_ether("1.5").unwrap(), true));
        assert!(of("\n[unlock]\ndaily_budget_ether = \"0\"\n").daily_budget_wei.is_zero());
    }

    #[test]
    fn flags_win_over_the_file() {
        let overrides = Overrides {
            rpc_urls: vec!["http://127.0.0.1:1".parse().unwrap()],
            key_file: Some("/other.key".into()),
            ..Default::default()
        };
        let (_, config) = read(MINIMAL, overrides).unwrap();
        assert_eq!(config.primary.rpc_urls[0].port(), Some(1));
        assert_eq!(config.key.file, Path::new("/other.key"));
    }

    #[test]
    fn a_wrong_configuration_names_its_fault() {
        let check = |text: &str, words: &str| {
            let error = read(text, Overrides::default()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        };
        check(&format!("colour = 1\n{MINIMAL}"), "unknown field `colour`");
        check(&MINIMAL.replace("chain_id = 31337", ""), "missing field `chain_id`");
        check(&MINIMAL.replace("chain_id", "chainid"), "unknown field `chainid`");
        check(&format!("{MINIMAL}\n[bundle]\nitems_max = 0\n"), "at least 1");
        check(&format!("{MINIMAL}\n[bundle]\nitems_max = 257\n"), "at most 256");
        check(&format!("{MINIMAL}\n[bundle]\nbelow_cost = \"maybe\"\n"), "`pay` or `leave`");
        check(&format!("{MINIMAL}\n[unlock]\ndaily_budget_ether = \"much\"\n"), "is not an amount of ETH");
        check(&format!("{MINIMAL}\n[assets]\n"), "must list an asset");
        check(&format!("{MINIMAL}\n[assets]\n\"{}\" = \"0\"\n", Asset::ETHER), "is not a rate");
        for old in
            ["default_minimum_fee = \"0\"\n".to_owned(), format!("[minimum_fees]\n\"{}\" = \"1\"\n", Asset::ETHER)]
        {
            let text = if old.starts_with('[') { format!("{MINIMAL}\n{old}") } else { format!("{old}{MINIMAL}") };
            check(&text, "was replaced: [assets] lists the assets");
            check(&text, "below_cost");
        }
        let secret =
            MINIMAL.replace("rpc_urls = [\"http://127.0.0.1:8545\"]", "rpc_urls = \"https://eth.example/v3/0123\"");
        let error = read(&secret, Overrides::default()).unwrap_err();
        assert!(error.to_string().contains("`primary.rpc_urls`: invalid type: string \"…\""), "{error}");
        assert!(!format!("{error}{error:?}").contains("0123"), "{error:?}");
        let missing = Config::read(Path::new("/nowhere/relayer.toml"), Overrides::default()).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/relayer.toml"), "{missing}");
    }
}
