//! Sets up an authority: creates its configuration and its empty data folder.
//!
//! Only this command creates a data folder. `run` refuses a missing one: a path mistyped at a start must not yield an
//! authority that has forgotten its votes.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use fastpay_client::AuthorityEndpoints;
use fastpay_core::{AuthorityName, Domain, Genesis, PrimaryAddress};
use fastpay_ethereum::Finality;
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_program::files;
use serde::Serialize;

use crate::authority::config::{Config, ConfigError, Overrides};
use crate::authority::deployment::folder_identity;
use crate::authority::funding::{LedgerConfig, LedgerDeployment, LedgerError};
use crate::authority::keys::{self, KeyFiles};
use crate::authority::rollback::{self, DetectionError, HighWaterMark};
use crate::authority::storage::{DataFolder, StorageError};

/// The configuration's `[primary]`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum PrimarySection {
    /// A contract.
    Ethereum {
        /// Ethereum nodes.
        rpc_urls: Vec<url::Url>,
        /// The chain.
        chain_id: u64,
        /// The contract.
        contract: PrimaryAddress,
        /// The rule by which a block counts as final.
        finality: Finality,
    },
    /// A committee on a ledger.
    Ledger {
        /// Always "ledger": marks the section's kind.
        kind: LedgerKind,
        /// The ledger's file.
        file: PathBuf,
        /// The committee's number in it.
        committee: CommitteeNumber,
    },
}

/// The `kind` of a ledger.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum LedgerKind {
    /// It has one value.
    #[serde(rename = "ledger")]
    Ledger,
}

/// The authority to set up.
#[derive(Clone, Debug)]
pub struct Request {
    /// The configuration to write.
    pub config: PathBuf,
    /// The data folder to create.
    pub data: PathBuf,
    /// The file of the other authorities' endpoints; it need not exist yet.
    pub endpoints: Option<PathBuf>,
    /// The existing keys.
    pub keys: KeyFiles,
    /// The number of shards.
    pub shards: NonZeroU32,
    /// The address of shard 0.
    pub listen: SocketAddr,
    /// The address of health and metrics.
    pub http: SocketAddr,
    /// The Primary. Exactly one of this and `genesis` is given.
    pub primary: Option<PrimarySection>,
    /// The genesis of a committee without a Primary.
    pub genesis: Option<PathBuf>,
}

/// Why an authority cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file cannot be read or written.
    #[error("cannot use {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// There is a configuration already.
    #[error("{0} already exists; configurations are never overwritten")]
    Exists(PathBuf),
    /// The genesis file cannot be used.
    #[error("{path} is not a genesis: {reason}")]
    Genesis {
        /// The file.
        path: PathBuf,
        /// The defect.
        reason: String,
    },
    /// The ledger's file cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The resulting configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The data folder cannot be created.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A high-water mark of an earlier folder exists, or the new one cannot be written.
    #[error(transparent)]
    HighWaterMark(#[from] DetectionError),
}

/// Options that an operator may add, above the sections.
const ENDPOINTS_HINT: &str = "\
# Where the other authorities are reached, the file that wallets use: they are asked what this one missed while it was
# away. Needed where the data folder is an older copy.
# endpoints = \"endpoints.json\"

";

/// Options that an operator may add, below the sections.
const HINTS: &str = "
# Checkpoints with the other authorities, each week (docs/OPERATIONS.md, Checkpoints). Needs `endpoints`.
# [archive]
# folder = \"archive\"

# Traces of one in a hundred payments, for a collector on this machine (docs/OPERATIONS.md, Traces):
# [traces]
# endpoint = \"http://127.0.0.1:4317\"
# ratio = 0.01
";

/// The fields of the configuration file.
#[derive(Serialize)]
struct ConfigFile<'a> {
    data: &'a Path,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoints: Option<&'a Path>,
    shards: NonZeroU32,
    listen: SocketAddr,
    http: SocketAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    genesis: Option<&'a Path>,
    keys: [&'a KeyFiles; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    primary: Option<&'a PrimarySection>,
}

