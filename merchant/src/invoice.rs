//! An invoice, its payments, and the resulting state, by a pure function.

use std::fmt;

use fastpay_core::{AccountId, Amount, Asset, Memo, SequenceNumber};
use fastpay_rpc::PaymentName;
use fastpay_wallet::folder::ReceivedPayment;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::checkout::Checkout;

/// The agreed terms of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Terms {
    /// `inv_` and 28 hexadecimal digits. As text, it fills a memo.
    pub id: String,
    /// The shop's own reference. It is unique, so a repeated request creates no second invoice.
    pub reference: String,
    /// The asset to be paid.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// The memo that the payment must carry. It is unique among invoices.
    pub memo: Memo,
    /// When the invoice was created, in milliseconds since 1970.
    pub created_at_ms: u64,
    /// The time until which the payment is expected, in seconds since 1970, as in its link.
    pub expires_at: u64,
    /// The data shown to the customer.
    #[serde(skip)]
    pub checkout: Checkout,
    /// The key in the address of its checkout page; `None` for an invoice from before there were such pages.
    #[serde(skip)]
    pub checkout_key: Option<String>,
}

/// A received payment, its certificate verified.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arrival {
    /// The account that paid.
    pub sender: AccountId,
    /// The number of its order among the sender's. Sender, number and output are the payment's identity.
    pub sequence: SequenceNumber,
    /// The output's number, if it is an output of a payout.
    #[serde(default)]
    pub output: Option<u16>,
    /// The asset.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// Its memo.
    pub memo: Memo,
    /// When the wallet first saw it, in milliseconds since 1970.
    pub received_at_ms: u64,
    /// When the wallet last read without seeing it, in milliseconds since 1970: it came after that.
    pub after_ms: u64,
}

impl Arrival {
    /// A payment that the wallet received after its last read at `after_ms`.
    #[must_use]
    pub fn new(received: &ReceivedPayment, after_ms: u64) -> Self {
        let payment = &received.payment;
        Self {
            sender: payment.sender,
            sequence: payment.sequence,
            output: received.output,
            asset: payment.asset,
            amount: payment.amount,
            memo: payment.memo,
            received_at_ms: received.received_at_ms,
            after_ms,
        }
    }

    /// Its unique name.
    #[must_use]
    pub fn name(&self) -> PaymentName {
        PaymentName { sender: self.sender, sequence: self.sequence, output: self.output }
    }

    /// Whether it certainly came after the expiry. A payment that may have come earlier counts as in time.
    #[must_use]
    pub fn is_late(&self, terms: &Terms) -> bool {
        self.after_ms >= terms.expires_at_ms()
    }
}

impl Terms {
    /// When it expires, in milliseconds since 1970.
    #[must_use]
    pub fn expires_at_ms(&self) -> u64 {
        self.expires_at.saturating_mul(1_000)
    }
}

/// The state of an invoice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing has come yet, and there is time.
    Open,
    /// Less than the amount has come. More may.
    Underpaid,
    /// The amount has come in time.
    Paid,
    /// More than the amount has come, the amount in time.
    Overpaid,
    /// Two payments or more of the amount have come, the first in time.
    PaidTwice,
    /// The amount has come, but not in time.
    Late,
    /// Nothing came in time.
    Expired,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::Underpaid => "underpaid",
            Self::Paid => "paid",
            Self::Overpaid => "overpaid",
            Self::PaidTwice => "paid_twice",
            Self::Late => "late",
            Self::Expired => "expired",
        })
    }
}

/// The sums of an invoice's payments, which determine its state. The payments have its asset and memo; their order does
/// not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The number of payments.
    pub payments: u64,
    /// The number of payments of at least the whole amount.
    pub whole: u64,
    /// Their sum, in the asset's smallest unit.
    pub received: u128,
    /// The sum of the payments that came in time.
    pub in_time: u128,
}

impl Totals {
    /// Adds a payment.
    pub fn add(&mut self, arrival: &Arrival, terms: &Terms) {
        self.payments = self.payments.saturating_add(1);
        self.whole = self.whole.saturating_add((arrival.amount >= terms.amount).into());
        self.received = self.received.saturating_add(arrival.amount.0);
        if !arrival.is_late(terms) {
            self.in_time = self.in_time.saturating_add(arrival.amount.0);
        }
    }

