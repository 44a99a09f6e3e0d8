//! Why requests are not carried out.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{AccountId, Amount, AuthorityName, Epoch, PrimaryAddress, SequenceNumber};

use crate::identity::{ClusterId, CommitteeNumber, Time};

/// Why a request was not carried out. Nothing is changed, and its sequence number is not used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, thiserror::Error)]
pub enum Rejection {
    /// No namespace of this name.
    #[error("there is no namespace of this name; the genesis lists them")]
    UnknownNamespace,
    /// Not the namespace's writer.
    #[error("only {0} writes in this namespace")]
    WrongWriter(AccountId),
    /// The key, reserve or committee is kept elsewhere.
    #[error("cluster {0} is responsible for it; sign the instruction for that one")]
    OtherShard(ClusterId),
    /// There is no such cluster.
    #[error("there is no cluster {0}; the genesis lists them")]
    UnknownCluster(ClusterId),
    /// Too much waits to be sent, or to be answered by the cluster that executes the request.
    #[error("too much is under way here; send the request again later")]
    Busy,
    /// Numbers before it have not been used.
    #[error("sequence number {0} is next; use it first")]
    SequenceGap(SequenceNumber),
    /// The number was used for another instruction.
    #[error("the sequence number was used for another instruction; {0} is next")]
    SequenceConflict(SequenceNumber),
    /// The number was used so long ago that its answer is no longer kept.
    #[error("the answer under this sequence number is no longer kept; {0} is next")]
    SequenceForgotten(SequenceNumber),
    /// The signer has not opened its reserves.
    #[error("the signer's reserves are not open; open them first")]
    NotOpen,
    /// The signer has opened its reserves before.
    #[error("the signer's reserves are open")]
    AlreadyOpen,
    /// More than the reserve has.
    #[error("the reserve has {0}, less than the amount")]
    ReserveTooLow(Amount),
    /// Nothing is moved.
    #[error("the amount is zero; move at least one of the asset's smallest unit")]
    ZeroAmount,
    /// Nobody, or nobody but a program, could spend it.
    #[error("the recipient cannot spend; give the recipient's account")]
    InvalidRecipient,
    /// No FastPay committee of this number.
    #[error("there is no committee {0}; the genesis lists them")]
    UnknownCommittee(CommitteeNumber),
    /// The account's order of this number has been redeemed.
    #[error("the redemption was paid before, or another one of the same number")]
    AlreadyRedeemed,
    /// No committee of this epoch.
    #[error("epoch {0} has not begun")]
    UnknownEpoch(Epoch),
    /// Votes of this epoch no longer count.
    #[error("votes of epoch {0} counted until {1} ms; have the current committee vote")]
    EpochEnded(Epoch, Time),
    /// Too few votes, or more than are needed.
    #[error("{found} votes; exactly {expected} are a quorum")]
    VoteCount {
        /// The quorum.
        expected: u32,
        /// The number of votes.
        found: u32,
    },
    /// A vote twice, or out of order.
    #[error("the vote of authority {0} is repeated or not in the order of names")]
    VotesUnsorted(AuthorityName),
    /// Not by a member of the committee on this statement.
    #[error("the vote of authority {0} is not by a member's key on this statement")]
    InvalidVote(AuthorityName),
    /// The relayer would get more than is redeemed.
    #[error("the fee is above the amount")]
    FeeAboveAmount,
    /// More than the committee's accounts have. Only a faulty committee certifies that.
    #[error("the committee's accounts have {0} in all, less than the amount")]
    OmnibusTooLow(Amount),
    /// Not the epoch that comes next.
    #[error("epoch {0} is next")]
    WrongNextEpoch(Epoch),
    /// No such epoch could have been compromised.
    #[error("the first compromised epoch is after the one that begins")]
    InvalidCompromise,
    /// The announcement's time is up.
    #[error("the announcement had to be on the ledger by {0} s")]
    DeadlinePassed(u64),
    /// The announcement could be held back for too long.
    #[error("the announcement's deadline is too far ahead: at this time it is at most {0} s; announce again")]
    DeadlineTooFar(u64),
    /// No redemption is named.
    #[error("name at least one redemption")]
    EmptyBatch,
    /// Not signed by the account's owner.
    #[error("the owner of {0} has not signed this request to unlock; sign it for this ledger and committee")]
    NotOwner(AccountId),
    /// Nobody has requested to unlock the number.
    #[error("nobody has requested to unlock this number; the account's owner can")]
    NotRequested,
    /// The number has its decision.
    #[error("the number is upheld or void already")]
    AlreadyDecided,
    /// The window of the request has not passed.
    #[error("these votes void the number from {0} ms on; before, only those of all members that say so")]
    NotVoidable(Time),
    /// The number was redeemed, so it cannot be void.
    #[error("a redemption of this number was paid, so it cannot be voided; have the order upheld")]
    SequenceSpent,
    /// Too few proofs of possession, or more than members.
    #[error("{found} proofs of possession; the committee has {expected} members")]
    ProofCount {
        /// The number of members.
        expected: u32,
        /// The number of proofs.
        found: u32,
    },
    /// A member does not show that it has its keys.
    #[error("authority {0} does not prove that it has both of its keys; have it sign again for this committee")]
    NoPossession(AuthorityName),
    /// The same announcement exists.
    #[error("this was announced before; change the deadline to announce it again")]
    AlreadyAnnounced,
    /// Nothing was announced under this digest.
    #[error("nothing was announced under this digest")]
    NotAnnounced,
    /// An epoch has begun since.
    #[error("the announcement ended when epoch {0} began")]
    AnnouncementEnded(Epoch),
    /// It was not installed in time.
    #[error("the announcement lapsed at {0} ms; announce again")]
    AnnouncementLapsed(Time),
    /// Only the guardian endorses.
    #[error("only the guardian {0} endorses; zero stands for nobody")]
    NotGuardian(PrimaryAddress),
    /// It was endorsed before.
    #[error("the announcement is endorsed")]
    AlreadyEndorsed,
    /// Its delay has not passed.
    #[error("the announcement can be installed from {0} ms on")]
    NotInstallable(Time),
    /// It has matured before.
    #[error("the announcement has matured; its members can accept")]
    AlreadyMatured,
    /// It has not matured.
    #[error("the announcement has not matured; its acceptance names the group of a later height")]
    NotMatured,
}
