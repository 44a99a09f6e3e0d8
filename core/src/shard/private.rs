//! The rules of the shard that owns the pool, about private transfers: docs/PRIVATE.md, "A nullifier's life". A nullifier is
//! an account ([`crate::private::Nullifier::account`]), so requests to unlock its numbers, void votes and void numbers are
//! those of `unlock.rs`.

use std::sync::Arc;

use super::{Decision, PrimaryView, Shard, VoteFloor};
use crate::Digest;
use crate::amount::{Amount, Epoch, SequenceNumber};
use crate::history::JournalPosition;
use crate::identity::AccountId;
use crate::private::{
    CheckedPrivateOrder, PrivateConfirmation, PrivateEvidence, PrivateLock, PrivateRejection, PrivateSeen,
    PrivateTransfer, VerifiedPrivateCertificate, VerifiedPrivateOrder, Versions,
};
use crate::record::{CrossShardCredit, Effect, Forwarded, Record, ShardOutputs};
use crate::rejection::Rejection;
use crate::standing::Standing;
use crate::transfer::Output;
use crate::unlock::Unlock;

/// The decision of a rule about a private message.
pub type PrivateDecision = Decision<PrivateRejection>;

/// A decision other than the one that is asked about, or that one.
type Step<T> = Result<T, PrivateDecision>;

fn refuse(rejection: impl Into<PrivateRejection>) -> PrivateDecision {
    Decision::Refuse(rejection.into())
}

impl Shard {
    /// What the authority does about this order in this epoch before it checks the proof; none if the proof decides.
    /// `floor` is the worse one of both nullifiers. `Already` means that it voted for the order and gives its vote again,
    /// also under versions that are no longer accepted: otherwise new rules would freeze orders that some members have
    /// locked and others have not.
    #[must_use]
    pub fn precheck_private(
        &self,
        order: &CheckedPrivateOrder,
        epoch: Epoch,
        floor: VoteFloor,
        view: PrimaryView,
        versions: &Versions,
    ) -> Option<PrivateDecision> {
        self.judge_private(order, epoch, floor, view, versions).err()
    }

    /// May the authority vote for this order, whose proof was checked? Commits to [`Record::PrivateLock`]; all else is as
    /// [`Shard::precheck_private`] decides, now.
    #[must_use]
    pub fn lock_private(
        &self,
        order: &VerifiedPrivateOrder,
        epoch: Epoch,
        floor: VoteFloor,
        view: PrimaryView,
        versions: &Versions,
    ) -> PrivateDecision {
        let lock = || PrivateLock { evidence: PrivateEvidence::Proven(order.proven().clone()), digest: order.digest() };
        let judged = self.judge_private(order.checked(), epoch, floor, view, versions);
        judged.map_or_else(|decision| decision, |()| Decision::Commit(Box::new(Record::PrivateLock(Arc::new(lock())))))
    }

    fn judge_private(
        &self,
        order: &CheckedPrivateOrder,
        epoch: Epoch,
        floor: VoteFloor,
        view: PrimaryView,
        versions: &Versions,
    ) -> Step<()> {
        let (transfer, pool) = (order.transfer(), &self.ledger.pool);
        let numbers @ [(account, sequence), (coin, _)] = transfer.taken();
        self.check_owner(account).map_err(refuse)?;
        self.refuse_closed(epoch).map_or(Ok(()), |rejection| Err(refuse(rejection)))?;
        self.settle_nullifiers(numbers, &[AccountId::PRIVATE_POOL])?;
        let expected = self.next_of(account);
        if let Some(spent) = self.spent(account).or_else(|| self.spent(coin)) {
            return Err(refuse(spent));
        }
        if sequence < expected {
            return Err(refuse(Rejection::Voided { expected }));
        }
        if self.next_of(coin) != SequenceNumber(0) {
            // Its owner had the coin's only number voided, which no wallet asks for.
            return Err(refuse(Rejection::Voided { expected: self.next_of(coin) }));
        }
        let is_frozen = |(account, sequence)| self.ledger.unlocks.get(account, sequence).is_some_and(Unlock::is_frozen);
        if let Some((_, sequence)) = numbers.into_iter().find(|number| is_frozen(*number)) {
            return Err(refuse(Rejection::Frozen { sequence }));
        }
        if view == PrimaryView::TooOld {
            return Err(refuse(Rejection::PrimaryTooOld));
        }
        if let Some(pending) = pool.rival(&numbers, order.digest()) {
            return Err(refuse(PrivateRejection::Locked { pending: pending.clone() }));
        }
        if pool.has_voted(order) {
            return Err(Decision::Already);
        }
        if sequence > expected {
            return Err(refuse(Rejection::SequenceTooHigh { expected }));
        }
        versions.admit(transfer).map_err(refuse)?;
        self.refuse_short(order)?;
        // A coin has one number, so no later one shows that a quorum voted for it.
        if floor != VoteFloor::Zero {
            return Err(refuse(Rejection::VotesForgotten { floor: None }));
        }
        Ok(())
    }

