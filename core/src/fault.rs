//! Faults that the simulator plants in production code, to show that its checks can fail. The programs are built
//! without the feature `planted`: then nothing of this is there, and their `main.rs` does not compile otherwise.

/// Whether faults can be planted in this build. Never in a program.
pub const CAN_BE_PLANTED: bool = cfg!(feature = "planted");

/// A way in which production code is wrong where it is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A quorum is 2f.
    QuorumTooSmall,
    /// A certificate of any number of votes stands up.
    CertificateWithoutQuorum,
    /// The signatures of orders are not checked.
    OrderUnsigned,
    /// A certificate is checked against the current committee, whatever its epoch.
    EpochIgnored,
    /// A vote is given without a record of the lock.
    LockNotRecorded,
    /// A pending order is replaced by the next one.
    PendingReplaced,
    /// Any sequence number is voted for.
    SequenceUnchecked,
    /// The balance is not looked at before a vote.
    OverspentVote,
    /// A certificate is refused for lack of funds.
    BalanceAtConfirmation,
    /// A certificate is executed each time it comes.
    ConfirmedAgain,
    /// An account stays locked when its order is confirmed.
    LockStays,
    /// A credit between shards is applied each time it comes.
    CreditedAgain,
    /// The first output of a payout is credited twice.
    OutputCreditedTwice,
    /// The last output of a payout is credited to nobody.
    OutputDropped,
    /// A payout is voted for where the balance covers its first output.
    PayoutSumUnchecked,
    /// Of the outputs that come from another shard half are credited, and all are acknowledged.
    OutputsHalfCredited,
    /// A credit between shards is handed over once and never again.
    CreditNotResent,
    /// A shard acknowledges credits before they are on disk.
    AcknowledgedBeforeSync,
    /// Deposits are applied each time they come.
    DepositedAgain,
    /// What a batch says is said before it is on disk.
    AnsweredBeforeSync,
    /// A checkpoint states what is not on disk.
    CheckpointAhead,
    /// Recovery takes the checkpoint for all there is.
    TailIgnored,
    /// The contract keeps the highest redeemed number of an account in place of a set: what the simulated chain does
    /// to its storage then amounts to that.
    HighWaterRedemptions,
    /// A wallet sends an order that it has not written down.
    OrderNotWritten,
    /// A wallet notes that a certificate is settled before it brings the certificate to anybody.
    SettledBeforeBrought,
    /// A wallet does not look for the transactions that it left unfinished.
    TransactionForgotten,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 26] = [
        Self::QuorumTooSmall,
        Self::CertificateWithoutQuorum,
        Self::OrderUnsigned,
        Self::EpochIgnored,
        Self::LockNotRecorded,
        Self::PendingReplaced,
        Self::SequenceUnchecked,
        Self::OverspentVote,
        Self::BalanceAtConfirmation,
        Self::ConfirmedAgain,
        Self::LockStays,
        Self::CreditedAgain,
        Self::OutputCreditedTwice,
        Self::OutputDropped,
        Self::PayoutSumUnchecked,
        Self::OutputsHalfCredited,
        Self::CreditNotResent,
        Self::AcknowledgedBeforeSync,
        Self::DepositedAgain,
        Self::AnsweredBeforeSync,
        Self::CheckpointAhead,
        Self::TailIgnored,
        Self::HighWaterRedemptions,
        Self::OrderNotWritten,
        Self::SettledBeforeBrought,
        Self::TransactionForgotten,
    ];
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: std::cell::Cell<Option<Fault>> = const { std::cell::Cell::new(None) };
}

/// Plants a fault for everything that runs in this thread, or takes it out.
#[cfg(feature = "planted")]
pub fn plant(fault: Option<Fault>) {
    PLANTED.set(fault);
}

/// Whether this fault is planted.
#[cfg(feature = "planted")]
#[must_use]
pub fn is_planted(fault: Fault) -> bool {
    PLANTED.get() == Some(fault)
}

/// Whether this fault is planted: it cannot be.
#[cfg(not(feature = "planted"))]
#[must_use]
#[inline(always)]
pub const fn is_planted(_: Fault) -> bool {
    false
}
