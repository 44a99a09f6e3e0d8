//! What one event, or one number that an account takes, changes in a state. Whether it may is for the caller to judge:
//! [`super::Application`] for a segment that a quorum certifies, [`super::OwnState`] for what one authority has done.

use super::application::SegmentError;
use super::segment::{PrimaryEvent, PrimaryEventKind};
use super::state::{CheckpointState, NumberState, Outcome, Spent};
use crate::Digest;
use crate::amount::{Amount, Asset, Balance, SequenceNumber};
use crate::identity::AccountId;
use crate::private::PrivateTransfer;
use crate::statement::Domain;
use crate::transfer::{Receipt, Transfer};
use crate::unlock::RELEASED;

impl CheckpointState {
    /// Follows the next event of the Primary.
    pub(super) fn follow(&mut self, event: PrimaryEvent, domain: &Domain) -> Result<(), SegmentError> {
        let PrimaryEvent { index, kind } = event;
        let expected = self.cut.up_to.next().unwrap_or_default();
        if index != expected {
            return Err(SegmentError::EventGap { expected, found: index });
        }
        self.cut.up_to = index;
        match kind {
            PrimaryEventKind::Deposit { recipient, asset, amount } => {
                self.change(recipient, asset, |balance| balance.credit(amount));
            }
            PrimaryEventKind::Installed(installed) => {
                let (since, is_recovery) = (installed.compromised_since, installed.is_recovery());
                self.installations.install(installed)?;
                if is_recovery {
                    self.numbers.values_mut().for_each(|number| number.reopen(since));
                }
            }
            PrimaryEventKind::UnlockRequested { account, sequence, is_authorized } => {
                if let Some(number) = self.open(account, sequence).filter(|_| is_authorized) {
                    number.is_requested = true;
                }
            }
            PrimaryEventKind::Upheld { account, sequence, digest } => {
                let epoch = self.installations.epoch();
                // A recovery has voided a number that it debited behind a gap. The contract knows it as spent only.
                if let Some(number) = self.open(account, sequence).filter(|number| !number.is_voided()) {
                    number.outcome = Some(Outcome::Upheld { digest, epoch });
                }
            }
            PrimaryEventKind::Voided { account, sequence } => {
                // A void number below the cut before this one has been voided there, and is voided once.
                let number = self.open(account, sequence).ok_or(SegmentError::Voided { account, sequence })?;
                *number = NumberState::VOIDED;
            }
            PrimaryEventKind::Redeemed { account, sequence, digest } => {
                self.spend(account, sequence, digest, true, domain)
            }
            PrimaryEventKind::Queued { account, sequence, digest } => {
                self.spend(account, sequence, digest, false, domain)
            }
            PrimaryEventKind::Released { account, sequence, digest } => self.release(account, sequence, digest, domain),
        }
        Ok(())
    }

    /// What is known of a number that the cut before this one does not include.
    fn open(&mut self, account: AccountId, sequence: SequenceNumber) -> Option<&mut NumberState> {
        let is_open = sequence >= self.cut.next(&account);
        is_open.then(|| self.numbers.entry((account, sequence)).or_default())
    }

    /// The Primary paid a redemption, or queued it. Another one that is executed under the number is never paid.
    fn spend(&mut self, account: AccountId, sequence: SequenceNumber, digest: Digest, is_paid: bool, domain: &Domain) {
        let epoch = Some(self.installations.epoch());
        // First what is debited: a recovery debits also numbers that are not reached yet.
        if let Some(executed) = self.unpaid_digest(account, sequence, domain) {
            if executed != digest {
                self.credit_back(account, sequence);
            } else if is_paid {
                self.unpaid.remove(&(account, sequence));
            }
        } else if let Some(number) = self.open(account, sequence) {
            number.spent = Some(Spent { digest, is_paid, epoch });
        }
    }

    /// A redemption left the Primary's queue unpaid.
    fn release(&mut self, account: AccountId, sequence: SequenceNumber, digest: Digest, domain: &Domain) {
        if self.unpaid_digest(account, sequence, domain) == Some(digest) {
            self.credit_back(account, sequence);
        } else if let Some(number) = self.open(account, sequence) {
            let epoch = number.spent.and_then(|spent| spent.epoch);
            number.spent = Some(Spent { digest: RELEASED, is_paid: false, epoch });
        }
    }

