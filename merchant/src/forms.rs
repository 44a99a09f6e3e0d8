//! The JSON of the shop's port and of webhooks: what is asked, and what is said of an invoice. Amounts are decimal text,
//! as in the API of the authorities; times and counts are numbers far below 2^53.

use fastpay_core::Amount;
use fastpay_rpc::json::{Account, Bytes20, Bytes32, Decimal, Hex, Uint128};
use fastpay_wallet::{PaymentLink, format_memo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::checkout::{Checkout, Item};
use crate::event::{Delivery, Outcome};
use crate::invoice::{Arrival, State, Terms};
use crate::store::{PaidBy, Record, Refund, RefundList};

/// At most so many payments are listed with an invoice. Anybody can pay the smallest unit to it a thousand times, so they are
/// the greatest ones: to push one out of the list takes a hundred that are as great.
pub const PAYMENTS_SHOWN_MAX: usize = 100;

/// The common part of the shop's payment links.
#[derive(Clone, Debug)]
pub struct LinkBase {
    /// To the shop's account, for nothing in particular.
    pub link: PaymentLink,
    /// The page of a web wallet that opens links.
    pub page: Option<url::Url>,
    /// Where customers reach the checkout pages.
    pub checkout: Option<String>,
}

impl LinkBase {
    /// The link that pays an invoice: the amount, or the rest where a part has come.
    pub(crate) fn of_invoice(&self, Record { terms, totals, .. }: &Record) -> PaymentLink {
        let missing = terms.amount.0.checked_sub(totals.received).filter(|missing| *missing > 0);
        PaymentLink {
            asset: terms.asset,
            amount: Some(missing.map_or(terms.amount, Amount)),
            memo: Some(terms.memo),
            expires: Some(terms.expires_at),
            ..self.link.clone()
        }
    }
}

/// A request of the shop for an invoice.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewInvoice {
    /// The shop's own name for the invoice, without control characters: asking again with it makes no second one.
    #[schema(min_length = 1, max_length = 128)]
    pub reference: String,
    /// The amount in the asset's smallest unit; at least 1.
    pub amount: Uint128,
    /// How long the payment is expected, in seconds: up to a year.
    #[schema(minimum = 1, maximum = 31_622_400)]
    pub expires_in: u64,
    /// The address of an ERC-20 token; without it, ETH.
    pub asset: Option<Bytes20>,
    /// A memo of the shop's own choice, unique among its invoices: up to 32 bytes of text, or 0x and 64 hexadecimal
    /// digits. If it is not given, the invoice's id is its memo.
    pub memo: Option<String>,
    /// A description for the customer, without control characters.
    #[schema(min_length = 1, max_length = 256)]
    pub description: Option<String>,
    /// The purchased items. Their amounts add up to the invoice's amount.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub items: Vec<InvoiceItem>,
    /// The page to which the customer returns: https, or http on this machine.
    #[schema(max_length = 1024)]
    pub return_url: Option<String>,
}

/// A line of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvoiceItem {
    /// Its name, without control characters.
    #[schema(min_length = 1, max_length = 128)]
    pub name: String,
    /// The quantity; 1 by default.
    #[serde(default = "one")]
    #[schema(minimum = 1)]
    pub quantity: u32,
    /// The price of all of them, in the asset's smallest unit.
    pub amount: Uint128,
}

fn one() -> u32 {
    1
}

impl From<&Item> for InvoiceItem {
    fn from(Item { name, quantity, amount }: &Item) -> Self {
        Self { name: name.clone(), quantity: *quantity, amount: Decimal(amount.0) }
    }
}

impl From<InvoiceItem> for Item {
    fn from(InvoiceItem { name, quantity, amount }: InvoiceItem) -> Self {
        Self { name, quantity, amount: Amount(amount.0) }
    }
}

/// A payment for an invoice, its certificate verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Payment {
    /// The account that paid.
    sender: Account,
    /// The sender's number of it. Sender, number and output are the payment's identity.
    sequence: u64,
    /// The output's number, if it is an output of a payout.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u16>,
    /// The amount in the asset's smallest unit.
    amount: Uint128,
    /// When it was seen first, in milliseconds since 1970.
    received_at_ms: u64,
    /// It certainly came after the end.
    late: bool,
}

impl Payment {
    pub(crate) fn new(arrival: &Arrival, terms: &Terms) -> Self {
        Self {
            sender: arrival.sender.into(),
            sequence: arrival.sequence.0,
            output: arrival.output,
            amount: Decimal(arrival.amount.0),
            received_at_ms: arrival.received_at_ms,
            late: arrival.is_late(terms),
        }
    }
}

