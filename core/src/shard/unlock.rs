//! The rules about numbers that their owner asked the contract to unlock: what is frozen, which votes an authority gives
//! the contract, and how an account steps over a number that is void. docs/PROTOCOL.md, "Unlocking".

use std::sync::Arc;

use super::{Decision, PrimaryView, Shard, VoteFloor};
use crate::Digest;
use crate::amount::{Amount, Asset, Epoch, SequenceNumber};
use crate::certificate::{Certificate, VerifiedCertificate};
use crate::epochs::Committees;
use crate::history::JournalPosition;
use crate::identity::AccountId;
use crate::order::VerifiedOrder;
use crate::record::Record;
use crate::rejection::Rejection;
use crate::standing::{Moment, Standing};
use crate::unlock::{Installation, RELEASED, Unlock, UnlockEvent, UnlockEventKind, UnlockOutcome};

impl Shard {
    /// Takes the account over its next number where that is void: must be committed before anything else is decided about
    /// the account. `None` if the account is not in memory.
    #[must_use]
    pub fn step_over(&self, account: AccountId) -> Option<Box<Record>> {
        // Most shards have none, and each request asks.
        if self.ledger.unlocks.is_empty() {
            return None;
        }
        let sent = &self.accounts.get(&account)?.sent;
        let is_voided = self.ledger.unlocks.is_voided(account, SequenceNumber(sent.count()));
        is_voided.then(|| Box::new(Record::Void { account, sent: sent.next_link() }))
    }

    /// The certificate of an account's next number that waits here and may be executed now.
    #[must_use]
    pub fn executable(&self, account: AccountId) -> Option<Arc<Certificate>> {
        if self.ledger.unlocks.is_empty() {
            return None;
        }
        let next = self.accounts.get(&account)?.next_sequence();
        let unlock = self.ledger.unlocks.get(account, next)?;
        unlock.upheld()?;
        unlock.seen.clone()
    }

    /// Why no vote is given for an order of the account's next number, which is `expected`, or a later one. A redemption
    /// of a number that the contract spent otherwise gets its vote: executed, it stays in the account, and no lock is in
    /// the way of the next number.
    pub(super) fn refuse_vote(
        &self,
        order: &VerifiedOrder,
        expected: SequenceNumber,
        floor: VoteFloor,
    ) -> Option<Rejection> {
        let (sender, sequence) = (order.transfer().sender(), order.transfer().sequence());
        if sequence < expected {
            return None;
        }
        // A floor rests on a quorum's votes for the number before, and nobody needs to have voted for one that is void.
        let before = sequence.0.checked_sub(1).map(SequenceNumber);
        if floor != VoteFloor::Zero && before.is_some_and(|before| self.ledger.unlocks.is_voided(sender, before)) {
            return Some(Rejection::VotesForgotten { floor: Some(SequenceNumber(sequence.0.saturating_add(1))) });
        }
        let is_frozen = self.ledger.unlocks.get(sender, sequence).is_some_and(Unlock::is_frozen);
        is_frozen.then_some(Rejection::Frozen { sequence })
    }

    /// The decision that keeps a certificate of an unexecuted number from being executed now; `None` if it may be
    /// executed once its number is the next one.
    pub(super) fn withhold(
        &self,
        certificate: &VerifiedCertificate,
        view: PrimaryView,
        standing: Standing,
    ) -> Option<Decision> {
        let number @ (sender, sequence) = (certificate.transfer().sender(), certificate.transfer().sequence());
        let order = (certificate.digest(), certificate.certificate().epoch);
        let (rejection, keeps) = self.withheld_for(number, order, view, standing)?;
        let is_kept = || self.ledger.unlocks.get(sender, sequence).is_some_and(|unlock| unlock.seen.is_some());
        Some(match keeps && !is_kept() {
            true => Decision::CommitFirst(Box::new(Record::Seen { certificate: certificate.shared() })),
            false => Decision::Refuse(rejection),
        })
    }

    /// Why a number keeps a certificate, of the order with this digest and made in this epoch, from being executed now, and
    /// whether the certificate is to be kept; `None` if it may be executed.
    pub(super) fn withheld_for(
        &self,
        (account, sequence): (AccountId, SequenceNumber),
        (digest, epoch): (Digest, Epoch),
        view: PrimaryView,
        standing: Standing,
    ) -> Option<(Rejection, bool)> {
        let unlock = self.ledger.unlocks.get(account, sequence);
        // What the contract says of the number needs no vote.
        let is_named = unlock.and_then(Unlock::upheld) == Some(digest);
        let standing = if is_named { Standing::Counts } else { standing };
        let rejection = match unlock.filter(|unlock| unlock.is_frozen()).map(Unlock::upheld) {
            Some(_) if is_named => return None,
            // If the contract has only spent the number, it can still uphold the kept certificate.
            Some(Some(upheld)) => Rejection::Overruled { upheld },
            Some(None) if standing > Standing::Ended => Rejection::Frozen { sequence },
            None if view == PrimaryView::TooOld => Rejection::PrimaryTooOld,
            None if standing == Standing::Counts => return None,
            _ => Rejection::Unattested { epoch },
        };
        let keeps =
            standing > Standing::Unsure || (standing == Standing::Unsure && unlock.is_some_and(Unlock::is_frozen));
        Some((rejection, keeps))
    }