    fn unpaid_digest(&self, account: AccountId, sequence: SequenceNumber, domain: &Domain) -> Option<Digest> {
        let redemption = self.unpaid.get(&(account, sequence))?;
        Some(domain.transfer_digest(&redemption.clone().into()))
    }

    /// The redemption that the cut before this one includes is never paid: its amount goes back, once.
    fn credit_back(&mut self, account: AccountId, sequence: SequenceNumber) {
        if let Some(redemption) = self.unpaid.remove(&(account, sequence)) {
            self.change(account, redemption.asset, |balance| balance.credit(redemption.amount));
        }
    }

    /// Takes an account's next number, and gives what the Primary said of it.
    pub(super) fn next(&mut self, account: AccountId, sequence: SequenceNumber) -> Result<NumberState, SegmentError> {
        let expected = self.cut.next(&account);
        let gap = SegmentError::NumberGap { account, expected, found: sequence };
        let next = sequence.next().filter(|_| sequence == expected).ok_or(gap)?;
        self.cut.next.insert(account, next);
        Ok(self.numbers.remove(&(account, sequence)).unwrap_or_default())
    }

    /// An account stepped over a number that it took, of which `number` is known.
    pub(super) fn step_over(
        &mut self,
        account: AccountId,
        sequence: SequenceNumber,
        number: &NumberState,
    ) -> Result<(), SegmentError> {
        if !number.is_voided() {
            return Err(SegmentError::NotVoided { account, sequence });
        }
        self.numbers.insert((account, sequence), NumberState::VOIDED);
        Ok(())
    }

    /// An order was executed under a number that its account took, of which `number` is known.
    pub(super) fn execute(
        &mut self,
        transfer: &Transfer,
        digest: Digest,
        number: &NumberState,
    ) -> Result<(), SegmentError> {
        let (account, sequence, asset) = (transfer.sender(), transfer.sequence(), transfer.asset());
        if number.is_voided() {
            return Err(SegmentError::Voided { account, sequence });
        }
        match transfer {
            Transfer::Payment(payment) => self.pay(payment.recipient, asset, payment.amount),
            Transfer::Payout(payout) => {
                payout.outputs.iter().for_each(|output| self.pay(output.recipient, asset, output.amount));
            }
            Transfer::Redemption(redemption) => match number.spent {
                // The Primary never pays it: it stays in the account.
                Some(spent) if spent.digest != digest => return Ok(()),
                Some(spent) if spent.is_paid => {}
                _ => {
                    self.unpaid.insert((account, sequence), redemption.clone());
                }
            },
        }
        self.change(account, asset, |balance| balance.debit(transfer.amount()));
        Ok(())
    }

    /// A private transfer took these numbers of its nullifiers, of which the states are known.
    pub(super) fn execute_private(
        &mut self,
        transfer: &PrivateTransfer,
        numbers: [(AccountId, SequenceNumber); 2],
        states: [&NumberState; 2],
    ) -> Result<(), SegmentError> {
        for ((account, sequence), number) in numbers.into_iter().zip(states) {
            if number.is_voided() {
                return Err(SegmentError::Voided { account, sequence });
            }
            let before = sequence.0.checked_sub(1).map(SequenceNumber);
            let is_void = |before| self.numbers.get(&(account, before)).is_some_and(NumberState::is_voided);
            if before.is_some_and(|before| !is_void(before)) {
                return Err(SegmentError::Spent { account, sequence });
            }
        }
        if let Some(Receipt { payment, .. }) = transfer.withdrawal() {
            self.pay(payment.recipient, payment.asset, payment.amount);
            self.change(AccountId::PRIVATE_POOL, payment.asset, |balance| balance.debit(payment.amount));
        }
        Ok(())
    }

    fn pay(&mut self, recipient: AccountId, asset: Asset, amount: Amount) {
        self.change(recipient, asset, |balance| balance.credit(amount));
    }

    fn change(&mut self, account: AccountId, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        let balance = self.balances.entry((account, asset)).or_default();
        *balance = change(*balance);
    }
}
