//! Takes over what the Closings of the epoch before report of the shard's accounts. The rule is `Shard::join`.

use fastpay_core::handover::Inheritance;
use fastpay_core::{AccountId, Decision};

use super::Actor;
use crate::authority::shard::ShardError;
use crate::authority::shard::command::{JoinStep, Joins};
use crate::authority::shard::commit::Commits;

/// A part ends after so many accounts that were read from the store: a few milliseconds, in which no client is
/// answered.
const ACCOUNTS_PER_PART: usize = 256;

impl<C: Commits> Actor<C> {
    /// Takes over the accounts behind `after`, until a part is full.
    pub(super) fn join(&mut self, inheritance: &Inheritance, after: Option<AccountId>) -> Result<Joins, ShardError> {
        let (mut joining, mut accounts) = (inheritance.resume(after), 0_usize);
        let step = loop {
            match self.shard.join(&mut joining, self.view()) {
                Err(error) => break Err(error),
                Ok(Decision::Load(_)) if accounts >= ACCOUNTS_PER_PART => break Ok(JoinStep::UpTo(joining.done())),
                Ok(Decision::Load(ids)) => {
                    // Those before are done.
                    self.forgo();
                    self.load(ids)?;
                    accounts = accounts.saturating_add(1);
                }
                Ok(Decision::CommitFirst(record)) => self.append(&record)?,
                Ok(Decision::Commit(record)) => {
                    self.append(&record)?;
                    tracing::info!(epoch = %inheritance.joins(), "this shard has joined an epoch");
                    break Ok(JoinStep::Joined);
                }
                Ok(Decision::Already) => break Ok(JoinStep::Joined),
                Ok(Decision::Refuse(rejection)) => {
                    unreachable!("a shard refuses to join with a JoinError: {rejection}")
                }
            }
        };
        self.forgo();
        Ok(step)
    }
}
