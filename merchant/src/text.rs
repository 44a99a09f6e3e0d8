//! What people see of an invoice.

use fastpay_ethereum::utc;
use serde_json::Value;

fn text<'a>(document: &'a Value, name: &str) -> &'a str {
    document.get(name).and_then(Value::as_str).unwrap_or("–")
}

fn list<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    document.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// One invoice, with all that came of it.
pub fn invoice(document: &Value) -> String {
    let expires = document.get("expiresAt").and_then(Value::as_u64).map(utc).unwrap_or_default();
    let mut lines = vec![
        format!("{}  {}", text(document, "id"), text(document, "state")),
        format!("  reference  {}", text(document, "reference")),
        format!("  amount     {} smallest units of {}", text(document, "amount"), text(document, "asset")),
        format!("  received   {}", text(document, "received")),
        format!("  expires    {expires}"),
        format!("  link       {}", text(document, "link")),
    ];
    for payment in list(document, "payments") {
        let late = if payment.get("late") == Some(&Value::Bool(true)) { ", late" } else { "" };
        lines.push(format!("  payment    {} from {}{late}", text(payment, "amount"), text(payment, "sender")));
    }
    let count = document.get("paymentCount").and_then(Value::as_u64).unwrap_or_default();
    let unlisted = count.saturating_sub(list(document, "payments").len() as u64);
    if unlisted > 0 {
        lines.push(format!("  payment    {unlisted} more, none of them greater: fastpay-merchant invoice export"));
    }
    for webhook in list(document, "webhooks") {
        let error = webhook.get("lastError").and_then(Value::as_str).map(|error| format!(": {error}"));
        let (kind, delivery) = (text(webhook, "type"), text(webhook, "delivery"));
        lines.push(format!("  webhook    {kind} {delivery}{}", error.unwrap_or_default()));
    }
    lines.join("\n")
}

/// A page of invoices, a line each.
pub fn page(document: &Value) -> String {
    let line = |invoice: &Value| {
        let [id, state, amount, reference] = ["id", "state", "amount", "reference"].map(|name| text(invoice, name));
        format!("{id}  {state:<10}  {amount:>22}  {reference}")
    };
    let mut lines: Vec<_> = list(document, "invoices").iter().map(line).collect();
    if lines.is_empty() {
        lines.push("no invoices".into());
    }
    if let Some(next) = document.get("next").and_then(Value::as_str) {
        lines.push(format!("there are more: --after {next}"));
    }
    lines.join("\n")
}
