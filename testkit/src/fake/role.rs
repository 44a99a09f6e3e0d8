//! The faults of fake authorities.

use std::time::Duration;

/// The behaviour of a fake authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// An honest authority.
    Honest,
    /// Answers nothing, ever.
    Silent,
    /// Refuses every request, as a stopped process does.
    Down,
    /// Answers, this late.
    Slow(Duration),
    /// Votes with a signature of something else, for orders and for batches.
    BadVote,
    /// Gives the vote of the next authority as its own, for orders and for batches.
    StolenVote,
    /// Says that the account is ahead of the order.
    FalseAlreadyConfirmed,
    /// Says that earlier certificates are missing.
    FalseGap,
    /// Says that later certificates are missing.
    FalseFuture,
    /// Says that the account has nothing.
    FalseInsufficientBalance,
    /// Shows a pending order that nobody signed.
    ForgedPending,
    /// Confirms without doing so, naming an old number.
    FalseConfirmation,
    /// Refuses every certificate.
    RefusesCertificates,
    /// Lists payments and states that never were.
    FalseHistory,
    /// Lists so many payments received that never were, and votes for nothing.
    FalseReceipts(u64),
    /// The same, two thousand of them, and each page so late.
    SlowReceipts(Duration),
    /// Honest, but lists no asset unless it is asked for by name.
    ShortLists,
    /// Honest, but lists one payment in a page.
    ShortPages,
    /// Answers with garbage.
    Garbage,
    /// Votes in an epoch that never was.
    FalseEpoch,
    /// Says that every account holds one unit more of everything.
    FalseBalances,
    /// Counts seven units more in its accounts and as deposited.
    FalseTotals,
    /// Claims a redemption log without an end.
    FalseRedemptionCount,
    /// The same, and lists the last redemption three times more on each page.
    EndlessRedemptions,
    /// When asked for a batch, lacks a redemption that it was not asked for.
    FalseBatchPosition,
    /// When asked for a batch, lacks the first redemption, whatever it has confirmed.
    AlwaysMissing,
    /// Has no certificate, when asked.
    HidesCertificates,
    /// Lists payments received as they are, and never answers a request for a certificate.
    WithholdsCertificates,
    /// The same, and in the place of each of them lists a payment that never was. Claims that the account sent much.
    InventsAndWithholds,
    /// Shows certificates so late.
    SlowCertificates(Duration),
    /// Lists certificates that never were, without end.
    EndlessLog,
    /// Lists the same certificates for ever: its cursor stands still.
    StuckLog,
    /// Shows certificates with a vote that is not valid.
    SpoiltCertificates,
    /// Cannot read so many certificates when asked, and then all.
    LosesCertificates(usize),
    /// Loses some requests and answers others late, by this seed.
    Erratic(u64),
    /// The same, and votes for every order, whatever it voted for before.
    VotesForAll(u64),
}

/// Lies about an order, from which a client must reach the right result nevertheless.
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
