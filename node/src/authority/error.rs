//! Why an authority cannot start, or ended.

use fastpay_client::EndpointsError;
use fastpay_core::{EpochsError, ShardId};
use fastpay_ethereum::PrimaryError;
use fastpay_telemetry::TraceError;

use super::certification::StoreError;
use super::config::ConfigError;
use super::deployment::DeploymentError;
use super::rollback::{DetectionError, PeersError};
use super::rotation::RotationError;
use super::shard::ShardError;
use super::storage::StorageError;
use super::tls::TlsError;
use super::voter_status::VoterStatusError;

/// Why an authority cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The committee cannot be loaded, or this authority is not in it.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The stored committees of earlier epochs contradict each other.
    #[error(transparent)]
    Epochs(#[from] EpochsError),
    /// The keys are not this authority's.
    #[error(transparent)]
    VoterStatus(#[from] VoterStatusError),
    /// The committees cannot be stored.
    #[error(transparent)]
    Rotation(#[from] RotationError),
    /// The data folder cannot be used.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The state of the data folder cannot be determined.
    #[error(transparent)]
    Memory(#[from] DetectionError),
    /// The floors of the rollback protection in the data folder cannot be read.
    #[error("cannot read the other authorities' answers about earlier votes: {0}")]
    VoteFloors(std::io::Error),
    /// The other authorities cannot be asked for their knowledge of earlier votes.
    #[error("the data folder is an older copy, and the other authorities cannot be asked: {0}")]
    Peers(#[from] PeersError),
    /// The other authorities, with whom checkpoints are made, are not known.
    #[error("no checkpoints can be made for the [archive] of the configuration: {0}; correct `endpoints` and its file")]
    ArchivePeers(#[source] EndpointsError),
    /// The archive's store cannot be set up.
    #[error(transparent)]
    ArchiveStore(#[from] StoreError),
    /// A journal that was rebased has lost its beginning, with all that the authority knew.
    #[error(
        "the journal of shard {shard} does not begin with the base of generation {generation}, which a rebase wrote: it is \
         damaged. Restore the data folder from a backup; see docs/OPERATIONS.md, After a lost disk"
    )]
    NoBase {
        /// The shard.
        shard: ShardId,
        /// The generation of the data folder.
        generation: u64,
    },
    /// The shards' journals are of different times.
    #[error(
        "shard {to} has applied {applied} credits of shard {from}, which has issued {issued}: the shards' journals are of \
         different times. Restore a copy that `fastpay-node backup` made, or a snapshot of the whole file system"
    )]
    TornCopy {
        /// The shard whose journal is older.
        from: ShardId,
        /// The shard whose journal is newer.
        to: ShardId,
        /// The newest credit that `from` has issued.
        issued: u64,
        /// The newest credit that `to` has applied.
        applied: u64,
    },
    /// A shard has lost credits that it had acknowledged, so the shard that sent them no longer keeps them.
    #[error(
        "shard {to} has applied {applied} credits of shard {from} and had acknowledged {acknowledged}: its journal has \
         lost its end, or files of different times were put together. Restore a copy that `fastpay-node backup` made. \
         Without such a copy, move shard-{:03}/checkpoint out of the data folder, or after a rebase out of its newest \
         generation-NNNN, and start again: shard {from} then sends all its credits again, from its journal",
        .from.0
    )]
    LostCredits {
        /// The shard that sent the credits.
        from: ShardId,
        /// The shard that has lost them.
        to: ShardId,
        /// The newest credit that `to` had acknowledged.
        acknowledged: u64,
        /// The newest credit that `to` has applied.
        applied: u64,
    },
    /// A shard cannot start, or ended.
    #[error("shard {shard}: {error}")]
    Shard {
        /// The shard.
        shard: ShardId,
        /// Why.
        error: ShardError,
    },
    /// A shard's thread panicked.
    #[error("shard {0} stopped because of a defect; see the log above")]
    ShardPanicked(ShardId),
    /// The system cannot start a thread.
    #[error("cannot start the authority's threads: {0}")]
    Runtime(std::io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the index's thread: {0}")]
    Index(std::io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the thread that makes checkpoints: {0}")]
    Checkpoints(std::io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the thread of the hand-over: {0}")]
    Handover(std::io::Error),
    /// A port cannot be opened.
    #[error("cannot listen on {address}: {error}; check whether another program uses the port")]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The URLs of the Primary cannot be used.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The exporter of traces cannot be started.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// A server failed as a whole.
    #[error("a server failed: {0}")]
    Server(String),
}