    /// The turnstile: what an order withdraws must be there besides all that other orders may withdraw.
    fn refuse_short(&self, order: &CheckedPrivateOrder) -> Step<()> {
        let PrivateTransfer { asset, amount_out: amount, .. } = *order.transfer();
        let held = self.accounts.get(&AccountId::PRIVATE_POOL).map(|pool| pool.balance(asset)).unwrap_or_default();
        // An order that was inherited has reserved what it withdraws.
        let reserved = self.ledger.pool.reserved_beside(order);
        let available = held.plus(reserved.negated());
        if amount != Amount::ZERO && !available.covers(amount) {
            return Err(refuse(PrivateRejection::PoolShort { available, amount }));
        }
        Ok(())
    }

    /// Executes a certificate. Commits to [`Record::PrivateConfirmation`]. As [`Shard::confirm`], it is refused neither for
    /// lack of funds nor for other locks, and kept first ([`Record::PrivateSeen`]) if it may not be executed now.
    #[must_use]
    pub fn confirm_private(
        &self,
        certificate: &VerifiedPrivateCertificate,
        view: PrimaryView,
        standing: Standing,
    ) -> PrivateDecision {
        let judged = self.judge_private_certificate(certificate, view, standing);
        judged
            .map_or_else(|decision| decision, |record| Decision::Commit(Box::new(Record::PrivateConfirmation(record))))
    }

    fn judge_private_certificate(
        &self,
        certificate: &VerifiedPrivateCertificate,
        view: PrimaryView,
        standing: Standing,
    ) -> Step<Box<PrivateConfirmation>> {
        let (transfer, digest) = (certificate.transfer(), certificate.digest());
        let numbers @ [(account, sequence), (coin, _)] = transfer.taken();
        self.check_owner(account).map_err(refuse)?;
        self.settle_nullifiers(numbers, &[])?;
        let expected = self.next_of(account);
        if sequence < expected {
            return Err(match self.ledger.unlocks.is_voided(account, sequence) {
                true => refuse(Rejection::Voided { expected }),
                false => Decision::Already,
            });
        }
        // Two certificates with one nullifier: more than f members are faulty.
        if let Some(spent) = self.spent(account).or_else(|| self.spent(coin)) {
            return Err(refuse(spent));
        }
        if self.next_of(coin) != SequenceNumber(0) {
            return Err(refuse(Rejection::Voided { expected: self.next_of(coin) }));
        }
        let withheld = self.withhold_private(certificate, view, standing);
        if sequence > expected {
            let is_frozen = self.ledger.unlocks.get(account, sequence).is_some_and(Unlock::is_frozen);
            let missing = refuse(Rejection::MissingCertificate { missing: expected });
            return Err(withheld.filter(|_| is_frozen).unwrap_or(missing));
        }
        withheld.map_or(Ok(()), Err)?;
        let effect = self.withdrawal(transfer)?;
        let sent = [account, coin].map(|id| self.accounts.get(&id).map(|account| account.sent.next_link()));
        let [Some(of_account), Some(of_coin)] = sent else { unreachable!("both are loaded above") };
        let (certificate, sent) = (certificate.certificate().clone(), [of_account, of_coin]);
        Ok(Box::new(PrivateConfirmation { certificate, digest, sent, effect }))
    }

    /// Where the amount goes that leaves the pool.
    fn withdrawal(&self, transfer: &PrivateTransfer) -> Step<Option<Effect>> {
        if transfer.amount_out == Amount::ZERO {
            return Ok(None);
        }
        let [(account, _), (coin, _)] = transfer.taken();
        let (pool, to) = (AccountId::PRIVATE_POOL, self.layout.shard_of(&transfer.recipient));
        if to != self.id {
            self.loaded(&[pool, account, coin])?;
            return Ok(Some(Effect::Forwarded { to, number: self.ledger.next_credit(to) }));
        }
        self.loaded(&[pool, account, coin, transfer.recipient])?;
        let recipient = self.accounts.get(&transfer.recipient);
        Ok(recipient.map(|recipient| Effect::Credited { received: recipient.received.next_link() }))
    }

    /// The decision that keeps a certificate of unexecuted numbers from being executed now. Both numbers must allow it. If
    /// the contract upheld the order under one of them, the certificate needs no votes that count.
    fn withhold_private(
        &self,
        certificate: &VerifiedPrivateCertificate,
        view: PrimaryView,
        standing: Standing,
    ) -> Option<PrivateDecision> {
        let (numbers, digest) = (certificate.transfer().taken(), certificate.digest());
        let is_named =
            |(account, sequence)| self.ledger.unlocks.get(account, sequence).and_then(Unlock::upheld) == Some(digest);
        let standing = if numbers.into_iter().any(is_named) { Standing::Counts } else { standing };
        let epoch = certificate.certificate().epoch;
        let withheld = numbers.map(|number| self.withheld_for(number, (digest, epoch), view, standing));
        let rejection = withheld.iter().flatten().map(|(rejection, _)| rejection.clone()).next()?;
        let keeps = withheld.iter().flatten().any(|(_, keeps)| *keeps);
        let is_kept = |(account, sequence)| self.ledger.pool.seen(account, sequence).is_some();
        Some(if keeps && !numbers.into_iter().any(is_kept) {
            let certificate = certificate.certificate().clone();
            Decision::CommitFirst(Box::new(Record::PrivateSeen(PrivateSeen { certificate, digest })))
        } else {
            refuse(rejection)
        })
    }

