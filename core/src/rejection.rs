//! Why the rules refuse a message.

use std::sync::Arc;

use crate::Digest;
use crate::amount::{Amount, Balance, Epoch, SequenceNumber, TransactionIndex};
use crate::certificate::Certificate;
use crate::identity::{AccountId, ShardId};
use crate::order::TransferOrder;

/// Why a message is refused, with what its sender needs to continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// Another shard of this authority owns the account.
    #[error("account {account} belongs to shard {shard} of this authority; send it there")]
    WrongShard {
        /// The account in question.
        account: AccountId,
        /// Its shard here.
        shard: ShardId,
    },
    /// The account is locked on another order.
    #[error(
        "account {} is locked on another order of sequence number {}; finish that one first",
        .pending.transfer.sender(),
        .pending.transfer.sequence()
    )]
    OrderPending {
        /// The order that this authority voted for, or inherited as a lock. Anyone can collect its votes and finish it.
        pending: Arc<TransferOrder>,
    },
    /// The order is ahead of what this authority has confirmed.
    #[error("expected sequence number {expected}; first confirm the certificates from there on at this authority")]
    SequenceTooHigh {
        /// The account's next number here.
        expected: SequenceNumber,
    },
    /// An order of this number is confirmed already.
    #[error("this sequence number is already confirmed; the next one is {expected}")]
    AlreadyConfirmed {
        /// The account's next number here.
        expected: SequenceNumber,
    },
    /// The balance does not cover the amount.
    #[error(
        "the balance here is {balance}, the order moves {amount}; confirm what the account received, or order less"
    )]
    InsufficientBalance {
        /// The account's balance here.
        balance: Balance,
        /// The amount of the order.
        amount: Amount,
    },
    /// An earlier certificate of the same sender is missing here.
    #[error("confirm the certificate of sequence number {missing} first")]
    MissingCertificate {
        /// The first that is missing.
        missing: SequenceNumber,
    },
    /// This authority may have voted for another order of this number and forgotten it.
    #[error(
        "this authority runs on an older copy of its data and may have voted for another order; ask the other \
         authorities"
    )]
    VotesForgotten {
        /// The first number for which this authority certainly gave no vote; none while that is unknown.
        floor: Option<SequenceNumber>,
    },
    /// The owner asked the contract to unlock the number.
    #[error(
        "the owner asked to unlock sequence number {sequence}: until the contract has decided, no order of it is voted \
         for or executed"
    )]
    Frozen {
        /// The number.
        sequence: SequenceNumber,
    },
    /// The contract decided for another order of the number.
    #[error("the contract decided that the order with the digest {upheld} has this sequence number")]
    Overruled {
        /// The order that holds.
        upheld: Digest,
    },
    /// The contract decided that no order has the number.
    #[error("the contract voided this sequence number; the next one is {expected}")]
    Voided {
        /// The account's next number here.
        expected: SequenceNumber,
    },
    /// Nobody asked the contract to unlock the number, or the block with the request is not final.
    #[error("no final block contains the owner's request to unlock sequence number {sequence}")]
    NotRequested {
        /// The number.
        sequence: SequenceNumber,
    },
    /// A void vote where the number has a certificate.
    #[error("this authority has a certificate of this sequence number; uphold it")]
    CertificateKnown {
        /// The certificate.
        certificate: Arc<Certificate>,
    },
    /// A void vote by a quorum before the window has passed.
    #[error("this authority votes to void the number from chain time {voidable_at} on (Unix seconds)")]
    WindowOpen {
        /// In seconds since 1970.
        voidable_at: u64,
    },
    /// The certificate's epoch ended too long ago, or its keys were out, so that it counts only with the votes of f + 1
    /// current members that it exists.
    #[error(
        "certificates of epoch {epoch} do not count by themselves any more; bring the votes of f + 1 current members that \
         this one exists, or have its order voted for again"
    )]
    Unattested {
        /// The certificate's epoch.
        epoch: Epoch,
    },
    /// The newest final block that is applied is too old.
    #[error(
        "the newest final Ethereum block that this authority has read is too old: an order may have been voided since"
    )]
    PrimaryTooOld,
    /// The authority has signed that it votes no more in the epoch.
    #[error("this authority has closed epoch {epoch}; ask again once it votes in the next one")]
    EpochClosed {
        /// The epoch.
        epoch: Epoch,
    },
    /// A redemption, in a committee without a Primary.
    #[error("this committee runs without a Primary: nothing can be redeemed")]
    NoPrimary,
    /// A payment to the pool of private payments whose memo makes no coin, so that the money would be nobody's.
    #[error(
        "the recipient is the pool of private payments, and the memo makes no coin there; give another recipient, or a coin's \
         inner part (a field element other than 0) as the memo"
    )]
    NoDepositMemo,
    /// A deposit out of order, from this authority's own follower.
    #[error("deposits up to {synchronized} are applied; the next batch must start there")]
    SynchronizationGap {
        /// The shard's index.
        synchronized: TransactionIndex,
    },
    /// A credit out of order, from another shard of this authority.
    #[error("credit {expected} must come first")]
    CreditGap {
        /// The next number.
        expected: u64,
    },
}
