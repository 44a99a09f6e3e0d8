//! The state of certified redemptions at the Primary. A spent number does not prove that its redemption was paid: the
//! contract does not see the owner's signature, so a thief with redemption keys may have spent the number on another
//! order. The contract's events name the order, and so
//! does a ledger's state.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{Address, B256};
use fastpay_core::{AccountId, Digest, SequenceNumber, Transfer, VerifiedCertificate};
use fastpay_ethereum::{Payout, Primary, Queued, Spending, SpendingState};
use fastpay_ledger_client::{CommitteeClient, oldest_state};
use fastpay_ledger_statement::{Redeemed, SpentOn};

use crate::any_primary::AnyPrimary;
use crate::error::WalletError;
use crate::folder::{OrderEntry, now_ms};
use crate::wallet::Wallet;

/// The number of the newest redemptions whose state is read.
const REDEMPTIONS_MAX: usize = 50;
/// The log is searched for redemptions younger than this. Only its newest two weeks are searched.
const SEARCHED_MS: u64 = 30 * 24 * 3_600 * 1_000;

/// The state of a certified redemption at the Primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedemptionState {
    /// Its number is not spent.
    Open,
    /// It is in the contract's queue.
    Queued(Queued),
    /// It was paid.
    Paid {
        /// The relayer that submitted it and received the fee.
        relayer: Address,
        /// The transaction that paid it.
        transaction: B256,
        /// The block of that transaction.
        block_number: u64,
    },
    /// Its number was spent on another order by this transaction, and it is never paid.
    Displaced(B256),
    /// It was taken out of the contract's queue by this transaction, and is never paid.
    Released(B256),
    /// The ledger paid it.
    PaidOnLedger(Redeemed),
    /// Its number is spent on another order at the ledger, or void, and it is never paid.
    DisplacedOnLedger(SpentOn),
    /// Its number is spent, and the searched part of the log does not contain on which order.
    Spent,
}

impl RedemptionState {
    /// The state of the redemption with this digest, by what its number is spent on at a ledger.
    #[must_use]
    pub fn on_ledger(digest: Digest, spent: Option<SpentOn>) -> Self {
        match spent {
            None => Self::Open,
            Some(SpentOn::Redeemed(redeemed)) if redeemed.digest == digest => Self::PaidOnLedger(redeemed),
            Some(other) => Self::DisplacedOnLedger(other),
        }
    }

    /// The state of the redemption with this digest, by the contract's views and log.
    #[must_use]
    pub fn of(digest: Digest, payout: Payout, logged: Option<Spending>) -> Self {
        let Some(Spending { digest: spent_on, state, transaction, block_number }) = logged else {
            return match payout {
                Payout::Open => Self::Open,
                Payout::Queued(queued) => Self::Queued(queued),
                Payout::Done => Self::Spent,
            };
        };
        match (payout, state) {
            (Payout::Open, _) => Self::Open,
            _ if spent_on != digest => Self::Displaced(transaction),
            (Payout::Queued(queued), _) => Self::Queued(queued),
            (Payout::Done, SpendingState::Paid { relayer }) => Self::Paid { relayer, transaction, block_number },
            (Payout::Done, SpendingState::Released) => Self::Released(transaction),
            // The log is slightly older than the view.
            (Payout::Done, SpendingState::Queued) => Self::Spent,
        }
    }
}

/// The state of a certificate's redemption in the newest block: [`RedemptionState::Spent`] if it is spent and no node
/// serves the log.
///
/// # Errors
/// If the Primary does not answer.
pub(crate) async fn redemption_state(
    primary: &Primary,
    certificate: &VerifiedCertificate,
) -> Result<RedemptionState, WalletError> {
    let (sender, sequence) = (certificate.transfer().sender(), certificate.transfer().sequence());
    let payout = primary.payout(sender, sequence).await?;
    let logged = match payout {
        Payout::Open => None,
        Payout::Queued(_) | Payout::Done => logged(primary, sender, [sequence].into()).await.remove(&sequence),
    };
    Ok(RedemptionState::of(certificate.digest(), payout, logged))
}

/// The spendings of an account's numbers in the log; empty if no node serves the log.
pub(crate) async fn logged(
    primary: &Primary,
    sender: AccountId,
    sequences: BTreeSet<SequenceNumber>,
) -> BTreeMap<SequenceNumber, Spending> {
    primary.spendings(sender, sequences).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "the Ethereum node does not return which orders numbers were spent on");
        BTreeMap::new()
    })
}

/// The certified redemptions among these orders, the newest first.
fn redemptions(entries: &[OrderEntry]) -> impl Iterator<Item = (&OrderEntry, &Transfer)> {
    entries.iter().rev().filter_map(|entry| {
        let transfer = &entry.certificate.as_ref()?.order.transfer;
        matches!(transfer, Transfer::Redemption(_)).then_some((entry, transfer))
    })
}

