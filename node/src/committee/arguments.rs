//! The arguments of the commands about the committee. The comments are what `--help` prints.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use fastpay_core::{Digest, Epoch, PrimaryAddress};
use fastpay_node::operator::committee::Terms;

use crate::arguments::{ConfigArguments, SourceArguments};

#[derive(Subcommand)]
pub(crate) enum CommitteeCommand {
    #[command(flatten)]
    Change(ChangeCommand),
    #[command(flatten)]
    Sign(SignCommand),
}

/// The steps of a new committee that need no key of a member.
#[derive(Subcommand)]
pub(crate) enum ChangeCommand {
    /// Propose those whose proofs are given as the next committee: write the file that all members sign
    Propose {
        /// A file with a member's proof, as `committee prove` wrote it. Repeat it for each member
        #[arg(long = "proof", required = true)]
        proofs: Vec<PathBuf>,
        #[command(flatten)]
        terms: TermsArguments,
        /// The file to write. One that has the same proposal is kept
        #[arg(long, default_value = "next.json")]
        out: PathBuf,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
    /// Announce a committee on the contract, with the signatures of a quorum. Anyone may
    Announce {
        #[command(flatten)]
        next: NextArguments,
        /// A file with a member's signature, as `committee sign` wrote it. Repeat it for each member
        #[arg(long = "vote", required_unless_present = "recovery")]
        votes: Vec<PathBuf>,
        /// Announce a committee in place of one that has been silent for 120 days, with the key of the recovery address and
        /// without signatures
        #[arg(long, conflicts_with = "votes")]
        recovery: bool,
        #[command(flatten)]
        sending: SendingArguments,
    },
    /// Endorse an announcement with the guardian's key: it can be installed a day later, not 14 days after the announcement.
    /// Without --id it only shows what the file announces
    Endorse {
        /// The JSON file of the announcement
        #[arg(long)]
        announcement: PathBuf,
        /// The digest of the announcement, as the command shows it
        #[arg(long)]
        id: Option<Digest>,
        #[command(flatten)]
        sending: SendingArguments,
    },
    /// Install a committee whose delay has passed. Anyone may. The first run records that the delay has passed, so that
    /// members can accept. A later run, with a quorum's acceptances (--vote), begins the epoch. Exit code 11: not
    /// installed yet
    Install {
        /// The JSON file of the announcement
        #[arg(long)]
        announcement: PathBuf,
        /// A file with a member's acceptance, as `committee accept` wrote it. Repeat it for each member
        #[arg(long = "vote")]
        votes: Vec<PathBuf>,
        #[command(flatten)]
        sending: SendingArguments,
    },
    /// Show which committees are announced, who has signed and accepted, when each can be installed, and the next step
    Status {
        /// The JSON file of an announcement, which may not be on the contract yet
        #[arg(long)]
        announcement: Option<PathBuf>,
        /// A file with a member's signature or acceptance of that announcement. Repeat it for each
        #[arg(long = "vote", requires = "announcement")]
        votes: Vec<PathBuf>,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        config: ConfigArguments,
    },
}

/// What a member signs.
#[derive(Subcommand)]
pub(crate) enum SignCommand {
    /// Prove possession of a key pair, for the chain and contract that the configuration names. An announcement needs a proof of each member of the next committee
    Prove {
        /// The folder of the key pair, as `keygen` created it
        #[arg(long)]
        keys: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Check an announcement and its members' proofs, and sign it with the key pair of the current epoch
    Sign {
        #[command(flatten)]
        next: NextArguments,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Accept an announcement that has matured on the contract, with the key pair of the epoch that it begins
    Accept {
        #[command(flatten)]
        next: NextArguments,
        /// The block number that all acceptances name [default: the block in which the announcement matured]
        #[arg(long)]
        block: Option<u64>,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Sign a heartbeat. The heartbeats of a quorum cancel an announced recovery
    Heartbeat {
        /// The number of a recent final block, the same for all members
        #[arg(long)]
        block: u64,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Sign a vote for a higher deposit cap of an asset
    RaiseCap {
        /// The JSON file of the raise, the same for all members: {"epoch", "asset", "cap", "deadline"}
        #[arg(long)]
        raise: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Rebuild a checkpoint after a recovery, and sign its adoption if it is the given one
    Adopt {
        /// The digest on which the members agreed, as `fastpay-node recover` shows it
        #[arg(long)]
        checkpoint: Digest,
        #[command(flatten)]
        sources: SourceArguments,
        #[command(flatten)]
        signing: SigningArguments,
    },
    /// Sign a vote to remove a redemption of a compromised epoch from the contract's queue. The node must be running.
    /// Refuses a redemption that the node votes to pay
    Release {
        /// The JSON file of the redemption: {"sender", "recipient", "asset", "amount", "fee", "sequence", "memo"}
        #[arg(long)]
        redemption: PathBuf,
        #[command(flatten)]
        signing: SigningArguments,
    },
}

/// What a proposal says beside its members.
#[derive(Args)]
pub(crate) struct TermsArguments {
    /// The guardian of the next epoch; 0x0000000000000000000000000000000000000000 for nobody [default: as now]
    #[arg(long)]
    guardian: Option<PrimaryAddress>,
    /// The recovery address of the next epoch; 0x0000000000000000000000000000000000000000 for nobody [default: as now]
    #[arg(long)]
    recovery: Option<PrimaryAddress>,
    /// The first epoch whose keys were stolen: its votes, and those of later epochs, count no longer [default: none]
    #[arg(long, value_name = "EPOCH")]
    compromised_since: Option<u64>,
    /// The digest of the newest certified checkpoint [default: none]
    #[arg(long)]
    checkpoint: Option<Digest>,
    /// The number of days in which it has to be announced, at most 30
    #[arg(long, default_value = "7", value_parser = clap::value_parser!(u64).range(1..=30))]
    days: u64,
}

impl From<TermsArguments> for Terms {
    fn from(TermsArguments { guardian, recovery, compromised_since, checkpoint, days }: TermsArguments) -> Self {
        let (compromised_since, checkpoint) = (compromised_since.map(Epoch), checkpoint.unwrap_or_default());
        Self { guardian, recovery, compromised_since, checkpoint, days }
    }
}

/// The arguments of every command that sends a transaction.
#[derive(Args)]
pub(crate) struct SendingArguments {
    /// The file of the Ethereum key that pays for the transaction: a keystore (Web3 secret storage), or hexadecimal digits in
    /// a file that only its owner can read. No running program may use this key
    #[arg(long)]
    pub(crate) key: PathBuf,
    /// The highest price to offer for a unit of gas, in gwei. If gas costs more, the command fails, or waits once the
    /// transaction is sent
    #[arg(long, value_name = "GWEI", default_value = "300")]
    pub(crate) max_fee_cap_gwei: u64,
    /// A file whose first line is the passphrase [default: FASTPAY_PASSPHRASE, then a prompt]
    #[arg(long)]
    pub(crate) passphrase_file: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) config: ConfigArguments,
}

/// An announcement and the proofs of its members.
#[derive(Args)]
pub(crate) struct NextArguments {
    /// The JSON file of the announcement, as `committee propose` wrote it, the same for all members
    #[arg(long)]
    pub(crate) announcement: PathBuf,
    /// A file with a member's proof, as `committee prove` wrote it. Repeat it for each member
    #[arg(long = "proof", required = true)]
    pub(crate) proofs: Vec<PathBuf>,
}

/// The arguments of every signing command.
#[derive(Args)]
pub(crate) struct SigningArguments {
    /// Write the answer to this file, which must not exist with another answer [default: standard output]
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// A file whose first line is the passphrase [default: FASTPAY_PASSPHRASE, then a prompt]
    #[arg(long)]
    pub(crate) passphrase_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) config: ConfigArguments,
}
