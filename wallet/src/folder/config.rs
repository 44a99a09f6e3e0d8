//! The wallet's configuration, `config.toml`: the Primary, the contract and the authorities' endpoints.

use std::path::{Path, PathBuf};

use alloy::primitives::Address;
use fastpay_ethereum::{Finality, PrimaryConfig, SenderConfig};
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_program::configuration;
use fastpay_program::files;
use fastpay_telemetry::TraceSettings;
use serde::{Deserialize, Serialize};
use url::Url;

/// The owner's configuration of the wallet. The wallet reads everything else from the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The JSON file of the authorities' endpoints.
    pub endpoints: PathBuf,
    /// The Primary; `None` in stand-alone mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<PrimarySection>,
    /// The genesis file of a committee without a Primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub genesis: Option<PathBuf>,
    /// The collector of traces of this wallet's payments. Without it, none are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traces: Option<TraceSettings>,
}

/// The Primary, by its `kind`: `"ethereum"`, which need not be given, or `"ledger"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "PrimaryFields", into = "PrimaryFields")]
pub enum PrimarySection {
    /// A contract on Ethereum.
    Ethereum(PrimarySettings),
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

impl From<PrimarySettings> for PrimarySection {
    fn from(settings: PrimarySettings) -> Self {
        Self::Ethereum(settings)
    }
}

/// The fields of `[primary]`, of either kind.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PrimaryFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<PrimaryKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rpc_urls: Option<Vec<Url>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contract: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finality: Option<Finality>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    committee: Option<CommitteeNumber>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<SenderConfig>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PrimaryKind {
    Ethereum,
    Ledger,
}

impl TryFrom<PrimaryFields> for PrimarySection {
    type Error = String;

    fn try_from(fields: PrimaryFields) -> Result<Self, String> {
        let PrimaryFields { kind, rpc_urls, chain_id, contract, finality, file, committee, sender } = fields;
        let missing = |field: &str| format!("missing field `{field}`");
        let is_ledger = kind == Some(PrimaryKind::Ledger);
        let of_ledger = [("file", file.is_some()), ("committee", committee.is_some())];
        let of_ethereum = [
            ("rpc_urls", rpc_urls.is_some()),
            ("chain_id", chain_id.is_some()),
            ("contract", contract.is_some()),
            ("finality", finality.is_some()),
            ("sender", sender.is_some()),
        ];
        let others = if is_ledger { &of_ethereum[..] } else { &of_ledger[..] };
        if let Some((field, _)) = others.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("`{field}` is for the other kind of Primary"));
        }
        if is_ledger {
            let file = file.ok_or_else(|| missing("file"))?;
            return Ok(Self::Ledger(LedgerSettings {
                file,
                committee: committee.ok_or_else(|| missing("committee"))?,
            }));
        }
        Ok(Self::Ethereum(PrimarySettings {
            rpc_urls: rpc_urls.ok_or_else(|| missing("rpc_urls"))?,
            chain_id: chain_id.ok_or_else(|| missing("chain_id"))?,
            contract: contract.ok_or_else(|| missing("contract"))?,
            finality: finality.unwrap_or_default(),
            sender: sender.unwrap_or_default(),
        }))
    }
}

impl From<PrimarySection> for PrimaryFields {
    fn from(section: PrimarySection) -> Self {
        match section {
            PrimarySection::Ethereum(PrimarySettings { rpc_urls, chain_id, contract, finality, sender }) => Self {
                rpc_urls: Some(rpc_urls),
                chain_id: Some(chain_id),
                contract: Some(contract),
                finality: Some(finality),
                sender: Some(sender),
                ..Self::default()
            },
            PrimarySection::Ledger(LedgerSettings { file, committee }) => Self {
                kind: Some(PrimaryKind::Ledger),
                file: Some(file),
                committee: Some(committee),
                ..Self::default()
            },
        }
    }
}

/// The contract on Ethereum, and the finality at which its events count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimarySettings {
    /// HTTP URLs of Ethereum nodes, the preferred one first.
    pub rpc_urls: Vec<Url>,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The address of the FastPay contract.
    pub contract: Address,
    /// The rule by which a block counts as final: `"finalized"`, `"safe"` or `{ confirmations = 12 }`.
    pub finality: Finality,
    /// How transactions are sent, with limits for their cost.
    pub sender: SenderConfig,
}

impl PrimarySettings {
    /// The settings of the connection.
    #[must_use]
    pub fn connection(&self) -> PrimaryConfig {
        let mut config = PrimaryConfig::new(self.rpc_urls.clone(), self.chain_id, self.contract);
        config.finality = self.finality;
        config
    }
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The wallet is not set up.
    #[error("there is no wallet in {0}; create one with `fastpay init`, or name another folder with --home")]
    Missing(PathBuf),
    /// The wallet is set up already.
    #[error("{0} already exists; give --force to replace it")]
    Exists(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file is malformed.
    #[error("{path} is not a valid configuration: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// This command needs a Primary.
    #[error("this wallet is set up without a Primary: there is no chain to deposit on or redeem to")]
    NoPrimary,
    /// This command needs a contract.
    #[error("this wallet's Primary is a ledger, and the command needs a contract on Ethereum")]
    OnLedger,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is missing or malformed.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let io = |error| ConfigError::Io { path: path.into(), error };
        let content = files::read(path).map_err(io)?.ok_or_else(|| ConfigError::Missing(path.into()))?;
        let malformed = |reason: String| ConfigError::Malformed { path: path.into(), reason };
        let text = String::from_utf8(content).map_err(|error| malformed(error.to_string()))?;
        let config: Self = configuration::read(&text).map_err(|error| malformed(error.to_string()))?;
        if config.primary.is_some() == config.genesis.is_some() {
            return Err(malformed("give either [primary] or genesis".into()));
        }
        Ok(config)
    }