    /// How far a certificate of this epoch counts by itself, as the committees that its authority knows and the events
    /// that this shard has applied say. Votes of the epoch that a certificate exists count as far as that.
    #[must_use]
    pub fn standing(&self, epoch: Epoch, committees: &Committees, moment: &Moment) -> Standing {
        let unlocks = &self.ledger.unlocks;
        if epoch >= committees.current().epoch().max(unlocks.epoch()) {
            return moment.of_current();
        }
        match unlocks.is_compromised(epoch) {
            true => Standing::Ended,
            false => committees.end(epoch).standing(moment.now),
        }
    }

    /// Follows the Primary over the installation of a committee. Commits to [`Record::Installation`].
    #[must_use]
    pub fn follow_installation(&self, installation: &Installation) -> Decision {
        let synchronized = self.ledger.synchronized;
        if installation.index <= synchronized {
            return Decision::Already;
        }
        if installation.after > synchronized {
            return Decision::Refuse(Rejection::SynchronizationGap { synchronized });
        }
        Decision::Commit(Box::new(Record::Installation(*installation)))
    }

    /// Follows the Primary over an event about one number. Commits to [`Record::Unlock`].
    #[must_use]
    pub fn follow_unlock(&self, event: &UnlockEvent) -> Decision {
        let synchronized = self.ledger.synchronized;
        if event.index <= synchronized {
            return Decision::Already;
        }
        if event.after > synchronized {
            return Decision::Refuse(Rejection::SynchronizationGap { synchronized });
        }
        if let Err(rejection) = self.check_owner(event.account) {
            return Decision::Refuse(rejection);
        }
        match self.accounts.get(&event.account) {
            None => Decision::Load(vec![event.account]),
            // It is to be said of an executed number what is executed there.
            Some(state) if self.is_unexplained(event, state.next_sequence()) => {
                Decision::Refuse(Rejection::SynchronizationGap { synchronized })
            }
            Some(_) => Decision::Commit(Box::new(Record::Unlock(event.clone()))),
        }
    }

    fn is_unexplained(&self, event: &UnlockEvent, next: SequenceNumber) -> bool {
        let is_about_redemption = matches!(event.kind, UnlockEventKind::Spent(_) | UnlockEventKind::Released(_));
        let is_void = || self.ledger.unlocks.is_voided(event.account, event.sequence);
        is_about_redemption && event.sequence < next && !is_void()
    }

    /// Whether the contract spent the certificate's number and never pays its redemption.
    pub(super) fn is_spent_otherwise(&self, certificate: &VerifiedCertificate) -> bool {
        let (sender, sequence) = (certificate.transfer().sender(), certificate.transfer().sequence());
        let spent = self.ledger.unlocks.get(sender, sequence).and_then(|unlock| unlock.spent);
        spent.is_some_and(|spent| spent != certificate.digest())
    }

    /// Whether the event contradicts what this authority executed, which only happens where more than f authorities are
    /// faulty.
    #[must_use]
    pub fn contradicts(&self, event: &UnlockEvent) -> bool {
        let next = self.accounts.get(&event.account).map(crate::Account::next_sequence);
        event.kind == UnlockEventKind::Voided
            && next.is_some_and(|next| event.sequence < next)
            && !self.ledger.unlocks.is_voided(event.account, event.sequence)
    }

    /// May the authority, in this epoch, vote to void a frozen number? `chain_time` is that of the newest final block
    /// whose events are applied, in seconds since 1970. Commits to [`Record::VoidVoted`].
    #[must_use]
    pub fn void_vote(
        &self,
        (account, sequence): (AccountId, SequenceNumber),
        unanimous: bool,
        epoch: Epoch,
        floor: VoteFloor,
        chain_time: u64,
    ) -> Decision {
        if let Err(rejection) = self.check_owner(account) {
            return Decision::Refuse(rejection);
        }
        if let Some(rejection) = self.refuse_closed(epoch) {
            return Decision::Refuse(rejection);
        }
        let Some(state) = self.accounts.get(&account) else {
            return Decision::Load(vec![account]);
        };
        if let Some(record) = self.step_over(account) {
            return Decision::CommitFirst(record);
        }
        let (expected, unlock) = (state.next_sequence(), self.ledger.unlocks.get(account, sequence));
        let refused = match (unlock, unlock.and_then(|unlock| unlock.voidable_at)) {
            _ if sequence < expected => self.executed_or_void(account, sequence, expected),
            _ if sequence > expected => Rejection::SequenceTooHigh { expected },
            (Some(unlock), Some(voidable_at)) => {
                if let Some(upheld) = unlock.upheld() {
                    Rejection::Overruled { upheld }
                } else if let Some(seen) = &unlock.seen {
                    Rejection::CertificateKnown { certificate: seen.clone() }
                } else if unlock.spent.is_some() || self.ledger.pool.seen(account, sequence).is_some() {
                    // The contract voids no number that is spent. And a nullifier's number has a certificate here.
                    Rejection::Frozen { sequence }
                } else if floor != VoteFloor::Zero {
                    Rejection::VotesForgotten { floor: None }
                } else if !unanimous && chain_time < voidable_at {
                    Rejection::WindowOpen { voidable_at }
                } else if unlock.void_voted == Some(epoch) {
                    return Decision::Already;
                } else {
                    return Decision::Commit(Box::new(Record::VoidVoted { account, sequence, epoch }));
                }
            }
            _ => Rejection::NotRequested { sequence },
        };
        Decision::Refuse(refused)
    }

