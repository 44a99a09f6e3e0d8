//! The node's configuration: a TOML file, whose paths are relative to its own folder, with overrides
//! by flag or environment.

mod primary;

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_ethereum::PrimaryConfig;
use fastpay_program::configuration;
use fastpay_telemetry::TraceSettings;
use serde::Deserialize;
use url::Url;

use crate::authority::certification::{self, Store, StoreError, member::MemberTimes};
use crate::authority::http::HttpLimits;
use crate::authority::keys::KeyFiles;
use crate::authority::network::NetworkLimits;
use crate::authority::pruning::PruningTimes;
use crate::authority::rollback::default_high_water_mark;
use crate::authority::shard::{ADDRESS_JOURNAL_BYTES_PER_DAY, ShardLimits};
pub use primary::PrimarySection;

/// The maximum number of shards. Each is a thread with its own journal, store and port.
const SHARDS_MAX: u32 = 64;
/// The default number of accounts in memory: about 2 GB if all of them are used.
const ACCOUNTS_IN_MEMORY: usize = 8_000_000;
/// The minimum number of accounts in memory for each shard. With fewer, it would do little but load and store them.
const ACCOUNTS_IN_MEMORY_MIN: usize = 10_000;

/// The minimum of each limit of connections: one address may use half of the free room.
const CONNECTIONS_MIN: usize = 16;

/// The configuration of `fastpay-node run`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder of journals and checkpoints.
    pub data: PathBuf,
    /// The high-water mark, from which the node detects that its data folder is an older copy. Keep it outside of the
    /// folder and of its backups.
    pub high_water_mark: Option<PathBuf>,
    /// The file of the authorities' endpoints, as wallets use it. Through it, this authority asks the others for what
    /// it missed while it was away. It is needed to vote with a data folder that is an older copy.
    pub endpoints: Option<PathBuf>,
    /// The number of shards. It is fixed when the data folder is created.
    pub shards: NonZeroU32,
    /// The maximum number of accounts in memory, over all shards. Other accounts are read from disk when needed.
    #[serde(default = "accounts_in_memory")]
    pub accounts_in_memory: usize,
    /// The address of shard 0; shard k listens k ports above.
    pub listen: SocketAddr,
    /// The address of the JSON API, health, readiness and metrics.
    pub http: SocketAddr,
    /// The authority's keys: more than one pair around a rotation of the committee.
    pub keys: Vec<KeyFiles>,
    /// Whether the node runs before the keys are those of a member: it follows the contract, executes nothing, and
    /// joins once they are.
    #[serde(default)]
    pub observer: bool,
    /// The Primary that is followed. Exactly one of this and `genesis` is given.
    pub primary: Option<PrimarySection>,
    /// The genesis of a committee without a Primary.
    pub genesis: Option<PathBuf>,
    /// Encrypts the shards' ports, and the HTTP port if `http` is set in it.
    pub tls: Option<TlsFiles>,
    /// Whether the HTTP API finds transfers by digest and deposits by index.
    #[serde(default = "on")]
    pub index: bool,
    /// The archive of certified checkpoints, which the authority makes with its peers. Without it, it makes none.
    pub archive: Option<ArchiveSettings>,
    /// Limits for clients.
    #[serde(default)]
    pub limits: Limits,
    /// The collector of payment traces. Without it, no traces are sent.
    pub traces: Option<TraceSettings>,
}

/// The archive of certified checkpoints.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveSettings {
    /// The folder.
    pub folder: PathBuf,
    /// The URL of the store that keeps all numbers, `s3://BUCKET/PREFIX` or `file:///FOLDER`. The folder keeps the newest
    /// ones then. Without it, the folder keeps all.
    pub store: Option<Url>,
    /// The time from one checkpoint to the next.
    #[serde(default = "every_seconds")]
    pub every_seconds: u64,
    /// The orders of one checkpoint: the same at all members. Of a payout, 8 outputs count as an order.
    #[serde(default = "orders_max")]
    pub orders_max: usize,
    /// Whether checkpoints are made and uploaded only while no other thread needs the core. If all cores are always
    /// busy, none comes about.
    #[serde(default = "on")]
    pub idle: bool,
    /// How often peers are asked, and how long they are waited for.
    #[serde(skip)]
    pub times: MemberTimes,
    /// The same before the journals end.
    #[serde(skip)]
    pub pruning: PruningTimes,
}