    /// Writes the file. It must not exist unless `replace`.
    ///
    /// # Errors
    /// If it exists, or cannot be written.
    pub fn write(&self, path: &Path, replace: bool) -> Result<(), ConfigError> {
        let io = |error| ConfigError::Io { path: path.into(), error };
        let malformed =
            |error: toml::ser::Error| ConfigError::Malformed { path: path.into(), reason: error.to_string() };
        let text = toml::to_string_pretty(self).map_err(malformed)?;
        if replace {
            files::replace(path, text.as_bytes()).map_err(io)
        } else if files::create(path, text.as_bytes()).map_err(io)? {
            Ok(())
        } else {
            Err(ConfigError::Exists(path.into()))
        }
    }

    /// The settings of the contract.
    ///
    /// # Errors
    /// In stand-alone mode, and on a ledger.
    pub fn primary(&self) -> Result<&PrimarySettings, ConfigError> {
        match &self.primary {
            Some(PrimarySection::Ethereum(settings)) => Ok(settings),
            Some(PrimarySection::Ledger(_)) => Err(ConfigError::OnLedger),
            None => Err(ConfigError::NoPrimary),
        }
    }

    /// The settings of the ledger, if the Primary is one.
    #[must_use]
    pub fn ledger(&self) -> Option<&LedgerSettings> {
        match &self.primary {
            Some(PrimarySection::Ledger(settings)) => Some(settings),
            Some(PrimarySection::Ethereum(_)) | None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Config::read(&path)
    }

    const PRIMARY: &str = "endpoints = \"e.json\"\n[primary]\nrpc_urls = [\"http://127.0.0.1:8545\"]\nchain_id = 31337\n\
        contract = \"0x5FbDB2315678afecb367f032d93F642f64180aa3\"\n";

    #[test]
    fn a_configuration_is_read_as_it_is_written() {
        let traces = "[traces]\nendpoint = \"http://127.0.0.1:4317\"\nratio = 1.0\n";
        let config = read(&format!("{PRIMARY}finality = {{ confirmations = 2 }}\n{traces}")).unwrap();
        assert!(config.traces.is_some());
        assert_eq!(config.primary().unwrap().finality, Finality::Confirmations(2));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        config.write(&path, false).unwrap();
        assert_eq!(Config::read(&path).unwrap(), config);
        assert!(matches!(config.write(&path, false), Err(ConfigError::Exists(_))));
        config.write(&path, true).unwrap();
    }

    #[test]
    fn a_ledger_is_read_as_it_is_written() {
        let ledger = "endpoints = \"e.json\"\n[primary]\nkind = \"ledger\"\nfile = \"l.toml\"\ncommittee = 3\n";
        let config = read(ledger).unwrap();
        assert_eq!(config.ledger().unwrap().committee, CommitteeNumber(3));
        assert!(matches!(config.primary(), Err(ConfigError::OnLedger)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        config.write(&path, false).unwrap();
        assert_eq!(Config::read(&path).unwrap(), config);
        for wrong in ["chain_id = 1\n", "sender = {}\n", "colour = 1\n"] {
            assert!(matches!(read(&format!("{ledger}{wrong}")), Err(ConfigError::Malformed { .. })), "{wrong}");
        }
        for missing in ["file", "committee"] {
            let text = ledger.replace(missing, &format!("# {missing}"));
            assert!(read(&text).unwrap_err().to_string().contains(&format!("missing field `{missing}`")));
        }
        let mixed = read(&format!("{PRIMARY}file = \"l.toml\"\n")).unwrap_err();
        assert!(mixed.to_string().contains("`file` is for the other kind of Primary"), "{mixed}");
        let mixed = read(&format!("{ledger}chain_id = 1\n")).unwrap_err();
        assert!(mixed.to_string().contains("`chain_id` is for the other kind of Primary"), "{mixed}");
    }

    #[test]
    fn unfit_configurations_are_refused() {
        assert!(matches!(Config::read(Path::new("/nonexistent/config.toml")), Err(ConfigError::Missing(_))));
        for wrong in [
            "endpoints = \"e.json\"\n".to_owned(),
            format!("genesis = \"g.json\"\n{PRIMARY}"),
            format!("{PRIMARY}colour = 1\n"),
            format!("unknown = 1\n{PRIMARY}"),
            format!("{PRIMARY}[traces]\n"),
            "endpoints = ".to_owned(),
        ] {
            assert!(matches!(read(&wrong), Err(ConfigError::Malformed { .. })), "{wrong}");
        }
        let error = read(&PRIMARY.replace("rpc_urls = [", "rpc_url = [").replace("8545", "8545/v3/0123")).unwrap_err();
        assert!(error.to_string().contains("line 3, column 1, `primary.rpc_url`: unknown field"), "{error}");
        assert!(!format!("{error}{error:?}").contains("0123"), "{error:?}");
        let standalone = read("endpoints = \"e.json\"\ngenesis = \"g.json\"\n").unwrap();
        assert!(matches!(standalone.primary(), Err(ConfigError::NoPrimary)));
    }
}
