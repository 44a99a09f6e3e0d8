//! `balance`, `receive`, `status`.

use std::io;
use std::time::Duration;

use fastpay_client::{ClientError, NetworkError, short};
use fastpay_core::{AccountId, Asset, Digest};
use fastpay_ethereum::{Primary, Token, utc};
use fastpay_program::console::{LostAnswer, print};
use fastpay_wallet::folder::{Errand, FolderError, KeyEntry, ReceivedPayment};
use fastpay_wallet::{
    AccountView, AuthorityView, ErrorKind, Money, StoredInstruction, Wallet, WalletError, assets_of, format_memo,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::args::{AccountArgs, ReceiveArgs};
use crate::context::Context;
use crate::output::{Report, add, received_json};

/// How often to look for incoming payments.
const POLL: Duration = Duration::from_millis(250);

pub async fn balance(context: &Context, args: AccountArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let account = context.account_of(&args)?;
    let view = wallet.view(account).await?;
    let (mut balances, mut lines) = (Vec::new(), vec![format!("{account}, next order #{}", view.next_sequence)]);
    for balance in &view.balances {
        let money = Money::of(&wallet, balance.asset).await;
        let mut json = money.json(balance.balance);
        if let Some(object) = json.as_object_mut() {
            object.insert("agreeing".into(), balance.agreeing.into());
            object.insert("answered".into(), balance.answered.into());
        }
        balances.push(json);
        let note = if balance.agreeing == balance.answered {
            String::new()
        } else {
            format!("  ({} of {} authorities agree; others lag or differ)", balance.agreeing, balance.answered)
        };
        lines.push(format!("  {}{note}", money.text(balance.balance)));
    }
    if view.balances.is_empty() {
        lines.push("  nothing".into());
    }
    if view.truncated {
        lines.push(
            "  the account has more assets than an authority lists; only the first ones and those that this wallet \
            knows are shown"
                .into(),
        );
    }
    for (name, error) in &view.silent {
        lines.push(match error {
            ClientError::TimedOut(after) => {
                format!("  authority {} is late: no answer within {} ms of a quorum's", short(name), after.as_millis())
            }
            error => format!("  authority {} does not answer: {error}", short(name)),
        });
    }
    let on_chain = chain_side(context, &wallet, &view, &mut lines).await?;
    let silent: serde_json::Map<_, _> =
        view.silent.iter().map(|(name, error)| (name.to_string(), error.to_string().into())).collect();
    let json = json!({
        "account": account,
        "nextSequence": view.next_sequence,
        "balances": balances,
        "truncated": view.truncated,
        "silent": silent,
        "ethereum": on_chain,
    });
    Ok(Report::new(json, lines.join("\n")))
}

/// The owner's balances and claims on Ethereum. If no Ethereum node answers, the committee's view is shown alone.
async fn chain_side(
    context: &Context,
    wallet: &Wallet,
    view: &AccountView,
    lines: &mut Vec<String>,
) -> Result<Value, WalletError> {
    let Some(owner) = view.account.ethereum_address() else { return Ok(Value::Null) };
    if context.folder.config()?.primary().is_err() {
        return Ok(Value::Null);
    }
    let mut pending = Vec::new();
    for entry in wallet.pending_deposits(owner)? {
        let Errand::Deposit { recipient, asset, amount, .. } = &entry.errand else { continue };
        let money = Money::of(wallet, *asset).await;
        lines.push(format!(
            "  unfinished deposit of {} for {recipient}; `fastpay resume` finishes it",
            money.text(amount)
        ));
        pending.push(json!({ "recipient": recipient, "value": money.json(amount) }));
    }
    let found = async {
        let primary = wallet.primary().await?;
        on_chain(wallet, &primary, view, owner, lines).await
    };
    match found.await {
        Ok((held, claimable)) => {
            Ok(json!({ "address": owner, "balances": held, "claimable": claimable, "pendingDeposits": pending }))
        }
        Err(error) => {
            lines.push(format!("  Ethereum: {error}"));
            Ok(json!({ "address": owner, "error": error.to_string(), "pendingDeposits": pending }))
        }
    }
}

async fn on_chain(
    wallet: &Wallet,
    primary: &Primary,
    view: &AccountView,
    owner: alloy::primitives::Address,
    lines: &mut Vec<String>,
) -> Result<(Vec<Value>, Vec<Value>), WalletError> {
    let (mut held, mut claimable) = (Vec::new(), Vec::new());
    for asset in assets_of(view) {
        let money = Money::of(wallet, asset).await;
        let balance = if asset == Asset::ETHER {
            primary.ether_balance(owner).await?
        } else {
            Token::new(primary.clone(), asset.0).balance_of(owner).await?
        };
        lines.push(format!("  on Ethereum: {}", money.text(balance)));
        held.push(money.json(balance));
        let claim = primary.claim_of(owner, asset).await?;
        if !claim.is_zero() {
            lines.push(format!("  to claim with `fastpay claim`: {}", money.text(claim)));
            claimable.push(money.json(claim));
        }
    }
    Ok((held, claimable))
}

/// For programs without the time, which each command names.
pub async fn describe_received(
    wallet: &Wallet,
    received: &ReceivedPayment,
) -> Result<(Value, String, Digest), WalletError> {
    let payment = &received.payment;
    let money = Money::of(wallet, payment.asset).await;
    let memo = format_memo(&payment.memo);
    let memo = if memo.is_empty() { memo } else { format!(" ({memo})") };
    let text = format!("received {} from {}{memo}", money.text(payment.amount), payment.sender);
    let digest = received.digest(wallet.network().domain())?;
    Ok((received_json(received, digest, &money), text, digest))
}

/// The same with its receipt's name, as `receive` tells of it.
async fn tell_received(wallet: &Wallet, received: &ReceivedPayment) -> Result<(Value, String), WalletError> {
    let (mut json, text, digest) = describe_received(wallet, received).await?;
    add(&mut json, [("receivedAtMs", received.received_at_ms.into())]);
    Ok((json, format!("{text}\n  receipt: fastpay show {digest}")))
}

pub async fn receive(context: &Context, args: ReceiveArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let account = context.account_of(&args.account)?;
    let until = Instant::now() + Duration::from_secs(args.wait);
    loop {
        let new = match wallet.collect(account).await {
            Ok(collected) => collected.new,
            // Keep following until the authorities are back.
            Err(
                error
                @ (WalletError::TooFewAnswers { .. } | WalletError::Network(NetworkError::TooFewEndpoints { .. })),
            ) if args.follow => {
                context.screen.line(error.to_string());
                Vec::new()
            }
            Err(error) => return Err(error),
        };
        if args.follow {
            for received in &new {
                let (json, text) = tell_received(&wallet, received).await?;
                let printed = if context.json { print(json) } else { print(text) };
                match printed {
                    Ok(()) => {}
                    // The reader has closed its end (`| head -1`); `fastpay history` shows the payments.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                        return received_report(&wallet, account, &[]).await;
                    }
                    Err(error) => return Err(LostAnswer::from(error).into()),
                }
            }
        } else if !new.is_empty() || Instant::now() >= until {
            return received_report(&wallet, account, &new).await;
        }
        sleep(POLL).await;
    }
}