    /// The certificate of a nullifier's next number that waits here and may be executed now.
    #[must_use]
    pub fn executable_private(&self, account: AccountId) -> Option<&PrivateSeen> {
        let next = self.accounts.get(&account)?.next_sequence();
        let seen = self.ledger.pool.seen(account, next)?;
        (self.ledger.unlocks.get(account, next)?.upheld() == Some(seen.digest)).then_some(seen)
    }

    /// The certificate that the authority attests of a frozen number that it has not executed, if it has one.
    /// [`crate::UnlockVote::Certificate`] names its digest.
    #[must_use]
    pub fn attests_private(&self, account: AccountId, sequence: SequenceNumber) -> Option<Digest> {
        self.ledger.pool.seen(account, sequence).map(|seen| seen.digest)
    }

    /// The record by which a private order that a Closing reports holds its numbers; none if it does, or can be executed no
    /// more.
    ///
    /// # Errors
    /// The accounts that must be in memory together, if not all of them are.
    pub(super) fn inherit_private(&self, lock: &Arc<PrivateLock>) -> Result<Option<Record>, Vec<AccountId>> {
        let numbers = lock.transfer().taken();
        let accounts = numbers.map(|(account, _)| account);
        if accounts.iter().any(|account| self.accounts.get(account).is_none()) {
            return Err(accounts.to_vec());
        }
        let unlocks = &self.ledger.unlocks;
        let is_open = |(account, sequence): (AccountId, SequenceNumber)| {
            sequence >= self.next_of(account) && !unlocks.is_voided(account, sequence)
        };
        let is_alive = numbers.into_iter().all(is_open) && accounts.into_iter().all(|of| self.spent(of).is_none());
        let is_new = is_alive && !self.ledger.pool.knows(lock);
        Ok(is_new.then(|| Record::PrivateInherited(lock.clone())))
    }

    /// Loads both nullifiers and `others`, and takes the nullifiers over void numbers.
    fn settle_nullifiers(&self, numbers: [(AccountId, SequenceNumber); 2], others: &[AccountId]) -> Step<()> {
        let nullifiers = numbers.map(|(account, _)| account);
        self.loaded(&[&nullifiers, others].concat())?;
        match nullifiers.into_iter().find_map(|account| self.step_over(account)) {
            Some(record) => Err(Decision::CommitFirst(record)),
            None => Ok(()),
        }
    }

    fn loaded(&self, accounts: &[AccountId]) -> Step<()> {
        let is_loaded = accounts.iter().all(|account| self.accounts.get(account).is_some());
        if is_loaded { Ok(()) } else { Err(Decision::Load(accounts.to_vec())) }
    }

    /// The next number of a nullifier in memory.
    fn next_of(&self, account: AccountId) -> SequenceNumber {
        self.accounts.get(&account).map(crate::Account::next_sequence).unwrap_or_default()
    }

    /// Why a nullifier takes no number any more: it took one that is not void.
    fn spent(&self, account: AccountId) -> Option<PrivateRejection> {
        let sequence = SequenceNumber(self.next_of(account).0.checked_sub(1)?);
        let is_void = self.ledger.unlocks.is_voided(account, sequence);
        (!is_void).then_some(PrivateRejection::Spent { account, sequence })
    }

    pub(super) fn apply_private_confirmation(&mut self, record: &PrivateConfirmation, position: JournalPosition) {
        let PrivateConfirmation { certificate, digest, effect, .. } = record;
        let transfer = &certificate.order.transfer;
        let numbers = transfer.taken();
        for (account, sequence) in numbers {
            self.account_mut(&account).sent.push(position);
            self.ledger.unlocks.remove(account, sequence);
        }
        self.ledger.pool.end(&numbers);
        let PrivateTransfer { asset, recipient, amount_out: amount, memo, .. } = *transfer;
        match effect {
            Some(Effect::Credited { .. }) => {
                self.debit(&AccountId::PRIVATE_POOL, asset, amount);
                self.receive(&recipient, asset, amount, position);
                self.count(asset, amount.into());
            }
            Some(Effect::Forwarded { to, number }) => {
                self.debit(&AccountId::PRIVATE_POOL, asset, amount);
                // The form of a payout, because it has the digest.
                let [(sender, sequence), _] = numbers;
                let outputs = vec![(0, Output { recipient, amount, memo })];
                let part = ShardOutputs { digest: *digest, sender, asset, sequence, outputs };
                let forwarded = Forwarded::Outputs(Arc::new(part));
                self.ledger.forward(*to, CrossShardCredit { from: self.id, number: *number, forwarded });
            }
            // Nothing leaves, or the base of the journal has it.
            _ => {}
        }
    }
}
