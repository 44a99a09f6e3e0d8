//! The commands of `fastpay-node` and their arguments. The comments are what `--help` prints.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use fastpay_ethereum::{Finality, PrimaryConfig};
use fastpay_ledger_statement::CommitteeNumber;
use fastpay_node::authority::config::{Config, ConfigError, Overrides, PrimarySection};
use fastpay_node::authority::deployment::Reader;
use fastpay_node::authority::funding::LedgerConfig;
use fastpay_node::operator::recover::Sources;
use fastpay_program::configuration::NodeUrl;
use fastpay_program::console::{LogFormat, Shell};

use crate::committee::CommitteeCommand;

/// An authority of a FastPay committee.
#[derive(Parser)]
#[command(name = "fastpay-node", version, about = "An authority of a FastPay committee")]
pub(super) struct Arguments {
    /// The format of the log on standard error. FASTPAY_LOG sets its level
    #[arg(long, global = true, value_enum, env = "FASTPAY_NODE_LOG_FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The arguments of a command that was replaced. They are ignored.
#[derive(Args)]
pub(super) struct Replaced {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) _arguments: Vec<String>,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Create the authority's two keys and print the public keys for the committee's list
    Keygen {
        /// The folder to create the keys in
        #[arg(long)]
        keys: PathBuf,
        /// Write the keys unencrypted: anyone who can read the files can vote as this authority
        #[arg(long)]
        plain: bool,
        /// A file whose first line is the passphrase [default: FASTPAY_PASSPHRASE, then a prompt]
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
    },
    /// Write a configuration file, create an empty data folder, and print the authority's endpoints
    Init(InitArguments),
    /// Run the authority until SIGTERM or Ctrl-C
    Run {
        /// A file whose first line is the passphrase [default: FASTPAY_PASSPHRASE, then a prompt]
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Replace the committee; sign heartbeats, deposit caps, rebuilt checkpoints, and releases of redemptions. Each command
    /// can be repeated, also after an interruption
    #[command(subcommand)]
    Committee(CommitteeCommand),
    /// Verify an archive of checkpoints
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Rewrite a stopped node's journals to begin at the newest certified checkpoint of an archive
    Rebase {
        /// The folder of certified checkpoints, or the URL of their store
        #[arg(long)]
        archive: PathBuf,
        /// The new number of shards, to be set in the configuration, too [default: as before]
        #[arg(long)]
        shards: Option<NonZeroU32>,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Rebuild the checkpoint from which a committee begins whose installation ended earlier epochs at once: after a
    /// recovery, or after keys of more than f members were stolen. Equal sources give equal checkpoints
    Recover {
        #[command(flatten)]
        sources: SourceArguments,
        /// The folder to write the checkpoint's files and the report to
        #[arg(long)]
        out: Option<PathBuf>,
        /// Print the report as one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        deployment: DeploymentArguments,
    },
    /// Remove the journals that a rebase has replaced, once the node was started on the new ones
    Prune(ConfigArguments),
    /// Replaced by the nodes themselves
    #[command(hide = true, disable_help_flag = true)]
    Checkpoint(Replaced),
    /// Replaced by `committee sign`
    #[command(hide = true, disable_help_flag = true)]
    VoteCommittee(Replaced),
    /// Replaced by `mark-stale`
    #[command(hide = true, disable_help_flag = true)]
    Restored(Replaced),
    /// Replaced by `trust-data`
    #[command(hide = true, disable_help_flag = true)]
    Vouch(Replaced),
    /// Check the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Back up the data folder, also while the node runs. The backup is marked stale: an authority started from it
    /// votes only for numbers above those that the other authorities know
    Backup {
        /// The folder to create
        to: PathBuf,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Create the data folder from a backup and mark it stale. Make sure that the old node never runs again: two nodes
    /// with one key could sign conflicting orders
    Restore {
        /// The backup's folder
        from: PathBuf,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Mark the data folder stale. Until the authority has joined the next epoch, it votes only for numbers above those that
    /// the other authorities know
    MarkStale(ConfigArguments),
    /// Declare the data folder complete after a move. Run this only if you moved the whole folder and its high-water mark
    /// while the node was stopped. It does not make an older copy complete
    TrustData(ConfigArguments),
    /// Show the state of a running authority
    Status {
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Watch the running node join the current epoch. Prints what the node waits for and what you can do. Succeeds once
    /// the node votes
    Join(WatchArguments),
    /// Check whether you can stop the node of a member that has left. You can once a quorum of the current committee has
    /// executed everything that this authority executed. The node must be running
    Leave {
        #[command(flatten)]
        watch: WatchArguments,
        /// Stop the node once also every member of the current committee votes. It ends with exit code 0, and does not start
        /// again while `left.json` is in its data folder
        #[arg(long)]
        stop: bool,
    },
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Subcommand)]
pub(super) enum ArchiveCommand {
    /// Recompute all checkpoints from the first committee on, and check their certificates. Names the first invalid
    /// file
    Verify {
        /// The archive's folder, or the URL of its store
        archive: PathBuf,
        /// Print one JSON document instead of a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        deployment: DeploymentArguments,
    },
}

/// What a checkpoint is rebuilt from.
#[derive(Args)]
pub(super) struct SourceArguments {
    /// The folder of certified checkpoints, which may be empty, or the URL of a store
    #[arg(long)]
    archive: PathBuf,
    /// A file with a certificate in each line, as `fastpay show --certificate` prints it, or a folder of such files.
    /// Repeat it
    #[arg(long)]
    certificates: Vec<PathBuf>,
    /// The data folder of an authority of an earlier committee. Repeat it
    #[arg(long)]
    journals: Vec<PathBuf>,
    /// The JSON file of a redemption that the contract paid and whose call does not show all fields. Repeat it
    #[arg(long = "redemption")]
    redemptions: Vec<PathBuf>,
}

impl From<SourceArguments> for Sources {
    fn from(SourceArguments { archive, certificates, journals, redemptions }: SourceArguments) -> Self {
        Self { archive, certificates, journals, redemptions }
    }
}

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Check everything that `run` needs: files, keys, committee, data folder and ports. Fails if `run` would fail
    Check {
        /// Print one JSON document instead of a table
        #[arg(long)]
        json: bool,
        /// A file whose first line is the passphrase [default: FASTPAY_PASSPHRASE, then a prompt]
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

/// The arguments of a command that watches the running node.
#[derive(Args)]
pub(super) struct WatchArguments {
    /// Keep checking for this many seconds, until the command succeeds. With 0, check once
    #[arg(long, value_name = "SECONDS", default_value = "0")]
    pub(super) wait: u64,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) config: ConfigArguments,
}

/// The configuration.
#[derive(Args)]
pub(super) struct ConfigArguments {
    /// The configuration file
    #[arg(long, default_value = "authority.toml")]
    pub(super) config: PathBuf,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

impl ConfigArguments {
    /// Reads the file and applies the overrides.
    pub(super) fn read(&self) -> Result<Config, ConfigError> {
        Config::read(&self.config, self.overrides.clone())
    }
}

/// The deployment: an authority's, by its configuration, or any, by its contract or its place on a ledger.
#[derive(Args)]
pub(super) struct DeploymentArguments {
    /// The address of the FastPay contract, instead of a configuration. Anybody can name it, with an Ethereum node
    /// (--rpc-url) and its chain: no keys and no data folder are needed
    #[arg(long, requires_all = ["rpc_urls", "chain_id"], conflicts_with = "config")]
    contract: Option<fastpay_core::PrimaryAddress>,
    /// The chain ID of the contract's chain (EIP-155)
    #[arg(long, requires = "contract")]
    chain_id: Option<u64>,
    /// The block that counts as final: finalized, safe, or a number of confirmations
    #[arg(long, requires = "contract", default_value = "finalized")]
    finality: Finality,
    /// The file of the ledger, instead of a configuration. Anybody can name it with the committee (--committee): no keys
    /// and no data folder are needed
    #[arg(long, requires = "committee", conflicts_with_all = ["config", "contract", "rpc_urls"])]
    ledger: Option<PathBuf>,
    /// The committee's number on the ledger
    #[arg(long, requires = "ledger")]
    committee: Option<u32>,
    #[command(flatten)]
    config: ConfigArguments,
}

/// What a deployment is read with.
pub(super) enum Deployed {
    Authority(Box<Config>),
    Anybody(PrimarySection),
}

impl DeploymentArguments {
    /// Reads the configuration, unless the contract or the ledger is named.
    pub(super) fn read(self) -> Result<Deployed, ConfigError> {
        let Self { contract, chain_id, finality, ledger, committee, config } = self;
        if let Some((file, committee)) = ledger.zip(committee) {
            let ledger = LedgerConfig { file, committee: CommitteeNumber(committee) };
            return Ok(Deployed::Anybody(PrimarySection::Ledger(ledger)));
        }
        let Some((contract, chain_id)) = contract.zip(chain_id) else {
            return Ok(Deployed::Authority(Box::new(config.read()?)));
        };
        let primary = PrimaryConfig::new(config.overrides.rpc_urls, chain_id, contract);
        Ok(Deployed::Anybody(PrimaryConfig { finality, ..primary }.into()))
    }
}

impl<'a> From<&'a Deployed> for Reader<'a> {
    fn from(deployed: &'a Deployed) -> Self {
        match deployed {
            Deployed::Authority(config) => Self::Authority(config),
            Deployed::Anybody(primary) => Self::Anybody(primary),
        }
    }
}

#[derive(Args)]
pub(super) struct InitArguments {
    /// The configuration file to write, which must not exist
    #[arg(long, default_value = "authority.toml")]
    pub(super) config: PathBuf,
    /// The data folder to create, for journals and checkpoints
    #[arg(long)]
    pub(super) data: PathBuf,
    /// The folder of the authority's keys
    #[arg(long)]
    pub(super) keys: PathBuf,
    /// The JSON file of all authorities' endpoints, the same file as for wallets. It need not exist yet
    #[arg(long)]
    pub(super) endpoints: Option<PathBuf>,
    /// The number of shards, which are threads that share the accounts. Only a rebase changes it later
    #[arg(long, default_value = "1")]
    pub(super) shards: NonZeroU32,
    /// The address and port of shard 0. Shard k listens on the port that is k higher
    #[arg(long)]
    pub(super) listen: SocketAddr,
    /// The address and port of the JSON API, the status page, health, readiness and metrics
    #[arg(long)]
    pub(super) http: SocketAddr,
    /// The URL of an Ethereum node. Repeat it for several nodes, which must agree
    #[arg(
        long = "rpc-url",
        requires = "contract",
        required_unless_present_any = ["genesis", "ledger"],
        value_parser = NodeUrl
    )]
    pub(super) rpc_urls: Vec<url::Url>,
    /// The chain ID of the Primary (EIP-155)
    #[arg(long, requires = "contract")]
    pub(super) chain_id: Option<u64>,
    /// The address of the FastPay contract
    #[arg(long, requires_all = ["rpc_urls", "chain_id"])]
    pub(super) contract: Option<fastpay_core::PrimaryAddress>,
    /// The block that counts as final: finalized, safe, or a number of confirmations
    #[arg(long, default_value = "finalized")]
    pub(super) finality: Finality,
    /// The file of a ledger: its committee is served, instead of --rpc-url, --chain-id and --contract
    #[arg(long, requires = "committee", conflicts_with_all = ["contract", "genesis"])]
    pub(super) ledger: Option<PathBuf>,
    /// The committee's number on the ledger
    #[arg(long, requires = "ledger")]
    pub(super) committee: Option<u32>,
    /// A genesis file: run without a Primary, instead of --rpc-url, --chain-id and --contract
    #[arg(long, conflicts_with = "contract")]
    pub(super) genesis: Option<PathBuf>,
    /// A file whose first line is the passphrase [default: FASTPAY_PASSPHRASE, then a prompt]
    #[arg(long)]
    pub(super) passphrase_file: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// How a command line names its deployment.
    fn read(line: &str) -> Result<DeploymentArguments, clap::Error> {
        match Arguments::try_parse_from(["fastpay-node"].into_iter().chain(line.split(' ')))?.command {
            Command::Recover { deployment, .. } | Command::Archive(ArchiveCommand::Verify { deployment, .. }) => {
                Ok(deployment)
            }
            _ => panic!("{line} reads no deployment"),
        }
    }

    #[test]
    fn a_deployment_is_named_by_a_configuration_or_by_all_that_finds_its_contract() {
        const CONTRACT: &str = "--contract 0x5fbdb2315678afecb367f032d93f642f64180aa3";
        for command in ["recover --archive archive", "archive verify archive"] {
            let whole = format!("{command} {CONTRACT} --chain-id 5 --rpc-url http://localhost:8545 --finality safe");
            let read_all = |line: &str| read(line).map(DeploymentArguments::read);
            let Ok(Ok(Deployed::Anybody(PrimarySection::Ethereum(primary)))) = read_all(&whole) else {
                panic!("{whole}")
            };
            assert_eq!((primary.chain_id, primary.finality, primary.rpc_urls.len()), (5, Finality::Safe, 1));
            let on_ledger = format!("{command} --ledger ledger.toml --committee 2");
            let Ok(Ok(Deployed::Anybody(PrimarySection::Ledger(ledger)))) = read_all(&on_ledger) else {
                panic!("{on_ledger}")
            };
            assert_eq!((ledger.file.as_path(), ledger.committee), (Path::new("ledger.toml"), CommitteeNumber(2)));
            let missing = read_all(&format!("{command} --config nowhere.toml"));
            assert!(matches!(missing, Ok(Err(ConfigError::Unreadable { .. }))));
            for lacking in [
                format!("{command} {CONTRACT} --rpc-url http://localhost:8545"),
                format!("{command} {CONTRACT} --chain-id 5"),
                format!("{command} --chain-id 5 --rpc-url http://localhost:8545"),
                format!("{command} --finality safe"),
                format!("{whole} --config authority.toml"),
                format!("{command} --ledger ledger.toml"),
                format!("{command} --committee 2"),
                format!("{on_ledger} --config authority.toml"),
                format!("{whole} --ledger ledger.toml --committee 2"),
            ] {
                assert!(read(&lacking).is_err(), "{lacking}");
            }
        }
    }
}
