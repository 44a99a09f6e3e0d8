//! What clusters tell each other, the followers of FastPay committees, and clients.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{
    AccountId, Amount, Asset, Committee, Digest, Epoch, PrimaryAddress, Redemption, SequenceNumber, TransactionIndex,
};

use crate::committee::UnlockRequest;
use crate::identity::{CommitteeNumber, Time};
use crate::rejection::Rejection;
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
    /// To the settlement cluster: the payer's shard has debited the bond.
    Unlock(Unlocking),
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

/// A request to unlock a number, with its bond. It cannot fail: the payer's shard has checked it. Where the number is
/// decided or was requested before, the bond goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Unlocking {
    /// The request of the account's owner.
    pub request: UnlockRequest,
    /// The owner of the reserve that paid the bond.
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
    Installed {
        /// It, with its epoch.
        committee: Committee,
        /// The guardian from then on; zero for nobody.
        guardian: PrimaryAddress,
        /// Until when, inclusive, redemption votes of the epoch before count; `None` if they do not, because keys of it
        /// were out.
        previous_counts_until: Option<Time>,
        /// The first epoch whose keys were compromised; the committee's own epoch if none were.
        compromised_since: Epoch,
        /// The digest of a certified checkpoint; zero for none.
        checkpoint: Digest,
    },
    /// The owner of an account requested to unlock one of its numbers.
    UnlockRequested {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// From when on a quorum can void it.
        voidable_from: Time,
    },
    /// One order of a number holds.
    Upheld {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        digest: Digest,
    },
    /// No order of a number holds, and none ever will. The number is spent.
    Voided {
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
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
    Installed(Epoch, TransactionIndex),
    /// The redemptions were paid, each under its index, in their order; `None` for one whose number was spent before.
    RedeemedBatch(Vec<Option<TransactionIndex>>),
    /// The bond was debited, and the request is on its way to the settlement cluster.
    Unlocking,
    /// The order is upheld, and the bond is on its way to the signer.
    Upheld(TransactionIndex),
    /// The number is void, and the bond is on its way to whoever paid it.
    Voided(TransactionIndex),
    /// The committee is announced, under this id.
    Announced(Digest),
    /// The announcement is endorsed.
    Endorsed,
    /// The announcement can be accepted.
    Matured,
}
