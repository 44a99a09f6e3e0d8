//! `pay`, `redeem`, `resume`.

use std::time::Duration;

use fastpay_core::{AccountId, SequenceNumber, Transfer, VerifiedCertificate};
use fastpay_wallet::folder::{KeyEntry, KeyKind};
use fastpay_wallet::{Finished, Intent, Receipt, Resumed, Wallet, WalletError, wait_for_redemption};
use serde_json::{Value, json};

use crate::args::{PayArgs, RedeemArgs};
use crate::context::Context;
use crate::output::{Money, Report, transfer_json, transfer_text};

/// So long the command stays for the authorities beyond the quorum.
const REST: Duration = Duration::from_millis(300);

pub async fn pay(context: &Context, args: PayArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let recipient = context.account(&args.recipient)?;
    let amount = context.amount(&wallet, args.asset, &args.amount).await?;
    let entry = context.choose(args.from.as_deref(), None)?;
    let intent = Intent::Pay { recipient, asset: args.asset, amount, memo: args.memo };
    let receipt = send(context, &wallet, &entry, &intent).await?;
    let (json, text) = describe(&wallet, &receipt).await;
    Ok(Report::new(json, text))
}

async fn send(context: &Context, wallet: &Wallet, entry: &KeyEntry, intent: &Intent) -> Result<Receipt, WalletError> {
    let key = context.unlock(entry)?;
    let mut receipt = match wallet.send(&key, intent).await {
        Err(WalletError::Funds { asset, needed, available, .. }) => {
            let money = Money::of(wallet, asset).await;
            let (account, needed, available) = (entry.account, money.text(needed), money.text(available));
            return Err(WalletError::NotCovered { account, needed, available });
        }
        outcome => outcome?,
    };
    let _ = tokio::time::timeout(REST, &mut receipt.rest).await;
    Ok(receipt)
}