async fn received_report(wallet: &Wallet, account: AccountId, new: &[ReceivedPayment]) -> Result<Report, WalletError> {
    let (mut payments, mut lines) = (Vec::new(), Vec::new());
    for received in new {
        let (json, text) = tell_received(wallet, received).await?;
        payments.push(json);
        lines.push(text);
    }
    if lines.is_empty() {
        lines.push("nothing new".into());
    }
    Ok(Report::new(json!({ "account": account, "payments": payments }), lines.join("\n")))
}

pub async fn status(context: &Context) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    // First, so that the authorities are asked by the names that they have now.
    let (last_index, paused_until) = match context.folder.config()?.primary() {
        Ok(_) => match wallet.primary().await {
            Ok(primary) => (Some(primary.last_transaction_index().await?), primary.paused_until().await?),
            Err(error @ WalletError::OtherCommittee) => return Err(error),
            Err(error) => {
                context.screen.line(format!("Ethereum: {error}"));
                (None, None)
            }
        },
        Err(_) => {
            wallet.ledger().await?;
            (None, None)
        }
    };
    let authorities = wallet.authorities().await;
    let reached = authorities.iter().filter(|authority| authority.status.is_ok()).count();
    let (size, quorum) = (authorities.len(), wallet.network().committee().quorum());
    let mut lines = vec![format!("{reached} of {size} authorities answer, {quorum} are needed")];
    if let Some(until) = paused_until {
        lines.push(format!("the contract is PAUSED until {}: no deposits, redemptions and claims", utc(until)));
    }
    let (labels, mut list) = (wallet.labels()?, Vec::new());
    for authority in &authorities {
        let label = labels.get(&authority.name).map(String::as_str);
        let (mut json, line) = describe_authority(authority, label, last_index.map(|index| index.0));
        add(&mut json, [("label", json!(label))]);
        list.push(json);
        lines.push(line);
    }
    let mut instructions = Vec::new();
    for entry in context.folder.keys().list()? {
        for unfinished in context.folder.instructions(entry.account).unfinished().map_err(FolderError::from)? {
            let (json, line) = describe_unfinished(&entry, &unfinished);
            instructions.push(json);
            lines.push(line);
        }
    }
    let json = json!({
        "instructions": instructions,
        "epoch": wallet.network().committee().epoch(),
        "quorum": quorum,
        "answering": reached,
        "lastTransactionIndex": last_index,
        "pausedUntil": paused_until,
        "authorities": list,
    });
    let exit_code = if reached < quorum { ErrorKind::Unreachable.exit_code() } else { 0 };
    Ok(Report { exit_code, ..Report::new(json, lines.join("\n")) })
}

