//! Invoices as text for people.

use std::collections::BTreeMap;

use fastpay_core::Asset;
use fastpay_ethereum::utc;
use fastpay_wallet::{Money, Wallet};
use serde_json::Value;

/// The decimals of the assets of some invoices, by the asset's address.
#[derive(Default)]
pub struct Amounts(BTreeMap<String, Money>);

impl Amounts {
    pub async fn of(wallet: &Wallet, invoices: &[Value]) -> Self {
        let mut known = BTreeMap::new();
        for address in invoices.iter().map(|invoice| text(invoice, "asset")) {
            if let Ok(asset) = address.parse().map(Asset)
                && !known.contains_key(address)
            {
                known.insert(address.to_owned(), Money::of(wallet, asset).await);
            }
        }
        Self(known)
    }

    /// Formats a number of smallest units of an invoice's asset.
    fn text(&self, invoice: &Value, units: &str) -> String {
        let asset = text(invoice, "asset");
        self.0.get(asset).map_or_else(|| format!("{units} smallest units of {asset}"), |money| money.text(units))
    }

    /// Formats it in whole units without a symbol, as commands take it; `None` if the asset's decimals are unknown.
    fn whole(&self, document: &Value, name: &str) -> Option<String> {
        let money = self.0.get(text(document, "asset"))?.json(text(document, name));
        money.get("amount").and_then(Value::as_str).map(str::to_owned)
    }
}

fn text<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or("–")
}

fn list<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    document.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The invoices of a page.
pub fn invoices(page: &Value) -> &[Value] {
    list(page, "invoices")
}

/// Formats one invoice, with its payments and webhooks.
pub fn invoice(document: &Value, amounts: &Amounts) -> String {
    let amount = |of: &Value| amounts.text(document, text(of, "amount"));
    let expires = document.get("expiresAt").and_then(Value::as_u64).map(utc).unwrap_or_default();
    let mut lines = vec![
        format!("{}  {}", text(document, "id"), text(document, "state")),
        format!("  reference  {}", text(document, "reference")),
        format!("  amount     {}", amount(document)),
        format!("  received   {}", amounts.text(document, text(document, "received"))),
        format!("  expires    {expires}"),
        format!("  link       {}", text(document, "link")),
    ];
    for (label, name) in [("checkout   ", "checkoutUrl"), ("for        ", "description"), ("back to    ", "returnUrl")]
    {
        lines.extend(document.get(name).and_then(Value::as_str).map(|value| format!("  {label}{value}")));
    }
    for item in list(document, "items") {
        let quantity = item.get("quantity").and_then(Value::as_u64).unwrap_or_default();
        lines.push(format!("  item       {quantity} × {}, {}", text(item, "name"), amount(item)));
    }
    for payment in list(document, "payments") {
        let late = if payment.get("late") == Some(&Value::Bool(true)) { ", late" } else { "" };
        lines.push(format!("  payment    {} from {}{late}", amount(payment), text(payment, "sender")));
    }
    let count = document.get("paymentCount").and_then(Value::as_u64).unwrap_or_default();
    let unlisted = count.saturating_sub(list(document, "payments").len() as u64);
    if unlisted > 0 {
        lines.push(format!("  payment    {unlisted} more, none of them larger: fastpay-merchant invoice export"));
    }
    for webhook in list(document, "webhooks") {
        let error = webhook.get("lastError").and_then(Value::as_str).map(|error| format!(": {error}"));
        let (kind, delivery) = (text(webhook, "type"), text(webhook, "delivery"));
        lines.push(format!("  webhook    {kind} {delivery}{}", error.unwrap_or_default()));
    }
    lines.join("\n")
}

/// Formats a page of invoices, a line each.
pub fn page(document: &Value, amounts: &Amounts) -> String {
    let line = |invoice: &Value| {
        let [id, state, amount, reference] = ["id", "state", "amount", "reference"].map(|name| text(invoice, name));
        let amount = amounts.text(invoice, amount);
        format!("{id}  {state:<10}  {amount:>22}  {reference}")
    };
    let mut lines: Vec<_> = invoices(document).iter().map(line).collect();
    if lines.is_empty() {
        lines.push("no invoices".into());
    }
    if let Some(next) = document.get("next").and_then(Value::as_str) {
        lines.push(format!("there are more: --after {next}"));
    }
    lines.join("\n")
}