    /// The answer about a number below the next one: confirmed, or void.
    pub(super) fn executed_or_void(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        expected: SequenceNumber,
    ) -> Rejection {
        match self.ledger.unlocks.is_voided(account, sequence) {
            true => Rejection::Voided { expected },
            false => Rejection::AlreadyConfirmed { expected },
        }
    }

    pub(super) fn apply_unlock(&mut self, event: &UnlockEvent) {
        self.ledger.synchronized = event.index;
        let next = self.account_mut(&event.account).next_sequence();
        if let UnlockEventKind::CreditedBack(asset, amount) = event.kind {
            // Only what is debited is credited back; a recovery also debits what was queued behind a gap.
            let slot = (event.account, event.sequence);
            let is_unpaid = || self.ledger.base.as_ref().is_some_and(|base| base.unpaid.contains_key(&slot));
            if event.sequence < next || is_unpaid() {
                self.credit_back(event.account, event.sequence, asset, amount);
            }
            return;
        }
        if event.sequence < next {
            return;
        }
        let epoch = self.ledger.unlocks.epoch();
        let unlock = self.ledger.unlocks.entry(event.account, event.sequence);
        match event.kind {
            UnlockEventKind::Requested(voidable_at) => {
                // The window does not begin anew with a second request.
                unlock.voidable_at.get_or_insert(voidable_at);
            }
            // A recovery has voided a number that it debited behind a gap. The contract knows it as spent only.
            UnlockEventKind::Upheld(_) if unlock.outcome == Some(UnlockOutcome::Voided) => {}
            UnlockEventKind::Upheld(digest) => {
                (unlock.outcome, unlock.upheld_in) = (Some(UnlockOutcome::Upheld(digest)), Some(epoch));
            }
            UnlockEventKind::Voided => {
                unlock.outcome = Some(UnlockOutcome::Voided);
                self.ledger.pool.end(&[(event.account, event.sequence)]);
            }
            UnlockEventKind::Spent(digest) => (unlock.spent, unlock.spent_in) = (Some(digest), Some(epoch)),
            UnlockEventKind::Released(_) => unlock.spent = Some(RELEASED),
            UnlockEventKind::CreditedBack(..) => {}
        }
    }

    /// Once for each number: the contract may say of one redemption that it waits and that it is paid.
    fn credit_back(&mut self, account: AccountId, sequence: SequenceNumber, asset: Asset, amount: Amount) {
        if self.ledger.unlocks.entry(account, sequence).spent.replace(RELEASED).is_none() {
            let totals = self.ledger.totals_mut(asset);
            totals.redeemed = totals.redeemed.debit(amount);
            self.fund(&account, asset, amount);
        }
    }

    pub(super) fn apply_installation(&mut self, installation: &Installation) {
        self.ledger.synchronized = installation.index;
        self.ledger.unlocks.install(installation);
    }

    pub(super) fn apply_seen(&mut self, certificate: &Arc<Certificate>) {
        let transfer = &certificate.order.transfer;
        self.ledger.unlocks.entry(transfer.sender(), transfer.sequence()).seen = Some(certificate.clone());
    }

    pub(super) fn apply_void_vote(&mut self, account: AccountId, sequence: SequenceNumber, epoch: Epoch) {
        self.ledger.unlocks.entry(account, sequence).void_voted = Some(epoch);
    }

    pub(super) fn apply_void(&mut self, account: AccountId, position: JournalPosition) {
        let state = self.account_mut(&account);
        let sequence = state.next_sequence();
        state.pending = None;
        state.sent.push(position);
        self.ledger.tenure.forget(account, sequence);
        let outcome = Some(UnlockOutcome::Voided);
        *self.ledger.unlocks.entry(account, sequence) = Unlock { outcome, ..Unlock::default() };
    }
}
