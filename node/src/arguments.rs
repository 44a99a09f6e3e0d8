//! The commands of `fastpay-node` and their arguments. The comments are what `--help` prints.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use fastpay_node::authority::config::Overrides;
use fastpay_node::operator::setup;
use fastpay_program::configuration::NodeUrl;
use fastpay_program::console::{LogFormat, Shell};

/// An authority of a FastPay committee.
#[derive(Parser)]
#[command(name = "fastpay-node", version, about = "An authority of a FastPay committee")]
pub(super) struct Arguments {
    /// The form of the log on standard error; FASTPAY_LOG says how much
    #[arg(long, global = true, value_enum, env = "FASTPAY_NODE_LOG_FORMAT", default_value = "text")]
    pub(super) log_format: LogFormat,
    #[command(subcommand)]
    pub(super) command: Command,
}

/// The arguments of a command of an earlier version, which are not read.
#[derive(Args)]
pub(super) struct Replaced {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(super) _arguments: Vec<String>,
}

#[derive(Subcommand)]
pub(super) enum Command {
    /// Make the authority's two keys and print their public side, which the committee lists
    Keygen {
        /// The folder for the keys
        #[arg(long)]
        keys: PathBuf,
        /// Do not encrypt: anyone who can read the files can vote in this authority's name
        #[arg(long)]
        plain: bool,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
    },
    /// Write a configuration, create an empty data folder, and print the authority's endpoints
    Init(InitArguments),
    /// Run the authority until SIGTERM or Ctrl-C
    Run {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Prove, announce and accept the next committee, show that this one is there, raise a deposit cap, release what the
    /// committee does not know
    #[command(subcommand)]
    Committee(CommitteeCommand),
    /// Propose, sign and certify checkpoints of the committee, which an archive keeps
    #[command(subcommand)]
    Checkpoint(CheckpointCommand),
    /// Look at an archive of checkpoints
    #[command(subcommand)]
    Archive(ArchiveCommand),
    /// Replaced by `committee sign`
    #[command(hide = true, disable_help_flag = true)]
    VoteCommittee(Replaced),
    /// Replaced by `mark-stale`
    #[command(hide = true, disable_help_flag = true)]
    Restored(Replaced),
    /// Replaced by `trust-data`
    #[command(hide = true, disable_help_flag = true)]
    Vouch(Replaced),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Back up the data folder; the node may run. The backup is marked as an older copy: an authority that runs on it
    /// votes only above the numbers that the other authorities know
    Backup {
        /// The folder to make
        to: PathBuf,
        #[command(flatten)]
        folder: FolderArguments,
    },
    /// Make the data folder from a backup, marked as an older copy. Be sure that the old node is gone for good: two
    /// nodes of one key could sign two different orders
    Restore {
        /// The backup
        from: PathBuf,
        #[command(flatten)]
        folder: FolderArguments,
    },
    /// Declare the data folder an older copy. The authority then votes only for numbers above those that the other
    /// authorities know, until `trust-data`
    MarkStale(FolderArguments),
    /// Declare the data folder complete and resume voting: it was moved whole while the node was stopped, or every
    /// order that was pending when it was copied has been settled since
    TrustData(FolderArguments),
    /// Ask a running authority how it is
    Status {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// One JSON document instead of a table
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Write the script that makes a shell complete this command
    Completions {
        /// For which shell
        shell: Shell,
    },
}

#[derive(Subcommand)]
pub(super) enum CommitteeCommand {
    /// Prove that this member has both keys of a pair, which an announcement needs of each
    Prove {
        /// The configuration: it names the chain and the contract
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The folder of the pair, as `keygen` made it
        #[arg(long)]
        keys: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Check an announcement and its members' proofs, and sign it with the pair that votes in the current epoch
    Sign {
        #[command(flatten)]
        next: NextArguments,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Accept an announcement that has matured on the contract, with the pair that votes in the epoch that it begins
    Accept {
        #[command(flatten)]
        next: NextArguments,
        /// The block that all acceptances name; without it that in which the announcement matured
        #[arg(long)]
        block: Option<u64>,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Show that this committee is there: a quorum's heartbeats end an announced recovery
    Heartbeat {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// A recent final block, the same for all
        #[arg(long)]
        block: u64,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Vote for a higher deposit cap of an asset
    RaiseCap {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The raise, the same file for all: {"epoch", "asset", "cap", "deadline"}
        #[arg(long)]
        raise: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Vote to take a redemption of a compromised epoch out of the contract's queue. Needs the running node, which must not
    /// have confirmed it
    Release {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The redemption: {"sender", "recipient", "asset", "amount", "fee", "sequence", "memo"}
        #[arg(long)]
        redemption: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
}

#[derive(Subcommand)]
pub(super) enum CheckpointCommand {
    /// Choose a cut of what this authority has executed, and write its segment, state and cut into the archive. The node
    /// may run. A proposal that was not certified is replaced
    Propose {
        #[command(flatten)]
        archive: ArchiveArguments,
        #[command(flatten)]
        folder: FolderArguments,
    },
    /// Compute a proposed cut from this authority's own journals and Ethereum nodes, write it into the archive, and sign it
    /// with the pair that votes in the current epoch. The node may run
    Sign {
        #[command(flatten)]
        archive: ArchiveArguments,
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// The proposer's file NUMBER.cut.json
        #[arg(long)]
        cut: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Gather a quorum's votes into the certificate of the archive's newest cut. Copy the certificate into the archives of
    /// the others
    Certify {
        #[command(flatten)]
        archive: ArchiveArguments,
        /// A member's vote, as `checkpoint sign` made it; one for each member of a quorum
        #[arg(long = "vote", required = true)]
        votes: Vec<PathBuf>,
        #[command(flatten)]
        folder: FolderArguments,
    },
}

#[derive(Args)]
pub(super) struct ArchiveArguments {
    /// The folder of certified checkpoints; made if there is none
    #[arg(long)]
    pub(super) archive: PathBuf,
}

#[derive(Subcommand)]
pub(super) enum ArchiveCommand {
    /// Recompute all checkpoints from the first committee on, and check their certificates. Names the first file that is
    /// wrong
    Verify {
        /// The archive
        archive: PathBuf,
        /// One JSON document instead of a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        folder: FolderArguments,
    },
}

/// An announcement and the proofs of its members.
#[derive(Args)]
pub(super) struct NextArguments {
    /// The configuration
    #[arg(long, default_value = "authority.toml")]
    pub(super) config: PathBuf,
    /// The announcement, the same file for all: {"chainId", "authorities", "guardian", "recovery", "epoch",
    /// "compromisedSince", "checkpoint", "deadline"}
    #[arg(long)]
    pub(super) announcement: PathBuf,
    /// A member's proof, as `committee prove` made it; one for each member
    #[arg(long = "proof", required = true)]
    pub(super) proofs: Vec<PathBuf>,
}

/// The arguments of every signing command.
#[derive(Args)]
pub(super) struct SigningArguments {
    /// Write the answer to this file instead; never overwritten
    #[arg(long)]
    pub(super) out: Option<PathBuf>,
    /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
    #[arg(long)]
    pub(super) passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Subcommand)]
pub(super) enum ConfigCommand {
    /// Look at everything that a start rests on: files, keys, committee, data folder, ports. Fails where it would fail
    Check {
        /// The configuration
        #[arg(long, default_value = "authority.toml")]
        config: PathBuf,
        /// One JSON document instead of a table
        #[arg(long)]
        json: bool,
        /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
        #[arg(long)]
        passphrase_file: Option<PathBuf>,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(Args)]
pub(super) struct FolderArguments {
    /// The configuration
    #[arg(long, default_value = "authority.toml")]
    pub(super) config: PathBuf,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Args)]
pub(super) struct InitArguments {
    /// The configuration to write; never overwritten
    #[arg(long, default_value = "authority.toml")]
    pub(super) config: PathBuf,
    /// The folder of journals and checkpoints to create
    #[arg(long)]
    pub(super) data: PathBuf,
    /// The folder with the authority's keys
    #[arg(long)]
    pub(super) keys: PathBuf,
    /// The file that says where all authorities are reached, the same as wallets use; it need not be there yet
    #[arg(long)]
    pub(super) endpoints: Option<PathBuf>,
    /// How many shards: threads that share the accounts. Cannot be changed later
    #[arg(long, default_value = "1")]
    pub(super) shards: NonZeroU32,
    /// The address of shard 0; shard k listens k ports above
    #[arg(long)]
    pub(super) listen: SocketAddr,
    /// The address of the JSON API, the status page, health, readiness and metrics
    #[arg(long)]
    pub(super) http: SocketAddr,
    /// An Ethereum node; several times for several, which must then agree. Not with --genesis
    #[arg(long = "rpc-url", requires = "contract", required_unless_present = "genesis", value_parser = NodeUrl)]
    pub(super) rpc_urls: Vec<url::Url>,
    /// The chain of the Primary (EIP-155)
    #[arg(long, requires = "contract")]
    pub(super) chain_id: Option<u64>,
    /// The FastPay contract
    #[arg(long, requires_all = ["rpc_urls", "chain_id"])]
    pub(super) contract: Option<fastpay_core::PrimaryAddress>,
    /// From which block on the Primary is believed: finalized, safe, or a number of confirmations
    #[arg(long, default_value = "finalized")]
    pub(super) finality: setup::FinalityArgument,
    /// Run without a Primary, from this genesis, in place of --rpc-url, --chain-id and --contract
    #[arg(long, conflicts_with = "contract")]
    pub(super) genesis: Option<PathBuf>,
    /// Read the passphrase from the first line of this file instead of FASTPAY_PASSPHRASE or the terminal
    #[arg(long)]
    pub(super) passphrase_file: Option<PathBuf>,
}
