//! Histories: a chain of commitments to what an account paid. Its owner can open all of it, and no part in place of all.

use crate::field::{Fr, field_from_u128};
use crate::poseidon::h4;

/// The history after a transaction that made the coin `coin` and withdrew `withdrawn` in `period`.
#[must_use]
pub fn history_after(history: Fr, coin: Fr, withdrawn: u128, period: u32) -> Fr {
    h4([history, coin, field_from_u128(withdrawn), Fr::from(u64::from(period))])
}
