//! `deposit`, `execute`, `claim`.

use std::time::Duration;

use alloy::primitives::U256;
use fastpay_core::{AccountId, Amount, Asset, SequenceNumber, Transfer};
use fastpay_ethereum::utc;
use fastpay_wallet::folder::{Errand, KeyKind};
use fastpay_wallet::{
    AnyPrimary, CarriedOut, Claim, Finished, InstructionErrand, Money, QueuedRedemption, Reserve, Wallet, WalletError,
    check_account, check_not_paused, check_recipient, queued_redemption,
};
use serde_json::{Value, json};

use crate::args::{ClaimArgs, DepositArgs, ExecuteArgs};
use crate::context::Context;
use crate::output::{Report, Told, add, gas_cost_json, queued_json};
use crate::transfers::ordered_before;

pub async fn deposit(context: &Context, args: DepositArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let primary = wallet.any_primary().await?;
    if let AnyPrimary::Contract(primary) = &primary {
        check_not_paused(primary).await?;
    }
    let kind = matches!(primary, AnyPrimary::Contract(_)).then_some(KeyKind::Ethereum);
    let payer = context.choose(args.from.as_deref(), kind)?;
    let recipient = match &args.to {
        Some(text) => context.account(text)?,
        None => payer.account,
    };
    if recipient == AccountId::ZERO {
        return Err(WalletError::Argument("nobody owns the zero address; give another account".into()));
    }
    let asset = context.asset(&args.asset)?;
    let amount = wallet.read_amount(asset, &args.amount).await?;
    if amount.0 == 0 {
        return Err(WalletError::Argument("the amount is zero; deposit more".into()));
    }
    let primary = match primary {
        AnyPrimary::Contract(primary) => *primary,
        AnyPrimary::Ledger(ledger) => {
            let reserve = Reserve::new(context.folder.instructions(payer.account), *ledger, context.unlock(&payer)?);
            return fund(context, &wallet, reserve, (recipient, asset, amount), args.wait).await;
        }
    };
    check_account(&primary, recipient).await?;
    let chain = context.chain_account(primary, &payer)?;
    let Finished { entry, inclusion, resumed } = chain.deposit(recipient, asset, amount).await?;
    let money = Money::of(&wallet, asset).await;
    let mut json = json!({
        "recipient": recipient,
        "value": money.json(amount),
        "transaction": inclusion.hash,
        "block": inclusion.block_number,
        "gas": inclusion.gas_used,
        "gasCost": gas_cost_json(&inclusion),
        "resumed": resumed,
        "state": "final",
    });
    let mut text =
        format!("deposited {} for {recipient}, final in block {}", money.text(amount), inclusion.block_number);
    if let Some((fields, line)) = await_credit(context, &wallet, &entry.errand, args.wait).await? {
        add(&mut json, [("state", "credited".into())]);
        add(&mut json, fields);
        text = format!("{text}\n{line}");
    }
    Ok(Report::new(json, text))
}

/// Funds an account from a reserve on a ledger.
async fn fund(
    context: &Context,
    wallet: &Wallet,
    reserve: Reserve,
    (recipient, asset, amount): (AccountId, Asset, Amount),
    wait: u64,
) -> Result<Report, WalletError> {
    let deposit = reserve.deposit(recipient, asset, amount).await?;
    let CarriedOut { errand, resumed, .. } = deposit.clone();
    let money = Money::of(wallet, asset).await;
    let mut json = json!({
        "recipient": recipient,
        "value": money.json(amount),
        "resumed": resumed,
        "state": "final",
    });
    let begun = if resumed { ", as an earlier command had begun" } else { "" };
    let mut text = format!("deposited {} for {recipient}{begun}, debited from the reserve", money.text(amount));
    if let InstructionErrand::Deposit { recipient, asset, amount, after } = errand {
        let errand = Errand::Deposit { recipient, asset, amount, after };
        if let Some((fields, line)) = await_credit(context, wallet, &errand, wait).await? {
            add(&mut json, [("state", "credited".into())]);
            add(&mut json, fields);
            text = format!("{text}\n{line}");
        }
    }
    // If this command ends before, the same one again reports the same deposit.
    let told: Told = Box::pin(async move { Ok(reserve.note_reported(&deposit).await?) });
    Ok(Report { told: Some(told), ..Report::new(json, text) })
}