/// The state of a webhook's delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It was not tried yet.
    Waiting,
    /// The shop took it.
    Delivered,
    /// It is tried again.
    Failing,
    /// It is not tried again.
    GivenUp,
}

/// A webhook of an invoice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// As in its header `webhook-id`.
    id: String,
    /// `invoice.` and the state that it reports.
    r#type: String,
    /// The state of its delivery.
    delivery: DeliveryState,
    /// The number of attempts.
    attempts: u32,
    /// Why the last attempt failed.
    #[schema(required)]
    last_error: Option<String>,
    /// When it is tried again, in milliseconds since 1970.
    #[schema(required)]
    next_attempt_at_ms: Option<u64>,
}

impl From<&Delivery> for Webhook {
    fn from(delivery: &Delivery) -> Self {
        let (state, error, next) = match &delivery.last {
            None => (DeliveryState::Waiting, None, None),
            Some(Outcome::Delivered) => (DeliveryState::Delivered, None, None),
            Some(Outcome::Failed { reason, next_at_ms }) => (DeliveryState::Failing, Some(reason), Some(*next_at_ms)),
            Some(Outcome::GivenUp { reason }) => (DeliveryState::GivenUp, Some(reason), None),
        };
        Self {
            id: delivery.event.id.clone(),
            r#type: event_type(delivery.event.state),
            delivery: state,
            attempts: delivery.attempts,
            last_error: error.cloned(),
            next_attempt_at_ms: next,
        }
    }
}

/// An invoice, and what came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invoice {
    /// `inv_` and 28 hexadecimal digits.
    id: String,
    /// The shop's reference.
    reference: String,
    /// The invoice's state.
    state: State,
    /// The account that is paid.
    account: Account,
    /// The address of an ERC-20, or zero for ETH.
    asset: Bytes20,
    /// The amount to be paid, in the asset's smallest unit.
    amount: Uint128,
    /// The amount received, in the asset's smallest unit.
    received: Uint128,
    /// The memo that the payment must carry.
    memo: Bytes32,
    /// The memo as text.
    memo_text: String,
    /// The time, in milliseconds since 1970.
    created_at_ms: u64,
    /// When the invoice expires, in seconds since 1970.
    expires_at: u64,
    /// The payment link, to be shown as text and as a QR code. It asks for the amount that is still missing.
    link: String,
    /// The link for a web wallet; null if none is configured.
    #[schema(required)]
    web_link: Option<String>,
    /// A description for the customer.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The purchased items.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    items: Vec<InvoiceItem>,
    /// The page to which the customer returns.
    #[serde(skip_serializing_if = "Option::is_none")]
    return_url: Option<String>,
    /// The page on which the customer pays, and later sees the receipt. Whoever has the address sees it.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkout_url: Option<String>,
    /// The number of payments. Of two documents of one invoice, the one with more payments is newer.
    payment_count: u64,
    /// The 100 largest payments (the earlier one if two are equal), in order of arrival.
    payments: Vec<Payment>,
    /// The webhooks of this invoice. Absent in webhooks themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhooks: Option<Vec<Webhook>>,
}

impl Invoice {
    /// An invoice with these payments: all of them, or the largest [`PAYMENTS_SHOWN_MAX`].
    #[must_use]
    pub fn new(invoice: &Record, payments: &[Arrival], base: &LinkBase) -> Self {
        let Record { terms, totals, state, .. } = invoice;
        let link = base.of_invoice(invoice);
        let page = base.checkout.as_ref().zip(terms.checkout_key.as_ref());
        let Checkout { description, items, return_url } = terms.checkout.clone();
        Self {
            id: terms.id.clone(),
            reference: terms.reference.clone(),
            state: *state,
            account: base.link.account.into(),
            asset: terms.asset.into(),
            amount: Decimal(terms.amount.0),
            received: Decimal(totals.received),
            memo: Hex(terms.memo.0),
            memo_text: format_memo(&terms.memo),
            created_at_ms: terms.created_at_ms,
            expires_at: terms.expires_at,
            web_link: base.page.as_ref().map(|page| link.behind(page).to_string()),
            link: link.to_string(),
            description,
            items: items.iter().map(InvoiceItem::from).collect(),
            return_url,
            checkout_url: page.map(|(base, key)| format!("{base}/checkout/{key}")),
            payment_count: totals.payments,
            payments: payments.iter().map(|arrival| Payment::new(arrival, terms)).collect(),
            webhooks: None,
        }
    }

    /// The invoice with its webhooks.
    #[must_use]
    pub fn with_webhooks(self, deliveries: &[Delivery]) -> Self {
        Self { webhooks: Some(deliveries.iter().map(Webhook::from).collect()), ..self }
    }
}

