//! Checkpoints of the committee: a quorum certifies the state at a cut, and each authority keeps what was certified in
//! an archive. With `[archive]` in its configuration a running node does it with its peers (`member`).
//!
//! ```text
//!  journals ─┐                    the leader                         each member                     each member
//!  chain ────┼─► choose ─► cut ─► compute ─► sign ─► archive ┄┄► compute ─► sign ─► archive ┄┄► quorum of votes ─► certificate
//!  archive ──┘  (`cut`)              └── the same computation (`compute`) ──┘      (`certify`, into each archive)
//!                                                 a member that was away: certificates, segments ─► `admit` ─► archive
//!                              one that was away for long: certificates, state ─► `admit` ─► archive with a gap
//! ```
//! 1. `propose` takes the newest certified checkpoint of the archive, or the first committee alone, and chooses a cut
//!    that can be certified: what is executed here, up to the newest event that all shards have applied.
//! 2. `sign` computes a cut again. It takes the cut and nothing else: orders come from this authority's journals,
//!    events from its Ethereum nodes. So a number that is not executed here has no vote.
//! 3. `certify` recomputes what the archive holds, unless this process has just written it (`memory`), counts the votes for
//!    it, and writes the certificate last.
//! 4. `admit` takes checkpoints that others certified: their newest certificate must count now, each segment must show
//!    the events of this authority's own Ethereum nodes and lead to the certified checkpoint. If they are many, it
//!    takes the state of the last but one instead, and the files of those before it are fetched afterwards (`skipped`).
//!
//! The shards run meanwhile: journals only grow, and everything that is read of them is durable before it is signed.
//! All configured Ethereum nodes must agree about every event, and the newest final block must be recent. A checkpoint
//! is signed by the members of the epoch that its state is in, and in that epoch alone.

mod admit;
mod adopted;
mod archive;
mod archived;
mod base;
mod certify;
mod compute;
mod cut;
mod events;
mod extent;
mod fetched;
mod gather;
mod index;
mod journals;
mod lag;
pub mod member;
mod memory;
mod open_segment;
mod past;
mod peer;
mod peers;
mod propose;
mod rebuild;
mod remembered;
mod room;
mod sign;
mod skipped;
mod store;
mod turn;
mod uploads;
mod verify;

use std::path::{Path, PathBuf};

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointError as NotCertified, CheckpointMismatch, CheckpointVote,
    SegmentError,
};
use fastpay_core::{
    AccountId, AuthorityName, CommitteeError as NotACommittee, Digest, Ed25519Signature, Epoch, EpochsError,
    SequenceNumber, TransactionIndex,
};
use fastpay_ethereum::{DepositsError, PrimaryError};
use fastpay_program::Clock;
use fastpay_rpc::json::Hex;
use serde::{Deserialize, Serialize};

use crate::authority::config::Config;
use crate::authority::deployment::DeploymentError;
use crate::authority::funding::LedgerError;
use crate::authority::storage::{JournalError, StorageError};
use crate::authority::stored_record::UndecodableRecord;

pub use admit::Admission;
pub use archive::{Archive, ArchiveError, Defect, ProposedCut};
pub use archived::ArchivedReads;
pub(crate) use archived::NotArchived;
pub use base::Base;
pub use certify::{Certified, certify};
pub(crate) use compute::{Computed, follow_segment, installations_after};
pub use events::read_over;
pub(crate) use events::{read_all, read_with_time};
pub use extent::Extent;
pub(crate) use journals::Journals;
pub(crate) use lag::Lag;
pub use memory::Memory;
pub use propose::{Proposal, propose};
pub use rebuild::NoBase;
pub use sign::{Signed, Signer, prepare, sign};
pub use store::{Store, StoreError};
pub use uploads::Uploads;
pub use verify::{Report, verify};

/// The orders of a checkpoint by default. They are held in memory while it is computed, with up to 1 kB for each. If
/// more were executed, several checkpoints follow each other.
pub const ORDERS_MAX: usize = 1_000_000;
/// The fewest: a payout with all its outputs must fit into a shard's part of them.
pub const ORDERS_MIN: usize = 10_000;

/// Tells the operator how far long work is.
pub type Progress<'a> = &'a mut dyn FnMut(String);

