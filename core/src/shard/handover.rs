//! The rules about the hand-over from a committee to the next one: docs/PROTOCOL.md, "Hand-over".

use std::sync::Arc;

use super::{Decision, PrimaryView, Shard};
use crate::account::{Account, PendingOrder};
use crate::amount::{Epoch, SequenceNumber};
use crate::handover::{Inheritance, JoinError, Joining, Newest, ReportedLock};
use crate::identity::AccountId;
use crate::order::{TransferOrder, VerifiedOrder};
use crate::record::Record;
use crate::rejection::Rejection;

impl Shard {
    /// Ends an epoch: from the record on, the shard gives no vote under it. Commits to [`Record::Closed`].
    #[must_use]
    pub fn close(&self, epoch: Epoch) -> Decision {
        if self.ledger.tenure.closed() >= Some(epoch) {
            return Decision::Already;
        }
        if self.ledger.unlocks.epoch() <= epoch {
            return Decision::Refuse(Rejection::SynchronizationGap { synchronized: self.ledger.synchronized });
        }
        Decision::Commit(Box::new(Record::Closed { epoch }))
    }

    /// The newest epoch that has ended here and is not closed: its member closes it before it does anything else.
    #[must_use]
    pub fn to_close(&self) -> Option<Epoch> {
        let ended = self.ledger.unlocks.epoch().0.checked_sub(1).map(Epoch);
        ended.filter(|_| self.ledger.tenure.closed() < ended)
    }

    /// The epoch of what this authority does, whose node knows the committees up to `known`: the one after the newest that
    /// it has closed may not be known there yet.
    #[must_use]
    pub fn epoch(&self, known: Epoch) -> Epoch {
        let next = self.ledger.tenure.closed().map(|closed| Epoch(closed.0.saturating_add(1)));
        next.map_or(known, |next| next.max(known))
    }

    /// Why the shard gives no vote under the epoch any more, if it does not.
    #[must_use]
    pub fn refuse_closed(&self, epoch: Epoch) -> Option<Rejection> {
        (self.ledger.tenure.closed() >= Some(epoch)).then_some(Rejection::EpochClosed { epoch })
    }

    /// The orders of an account's next and later numbers of which this authority votes for no other: its own lock, and
    /// what it inherited. Two for one number: it votes for neither. `state` is the account's, in memory or not. A
    /// [`crate::handover::Closing`] reports them.
    #[must_use]
    pub fn locks(&self, account: AccountId, state: &Account) -> Vec<PendingOrder> {
        let mut locks: Vec<_> = state.pending.iter().map(|pending| PendingOrder::clone(pending)).collect();
        let next = state.next_sequence();
        let inherited = self.ledger.tenure.from(account, next);
        locks.extend(
            inherited.filter(|lock| state.pending.as_ref().is_none_or(|own| own.digest != lock.digest)).cloned(),
        );
        locks.sort_by_key(|lock| (lock.order.transfer.sequence(), lock.digest));
        locks
    }

    /// The order that keeps `order` from getting a vote under the account's next number, `expected`: another one that
    /// this authority voted for, or that it inherited.
    pub(super) fn locked_on(
        &self,
        account: &Account,
        order: &VerifiedOrder,
        expected: SequenceNumber,
    ) -> Option<Arc<TransferOrder>> {
        let inherited = self.ledger.tenure.inherited(order.transfer().sender(), expected);
        let locks = account.pending.iter().map(|pending| &**pending).chain(inherited);
        locks.into_iter().find(|lock| lock.digest != order.digest()).map(|lock| lock.order.clone())
    }

    /// Why the shard does not begin to join yet: it must have followed the Primary, and recently.
    ///
    /// # Errors
    /// [`JoinError::PrimaryTooOld`], [`JoinError::Behind`], [`JoinError::NotInstalled`] or
    /// [`JoinError::Recovery`].
    pub fn may_join(&self, inheritance: &Inheritance, view: PrimaryView) -> Result<(), JoinError> {
        if view == PrimaryView::TooOld {
            return Err(JoinError::PrimaryTooOld);
        }
        let (up_to, synchronized) = (inheritance.up_to(), self.ledger.synchronized);
        if synchronized < up_to {
            return Err(JoinError::Behind { up_to, synchronized });
        }
        let epoch = inheritance.joins();
        if self.ledger.unlocks.epoch() < epoch {
            return Err(JoinError::NotInstalled(epoch));
        }
        let ended = Epoch(epoch.0.saturating_sub(1));
        (!self.ledger.unlocks.is_compromised(ended)).then_some(()).ok_or(JoinError::Recovery(epoch))
    }

    /// Takes over what the Closings of the epoch that ended report of this shard's accounts. Loads an account, or commits
    /// first to a [`Record::Inherited`], and is asked again; loads none where a part ends (see [`Joining::position`]);
    /// commits to [`Record::Joined`] when nothing is left. The caller votes in the epoch only after that, in all shards.
    /// What the Closings claim to be executed must have been executed here before, but for numbers that are frozen: of
    /// these the certificate must be kept.
    ///
    /// Joining adds to the locks of a member that has its own, and removes none.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn join(&self, joining: &mut Joining<'_>, view: PrimaryView) -> Result<Decision, JoinError> {
        let (inheritance, epoch) = (joining.inheritance(), joining.inheritance().joins());
        if self.ledger.tenure.joined() >= Some(epoch) {
            return Ok(Decision::Already);
        }
        self.may_join(inheritance, view)?;
        while let Some(account) = joining.account() {
            if joining.ends_part() {
                return Ok(Decision::Load(Vec::new()));
            }
            if self.check_owner(account).is_ok() {
                let Some(state) = self.accounts.get(&account) else { return Ok(Decision::Load(vec![account])) };
                if let Some(record) = self.step_over(account) {
                    return Ok(Decision::CommitFirst(record));
                }
                let next = state.next_sequence();
                // Of a number that is not frozen, what was kept on an old view must be executed: else another order of
                // the number could get a vote here.
                let frozen = self.ledger.unlocks.get(account, next).filter(|unlock| unlock.is_frozen());
                let seen = frozen.and_then(|unlock| unlock.seen.as_ref());
                let private = frozen.and_then(|_| self.ledger.pool.seen(account, next));
                let is_seen = |newest: &Newest, order: Option<&TransferOrder>| {
                    let seen = seen.map(|seen| &seen.order.transfer);
                    (seen.is_some() && order.map(|order| &order.transfer) == seen)
                        || private.is_some_and(|private| *newest == Newest::Executed(private.digest))
                };
                let pending = state.pending.as_ref().map(|pending| pending.digest);
                for lock in joining.locks(account, next, &is_seen)? {
                    if joining.ends_part() {
                        return Ok(Decision::Load(Vec::new()));
                    }
                    let record = match lock {
                        ReportedLock::Private(lock) => match self.inherit_private(lock) {
                            Ok(record) => record,
                            Err(needed) => return Ok(Decision::Load(needed)),
                        },
                        ReportedLock::Transfer(PendingOrder { order, digest }) => {
                            let (sequence, digest) = (order.transfer.sequence(), *digest);
                            let is_new =
                                !self.ledger.tenure.knows(account, sequence, digest) && pending != Some(digest);
                            is_new.then(|| Record::Inherited { order: order.clone(), digest })
                        }
                    };
                    joining.pass_lock(account, lock);
                    if let Some(record) = record {
                        return Ok(Decision::CommitFirst(Box::new(record)));
                    }
                }
            }
            joining.pass(account);
        }
        Ok(Decision::Commit(Box::new(Record::Joined { epoch })))
    }
}