/// The lines of a list of refunds.
pub fn refunds(list: &Value) -> &[Value] {
    self::list(list, "refunds")
}

/// Formats a list of refunds, a line each.
pub fn refund_list(document: &Value, amounts: &Amounts) -> String {
    let mut lines = vec![format!("refunds {}", text(document, "reference"))];
    lines.extend(refunds(document).iter().map(|refund| {
        let [amount, recipient, invoice] = ["amount", "recipient", "invoice"].map(|name| text(refund, name));
        let paid = refund.get("paid").and_then(|paid| paid.get("sequence")).and_then(Value::as_u64);
        let state = paid.map_or("open".to_owned(), |sequence| format!("paid by order #{sequence}"));
        format!("  {:>22}  {recipient}  {invoice}  {state}", amounts.text(refund, amount))
    }));
    let reference = text(document, "reference");
    lines.push(format!("to pay it: fastpay-merchant refunds csv {reference:?} > FILE, and fastpay pay --csv FILE"));
    lines.join("\n")
}

/// Formats lists of refunds, a line each.
pub fn refund_lists(document: &Value) -> String {
    let number = |list: &Value, name: &str| list.get(name).and_then(Value::as_u64).unwrap_or_default();
    let line = |list: &Value| {
        let (paid, all) = (number(list, "paid"), number(list, "refunds"));
        format!("{:>5} of {all} paid  {}  {}", paid, utc(number(list, "createdAtMs") / 1_000), text(list, "reference"))
    };
    let mut lines: Vec<_> = list(document, "lists").iter().map(line).collect();
    if lines.is_empty() {
        lines.push("no refunds".into());
    }
    if let Some(next) = document.get("next").and_then(Value::as_str) {
        lines.push(format!("there are more: --after {next:?}"));
    }
    lines.join("\n")
}

/// The payouts of a page.
pub fn payouts(page: &Value) -> &[Value] {
    list(page, "payouts")
}

/// Formats one payout, and how the owner signs it.
pub fn payout(document: &Value, amounts: &Amounts) -> String {
    let [amount, fee] = ["amount", "fee"].map(|name| amounts.text(document, text(document, name)));
    let [recipient, asset, memo] = ["recipient", "asset", "memo"].map(|name| text(document, name));
    let mut lines = vec![
        format!("payout {}  {}", text(document, "reference"), text(document, "state")),
        format!("  amount     {amount}"),
        format!("  fee        {fee}, out of it"),
        format!("  to         {recipient}"),
        format!("  memo       {memo}"),
    ];
    if let Some(order) = document.get("order").filter(|order| !order.is_null()) {
        let sequence = order.get("sequence").and_then(Value::as_u64).unwrap_or_default();
        lines.push(format!("  order      #{sequence}  {}", text(order, "digest")));
        return lines.join("\n");
    }
    if let (Some(amount), Some(fee)) = (amounts.whole(document, "amount"), amounts.whole(document, "fee")) {
        let command = format!("fastpay redeem {amount} --to {recipient} --asset {asset} --fee {fee} --memo {memo}");
        lines.push(format!("to sign it: {command}"));
    }
    lines.extend(
        document.get("link").and_then(Value::as_str).map(|link| format!("to sign it in the web wallet: {link}")),
    );
    lines.join("\n")
}

/// Formats a page of payouts, a line each.
pub fn payout_page(document: &Value, amounts: &Amounts) -> String {
    let line = |payout: &Value| {
        let [state, amount, recipient, reference] =
            ["state", "amount", "recipient", "reference"].map(|name| text(payout, name));
        format!("{state:<10}  {:>22}  {recipient}  {reference}", amounts.text(payout, amount))
    };
    let mut lines: Vec<_> = payouts(document).iter().map(line).collect();
    if lines.is_empty() {
        lines.push("no payouts".into());
    }
    if let Some(next) = document.get("next").and_then(Value::as_str) {
        lines.push(format!("there are more: --after {next:?}"));
    }
    lines.join("\n")
}
