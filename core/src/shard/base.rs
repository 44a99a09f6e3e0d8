//! The base of a journal, applied: the state that it states, instead of the records that it stands for.

use std::sync::Arc;

use super::Shard;
use crate::account::Account;
use crate::base::{Base, BaseAccount, BaseLedger, LedgerBase, Unpaid};
use crate::history::{History, JournalPosition};
use crate::ledger::Unlocks;

impl Shard {
    pub(super) fn apply_base(&mut self, base: &Base, position: JournalPosition) {
        match base {
            Base::Checkpoint(ledger) => self.begin_at(ledger, position),
            Base::Totals(totals) => self.ledger.totals.extend(totals.iter().copied()),
            Base::Account(BaseAccount { account, next, received, deposits, balances, .. }) => {
                *self.account_mut(account) = Account {
                    pending: None,
                    balances: balances.clone(),
                    sent: History::pruned(next.0, position),
                    received: History::pruned(*received, position),
                    deposits: History::pruned(*deposits, position),
                };
            }
            Base::Balances { account, balances } => {
                let held = &mut self.account_mut(account).balances;
                balances.iter().for_each(|(asset, more)| held.change(asset, |balance| balance.plus(more)));
            }
            Base::Received { receipt, .. } => self.account_mut(&receipt.payment.recipient).received.push(position),
            Base::Unpaid { redemption, logged } => {
                let certificate = logged.as_ref().map(|_| position);
                if certificate.is_some() {
                    self.ledger.redemptions.push(position);
                }
                let unpaid = Unpaid { redemption: redemption.clone(), certificate };
                if let Some(base) = &mut self.ledger.base {
                    Arc::make_mut(base).unpaid.insert((redemption.sender, redemption.sequence), unpaid);
                }
            }
            Base::Number { account, sequence, unlock } => {
                *self.ledger.unlocks.entry(*account, *sequence) = unlock.clone();
            }
        }
    }

    fn begin_at(&mut self, base: &BaseLedger, position: JournalPosition) {
        let BaseLedger { number, checkpoint, generation, synchronized, epoch, compromised, redemptions } = base;
        self.ledger.synchronized = *synchronized;
        self.ledger.unlocks = Unlocks::at_base(*epoch, compromised.iter().copied().collect());
        self.ledger.redemptions = History::pruned(*redemptions, position);
        let (number, checkpoint, generation) = (*number, *checkpoint, *generation);
        let unpaid = Default::default();
        self.ledger.base =
            Some(Arc::new(LedgerBase { number, checkpoint, generation, synchronized: *synchronized, unpaid }));
    }
}