/// Writes the configuration and creates the data folder. Returns how clients reach the authority. Must be called within a
/// tokio runtime.
///
/// # Errors
/// See [`SetupError`].
pub fn init(request: Request, authority: AuthorityName) -> Result<AuthorityEndpoints, SetupError> {
    let request = Request {
        data: absolute(&request.data)?,
        keys: KeyFiles { voting: absolute(&request.keys.voting)?, redemption: absolute(&request.keys.redemption)? },
        endpoints: request.endpoints.as_deref().map(absolute).transpose()?,
        genesis: request.genesis.as_deref().map(absolute).transpose()?,
        primary: request.primary.map(in_place).transpose()?,
        ..request
    };
    let domain = domain(&request)?;
    write_config(&request)?;
    // Remove the configuration if the folder cannot be created: it would only block the next attempt.
    create(&request.config, authority, &domain).inspect_err(|_| drop(std::fs::remove_file(&request.config)))
}

/// Creates the data folder that the configuration names.
fn create(config: &Path, authority: AuthorityName, domain: &Domain) -> Result<AuthorityEndpoints, SetupError> {
    let config = Config::read(config, Overrides::default())?;
    let high_water_mark = config.high_water_mark();
    if high_water_mark.exists() && !config.data.exists() {
        return Err(DetectionError::HighWaterMarkExists(high_water_mark).into());
    }
    let folder = DataFolder::create(&config.data, &folder_identity(&[authority], config.shards, domain))?;
    // First remove the marker of unused keys, then mark the folder as their first, so that there are never two.
    if config.keys.first().is_some_and(keys::take_first_use) {
        rollback::note_first(&folder)?;
    }
    HighWaterMark::create(&config.data, high_water_mark)?;
    Ok(AuthorityEndpoints {
        name: authority,
        shards: config.shard_addresses()?.iter().map(|address| format!("http://{address}")).collect(),
        http: Some(format!("http://{}", config.http)),
        tls_ca: None,
        label: None,
    })
}

fn absolute(path: &Path) -> Result<PathBuf, SetupError> {
    std::path::absolute(path).map_err(|error| SetupError::Io { path: path.into(), error })
}

/// The section with the absolute path of the ledger's file.
fn in_place(primary: PrimarySection) -> Result<PrimarySection, SetupError> {
    Ok(match primary {
        PrimarySection::Ledger { kind, file, committee } => {
            PrimarySection::Ledger { kind, file: absolute(&file)?, committee }
        }
        contract @ PrimarySection::Ethereum { .. } => contract,
    })
}

fn domain(request: &Request) -> Result<Domain, SetupError> {
    match &request.primary {
        Some(PrimarySection::Ethereum { chain_id, contract, .. }) => return Ok(Domain::new(*chain_id, *contract)),
        Some(PrimarySection::Ledger { file, committee, .. }) => {
            let ledger = LedgerConfig { file: file.clone(), committee: *committee };
            return Ok(LedgerDeployment::read(&ledger)?.ledger().domain());
        }
        None => {}
    }
    let path = request.genesis.clone().ok_or(ConfigError::PrimaryOrGenesis)?;
    let text = std::fs::read_to_string(&path).map_err(|error| SetupError::Io { path: path.clone(), error })?;
    let genesis: Result<Genesis, String> = serde_json::from_str(&text).map_err(|error| error.to_string());
    let genesis = genesis.and_then(|genesis| genesis.committee().map(|_| genesis).map_err(|error| error.to_string()));
    genesis.map(|genesis| genesis.domain()).map_err(|reason| SetupError::Genesis { path, reason })
}

fn write_config(request: &Request) -> Result<(), SetupError> {
    let mut content = if request.endpoints.is_none() { ENDPOINTS_HINT.to_owned() } else { String::new() };
    content += &toml::to_string(&ConfigFile {
        data: &request.data,
        endpoints: request.endpoints.as_deref(),
        shards: request.shards,
        listen: request.listen,
        http: request.http,
        genesis: request.genesis.as_deref(),
        keys: [&request.keys],
        primary: request.primary.as_ref(),
    })
    .expect("paths, numbers and addresses can be written as TOML");
    content += HINTS;
    let path = &request.config;
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| SetupError::Io { path: folder.into(), error })?;
    }
    let is_new = files::create_public(path, content.as_bytes());
    let is_new = is_new.map_err(|error| SetupError::Io { path: path.clone(), error })?;
    if is_new { Ok(()) } else { Err(SetupError::Exists(path.clone())) }
}
