//! What a history comes to at a cut, worked out without any of the rules: sums over everything that the cut includes.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{CheckpointState, Cut, PrimaryEventKind};
use fastpay_core::{AccountId, Asset, SequenceNumber, TransactionIndex, Transfer};

use super::history::{History, Slot};

/// Events about a number up to an index.
fn said(history: &History, slot: Slot, up_to: TransactionIndex) -> impl Iterator<Item = &PrimaryEventKind> {
    let count = usize::try_from(up_to.0).unwrap();
    history.events[..count].iter().filter(move |event| match event {
        PrimaryEventKind::Redeemed { account, sequence, .. }
        | PrimaryEventKind::Queued { account, sequence, .. }
        | PrimaryEventKind::Released { account, sequence, .. } => (*account, sequence.0) == slot,
        _ => false,
    })
}

/// Whether the Primary will never pay the redemption that is executed under a number.
pub fn is_never_paid(history: &History, slot: Slot, up_to: TransactionIndex) -> bool {
    let executed = history.certificates[&slot].digest();
    said(history, slot, up_to).any(|event| match event {
        PrimaryEventKind::Redeemed { digest, .. } | PrimaryEventKind::Queued { digest, .. } => *digest != executed,
        _ => true,
    })
}

fn is_paid(history: &History, slot: Slot, up_to: TransactionIndex) -> bool {
    let executed = history.certificates[&slot].digest();
    said(history, slot, up_to)
        .any(|event| matches!(event, PrimaryEventKind::Redeemed { digest, .. } if *digest == executed))
}

/// The transfers that a cut includes.
fn executed<'a>(cut: &'a Cut, history: &'a History) -> impl Iterator<Item = (Slot, &'a Transfer)> {
    cut.next.iter().flat_map(move |(account, next)| {
        let slots = (0..next.0).map(|number| (*account, number)).filter(|slot| !history.voids.contains(slot));
        slots.map(|slot| (slot, history.certificates[&slot].transfer()))
    })
}

fn balances(cut: &Cut, history: &History) -> BTreeMap<(AccountId, Asset), i128> {
    let mut balances = BTreeMap::new();
    let mut change = |account, asset, by: i128| *balances.entry((account, asset)).or_default() += by;
    let signed = |amount: fastpay_core::Amount| i128::try_from(amount.0).unwrap();
    for event in &history.events[..usize::try_from(cut.up_to.0).unwrap()] {
        if let PrimaryEventKind::Deposit { recipient, asset, amount } = event {
            change(*recipient, *asset, signed(*amount));
        }
    }
    for (slot, transfer) in executed(cut, history) {
        if matches!(transfer, Transfer::Redemption(_)) && is_never_paid(history, slot, cut.up_to) {
            continue;
        }
        change(slot.0, transfer.asset(), -signed(transfer.amount()));
        for receipt in transfer.receipts() {
            change(receipt.payment.recipient, transfer.asset(), signed(receipt.payment.amount));
        }
    }
    balances.retain(|_, balance| *balance != 0);
    balances
}

/// An account that would owe at this cut.
pub fn debtor(cut: &Cut, history: &History) -> Option<AccountId> {
    balances(cut, history).into_iter().find(|(_, balance)| *balance < 0).map(|((account, _), _)| account)
}

/// The redemptions that a cut includes and that stay in their accounts.
pub fn never_paid(cut: &Cut, history: &History) -> usize {
    let redemptions = executed(cut, history).filter(|(_, transfer)| matches!(transfer, Transfer::Redemption(_)));
    redemptions.filter(|(slot, _)| is_never_paid(history, *slot, cut.up_to)).count()
}

pub fn compare(state: &CheckpointState, history: &History) {
    let cut = state.cut();
    let held: BTreeMap<_, i128> =
        state.balances().iter().map(|(key, balance)| (*key, balance.to_string().parse().unwrap())).collect();
    assert_eq!(held, balances(cut, history));
    let unpaid: BTreeMap<_, _> = executed(cut, history)
        .filter_map(|(slot, transfer)| match transfer {
            Transfer::Redemption(redemption) => Some((slot, redemption)),
            _ => None,
        })
        .filter(|(slot, _)| !is_paid(history, *slot, cut.up_to) && !is_never_paid(history, *slot, cut.up_to))
        .map(|((account, number), redemption)| ((account, SequenceNumber(number)), redemption.clone()))
        .collect();
    assert_eq!(*state.unpaid(), unpaid);
    for ((account, sequence), number) in state.numbers() {
        let said: Vec<_> = said(history, (*account, sequence.0), cut.up_to).collect();
        let is_paid = said.iter().any(|event| matches!(event, PrimaryEventKind::Redeemed { .. }));
        assert_eq!(number.spent.map(|spent| spent.is_paid), (!said.is_empty()).then_some(is_paid));
    }
    let installed = history.events[..usize::try_from(cut.up_to.0).unwrap()].iter().filter_map(|event| match event {
        PrimaryEventKind::Installed(installed) => Some(installed),
        _ => None,
    });
    assert!(state.installations().iter().skip(1).eq(installed));
}