/// An instruction to a ledger whose outcome the user does not know.
fn describe_unfinished(entry: &KeyEntry, unfinished: &StoredInstruction) -> (Value, String) {
    let StoredInstruction { errand, created_at_ms, .. } = unfinished;
    let (state, known) = match (unfinished.is_carried_out, unfinished.is_rejected) {
        (true, _) => ("carriedOut", "was carried out and not reported; the same command reports it"),
        (false, true) => ("rejected", "was rejected; the next command with this key replaces it"),
        (false, false) => ("sent", "may have been carried out; the same command goes on with it, and pays once"),
    };
    let json = json!({ "account": entry.account, "errand": errand, "state": state, "createdAtMs": created_at_ms });
    (json, format!("UNFINISHED: {errand}, signed by {}, {known}", entry.name))
}

fn describe_authority(authority: &AuthorityView, label: Option<&str>, last_index: Option<u64>) -> (Value, String) {
    let name = authority.name;
    let title = label.map_or_else(|| name.to_string(), |label| format!("{label} {name}"));
    let shards = match &authority.status {
        Ok(shards) => shards,
        Err(error) => {
            let json = json!({ "authority": name, "answers": false, "error": error.to_string() });
            return (json, format!("  {title}: {error}"));
        }
    };
    let synchronized = authority.synchronized().map_or(0, |index| index.0);
    let behind = last_index.map(|last| last.saturating_sub(synchronized));
    let epoch = shards.first().map(|shard| shard.epoch);
    let version = shards.first().map(|shard| shard.version.clone());
    let in_flight = shards.iter().fold(0_u64, |sum, shard| sum.saturating_add(shard.credits_in_flight));
    let restored = shards.iter().any(|shard| shard.restored);
    let json = json!({
        "authority": name,
        "answers": true,
        "epoch": epoch,
        "consistent": authority.consistent,
        "shards": shards.len(),
        "synchronized": synchronized,
        "depositsBehind": behind,
        "creditsInFlight": in_flight,
        "version": version,
        "restored": restored,
    });
    let lag = match behind {
        Some(0) | None => String::new(),
        Some(behind) => format!(", {behind} behind"),
    };
    let copy = if restored { ", restored from an older copy: does not vote for every payment" } else { "" };
    let warning = if authority.consistent { "" } else { ", SAYS ANOTHER NAME, COMMITTEE OR CONTRACT" };
    (json, format!("  {title}: {} shards, deposits up to {synchronized}{lag}{copy}{warning}", shards.len()))
}
