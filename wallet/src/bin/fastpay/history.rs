//! `history`: what an account sent, received and did on Ethereum, by date, and how far its redemptions are there.

use std::collections::BTreeMap;

use fastpay_core::{AccountId, Asset, SequenceNumber, Transfer};
use fastpay_ethereum::utc;
use fastpay_wallet::folder::{CreditedDeposit, Errand, OrderEntry, OrderState, TransactionEntry, TransactionState};
use fastpay_wallet::{Money, RedemptionState, Wallet, WalletError, format_memo, take_credited};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{Direction, HistoryArgs};
use crate::context::Context;
use crate::output::{Report, add, errand_name, queued_json, state_words, transfer_json, transfer_text};
use crate::views::describe_received;

/// A row of the history.
struct Event {
    at_ms: u64,
    /// Whether that is when this wallet first saw what somebody else did.
    is_seen: bool,
    direction: Direction,
    asset: Option<Asset>,
    json: Value,
    text: String,
    row: Row,
}

/// The same for a spreadsheet.
#[derive(Default, Serialize)]
struct Row {
    date: String,
    direction: &'static str,
    kind: &'static str,
    state: String,
    amount: String,
    units: String,
    symbol: String,
    asset: String,
    counterparty: String,
    memo: String,
    number: String,
    digest: String,
    /// `ordered` if the date is that of this wallet's order, `by` if it happened by then.
    dated: &'static str,
}

impl Row {
    fn with_value(self, value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let symbol = plain(&text("symbol"));
        Self { amount: text("amount"), units: text("units"), symbol, asset: text("asset"), ..self }
    }
}

pub async fn history(context: &Context, args: HistoryArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let account = context.account_of(&args.account)?;
    let asset = args.asset.as_ref().map(|asset| context.asset(asset)).transpose()?;
    if let Err(error) = wallet.collect(account).await {
        context.screen.line(format!("recent incoming payments are not listed: {error}"));
    }
    if let Err(error) = wallet.collect_deposits(account).await {
        context.screen.line(format!("recent deposits are not listed: {error}"));
    }
    if let Err(error) = wallet.note_voids(account).await {
        context.screen.line(format!("cannot find out whether unfinished orders are void: {error}"));
    }
    let mut events = sent(context, &wallet, account).await?;
    events.extend(received(context, &wallet, account).await?);
    events.extend(on_ethereum(context, &wallet, account).await?);
    let is_known = !events.is_empty();
    events.retain(|event| {
        let at = event.at_ms / 1_000;
        args.only.is_none_or(|only| only == event.direction)
            && asset.is_none_or(|asset| event.asset == Some(asset))
            && args.since.is_none_or(|since| at >= since)
            && args.until.is_none_or(|until| at < until)
    });
    events.sort_by_key(|event| event.at_ms);
    let text = if args.csv {
        table(events.iter_mut().map(|event| std::mem::take(&mut event.row)))?
    } else if !events.is_empty() {
        let by = |event: &Event| if event.is_seen { "by" } else { "" };
        let lines = events.iter().map(|event| format!("{:2} {}  {}", by(event), utc(event.at_ms / 1_000), event.text));
        lines.collect::<Vec<_>>().join("\n")
    } else if is_known {
        "no entry matches these filters".into()
    } else {
        format!("this wallet has no entries of {account}")
    };
    let events: Vec<_> = events.into_iter().map(|event| event.json).collect();
    Ok(Report::new(json!({ "account": account, "events": events }), text))
}