async fn describe(wallet: &Wallet, receipt: &Receipt) -> (Value, String) {
    let transfer = receipt.certificate.transfer();
    let money = Money::of(wallet, transfer.asset()).await;
    let mut json = transfer_json(transfer, &money);
    let (certified, settled) = (millis(receipt.certified_after), millis(receipt.settled_after));
    if let Some(object) = json.as_object_mut() {
        object.insert("state".into(), "settled".into());
        object.insert("digest".into(), json!(receipt.certificate.digest()));
        object.insert("resumed".into(), receipt.resumed.into());
        object.insert("certifiedAfterMs".into(), json!(certified));
        object.insert("settledAfterMs".into(), json!(settled));
    }
    let resumed = if receipt.resumed { " (ordered before, finished now)" } else { "" };
    let line = transfer_text(transfer, &money);
    (json, format!("{line}{resumed}\nfinal after {certified} ms, settled after {settled} ms more"))
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

pub async fn redeem(context: &Context, args: RedeemArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let entry = context.choose(args.from.as_deref(), None)?;
    let (certificate, mut json, mut text) = match args.sequence {
        Some(sequence) => ordered_before(&wallet, entry.account, SequenceNumber(sequence)).await?,
        None => {
            let receipt = order_redemption(context, &wallet, &entry, &args).await?;
            let (json, text) = describe(&wallet, &receipt).await;
            (receipt.certificate, json, text)
        }
    };
    let sequence = certificate.transfer().sequence();
    let mut redeemed = json!(false);
    if args.by_self {
        let finished = redeem_alone(context, &wallet, &entry, args.gas_key.as_deref(), &certificate).await?;
        let (by, line) = describe_redeemed(finished);
        redeemed = by;
        text = format!("{text}\n{line}");
    } else if args.wait > 0 {
        let primary = wallet.primary().await?;
        context.screen.say("waiting for a relayer to bring it to the contract");
        wait_for_redemption(&primary, entry.account, sequence, Duration::from_secs(args.wait)).await?;
        redeemed = json!({ "by": "relayer" });
        text = format!("{text}\nredeemed on Ethereum by a relayer");
    }
    if let Some(object) = json.as_object_mut() {
        object.insert("redeemed".into(), redeemed);
    }
    Ok(Report::new(json, text))
}

fn describe_redeemed(finished: Option<Finished>) -> (Value, String) {
    match finished {
        Some(Finished { inclusion, .. }) => {
            let json = json!({ "by": "self", "transaction": inclusion.hash, "block": inclusion.block_number, "gas": inclusion.gas_used });
            (json, format!("redeemed on Ethereum in block {} with {} gas", inclusion.block_number, inclusion.gas_used))
        }
        None => (json!({ "by": "relayer" }), "redeemed on Ethereum by somebody else before".into()),
    }
}

async fn order_redemption(
    context: &Context,
    wallet: &Wallet,
    entry: &KeyEntry,
    args: &RedeemArgs,
) -> Result<Receipt, WalletError> {
    context.folder.config()?.primary()?;
    let missing =
        || WalletError::Argument("an Ed25519 account has no Ethereum address; say where with --to 0x…".into());
    let recipient = args.to.or_else(|| entry.account.ethereum_address()).ok_or_else(missing)?;
    let amount = context.amount(wallet, args.asset, args.amount.as_deref().unwrap_or_default()).await?;
    let fee = context.amount(wallet, args.asset, &args.fee).await?;
    let intent = Intent::Redeem { recipient, asset: args.asset, amount, fee, memo: args.memo };
    send(context, wallet, entry, &intent).await
}

async fn ordered_before(
    wallet: &Wallet,
    account: AccountId,
    sequence: SequenceNumber,
) -> Result<(VerifiedCertificate, Value, String), WalletError> {
    let none = || WalletError::Argument(format!("account {account} has no certificate of sequence number {sequence}"));
    let certificate = wallet.certificate(account, sequence).await.ok_or_else(none)?;
    let Transfer::Redemption(_) = certificate.transfer() else {
        return Err(WalletError::Argument(format!("number {sequence} of account {account} is a payment")));
    };
    let money = Money::of(wallet, certificate.transfer().asset()).await;
    let json = transfer_json(certificate.transfer(), &money);
    let text = transfer_text(certificate.transfer(), &money);
    Ok((certificate, json, text))
}

async fn redeem_alone(
    context: &Context,
    wallet: &Wallet,
    entry: &KeyEntry,
    gas_key: Option<&str>,
    certificate: &VerifiedCertificate,
) -> Result<Option<Finished>, WalletError> {
    let payer = match gas_key {
        None if entry.kind == KeyKind::Ethereum => entry.clone(),
        name => context.choose(name, Some(KeyKind::Ethereum))?,
    };
    let chain = context.chain_account(wallet.primary().await?, &payer)?;
    chain.redeem(certificate, wallet.network().committee()).await
}

pub async fn resume(context: &Context, from: Option<&str>) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let entries = match from {
        Some(name) => vec![context.choose(Some(name), None)?],
        None => context.folder.keys().list()?,
    };
    let (mut orders, mut transactions, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for entry in &entries {
        for resumed in wallet.resume(entry.account).await? {
            let (json, line) = describe_resumed(&wallet, resumed).await;
            orders.push(json);
            lines.push(line);
        }
        let Some(address) = entry.account.ethereum_address() else { continue };
        if context.folder.transactions(address).pending()?.is_empty() {
            continue;
        }
        let chain = context.chain_account(wallet.primary().await?, entry)?;
        for finished in chain.finish_pending().await? {
            lines.push(format!("transaction {} is final", finished.inclusion.hash));
            transactions.push(json!({ "errand": finished.entry.errand, "transaction": finished.inclusion.hash }));
        }
    }
    if lines.is_empty() {
        lines.push("nothing was unfinished".into());
    }
    Ok(Report::new(json!({ "orders": orders, "transactions": transactions }), lines.join("\n")))
}

async fn describe_resumed(wallet: &Wallet, resumed: Resumed) -> (Value, String) {
    match resumed {
        Resumed::Settled(mut receipt) => {
            let _ = tokio::time::timeout(REST, &mut receipt.rest).await;
            describe(wallet, &receipt).await
        }
        Resumed::Superseded { order, certificate } => {
            let money = Money::of(wallet, order.asset()).await;
            let happened = Money::of(wallet, certificate.transfer().asset()).await;
            let json = json!({
                "state": "superseded",
                "order": transfer_json(&order, &money),
                "happened": transfer_json(certificate.transfer(), &happened),
            });
            let text = format!(
                "did not happen: {}\nhappened in its place: {}",
                transfer_text(&order, &money),
                transfer_text(certificate.transfer(), &happened)
            );
            (json, text)
        }
    }
}