impl ArchiveSettings {
    /// Peers are asked ten times from one checkpoint to the next, and each minute if that is more often.
    fn set_times(&mut self) {
        let every = Duration::from_secs(self.every_seconds);
        let usual = MemberTimes::default();
        let poll = (every / 10).min(usual.poll);
        self.times = MemberTimes { poll, takeover: every.min(usual.takeover), ..usual };
        self.pruning = PruningTimes::polling_each(poll);
    }
}

/// Peers are asked each second then.
const EVERY_SECONDS_MIN: u64 = 10;

fn every_seconds() -> u64 {
    7 * 24 * 3_600
}

fn orders_max() -> usize {
    certification::ORDERS_MAX
}

fn on() -> bool {
    true
}

/// Limits on the resources that clients may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of connections on each shard's port. One address may have as many as are free.
    pub shard_connections_max: usize,
    /// As `shard_connections_max`, on the HTTP port.
    pub http_connections_max: usize,
    /// The maximum number of event streams on the HTTP port. One address may have as many as are free.
    pub event_streams_max: usize,
    /// The authority votes for no new order if less disk space than this is free.
    pub disk_reserve_bytes: u64,
    /// The bytes of journal per day for the orders of one account.
    pub account_journal_bytes_per_day: NonZeroU64,
    /// The bytes of journal per day for the requests of clients at one address.
    pub address_journal_bytes_per_day: NonZeroU64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            shard_connections_max: NetworkLimits::default().connections_max,
            http_connections_max: HttpLimits::default().connections_max,
            event_streams_max: HttpLimits::default().streams_max,
            disk_reserve_bytes: ShardLimits::default().disk_reserve_bytes,
            account_journal_bytes_per_day: ShardLimits::default().account_journal_bytes_per_day,
            address_journal_bytes_per_day: ADDRESS_JOURNAL_BYTES_PER_DAY,
        }
    }
}

fn accounts_in_memory() -> usize {
    ACCOUNTS_IN_MEMORY
}

/// A certificate chain and its key, PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The chain, the node's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Whether the HTTP port is encrypted, too.
    #[serde(default)]
    pub http: bool,
}

/// Flags and environment variables that override the configuration file.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Overrides {
    /// The data folder, instead of the configured one
    #[arg(long, env = "FASTPAY_NODE_DATA")]
    pub data: Option<PathBuf>,
    /// The address and port of shard 0, instead of the configured one. Shard k listens on the port that is k higher
    #[arg(long, env = "FASTPAY_NODE_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// The address and port of the JSON API, health, readiness and metrics, instead of the configured one
    #[arg(long, env = "FASTPAY_NODE_HTTP")]
    pub http: Option<SocketAddr>,
    /// The URL of an Ethereum node, instead of the configured ones. Repeat it for several nodes, which must agree
    #[arg(
        long = "rpc-url",
        env = "FASTPAY_NODE_RPC_URLS",
        hide_env_values = true,
        value_delimiter = ',',
        value_parser = configuration::NodeUrl
    )]
    pub rpc_urls: Vec<url::Url>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// No such file, or it cannot be read.
    #[error("cannot read the configuration {path}: {error}; create one with `fastpay-node init`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The file is not TOML, or has an unknown key or a value of the wrong type.
    #[error("the configuration {path} is invalid: {error}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The place and the cause.
        error: configuration::Malformed,
    },
    /// No keys are configured.
    #[error("the configuration has no keys; add a [[keys]] with the files `voting` and `redemption`")]
    NoKeys,
    /// Neither or both of `[primary]` and `genesis` are configured.
    #[error("the configuration must have either [primary] or genesis, and not both")]
    PrimaryOrGenesis,
    /// An Ethereum node is named for a committee without a Primary.
    #[error("the configuration has no [primary] on Ethereum; remove --rpc-url or FASTPAY_NODE_RPC_URLS")]
    NoPrimary,
    /// The number of shards is too high.
    #[error("the configuration sets {0} shards; at most {SHARDS_MAX} are possible")]
    Shards(u32),
    /// Too few accounts for each shard.
    #[error("the configuration keeps {0} accounts in memory; each shard needs at least {ACCOUNTS_IN_MEMORY_MIN}")]
    AccountsInMemory(usize),
    /// There is nobody to make checkpoints with.
    #[error(
        "the configuration has an [archive] and no `endpoints`, the file that says where the other authorities are"
    )]
    ArchiveAlone,
    /// Too few orders for a checkpoint.
    #[error("the configuration's archive.orders_max is {0}; at least {min} are needed", min = certification::ORDERS_MIN)]
    ArchiveOrders(usize),
    /// The archive's store is none.
    #[error(transparent)]
    ArchiveStore(StoreError),
    /// Checkpoints would follow each other as fast as nodes can make them.
    #[error("the configuration's archive.every_seconds is {0}; at least {EVERY_SECONDS_MIN} are needed")]
    ArchiveTime(u64),
    /// The limit is so low that one address could keep all others out.
    #[error("the configuration's {name} is {value}; it must be at least {CONNECTIONS_MIN}")]
    Connections {
        /// The key.
        name: &'static str,
        /// The configured value.
        value: usize,
    },
    /// The last shard would have no port.
    #[error("the configuration has no port for every shard: {0} is too high")]
    Ports(SocketAddr),
}