fn table(rows: impl Iterator<Item = Row>) -> Result<String, WalletError> {
    let failed = |error: &dyn std::fmt::Display| WalletError::Argument(format!("the table cannot be written: {error}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(|error| failed(&error))?;
    }
    let bytes = writer.into_inner().map_err(|error| failed(&error))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
}

/// Spreadsheets take a cell that begins so for a formula, and a memo is text from a stranger.
fn plain(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

async fn sent(context: &Context, wallet: &Wallet, account: AccountId) -> Result<Vec<Event>, WalletError> {
    let states = states(context, wallet, account).await?;
    let mut events = Vec::new();
    for entry in context.folder.orders(account).entries()? {
        let Some(transfer) = entry.transfer() else { continue };
        let money = Money::of(wallet, transfer.asset()).await;
        let digest = wallet.network().domain().transfer_digest(transfer);
        let at_ms = entry.created_at_ms;
        let mut json = transfer_json(transfer, &money);
        let state = match entry.state {
            OrderState::Created => "unfinished",
            OrderState::Certified => "certified, not settled",
            OrderState::Settled => "settled",
            OrderState::Voided => "void: nothing was paid",
            OrderState::Superseded => "in place of this wallet's own order",
        };
        let fields = [("state", json!(entry.state)), ("atMs", at_ms.into()), ("direction", "out".into())];
        add(&mut json, fields);
        add(&mut json, [("digest", json!(digest))]);
        let mut text = format!("{} [{state}]", transfer_text(transfer, &money));
        if let Some(state) = states.get(&entry.sequence) {
            let (name, words) = state_words(state);
            add(&mut json, [("ethereum", name.into())]);
            if let RedemptionState::Queued(queued) = state {
                add(&mut json, [("queued", queued_json(queued))]);
            }
            text = format!("{text} [{words}]");
        }
        let (kind, counterparty) = match transfer {
            Transfer::Payment(payment) => ("payment", payment.recipient.to_string()),
            Transfer::Redemption(redemption) => ("redemption", redemption.recipient.to_string()),
            Transfer::Payout(payout) => ("payout", format!("{} recipients", payout.outputs.len())),
        };
        let row = Row {
            date: utc(at_ms / 1_000),
            direction: "out",
            kind,
            state: state.into(),
            counterparty,
            memo: plain(&format_memo(&transfer.memo())),
            number: entry.sequence.to_string(),
            digest: digest.to_string(),
            dated: "ordered",
            ..Row::default()
        };
        let row = row.with_value(&money.json(transfer.amount()));
        let asset = Some(transfer.asset());
        events.push(Event { at_ms, is_seen: false, direction: Direction::Out, asset, json, text, row });
    }
    Ok(events)
}

async fn received(context: &Context, wallet: &Wallet, account: AccountId) -> Result<Vec<Event>, WalletError> {
    let mut events = Vec::new();
    for received in context.folder.inbox(account).payments()? {
        let (mut json, text, digest) = describe_received(wallet, &received).await?;
        let (at_ms, payment) = (received.received_at_ms, &received.payment);
        // Only what is settled is taken in.
        add(&mut json, [("kind", "payment".into()), ("state", "settled".into())]);
        add(&mut json, [("direction", "in".into()), ("atMs", at_ms.into())]);
        let text = format!("{text} [settled]");
        let row = Row {
            date: utc(at_ms / 1_000),
            direction: "in",
            kind: "payment",
            state: "settled".into(),
            counterparty: payment.sender.to_string(),
            memo: plain(&format_memo(&payment.memo)),
            number: payment.sequence.to_string(),
            digest: digest.to_string(),
            dated: "by",
            ..Row::default()
        };
        let row = row.with_value(json.get("value").unwrap_or(&Value::Null));
        let asset = Some(payment.asset);
        events.push(Event { at_ms, is_seen: true, direction: Direction::In, asset, json, text, row });
    }
    Ok(events)
}

async fn on_ethereum(context: &Context, wallet: &Wallet, account: AccountId) -> Result<Vec<Event>, WalletError> {
    let mut credited = context.folder.inbox(account).deposits()?;
    let mut events = Vec::new();
    let owner = account.ethereum_address();
    let entries = owner.map_or(Ok(Vec::new()), |owner| context.folder.transactions(owner).entries())?;
    for entry in entries {
        let (what, mut state) = errand_text(wallet, &entry).await;
        let is_final = matches!(entry.state, TransactionState::Final(_));
        let own = is_final.then(|| take_credited(&mut credited, account, &entry.errand)).flatten();
        let index = own.map(|deposit| deposit.index);
        if index.is_some() {
            state.push_str(", credited");
        }
        let (at_ms, kind) = (entry.created_at_ms, errand_name(&entry.errand));
        let (name, inclusion) = match &entry.state {
            TransactionState::Pending => ("pending", None),
            TransactionState::Final(inclusion) => ("final", Some(inclusion)),
            TransactionState::Reverted => ("reverted", None),
            TransactionState::Superseded => ("superseded", None),
        };
        let json = json!({
            "kind": kind,
            "errand": entry.errand,
            "nonce": entry.submission.nonce,
            "state": name,
            "transaction": inclusion.map(|inclusion| inclusion.hash),
            "block": inclusion.map(|inclusion| inclusion.block_number),
            "index": index,
            "direction": "ethereum",
            "atMs": at_ms,
        });
        let (asset, amount) = match &entry.errand {
            Errand::Deposit { asset, amount, .. } => (Some(*asset), Some(Money::of(wallet, *asset).await.json(amount))),
            Errand::Claim { asset, amount, .. } => (Some(*asset), Some(Money::of(wallet, *asset).await.json(amount))),
            Errand::Approve { asset, .. } => (Some(*asset), None),
            Errand::Redeem { .. }
            | Errand::Execute { .. }
            | Errand::RequestUnlock { .. }
            | Errand::DecideUnlock { .. } => (None, None),
        };
        let row = Row {
            date: utc(at_ms / 1_000),
            direction: "ethereum",
            kind,
            state: state.clone(),
            number: index.map(|index| index.to_string()).unwrap_or_default(),
            digest: inclusion.map(|inclusion| inclusion.hash.to_string()).unwrap_or_default(),
            dated: "ordered",
            ..Row::default()
        };
        let row = match &amount {
            Some(value) => row.with_value(value),
            None => row,
        };
        let text = format!("Ethereum: {what} [{state}]");
        events.push(Event { at_ms, is_seen: false, direction: Direction::Ethereum, asset, json, text, row });
    }
    for deposit in credited {
        events.push(deposited(wallet, &deposit).await);
    }
    Ok(events)
}

/// A deposit that no transaction of this wallet made.
async fn deposited(wallet: &Wallet, deposit: &CreditedDeposit) -> Event {
    let CreditedDeposit { index, asset, amount, seen_at_ms: at_ms } = *deposit;
    let money = Money::of(wallet, asset).await;
    let value = money.json(amount);
    let json = json!({
        "kind": "deposit",
        "value": value,
        "state": "credited",
        "index": index,
        "direction": "ethereum",
        "atMs": at_ms,
    });
    let row = Row {
        date: utc(at_ms / 1_000),
        direction: "ethereum",
        kind: "deposit",
        state: "credited".into(),
        number: index.to_string(),
        dated: "by",
        ..Row::default()
    };
    let row = row.with_value(&value);
    let text = format!("Ethereum: deposit of {} [credited]", money.text(amount));
    Event { at_ms, is_seen: true, direction: Direction::Ethereum, asset: Some(asset), json, text, row }
}

/// How far the newest redemptions of an account are at the Primary, where it answers.
async fn states(
    context: &Context,
    wallet: &Wallet,
    account: AccountId,
) -> Result<BTreeMap<SequenceNumber, RedemptionState>, WalletError> {
    let has_redemption = || -> Result<bool, WalletError> {
        let entries = context.folder.orders(account).entries()?;
        let is_redemption = |entry: &OrderEntry| {
            entry.certificate.as_ref().is_some_and(|of| matches!(of.order.transfer, Transfer::Redemption(_)))
        };
        Ok(entries.iter().any(is_redemption))
    };
    if context.folder.config()?.primary.is_none() || !has_redemption()? {
        return Ok(BTreeMap::new());
    }
    let asked = async { wallet.redemption_states(&wallet.any_primary().await?, account).await };
    Ok(asked.await.unwrap_or_else(|error| {
        context.screen.line(format!("Primary: {error}"));
        BTreeMap::new()
    }))
}

/// A transaction's purpose and state.
async fn errand_text(wallet: &Wallet, entry: &TransactionEntry) -> (String, String) {
    let what = match &entry.errand {
        Errand::Deposit { recipient, asset, amount, .. } => {
            format!("deposit of {} for {recipient}", Money::of(wallet, *asset).await.text(amount))
        }
        Errand::Redeem { sender, sequence } => format!("redemption of #{sequence} of {sender}"),
        Errand::Execute { sender, sequence } => format!("payout of the queued #{sequence} of {sender}"),
        Errand::RequestUnlock { account, sequence } => format!("request to unlock #{sequence} of {account}"),
        Errand::DecideUnlock { account, sequence } => format!("decision about #{sequence} of {account}"),
        Errand::Approve { asset, .. } => format!("approval of {asset}"),
        Errand::Claim { asset, to, amount, .. } => {
            format!("claim of {} to {to}", Money::of(wallet, *asset).await.text(amount))
        }
    };
    let state = match entry.state {
        TransactionState::Pending => "unfinished".to_owned(),
        TransactionState::Final(inclusion) => format!("final in block {}", inclusion.block_number),
        TransactionState::Reverted => "reverted, changed nothing".to_owned(),
        TransactionState::Superseded => "another transaction took its nonce".to_owned(),
    };
    (what, state)
}
