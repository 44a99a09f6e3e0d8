//! What the relayer needs of a Primary: its committees, what it has paid, what a redemption is worth, and how redemptions
//! are handed to it. There are two: a contract on Ethereum, and a committee on a ledger.

use std::fmt::Debug;
use std::future::Future;

use fastpay_core::{Committees, Epoch, Redemption};

use crate::pending::{PendingRedemption, RedemptionId};
use crate::relayer::{Relayer, RelayerError};

/// What a redemption's fee is worth to the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// The relayer does not serve its asset.
    NotServed,
    /// The fee is too small.
    TooLittle,
    /// The redemption is submitted, now or later.
    Enough,
}

/// A kind of Primary.
pub trait PrimarySide: Debug + Sized {
    /// Its part of the configuration.
    type Settings: Clone + Debug;

    /// The committees of all epochs, after those that are known. `None` if they cannot be read now.
    fn read_committees(relayer: &Relayer<Self>) -> impl Future<Output = Result<Option<Committees>, RelayerError>>;

    /// The newest epoch, whether or not it is final.
    fn newest_epoch(relayer: &Relayer<Self>) -> impl Future<Output = Result<Epoch, RelayerError>>;

    /// Prepares a round. Redemption logs are read in it only if the answer is true.
    fn begin_round(relayer: &mut Relayer<Self>) -> impl Future<Output = bool>;

    /// What a redemption's fee is worth, whoever signed the redemption.
    fn worth(relayer: &Relayer<Self>, redemption: &Redemption) -> Worth;

    /// Whether a new redemption is to be submitted, or executed later: then notes in which queue it is. False if it was
    /// dealt with.
    fn is_to_do(
        relayer: &mut Relayer<Self>,
        item: &mut PendingRedemption,
    ) -> impl Future<Output = Result<bool, RelayerError>>;

    /// Notes what makes a redemption more expensive than others.
    fn appraise(
        relayer: &Relayer<Self>,
        item: &mut PendingRedemption,
    ) -> impl Future<Output = Result<(), RelayerError>>;

    /// A redemption whose fee does not pay for it now: it keeps its place only until another one needs it.
    fn dust_to_make_way(relayer: &Relayer<Self>) -> Option<RedemptionId>;

    /// Follows what is under way, and submits waiting redemptions: all at once if `eager`.
    fn submit(relayer: &mut Relayer<Self>, eager: bool) -> impl Future<Output = Result<(), RelayerError>>;

    /// What is done beside redemptions, after each round.
    fn end_round(relayer: &mut Relayer<Self>) -> impl Future<Output = Result<(), RelayerError>>;
}
