//! Checkpoints of the committee, made by command: an operator proposes a cut, every operator computes it from its own
//! journals and its own Ethereum nodes, and signs; a quorum's votes make it certified.
//!
//! ```text
//!  journals ─┐                        proposer                  each member                       anybody
//!  chain ────┼─► choose ─► cut file ─► compute ─► archive ┄┄► compute ─► archive ─► vote file ┄┄► certificate file
//!  archive ──┘  (`cut`)                    └── the same computation (`compute`) ──┘     (`certify`, into each archive)
//! ```
//! 1. `propose` takes the newest certified checkpoint of the archive, or the first committee alone, and chooses a cut
//!    that can be certified: what is executed here, up to the newest event that all shards have applied.
//! 2. `sign` computes the same cut again. It takes the cut from the file and nothing else: orders come from this
//!    authority's journals, events from its Ethereum nodes. So a number that is not executed here has no vote.
//! 3. `certify` recomputes what the archive holds, checks each vote, and writes the certificate last.
//!
//! The node may run meanwhile: journals only grow, and everything that is read of them is durable before it is signed.
//! All configured Ethereum nodes must agree about every event. A checkpoint is signed by the members of the epoch that
//! its state is in, and in that epoch alone.

mod archive;
mod certify;
mod compute;
mod cut;
mod events;
mod journals;
mod propose;
mod rebase;
mod sign;

use std::path::PathBuf;

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointError as NotCertified, CheckpointMismatch, CheckpointVote, SegmentError,
};
use fastpay_core::{
    AccountId, AuthorityName, CommitteeError as NotACommittee, Digest, Ed25519Signature, Epoch, EpochsError,
    SequenceNumber, TransactionIndex,
};
use fastpay_ethereum::{DepositsError, PrimaryError};
use fastpay_rpc::json::Hex;
use serde::{Deserialize, Serialize};

use crate::authority::deployment::DeploymentError;
use crate::authority::storage::{JournalError, StorageError};
use crate::operator::UndecodableRecord;

pub use archive::{Archive, ArchiveError, Defect, Report, verify};
pub use certify::{Certified, certify};
pub use propose::{Proposal, propose};
pub use rebase::{RebaseError, Rebased, prune, rebase};
pub use sign::{CheckpointBallot, sign};

/// Tells the operator how far long work is.
pub type Progress<'a> = &'a mut dyn FnMut(String);