    /// The resulting state. Without payments, an invoice is open until the wallet has read after its end.
    #[must_use]
    pub fn state(&self, terms: &Terms) -> State {
        let amount = terms.amount.0;
        if self.payments == 0 {
            State::Open
        } else if self.received < amount {
            State::Underpaid
        } else if self.in_time < amount {
            State::Late
        } else if self.whole >= 2 {
            State::PaidTwice
        } else if self.received > amount {
            State::Overpaid
        } else {
            State::Paid
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) const END: u64 = 1_000;

    pub(crate) fn terms(amount: u128) -> Terms {
        Terms {
            id: "inv_1".into(),
            reference: "order 1".into(),
            asset: Asset::ETHER,
            amount: Amount(amount),
            memo: Memo::repeat_byte(1),
            created_at_ms: 0,
            expires_at: END,
            checkout: Checkout::default(),
            checkout_key: None,
        }
    }

    pub(crate) fn arrival(sequence: u64, amount: u128, after: u64) -> Arrival {
        Arrival {
            sender: AccountId([7; 32]),
            sequence: SequenceNumber(sequence),
            output: None,
            asset: Asset::ETHER,
            amount: Amount(amount),
            memo: Memo::repeat_byte(1),
            received_at_ms: (after + 1) * 1_000,
            after_ms: after * 1_000,
        }
    }

    fn state(amount: u128, arrivals: impl IntoIterator<Item = Arrival>) -> State {
        let (terms, mut totals) = (terms(amount), Totals::default());
        arrivals.into_iter().for_each(|arrival| totals.add(&arrival, &terms));
        totals.state(&terms)
    }

    #[test]
    fn every_state_follows_from_what_came_and_when() {
        // Each payment is (amount, last read without it), of an invoice of 10 that ends at END.
        let check = |payments: &[(u128, u64)], expected: State| {
            let arrivals = (0..).zip(payments).map(|(n, (amount, after))| arrival(n, *amount, *after));
            assert_eq!(state(10, arrivals), expected, "{payments:?}");
        };
        check(&[], State::Open);
        check(&[(10, 5)], State::Paid);
        check(&[(4, 5), (6, 6)], State::Paid);
        check(&[(9, 5)], State::Underpaid);
        check(&[(9, END + 5)], State::Underpaid);
        check(&[(11, 5)], State::Overpaid);
        check(&[(6, 5), (6, 6)], State::Overpaid);
        check(&[(10, 5), (1, END)], State::Overpaid);
        check(&[(10, 5), (10, 6)], State::PaidTwice);
        check(&[(10, 5), (10, END + 6)], State::PaidTwice);
        check(&[(10, END)], State::Late);
        check(&[(9, 5), (1, END)], State::Late);
        check(&[(10, END), (10, END)], State::Late);
        // Nobody read between END - 1 and its arrival, so the payer has the benefit of the doubt.
        check(&[(10, END - 1)], State::Paid);
        check(&[(u128::MAX, 5), (u128::MAX, 6)], State::PaidTwice);
    }

    proptest! {
        #[test]
        fn the_order_of_payments_does_not_matter_and_the_amount_in_time_is_never_refused(
            mut payments in prop::collection::vec((1_u128..40, 0..2 * END), 0..6),
            amount in 1_u128..40,
        ) {
            let of = |payments: &[(u128, u64)]| {
                state(amount, (0..).zip(payments).map(|(n, (sum, after))| arrival(n, *sum, *after)))
            };
            let before = of(&payments);
            let in_time: u128 = payments.iter().filter(|(_, after)| *after < END).map(|(sum, _)| sum).sum();
            let total: u128 = payments.iter().map(|(sum, _)| sum).sum();
            let is_covered = matches!(before, State::Paid | State::Overpaid | State::PaidTwice);
            prop_assert_eq!(is_covered, in_time >= amount);
            prop_assert_eq!(before == State::Paid, is_covered && total == amount);
            prop_assert_eq!(before == State::Underpaid, total > 0 && total < amount);
            payments.reverse();
            prop_assert_eq!(of(&payments), before);
        }
    }
}
