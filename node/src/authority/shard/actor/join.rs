//! Takes over what the Closings of the epoch before report of the shard's accounts. The rule is `Shard::join`.

use fastpay_core::Decision;
use fastpay_core::handover::{Inheritance, JoinError, JoinPosition};

use super::Actor;
use crate::authority::shard::ShardError;
use crate::authority::shard::command::{JoinStep, Joins};
use crate::authority::shard::commit::Commits;

impl<C: Commits> Actor<C> {
    /// Whether the shard can begin to join.
    pub(super) fn may_join(&self, inheritance: &Inheritance) -> Result<(), JoinError> {
        self.shard.may_join(inheritance, self.view())
    }

    /// Takes over a part of what is behind `after`.
    pub(super) fn join(&mut self, inheritance: &Inheritance, after: JoinPosition) -> Result<Joins, ShardError> {
        let mut joining = inheritance.resume(after);
        let step = loop {
            match self.shard.join(&mut joining, self.view()) {
                Err(error) => break Err(error),
                Ok(Decision::Load(ids)) if ids.is_empty() => break Ok(JoinStep::UpTo(joining.position())),
                Ok(Decision::Load(ids)) => {
                    // Those before are done.
                    self.forgo();
                    self.load(ids)?;
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