/// Why a checkpoint was not proposed, signed or certified.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The committee or the genesis cannot be read.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// The committees do not follow each other.
    #[error(transparent)]
    Epochs(#[from] EpochsError),
    /// The archive cannot be read or written, or is not what its certificates say.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// There is no data folder.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A record is not one of this program.
    #[error(transparent)]
    Record(#[from] UndecodableRecord),
    /// The contract's events cannot be read.
    #[error(transparent)]
    Chain(#[from] DepositsError),
    /// The contract cannot be asked.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// The chain shows a committee that is none.
    #[error("the chain shows an installation of epoch {epoch} that is no committee: {error}; compare the nodes")]
    Installation {
        /// The epoch.
        epoch: Epoch,
        /// Why it is none.
        error: NotACommittee,
    },
    /// The Ethereum nodes lag behind the authority's own shards.
    #[error(
        "the Ethereum nodes show events up to {chain}, and events up to {wanted} are included; wait until they have \
         caught up, and try again"
    )]
    ChainBehind {
        /// The newest event that they show.
        chain: TransactionIndex,
        /// The newest event that the cut includes.
        wanted: TransactionIndex,
    },
    /// There is nothing to certify.
    #[error("nothing that can be certified has happened since checkpoint {0}; propose again later")]
    Nothing(u64),
    /// The members of the epoch no longer sign.
    #[error(
        "the checkpoint is to be signed in epoch {epoch}, and epoch {current} has begun; propose one again once the node \
         has followed the rotation"
    )]
    EpochEnded {
        /// The checkpoint's.
        epoch: Epoch,
        /// The chain's.
        current: Epoch,
    },
    /// The certified checkpoint on which the next one would be built counts no more.
    #[error("no checkpoint can be built on number {number}: {error}")]
    Base {
        /// Its number.
        number: u64,
        /// Why.
        error: NotCertified,
    },
    /// The cut in the file is not the one that its checkpoint names.
    #[error("{0} contradicts itself: its checkpoint names another cut; ask the proposer for the file again")]
    NotItsCut(PathBuf),
    /// A number of the cut is not executed here.
    #[error(
        "the cut includes the numbers of account {account} below {wanted}, and this authority has executed those below \
         {executed}; nothing was signed. Start the node, wait until it has caught up with the others, and sign again"
    )]
    NotExecuted {
        /// The account.
        account: AccountId,
        /// The next number here.
        executed: SequenceNumber,
        /// The next number in the cut.
        wanted: SequenceNumber,
    },
    /// Events of the cut are not applied here.
    #[error(
        "the cut includes the events up to {wanted}, and all shards of this authority have applied those up to \
         {applied}; nothing was signed. Start the node, wait until it is ready, and sign again"
    )]
    NotApplied {
        /// The newest event that all shards have applied.
        applied: TransactionIndex,
        /// The newest event of the cut.
        wanted: TransactionIndex,
    },
    /// The proposed checkpoint is not the one that is computed here.
    #[error(
        "{mismatch}; nothing was signed. If number or predecessor differ, bring the certificate of the checkpoint before \
         into this archive, or have it proposed again. If the segment or the state differs, one of the two authorities is \
         wrong: compare them before anybody signs"
    )]
    Mismatch {
        /// The first difference.
        mismatch: CheckpointMismatch,
    },
    /// The cut does not follow from this authority's history.
    #[error("the cut cannot be certified: {0}")]
    Segment(#[from] SegmentError),
    /// None of the keys can vote.
    #[error("none of the configured pairs of keys is a member of the committee of epoch {0}, which signs")]
    NotAMember(Epoch),
    /// A vote file is for another checkpoint.
    #[error("{path} is a vote for checkpoint {found}, and checkpoint {expected} is to be certified; leave it out")]
    OtherCheckpoint {
        /// The file.
        path: PathBuf,
        /// The checkpoint in the archive.
        expected: Digest,
        /// The checkpoint that the vote names.
        found: Digest,
    },
    /// A vote does not count.
    #[error("the vote in {path} does not count: {error}; leave it out, and ask its authority to sign again")]
    Vote {
        /// The file.
        path: PathBuf,
        /// Why.
        error: NotCertified,
    },
    /// The votes are no quorum.
    #[error("{found} different members voted, and a quorum is {quorum}; gather the votes of more members")]
    TooFewVotes {
        /// The number of different members.
        found: usize,
        /// The number that is needed.
        quorum: usize,
    },
}

/// A checkpoint as files show it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Checkpoint", rename_all = "camelCase", deny_unknown_fields)]
struct CheckpointFields {
    epoch: Epoch,
    number: u64,
    previous: Digest,
    up_to: TransactionIndex,
    cut: Digest,
    state: Digest,
    segment: Digest,
}

/// One authority's vote for a checkpoint, as operators send it to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointVoteFile {
    /// The checkpoint's number.
    pub number: u64,
    /// The checkpoint's digest, which is signed.
    pub checkpoint: Digest,
    /// The epoch whose members sign.
    pub epoch: Epoch,
    /// The authority that votes.
    pub authority: AuthorityName,
    /// By its Ed25519 key.
    pub signature: Hex<64>,
}

impl CheckpointVoteFile {
    fn vote(&self) -> CheckpointVote {
        CheckpointVote { authority: self.authority, signature: Ed25519Signature(self.signature.0) }
    }
}