impl Config {
    /// Reads the file, applies overrides, and checks everything that depends on no other file and no network.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn read(path: &Path, overrides: Overrides) -> Result<Self, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable { path: path.into(), error })?;
        let mut config: Self =
            configuration::read(&text).map_err(|error| ConfigError::Malformed { path: path.into(), error })?;
        config.resolve(path.parent().unwrap_or(Path::new(".")));
        config.archive.iter_mut().for_each(ArchiveSettings::set_times);
        if let Some(data) = overrides.data {
            config.data = data;
        }
        config.listen = overrides.listen.unwrap_or(config.listen);
        config.http = overrides.http.unwrap_or(config.http);
        if !overrides.rpc_urls.is_empty() {
            config.ethereum_mut().ok_or(ConfigError::NoPrimary)?.rpc_urls = overrides.rpc_urls;
        }
        config.check()?;
        Ok(config)
    }

    fn resolve(&mut self, folder: &Path) {
        let tls = self.tls.as_mut().map(|tls| [&mut tls.certificate, &mut tls.key]);
        let archive = self.archive.as_mut().map(|archive| &mut archive.folder);
        let keys = self.keys.iter_mut().flat_map(|pair| [&mut pair.voting, &mut pair.redemption]);
        let files = [&mut self.genesis, &mut self.high_water_mark, &mut self.endpoints].into_iter().flatten();
        let ledger = match &mut self.primary {
            Some(PrimarySection::Ledger(ledger)) => Some(&mut ledger.file),
            Some(PrimarySection::Ethereum(_)) | None => None,
        };
        let files = files.chain(ledger);
        for path in
            std::iter::once(&mut self.data).chain(keys).chain(files).chain(tls.into_iter().flatten()).chain(archive)
        {
            *path = folder.join(&*path);
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.keys.is_empty() {
            return Err(ConfigError::NoKeys);
        }
        if self.primary.is_some() == self.genesis.is_some() {
            return Err(ConfigError::PrimaryOrGenesis);
        }
        if self.shards.get() > SHARDS_MAX {
            return Err(ConfigError::Shards(self.shards.get()));
        }
        if self.accounts_in_memory_per_shard() < ACCOUNTS_IN_MEMORY_MIN {
            return Err(ConfigError::AccountsInMemory(self.accounts_in_memory));
        }
        if let Some(archive) = &self.archive {
            if self.endpoints.is_none() {
                return Err(ConfigError::ArchiveAlone);
            }
            if let Some(url) = archive.store.as_ref().filter(|url| Store::url_of(url.as_str().as_ref()).is_none()) {
                return Err(ConfigError::ArchiveStore(StoreError::Url(url.to_string())));
            }
            if archive.orders_max < certification::ORDERS_MIN {
                return Err(ConfigError::ArchiveOrders(archive.orders_max));
            }
            if archive.every_seconds < EVERY_SECONDS_MIN {
                return Err(ConfigError::ArchiveTime(archive.every_seconds));
            }
        }
        let limits = &self.limits;
        for (name, value) in [
            ("limits.shard_connections_max", limits.shard_connections_max),
            ("limits.http_connections_max", limits.http_connections_max),
        ] {
            if value < CONNECTIONS_MIN {
                return Err(ConfigError::Connections { name, value });
            }
        }
        self.shard_addresses().map(|_| ())
    }

    /// The contract that is followed, if the Primary is one on Ethereum.
    #[must_use]
    pub fn ethereum(&self) -> Option<&PrimaryConfig> {
        match &self.primary {
            Some(PrimarySection::Ethereum(primary)) => Some(primary),
            Some(PrimarySection::Ledger(_)) | None => None,
        }
    }

    /// The same, to change it.
    pub fn ethereum_mut(&mut self) -> Option<&mut PrimaryConfig> {
        match &mut self.primary {
            Some(PrimarySection::Ethereum(primary)) => Some(primary),
            Some(PrimarySection::Ledger(_)) | None => None,
        }
    }

    /// The high-water mark of the data folder.
    #[must_use]
    pub fn high_water_mark(&self) -> PathBuf {
        self.high_water_mark.clone().unwrap_or_else(|| default_high_water_mark(&self.data))
    }

    /// The maximum number of accounts of one shard in memory.
    #[must_use]
    pub fn accounts_in_memory_per_shard(&self) -> usize {
        self.accounts_in_memory.checked_div(self.shards.get() as usize).unwrap_or_default()
    }

    /// The addresses of the shards, from the first.
    ///
    /// # Errors
    /// If a port would be above 65,535.
    pub fn shard_addresses(&self) -> Result<Vec<SocketAddr>, ConfigError> {
        let address = |shard: u32| {
            let port = u16::try_from(shard).ok().and_then(|shard| self.listen.port().checked_add(shard));
            port.map(|port| SocketAddr::new(self.listen.ip(), port)).ok_or(ConfigError::Ports(self.listen))
        };
        (0..self.shards.get()).map(address).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const GOOD: &str = r#"
        data = "data"
        shards = 2
        listen = "127.0.0.1:9000"
        http = "127.0.0.1:9100"
        genesis = "/etc/genesis.json"
        [[keys]]
        voting = "keys/voting.key"
        redemption = "keys/redemption.key"
        [[keys]]
        voting = "next/voting.key"
        redemption = "next/redemption.key"
    "#;

    pub(super) fn read(text: &str, overrides: Overrides) -> Result<Config, ConfigError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authority.toml");
        std::fs::write(&path, text).unwrap();
        Config::read(&path, overrides).map(|mut config| {
            config.data = config.data.strip_prefix(folder.path()).unwrap().into();
            config
        })
    }

    #[test]
    fn paths_are_relative_to_the_file_and_flags_come_first() {
        let overrides = Overrides { listen: Some("127.0.0.1:7000".parse().unwrap()), ..Overrides::default() };
        let config = read(GOOD, overrides).unwrap();
        assert_eq!(config.data, Path::new("data"));
        assert!(config.keys.len() == 2 && config.keys.iter().all(|pair| pair.redemption.is_absolute()));
        assert_eq!(config.genesis.as_deref(), Some(Path::new("/etc/genesis.json")));
        assert_eq!(config.high_water_mark(), Path::new("data.witness"));
        let named = format!("high_water_mark = \"/var/mark\"\nendpoints = \"endpoints.json\"\n{GOOD}");
        let named = read(&named, Overrides::default()).unwrap();
        assert_eq!(named.high_water_mark(), Path::new("/var/mark"));
        assert!(named.endpoints.unwrap().is_absolute());
        let old = read(&format!("witness = \"/var/mark\"\n{GOOD}"), Overrides::default()).unwrap_err().to_string();
        assert!(old.contains("`witness` is called `high_water_mark` now"), "{old}");
        let ports: Vec<u16> = config.shard_addresses().unwrap().iter().map(SocketAddr::port).collect();
        assert_eq!(ports, [7000, 7001]);
    }

    #[test]
    fn bounds_are_as_they_come_but_for_those_that_are_named() {
        let config = read(GOOD, Overrides::default()).unwrap();
        assert_eq!((config.limits, config.index), (Limits::default(), true));
        let named = format!(
            "index = false\n{GOOD}\n[limits]\nshard_connections_max = 64\nevent_streams_max = 0\ndisk_reserve_bytes = 0\naddress_journal_bytes_per_day = 7\n"
        );
        let named = read(&named, Overrides::default()).unwrap();
        let expected = Limits {
            shard_connections_max: 64,
            event_streams_max: 0,
            disk_reserve_bytes: 0,
            address_journal_bytes_per_day: 7.try_into().unwrap(),
            ..Limits::default()
        };
        assert_eq!((named.limits, named.index), (expected, false));
        let traces = format!("{GOOD}\n[traces]\nendpoint = \"http://127.0.0.1:4317\"\nratio = 0.5\n");
        assert_eq!(read(&traces, Overrides::default()).unwrap().traces.unwrap().ratio.get(), 0.5);
        assert!(config.archive.is_none());
        let archive = format!("endpoints = \"endpoints.json\"\n{GOOD}\n[archive]\nfolder = \"archive\"\n");
        let settings = |text: &str| read(text, Overrides::default()).unwrap().archive.unwrap();
        let usual = settings(&archive);
        assert!(usual.folder.is_absolute() && usual.folder.ends_with("archive"));
        assert_eq!((usual.every_seconds, usual.orders_max), (604_800, 1_000_000));
        assert_eq!((usual.times.poll, usual.pruning.poll), (Duration::from_secs(60), Duration::from_secs(60)));
        let fast = settings(&format!("{archive}every_seconds = 10\n"));
        assert_eq!((fast.times.poll, fast.times.takeover), (Duration::from_secs(1), Duration::from_secs(10)));
        assert_eq!((fast.pruning.poll, fast.pruning.turn), (Duration::from_secs(1), Duration::from_secs(5)));
        assert!(usual.store.is_none() && usual.idle);
        assert!(!settings(&format!("{archive}idle = false\n")).idle);
        let stored = settings(&format!("{archive}store = \"s3://bucket/alice\"\n"));
        assert_eq!(stored.store.unwrap().as_str(), "s3://bucket/alice");
        let named = settings(&format!("{archive}every_seconds = 3600\norders_max = 10000\n"));
        assert_eq!((named.every_seconds, named.orders_max), (3_600, 10_000));
        let tls = format!("{GOOD}\n[tls]\ncertificate = \"a.pem\"\nkey = \"a.key\"\nhttp = true\n");
        assert!(read(&tls, Overrides::default()).unwrap().tls.unwrap().http);
    }

    #[test]
    fn wrong_configurations_are_refused_with_the_reason() {
        let check = |text: String, expected: &str| {
            let error = read(&text, Overrides::default()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(format!("colour = 1\n{GOOD}"), "unknown field `colour`");
        check(format!("{GOOD}\n[archive]\nfolder = \"archive\"\n"), "an [archive] and no `endpoints`");
        let archive = format!("endpoints = \"endpoints.json\"\n{GOOD}\n[archive]\nfolder = \"archive\"\n");
        check(format!("{archive}orders_max = 9999\n"), "archive.orders_max is 9999; at least 10000 are needed");
        check(format!("{archive}every_seconds = 9\n"), "archive.every_seconds is 9; at least 10 are needed");
        check(format!("{archive}store = \"http://bucket\"\n"), "http://bucket/ is no place for an archive");
        check(format!("{archive}poll = 1\n"), "unknown field `poll`");
        check(GOOD.replace("shards = 2", "shards = 0"), "nonzero");
        check(GOOD.replace("shards = 2", "shards = 65"), "at most 64");
        check(GOOD.replace("shards = 2", "shards = 2\naccounts_in_memory = 19999"), "each shard needs at least 10000");
        check(GOOD.replace(":9000", ":65535"), "no port for every shard");
        check(
            format!("{GOOD}\n[limits]\nhttp_connections_max = 15\n"),
            "http_connections_max is 15; it must be at least 16",
        );
        check(
            format!("{GOOD}\n[limits]\nshard_connections_max = 0\n"),
            "shard_connections_max is 0; it must be at least 16",
        );
        check(format!("{GOOD}\n[limits]\naccount_journal_bytes_per_day = 0\n"), "nonzero");
        check(format!("{GOOD}\n[limits]\nconnections_max = 99\n"), "unknown field `connections_max`");
        check(format!("{GOOD}\n[traces]\nratio = 0.5\n"), "missing field `endpoint`");
        let traces = format!("{GOOD}\n[traces]\nendpoint = \"http://127.0.0.1:4317\"\n");
        check(format!("{traces}ratio = 2\n"), "2 is not a ratio");
        check(format!("{traces}sampler = 2\n"), "unknown field `sampler`");
        check(GOOD.replace("genesis", "#"), "either [primary] or genesis");
        check(GOOD.replace("listen", "#"), "missing field `listen`");
        let (without_keys, _) = GOOD.split_once("[[keys]]").unwrap();
        check(without_keys.into(), "missing field `keys`");
        check(format!("keys = []\n{without_keys}"), "has no keys");
        check(GOOD.replace("[[keys]]", "[keys]"), "is invalid");
        // A mistyped key whose value may be a secret.
        let error =
            read(&format!("{GOOD}[primary]\nrpc_url = [\"https://eth.example/v3/0123\"]\n"), Overrides::default());
        let error = error.unwrap_err();
        assert!(error.to_string().contains("line 14, column 1, `primary.rpc_url`: unknown field `rpc_url`"), "{error}");
        assert!(error.to_string().contains("`rpc_urls`") && !format!("{error}{error:?}").contains("0123"), "{error:?}");
        let rpc_urls = vec!["http://localhost:8545".parse().unwrap()];
        let useless = read(GOOD, Overrides { rpc_urls, ..Overrides::default() });
        assert!(matches!(useless, Err(ConfigError::NoPrimary)), "{useless:?}");
        let missing = Config::read(Path::new("/nowhere/authority.toml"), Overrides::default()).unwrap_err();
        assert!(missing.to_string().contains("fastpay-node init"));
    }
}
