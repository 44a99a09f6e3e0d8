//! Credits between two shards of one authority, after one of them has another owner.

use thiserror::Error;

/// The recipient's shard has applied credits that the sender's shard does not know to have issued: one of them forgot
/// part of its journal. Stop both; an operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{applied} credits were applied and {issued} were issued: a journal has lost its end; stop this authority")]
pub struct CreditsAhead {
    /// The newest credit that the sender's shard issued.
    pub issued: u64,
    /// The newest credit that the recipient's shard applied.
    pub applied: u64,
}

/// The numbers of the credits that the sender's owner sends again to the recipient's owner after a takeover of either.
///
/// # Errors
/// If more were applied than issued.
pub fn credits_to_resend(issued: u64, applied: u64) -> Result<std::ops::RangeInclusive<u64>, CreditsAhead> {
    if applied > issued {
        return Err(CreditsAhead { issued, applied });
    }
    Ok(applied.saturating_add(1)..=issued)
}