/// Waits until a quorum has credited what a deposit's transaction brought, at most so many seconds. None for what is
/// no deposit, and where nobody waits.
pub async fn await_credit(
    context: &Context,
    wallet: &Wallet,
    errand: &Errand,
    seconds: u64,
) -> Result<Option<([(&'static str, Value); 2], String)>, WalletError> {
    let Errand::Deposit { recipient, asset, amount, after } = *errand else { return Ok(None) };
    if seconds == 0 {
        return Ok(None);
    }
    let committee = wallet.network().committee();
    let (size, quorum) = (committee.members().len(), committee.quorum());
    let screen = context.screen.clone();
    let report =
        move |count| screen.line(format!("deposit: credited at {count} of {size} authorities, {quorum} are needed"));
    let patience = Duration::from_secs(seconds);
    let deposit = wallet.wait_for_credit(recipient, asset, amount, after, patience, &report).await?;
    let money = Money::of(wallet, asset).await;
    let fields = [("index", json!(deposit.index)), ("credited", money.json(deposit.amount))];
    Ok(Some((fields, format!("credited as deposit {}: {}", deposit.index, money.text(deposit.amount)))))
}

pub async fn execute(context: &Context, args: ExecuteArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let primary = wallet.primary().await?;
    let entry = context.choose(args.from.as_deref(), None)?;
    let queued = match args.sequence {
        None => wallet.queued(&primary, entry.account).await?,
        Some(sequence) => {
            let (certificate, ..) = ordered_before(&wallet, entry.account, SequenceNumber(sequence)).await?;
            match certificate.transfer() {
                Transfer::Redemption(redemption) => {
                    queued_redemption(&primary, redemption).await?.into_iter().collect()
                }
                Transfer::Payment(_) | Transfer::Payout(_) => Vec::new(),
            }
        }
    };
    let (mut chain, mut executed, mut waiting, mut lines) = (None, Vec::new(), Vec::new(), Vec::new());
    for item in queued {
        let QueuedRedemption { redemption, queued, is_due } = &item;
        let (sequence, money) = (redemption.sequence, Money::of(&wallet, redemption.asset).await);
        let mut json = queued_json(queued);
        add(&mut json, [("sequence", json!(sequence)), ("value", money.json(redemption.amount))]);
        let what = format!("#{sequence} of {} to {}", money.text(redemption.amount), redemption.recipient);
        if !*is_due {
            lines.push(format!("{what} is queued until {}", utc(queued.executable_at)));
            waiting.push(json);
            continue;
        }
        let chain = match &mut chain {
            Some(chain) => chain,
            None => {
                check_not_paused(&primary).await?;
                let payer = context.gas_payer(&entry, args.gas_key.as_deref())?;
                chain.insert(context.chain_account(primary.clone(), &payer)?)
            }
        };
        let call = wallet.execution_call(&primary, &item).await?;
        match chain.execute(redemption, call).await? {
            Some(Finished { inclusion, .. }) => {
                add(&mut json, [("transaction", json!(inclusion.hash)), ("block", json!(inclusion.block_number))]);
                lines.push(format!("{what}: paid in block {} with {} gas", inclusion.block_number, inclusion.gas_used));
            }
            None => lines.push(format!("{what}: has already left the queue; `fastpay history` shows how")),
        }
        executed.push(json);
    }
    if lines.is_empty() {
        lines.push("no redemption of this account is queued".into());
    }
    Ok(Report::new(json!({ "account": entry.account, "executed": executed, "queued": waiting }), lines.join("\n")))
}

pub async fn claim(context: &Context, args: ClaimArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let primary = wallet.primary().await?;
    check_not_paused(&primary).await?;
    let key = context.choose(args.from.as_deref(), Some(KeyKind::Ethereum))?;
    let asset = context.asset(&args.asset)?;
    let amount = match &args.amount {
        Some(text) => Some(wallet.read_amount(asset, text).await?),
        None => None,
    };
    if let Some(to) = args.to {
        check_recipient(&primary, to).await?;
    }
    let chain = context.chain_account(primary, &key)?;
    let owner = args.owner.unwrap_or_else(|| chain.address());
    let claimable = chain.primary().claim_of(owner, asset).await?;
    let money = Money::of(&wallet, asset).await;
    let is_idle = context.folder.transactions(chain.address()).pending()?.is_empty();
    if is_idle && claimable.is_zero() {
        return Err(WalletError::Argument(format!("{owner} has nothing to claim of this asset")));
    }
    if is_idle && amount.is_some_and(|amount| amount.0 == 0 || U256::from(amount.0) > claimable) {
        let all = money.text(claimable);
        return Err(WalletError::Argument(format!("{owner} has {all} to claim; give at most that, or omit --amount")));
    }
    let claim = Claim { asset, amount, owner: args.owner, to: args.to };
    let Finished { entry, inclusion, resumed } = chain.claim(&claim).await?;
    // The claim that was sent may be that of an earlier command.
    let Errand::Claim { owner, to, amount, .. } = entry.errand else {
        return Err(WalletError::Argument("the transaction claims nothing".into()));
    };
    let json = json!({
        "owner": owner,
        "to": to,
        "value": money.json(amount),
        "transaction": inclusion.hash,
        "block": inclusion.block_number,
        "resumed": resumed,
    });
    let before = if resumed { " (sent before, finished now)" } else { "" };
    let (amount, block) = (money.text(amount), inclusion.block_number);
    Ok(Report::new(json, format!("claimed {amount} to {to} in block {block}{before}")))
}
