//! The faults of fake authorities.

use std::time::Duration;

/// The behaviour of a fake authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An honest authority.
    Honest,
    /// Never answers.
    Silent,
    /// Refuses every request, as a stopped process does.
    Down,
    /// Answers after this delay.
    Slow(Duration),
    /// Votes with a signature of something else, for orders and for batches.
    BadVote,
    /// Returns the next authority's vote as its own, for orders and for batches.
    StolenVote,
    /// Claims that the account is ahead of the order.
    FalseAlreadyConfirmed,
    /// Claims that earlier certificates are missing.
    FalseGap,
    /// Claims that later certificates are missing.
    FalseFuture,
    /// Claims that the account has no balance.
    FalseInsufficientBalance,
    /// Returns a pending order that nobody signed.
    ForgedPending,
    /// Claims to have confirmed a certificate, with an old number, but has not.
    FalseConfirmation,
    /// Refuses every certificate.
    RefusesCertificates,
    /// Refuses every certificate because a recovery has ended its epoch, and is otherwise honest.
    EndsEpochs,
    /// Lists payments and states that never existed.
    FalseHistory,
    /// Lists this many received payments that never existed, and votes for nothing.
    FalseReceipts(u64),
    /// Lists two thousand received payments that never existed, each page after this delay, and votes for nothing.
    SlowReceipts(Duration),
    /// Honest, but lists no asset unless the client names it.
    ShortLists,
    /// Honest, but lists one payment in each page.
    ShortPages,
    /// Honest, but no longer lists the first payments and deposits that an account received and the first redemptions, this
    /// many of each.
    Pruned(u64),
    /// Shows archived payments with other amounts, and is otherwise honest.
    FalseArchive,
    /// Claims that its archive has nothing, and is otherwise honest.
    HidesArchived,
    /// Has pruned what it received up to a checkpoint that its archive does not show yet, and is otherwise honest.
    LateArchive,
    /// Answers with garbage.
    Garbage,
    /// Votes in an epoch that never existed.
    FalseEpoch,
    /// Claims that every account holds one unit more of each asset.
    FalseBalances,
    /// Adds seven units to its sums of balances and of deposits.
    FalseTotals,
    /// Claims a redemption log without end.
    FalseRedemptionCount,
    /// Claims a redemption log without end, and lists the last redemption three more times on each page.
    EndlessRedemptions,
    /// Asked for a batch, claims to lack a redemption that is not in it.
    FalseBatchPosition,
    /// Asked for a batch, claims to lack the first redemption, whether or not it has confirmed it.
    AlwaysMissing,
    /// Claims to have no certificate.
    HidesCertificates,
    /// Never answers what it votes about a number, and is otherwise honest.
    WithholdsUnlockVotes,
    /// Lists the payments that it received, and never answers a request for a certificate.
    WithholdsCertificates,
    /// Withholds certificates, replaces received payments with invented ones, and claims a high next number.
    InventsAndWithholds,
    /// Returns certificates after this delay.
    SlowCertificates(Duration),
    /// Lists certificates that never existed, without end.
    EndlessLog,
    /// Lists the same certificates for ever: its cursor does not advance.
    StuckLog,
    /// Claims that its log does not contain any cursor, not even the first.
    LostLog,
    /// Returns certificates with an invalid vote.
    SpoiltCertificates,
    /// Fails to read this many requested certificates, and then reads all.
    LosesCertificates(usize),
    /// Loses some requests and answers others late, at random from this seed.
    Erratic(u64),
    /// Erratic with this seed, and votes for every order, whatever it voted for before.
    VotesForAll(u64),
    /// Says of every account that it was restored from an older copy, or has not joined the epoch.
    CatchingUp,
}

/// Lies about an order, despite which a client must reach the right result.
pub const LIES: [Role; 11] = [
    Role::FalseEpoch,
    Role::BadVote,
    Role::StolenVote,
    Role::FalseAlreadyConfirmed,
    Role::FalseGap,
    Role::FalseFuture,
    Role::FalseInsufficientBalance,
    Role::ForgedPending,
    Role::FalseConfirmation,
    Role::FalseHistory,
    Role::Garbage,
];