impl Wallet {
    /// The states of the newest redemptions of an account that this wallet has. Spendings in final blocks are stored in
    /// the folder, and not searched for again.
    ///
    /// # Errors
    /// If the wallet's files cannot be used, or the Primary does not answer.
    pub async fn redemption_states(
        &self,
        primary: &AnyPrimary,
        account: AccountId,
    ) -> Result<BTreeMap<SequenceNumber, RedemptionState>, WalletError> {
        match primary {
            AnyPrimary::Contract(primary) => self.states_on_chain(primary, account).await,
            AnyPrimary::Ledger(ledger) => self.states_on_ledger(ledger, account).await,
        }
    }

    async fn states_on_ledger(
        &self,
        ledger: &CommitteeClient,
        account: AccountId,
    ) -> Result<BTreeMap<SequenceNumber, RedemptionState>, WalletError> {
        let entries = self.folder().orders(account).entries()?;
        let mut states = BTreeMap::new();
        for (entry, transfer) in redemptions(&entries).take(REDEMPTIONS_MAX) {
            let digest = self.network().domain().transfer_digest(transfer);
            let spent = ledger.spent(account, entry.sequence, oldest_state()).await?;
            states.insert(entry.sequence, RedemptionState::on_ledger(digest, spent));
        }
        Ok(states)
    }

    async fn states_on_chain(
        &self,
        primary: &Primary,
        account: AccountId,
    ) -> Result<BTreeMap<SequenceNumber, RedemptionState>, WalletError> {
        let orders = self.folder().orders(account);
        let entries = orders.entries()?;
        let (mut payouts, mut known, mut wanted) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        for (entry, transfer) in redemptions(&entries).take(REDEMPTIONS_MAX) {
            let (sequence, digest) = (entry.sequence, self.network().domain().transfer_digest(transfer));
            if let Some(noted) = orders.spending(sequence)? {
                payouts.insert(sequence, (digest, Payout::Done));
                known.insert(sequence, noted);
                continue;
            }
            let payout = primary.payout(account, sequence).await?;
            payouts.insert(sequence, (digest, payout));
            if payout != Payout::Open && entry.created_at_ms.saturating_add(SEARCHED_MS) > now_ms() {
                wanted.insert(sequence);
            }
        }
        if !wanted.is_empty() {
            // A young chain has no final block yet.
            let last_final = primary.final_head().await.map_or(0, |head| head.number());
            for (sequence, spending) in logged(primary, account, wanted).await {
                if spending.state != SpendingState::Queued && spending.block_number <= last_final {
                    orders.note_spending(sequence, &spending)?;
                }
                known.insert(sequence, spending);
            }
        }
        let state = |(sequence, (digest, payout))| {
            (sequence, RedemptionState::of(digest, payout, known.get(&sequence).copied()))
        };
        Ok(payouts.into_iter().map(state).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paid_is_what_the_log_says_of_this_order_and_nothing_else() {
        let (ours, others, transaction) = (Digest::repeat_byte(1), Digest::repeat_byte(2), B256::repeat_byte(3));
        let (relayer, block_number) = (Address::repeat_byte(4), 5);
        let queued = Queued { executable_at: 6, relayer, epoch: 0, needs_votes: false };
        let paid = SpendingState::Paid { relayer };
        let of = |payout, logged: Option<(Digest, SpendingState)>| {
            let logged = logged.map(|(digest, state)| Spending { digest, state, transaction, block_number });
            RedemptionState::of(ours, payout, logged)
        };
        assert_eq!(of(Payout::Done, Some((ours, paid))), RedemptionState::Paid { relayer, transaction, block_number });
        assert_eq!(of(Payout::Done, Some((ours, SpendingState::Released))), RedemptionState::Released(transaction));
        for logged in [None, Some((ours, SpendingState::Queued))] {
            assert_eq!(of(Payout::Done, logged), RedemptionState::Spent);
        }
        for state in [paid, SpendingState::Queued, SpendingState::Released] {
            for payout in [Payout::Done, Payout::Queued(queued)] {
                assert_eq!(of(payout, Some((others, state))), RedemptionState::Displaced(transaction));
            }
            assert_eq!(of(Payout::Open, Some((others, state))), RedemptionState::Open);
        }
        for logged in [None, Some((ours, SpendingState::Queued))] {
            assert_eq!(of(Payout::Queued(queued), logged), RedemptionState::Queued(queued));
        }
        let (index, relayer) = (fastpay_core::TransactionIndex(3), AccountId([6; 32]));
        let on = |digest| Redeemed { digest, index, relayer };
        let on_ledger = |spent| RedemptionState::on_ledger(ours, spent);
        assert_eq!(on_ledger(None), RedemptionState::Open);
        assert_eq!(on_ledger(Some(SpentOn::Redeemed(on(ours)))), RedemptionState::PaidOnLedger(on(ours)));
        for other in [SpentOn::Redeemed(on(others)), SpentOn::Void] {
            assert_eq!(on_ledger(Some(other)), RedemptionState::DisplacedOnLedger(other));
        }
    }
}