/// What checkpoints are made from, and where they are archived.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The authority's journals and Ethereum nodes.
    pub config: &'a Config,
    /// The folder of the archive, which is made if there is none.
    pub archive: &'a Path,
    /// A cut with more orders is neither proposed nor signed. Of a payout, 8 outputs count as an order.
    pub orders_max: usize,
    /// Tells how old the view of the chain is.
    pub clock: Clock,
}

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
    /// The events of a committee on a ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A folder has a certified checkpoint where a rebuilt one was to be written.
    #[error(
        "{certificate} certifies a checkpoint, and the rebuilt one has the number {number}: nothing was written. Name \
         another folder; or, if the contract has adopted the rebuilt one, move the files from that number on away"
    )]
    Certified {
        /// The number of the rebuilt checkpoint.
        number: u64,
        /// The newest certificate.
        certificate: PathBuf,
    },
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
    /// The Ethereum nodes are stuck.
    #[error(
        "the newest final block that the Ethereum nodes show is of {block_time} (seconds since 1970): too old to tell which \
         epoch it is; nothing was signed. Repair the nodes"
    )]
    ChainTooOld {
        /// The block's time.
        block_time: u64,
    },
    /// The members of the epoch no longer sign.
    #[error(
        "the checkpoint is to be signed in epoch {epoch}, and epoch {current} has begun; another one is proposed once the \
         node has followed the rotation"
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
    /// The cut has too many orders.
    #[error(
        "the cut has more than {0} orders, and the configuration's archive.orders_max is {0}: all members must configure \
         the same number; nothing was signed"
    )]
    TooManyOrders(usize),
    /// A number of the cut is not executed here.
    #[error(
        "the cut includes the numbers of account {account} below {wanted}, and this authority has executed those below \
         {executed}; nothing was signed"
    )]
    NotExecuted {
        /// The account.
        account: AccountId,
        /// The next number here.
        executed: SequenceNumber,
        /// The next number in the cut.
        wanted: SequenceNumber,
        /// The first accounts of which numbers are not executed here, each with its next number in the cut.
        lacking: Vec<(AccountId, SequenceNumber)>,
    },
    /// The epoch is not the one that this node votes in.
    #[error(
        "the checkpoint is of epoch {epoch}, and this node has followed the rotations up to epoch {followed}; nothing was \
         signed"
    )]
    NotFollowed {
        /// The checkpoint's.
        epoch: Epoch,
        /// This node's.
        followed: Epoch,
    },
    /// Events of the cut are not applied here.
    #[error(
        "the cut includes the events up to {wanted}, and all shards of this authority have applied those up to \
         {applied}; nothing was signed"
    )]
    NotApplied {
        /// The newest event that all shards have applied.
        applied: TransactionIndex,
        /// The newest event of the cut.
        wanted: TransactionIndex,
    },
    /// The proposed checkpoint is not the one that is computed here.
    #[error(
        "{mismatch}; nothing was signed. If the segment or the state differs, one of the two authorities is wrong: compare \
         their archives and journals"
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
    /// The votes are no quorum.
    #[error("{found} different members voted for the proposal of this archive, and a quorum is {quorum}")]
    TooFewVotes {
        /// The number of different members.
        found: usize,
        /// The number that is needed.
        quorum: usize,
    },
    /// What another authority shows is not what was certified.
    #[error("another authority's checkpoint {number} is not archived: {reason}")]
    NotAdmitted {
        /// Its number.
        number: u64,
        /// Why.
        reason: NotAdmitted,
    },
}

/// Why a checkpoint of another authority is not archived.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// Its certificate, or a later one that would prove it, does not count.
    #[error("the certificate does not count: {0}")]
    Certificate(NotCertified),
    /// The certificates do not follow each other, or not the newest one of this archive.
    #[error("its certificate does not follow the one before")]
    Chain,
    /// It would replace the archive's newest checkpoint and nothing that counts was built on it.
    #[error("the one that is archived has the lower digest, and nothing that counts was built on the other one")]
    Rival,
    /// The bytes are no segment, or no state.
    #[error("its segment or state cannot be read: {0}")]
    Damaged(std::io::Error),
    /// An event, or a committee of the state, is not the one that the own Ethereum nodes show.
    #[error("its segment or state shows other events than this authority's Ethereum nodes")]
    Events,
    /// The entries do not follow from the state before.
    #[error("the segment does not follow from the checkpoint before: {0}")]
    Segment(SegmentError),
    /// The segment leads to another checkpoint, or the state is another one's.
    #[error("{0} than the one that is certified")]
    Other(CheckpointMismatch),
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

/// One authority's vote for a checkpoint, as its archive keeps it.
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
    pub(super) fn vote(&self) -> CheckpointVote {
        CheckpointVote { authority: self.authority, signature: Ed25519Signature(self.signature.0) }
    }
}

/// A certificate as files show it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CertificateFile {
    #[serde(with = "CheckpointFields")]
    checkpoint: Checkpoint,
    votes: Vec<VoteFields>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct VoteFields {
    authority: AuthorityName,
    signature: Hex<64>,
}

impl From<&CheckpointCertificate> for CertificateFile {
    fn from(certificate: &CheckpointCertificate) -> Self {
        let vote = |vote: &CheckpointVote| VoteFields { authority: vote.authority, signature: Hex(vote.signature.0) };
        Self { checkpoint: certificate.checkpoint, votes: certificate.votes.iter().map(vote).collect() }
    }
}

impl From<CertificateFile> for CheckpointCertificate {
    fn from(file: CertificateFile) -> Self {
        let vote = |vote: VoteFields| CheckpointVote {
            authority: vote.authority,
            signature: Ed25519Signature(vote.signature.0),
        };
        Self { checkpoint: file.checkpoint, votes: file.votes.into_iter().map(vote).collect() }
    }
}