/// A page of invoices, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvoicePage {
    /// Oldest first, or newest first if the request asks for it.
    pub invoices: Vec<Invoice>,
    /// Pass this as `after` to get the next page; null on the last page.
    #[schema(required)]
    pub next: Option<String>,
}

/// The state of the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// The account to be paid.
    pub account: Account,
    /// When the authorities last answered, in milliseconds since 1970; 0 if never.
    pub looked_at_ms: u64,
    /// Unexpired invoices without any payment.
    pub invoices_open: u64,
    /// Webhooks that the shop has not accepted yet.
    pub webhooks_waiting: u64,
    /// Waiting webhooks that have failed at least once.
    pub webhooks_failing: u64,
    /// Payments that belong to no invoice.
    pub unmatched_payments: u64,
}

/// The body of a webhook.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookBody {
    pub r#type: String,
    pub timestamp: String,
    pub data: Invoice,
}

/// The type of the event that reports a state.
pub(crate) fn event_type(state: State) -> String {
    format!("invoice.{state}")
}

/// A request for refunds: of some invoices or all, and of payments that belong to no invoice.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewRefunds {
    /// The owner's reference for the list, without control characters. A second request with it creates no second list.
    #[schema(min_length = 1, max_length = 128)]
    pub reference: String,
    /// Invoices to refund.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub invoices: Vec<InvoiceRefund>,
    /// Refund what is due of all invoices: overpayments, late payments, and payments of invoices that expired unpaid.
    #[serde(default)]
    pub due: bool,
    /// Refund the payments that belong to no invoice.
    #[serde(default)]
    pub unmatched: bool,
}

/// The refund of one invoice.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InvoiceRefund {
    /// The invoice's id.
    pub id: String,
    /// The amount in the asset's smallest unit. Without it, what is due is refunded.
    pub amount: Option<Uint128>,
}

/// The order that paid a refund.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundPayment {
    /// Its number among the account's.
    sequence: u64,
    /// The output's number, if it is a payout.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<u16>,
    /// Its EIP-712 digest.
    digest: Bytes32,
}

impl From<PaidBy> for RefundPayment {
    fn from(PaidBy { sequence, output, digest }: PaidBy) -> Self {
        Self { sequence, output, digest: Hex(digest.0) }
    }
}

/// A line of a list of refunds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundLine {
    /// The invoice; null for a payment of no invoice.
    #[schema(required)]
    invoice: Option<String>,
    /// The account that paid and receives the refund.
    recipient: Account,
    /// The address of an ERC-20, or zero for ETH.
    asset: Bytes20,
    /// The amount in the asset's smallest unit.
    amount: Uint128,
    /// The memo that the refund must carry, as text.
    memo: String,
    /// The certified order that paid it; null while none has.
    #[schema(required)]
    paid: Option<RefundPayment>,
}

/// A list of refunds. Only its payments change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundPage {
    /// The owner's reference.
    reference: String,
    /// The time, in milliseconds since 1970.
    created_at_ms: u64,
    /// Up to 1,000 lines; the rest goes on the next list.
    refunds: Vec<RefundLine>,
}

impl RefundPage {
    /// A list with its lines.
    #[must_use]
    pub fn new(list: &RefundList, refunds: &[Refund]) -> Self {
        let line = |refund: &Refund| RefundLine {
            invoice: refund.invoice.clone(),
            recipient: refund.recipient.into(),
            asset: refund.asset.into(),
            amount: Decimal(refund.amount.0),
            memo: format_memo(&refund.memo),
            paid: refund.paid.map(RefundPayment::from),
        };
        Self {
            reference: list.reference.clone(),
            created_at_ms: list.created_at_ms,
            refunds: refunds.iter().map(line).collect(),
        }
    }
}

/// A list of refunds without its lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundSummary {
    /// The owner's reference.
    reference: String,
    /// The time, in milliseconds since 1970.
    created_at_ms: u64,
    /// The number of its lines.
    refunds: u64,
    /// The number of paid lines.
    paid: u64,
}

impl From<&RefundList> for RefundSummary {
    fn from(list: &RefundList) -> Self {
        let RefundList { reference, created_at_ms, refunds, paid, .. } = list;
        Self { reference: reference.clone(), created_at_ms: *created_at_ms, refunds: *refunds, paid: *paid }
    }
}

/// A page of lists of refunds, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefundLists {
    /// In order of preparation.
    pub lists: Vec<RefundSummary>,
    /// Pass this as `after` to get the next page; null on the last page.
    #[schema(required)]
    pub next: Option<String>,
}
