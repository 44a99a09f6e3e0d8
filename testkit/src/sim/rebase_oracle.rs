//! The oracle's books of an authority that was rebased: what the checkpoint includes, and what it executed itself.

use fastpay_core::checkpoint::Cut;
use fastpay_core::{ShardLayout, TransactionIndex, Transfer};

use super::oracle::{Breach, Oracle, require, signed};

impl Oracle {
    /// An authority begins from a checkpoint with this cut, and all its shards have applied the events up to an index. Its
    /// books are drawn up anew from the chain's deposits and from orders.
    pub fn rebased(
        &mut self,
        authority: usize,
        cut: &Cut,
        (layout, up_to): (ShardLayout, TransactionIndex),
    ) -> Result<(), Breach> {
        let books = &mut self.books[authority];
        for (account, next) in &cut.next {
            for number in books.sent(*account)..next.0 {
                let slot = (*account, number);
                let certificate = self.certified.get(&slot);
                let is_known = certificate.is_some() != self.void.contains(&slot);
                require!(is_known, "a checkpoint includes #{number} of {account}, which nobody executed");
                books.orders.insert(slot, certificate.map(|certificate| certificate.order.clone()));
                if certificate.is_some() {
                    books.executed.insert(slot);
                }
            }
            for sent in [&mut books.sent, &mut books.sent_ever] {
                let sent = sent.entry(*account).or_default();
                *sent = (*sent).max(next.0);
            }
        }
        books.credits.clear();
        books.balances.clear();
        books.redeemed.clear();
        books.applied = layout.shards().map(|shard| (shard, up_to)).collect();
        let deposits: Vec<_> = self.deposits.iter().filter(|deposit| deposit.index <= up_to).collect();
        books.deposits = deposits.iter().map(|deposit| deposit.index.0).collect();
        for deposit in deposits {
            books.change(deposit.recipient, deposit.asset, signed(deposit.amount.0));
        }
        let orders: Vec<_> = books.orders.values().flatten().map(|order| order.transfer.clone()).collect();
        for transfer in orders {
            let amount = signed(transfer.amount().0);
            books.change(transfer.sender(), transfer.asset(), -amount);
            if let Transfer::Redemption(_) = &transfer {
                *books.redeemed.entry(transfer.asset()).or_default() += amount;
            }
            for receipt in transfer.receipts() {
                books.change(receipt.payment.recipient, receipt.payment.asset, signed(receipt.payment.amount.0));
            }
        }
        Ok(())
    }
}
