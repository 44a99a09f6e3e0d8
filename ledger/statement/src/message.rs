//! What clusters tell each other, the followers of FastPay committees, and clients.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Committee, Digest, Epoch, Redemption, SequenceNumber, TransactionIndex,
};

use crate::identity::{ClusterId, CommitteeNumber, Time};
use crate::request::{Request, Value, Version};

/// A message of a group.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Message {
    /// To the shard that executes a client's request. Whoever executes it checks its signature again.
    Request(Request),
    /// To the cluster that passed the request on, and from there to the client.
    Answer(Answer),
    /// To the shard of the reserve that is credited.
    Credit(Credit),
    /// To the settlement cluster: the payer's shard has debited the reserve.
    Fund(Funding),
    /// To the authorities of a FastPay committee.
    Event(CommitteeEvent),
}

/// The answer to a client's request.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Answer {
    /// The digest of the request.
    pub request: Digest,
    /// What came of it.
    pub result: Result<Outcome, Rejection>,
}

/// An amount for a reserve. It cannot fail: a reserve that is not open keeps it as a claim [LEDGER 8].
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Credit {
    /// The owner of the reserve.
    pub to: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount.
    pub amount: Amount,
}

/// An amount for an account of a FastPay committee. It cannot fail: the payer's shard has checked it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Funding {
    /// The committee.
    pub committee: CommitteeNumber,
    /// The account.
    pub account: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount.
    pub amount: Amount,
    /// The owner of the reserve that paid.
    pub payer: AccountId,
}

/// An event for the authorities of a FastPay committee.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CommitteeEvent {
    /// Counts the events of the committee, from 1 without gap.
    pub index: TransactionIndex,
    /// What happened.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum EventKind {
    /// An account was funded.
    Funded(Funding),
    /// A redemption was paid.
    Redeemed {
        /// The redemption.
        redemption: Redemption,
        /// The owner of the reserve that got the fee.
        relayer: AccountId,
    },
    /// The next committee was installed.
    Rotated {
        /// It, with its epoch.
        committee: Committee,
        /// The first epoch whose keys were compromised.
        compromised_since: Epoch,
        /// The digest of a certified checkpoint; zero for none.
        checkpoint: Digest,
    },
}

/// What came of a request that was carried out. Its sequence number is used up.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Outcome {
    /// The key has a value.
    Found {
        /// Of the write that stored it.
        version: Version,
        /// The value.
        value: Value,
    },
    /// The key has no value.
    Missing,
    /// The value was written, or deleted: also if there was none.
    Written(Version),
    /// The condition does not hold, and nothing was written. The key has this version now.
    ConditionFailed(Option<Version>),
    /// The signer's reserves are open.
    Opened,
    /// The amount was moved.
    Transferred,
    /// The amount was debited, and is on its way to the FastPay account.
    Funding,
    /// The redemption was paid.
    Redeemed(TransactionIndex),
    /// The committee of this epoch was installed.
    Rotated(Epoch, TransactionIndex),
}

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
}
