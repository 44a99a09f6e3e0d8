//! `history`: what an account sent, received and did on Ethereum, and how far its redemptions are there.

use std::collections::BTreeMap;

use fastpay_core::{AccountId, SequenceNumber, Transfer};
use fastpay_ethereum::{Payout, utc};
use fastpay_wallet::folder::{Errand, OrderEntry, OrderState, TransactionEntry, TransactionState};
use fastpay_wallet::{Money, Wallet, WalletError};
use serde_json::{Value, json};

use crate::args::AccountArgs;
use crate::context::Context;
use crate::output::{Report, add, queued_json, transfer_json, transfer_text};
use crate::views::describe_received;

/// Of so many of the newest redemptions it is asked how far they are on Ethereum.
const PAYOUTS_MAX: usize = 50;

pub async fn history(context: &Context, args: AccountArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let account = context.account_of(&args)?;
    let payouts = payouts(context, &wallet, account).await?;
    let mut events: Vec<(u64, Value, String)> = Vec::new();
    for entry in context.folder.orders(account).entries()? {
        let Some(transfer) = entry.transfer() else { continue };
        let money = Money::of(&wallet, transfer.asset()).await;
        let mut json = transfer_json(transfer, &money);
        let state = match entry.state {
            OrderState::Created => "unfinished",
            OrderState::Certified => "final, not settled",
            OrderState::Settled => "settled",
            OrderState::Superseded => "in place of this wallet's own order",
        };
        add(
            &mut json,
            [("state", json!(entry.state)), ("atMs", entry.created_at_ms.into()), ("direction", "out".into())],
        );
        let mut text = format!("{} [{state}]", transfer_text(transfer, &money));
        if let Some(payout) = payouts.get(&entry.sequence) {
            let (name, words) = payout_words(payout);
            add(&mut json, [("ethereum", name.into())]);
            if let Payout::Queued(queued) = payout {
                add(&mut json, [("queued", queued_json(queued))]);
            }
            text = format!("{text} [{words}]");
        }
        events.push((entry.created_at_ms, json, text));
    }
    for received in context.folder.inbox(account).payments()? {
        let (mut json, text) = describe_received(&wallet, &received).await;
        add(&mut json, [("direction", "in".into()), ("atMs", received.received_at_ms.into())]);
        events.push((received.received_at_ms, json, text));
    }
    if let Some(owner) = account.ethereum_address() {
        for entry in context.folder.transactions(owner).entries()? {
            let text = errand_text(&wallet, &entry).await;
            let mut json = json!({ "errand": entry.errand, "nonce": entry.submission.nonce, "state": entry.state });
            add(&mut json, [("direction", "ethereum".into()), ("atMs", entry.created_at_ms.into())]);
            events.push((entry.created_at_ms, json, text));
        }
    }
    events.sort_by_key(|(at, ..)| *at);
    let mut text =
        events.iter().map(|(at, _, text)| format!("{}  {text}", utc(at / 1_000))).collect::<Vec<_>>().join("\n");
    if events.is_empty() {
        text = format!(
            "nothing is known of {account} in this wallet; `fastpay receive` takes in the payments that it received"
        );
    }
    let events: Vec<_> = events.into_iter().map(|(_, json, _)| json).collect();
    Ok(Report::new(json!({ "account": account, "events": events }), text))
}

/// How far the newest redemptions of an account are on Ethereum, where a node answers.
async fn payouts(
    context: &Context,
    wallet: &Wallet,
    account: AccountId,
) -> Result<BTreeMap<SequenceNumber, Payout>, WalletError> {
    let mut found = BTreeMap::new();
    if context.folder.config()?.primary.is_none() {
        return Ok(found);
    }
    let entries = context.folder.orders(account).entries()?;
    let is_redemption = |entry: &&OrderEntry| {
        entry.certificate.as_ref().is_some_and(|of| matches!(of.order.transfer, Transfer::Redemption(_)))
    };
    let mut newest = entries.iter().rev().filter(is_redemption).take(PAYOUTS_MAX).peekable();
    if newest.peek().is_none() {
        return Ok(found);
    }
    let asked = async {
        let primary = wallet.primary().await?;
        for entry in newest {
            found.insert(entry.sequence, primary.payout(account, entry.sequence).await?);
        }
        Ok::<_, WalletError>(())
    };
    if let Err(error) = asked.await {
        context.screen.say(format!("Ethereum: {error}"));
    }
    Ok(found)
}

/// For programs and for people.
fn payout_words(payout: &Payout) -> (&'static str, String) {
    match payout {
        Payout::Open => ("open", "not on Ethereum yet".into()),
        Payout::Queued(queued) => {
            ("queued", format!("queued until {}, then `fastpay execute` has it paid", utc(queued.executable_at)))
        }
        Payout::Done => ("paid", "paid on Ethereum".into()),
    }
}

async fn errand_text(wallet: &Wallet, entry: &TransactionEntry) -> String {
    let what = match &entry.errand {
        Errand::Deposit { recipient, asset, amount, .. } => {
            format!("deposit of {} for {recipient}", Money::of(wallet, *asset).await.text(amount))
        }
        Errand::Redeem { sender, sequence } => format!("redemption of #{sequence} of {sender}"),
        Errand::Execute { sender, sequence } => format!("payout of the queued #{sequence} of {sender}"),
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
    format!("Ethereum: {what} [{state}]")
}
