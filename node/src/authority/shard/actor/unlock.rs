//! Unlocking of numbers at their owner's request: applies the contract's events and their consequences for the account,
//! and decides what this authority may sign. The rules are in `core/src/shard/unlock.rs`.

use fastpay_core::{AccountId, Certificate, SequenceNumber, UnlockEvent, VoteFloor};
use fastpay_rpc::Refusal;

use super::Actor;
use crate::authority::shard::ShardError;
use crate::authority::shard::command::{MayVote, UnlockKnowledge};
use crate::authority::shard::commit::Commits;

impl<C: Commits> Actor<C> {
    /// Applies an event about one number, and its consequences for the account.
    pub(super) fn follow_unlock(&mut self, event: &UnlockEvent) -> Result<Result<(), Refusal>, ShardError> {
        let record = match self.decide(|shard| shard.follow_unlock(event))? {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(Ok(())),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let (account, sequence) = (event.account, event.sequence);
        if self.shard.contradicts(event) {
            self.metrics.voided_executed.inc();
            tracing::error!(%account, %sequence, "the contract voided a number that is executed here: more authorities are faulty than the committee tolerates; see the run-book");
        }
        self.append(&record)?;
        tracing::info!(%account, %sequence, index = %event.index, kind = ?event.kind, "the contract's order of events");
        self.advance(account)?;
        Ok(Ok(()))
    }

    /// Decides what this authority may sign about a number: that it has a certificate, or a vote to void the number.
    pub(super) fn vote_unlock(
        &mut self,
        account: AccountId,
        sequence: SequenceNumber,
        unanimous: bool,
    ) -> Result<MayVote, ShardError> {
        if let Some(refusal) = self.signer.refusal() {
            return Ok(Err(refusal));
        }
        let epoch = self.signer.voter_status().epoch();
        if let Some(closed) = self.shard.refuse_closed(epoch) {
            return Ok(Err(closed.into()));
        }
        let unlocks = &self.shard.ledger().unlocks;
        if let Some(seen) = unlocks.get(account, sequence).and_then(|unlock| unlock.seen.clone()) {
            return Ok(Ok(UnlockKnowledge::Seen(seen)));
        }
        let is_voided = unlocks.is_voided(account, sequence);
        let state = self.account(&account)?;
        if sequence < state.next_sequence() && !is_voided {
            return Ok(Ok(UnlockKnowledge::Executed(state.sent.clone())));
        }
        // Without a chain, no request can exist.
        let Some((time, _)) = self.chain else { return Ok(Err(Refusal::NotRequested(sequence))) };
        let protection = self.signer.voter_status().rollback_protection();
        let floor = protection.map_or(VoteFloor::Zero, |_| VoteFloor::Unknown);
        let number = (account, sequence);
        let voted = self.decide_and_apply(|shard| shard.void_vote(number, unanimous, epoch, floor, time.block_time))?;
        Ok(voted.map(|()| UnlockKnowledge::VoidVoted(epoch)))
    }

    /// After a start, advances the accounts whose next number is decided: a node may end between an event and what follows
    /// from it, and a checkpoint may include the one without the other.
    pub(super) fn resume(&mut self) -> Result<(), ShardError> {
        for account in std::mem::take(&mut self.resumes) {
            let next = self.account(&account)?.next_sequence();
            let unlock = self.shard.ledger().unlocks.get(account, next);
            if unlock.is_some_and(|unlock| unlock.outcome.is_some()) {
                self.load(vec![account])?;
                self.advance(account)?;
                self.forgo();
            }
        }
        Ok(())
    }

    /// Moves an account past the numbers that the contract has decided: it skips a void number, and executes an upheld
    /// certificate that is kept here.
    pub(super) fn advance(&mut self, account: AccountId) -> Result<(), ShardError> {
        loop {
            if let Some(record) = self.shard.step_over(account) {
                self.append(&record)?;
                continue;
            }
            let Some(certificate) = self.shard.executable(account) else { return Ok(()) };
            let (epoch, view, standing) = (certificate.epoch, self.view(), self.standing(certificate.epoch));
            let verified = self
                .signer
                .voter_status()
                .committees()
                .get(epoch)
                .and_then(|committee| Certificate::clone(&certificate).verify(&self.domain, committee).ok());
            // The certificate was verified before it was kept.
            let Some(verified) = verified else { return Ok(()) };
            match self.decide(|shard| shard.confirm(&verified, view, standing))? {
                Ok(Some(record)) => self.append(&record)?,
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }
}
