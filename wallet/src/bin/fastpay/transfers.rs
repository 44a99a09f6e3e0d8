//! `pay`, `redeem`, `resume`.

use std::time::Duration;

use alloy::primitives::B256;
use fastpay_core::{
    AccountId, Amount, Asset, PrimaryAddress, SequenceNumber, TransactionIndex, Transfer, VerifiedCertificate,
};
use fastpay_ethereum::{Inclusion, utc};
use fastpay_ledger_statement::Redeemed;
use fastpay_wallet::folder::KeyEntry;
use fastpay_wallet::{
    AnyPrimary, Finished, Intent, Money, Offer, QueuedRedemption, Receipt, RedemptionState, Reserve, Resumed, Wallet,
    WalletError, check_not_paused, check_recipient, wait_for_redemption, would_queue,
};
use serde_json::{Value, json};

use crate::args::{PayArgs, RedeemArgs, ResumeArgs};
use crate::context::Context;
use crate::link::{self, Expiry};
use crate::many;
use crate::onchain::await_credit;
use crate::output::{Report, add, gas_cost_json, queued_json, state_words, transfer_json, transfer_text};

/// The time that the command waits for the authorities beyond the quorum.
const REST: Duration = Duration::from_millis(300);
/// A fee that nobody named is at most this part of the amount: a tenth. Whoever wrote the endpoints file, or is asked, may
/// name any.
const FEE_DIVISOR_MIN: u128 = 10;

pub async fn pay(context: &Context, args: PayArgs) -> Result<Report, WalletError> {
    if let Some(file) = &args.csv {
        return many::pay(context, &args, file).await;
    }
    let wallet = context.wallet()?;
    let entry = context.choose(args.from.as_deref(), None)?;
    let (intent, expiry) = link::intent(context, &wallet, entry.account, &args).await?;
    let receipt = send(context, &wallet, &entry, &intent, expiry).await?;
    let (json, text) = describe(&wallet, &receipt).await;
    Ok(Report::new(json, text))
}

async fn send(
    context: &Context,
    wallet: &Wallet,
    entry: &KeyEntry,
    intent: &Intent,
    expiry: Expiry,
) -> Result<Receipt, WalletError> {
    let key = context.unlock(entry)?;
    expiry.check()?;
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
    let digest = receipt.certificate.digest();
    // It is paid, whatever became of the file.
    let link = wallet.endpoints().ok().and_then(|endpoints| endpoints.transfer_page(digest));
    if let Some(object) = json.as_object_mut() {
        object.insert("state".into(), "settled".into());
        object.insert("digest".into(), json!(digest));
        object.insert("link".into(), json!(link));
        object.insert("resumed".into(), receipt.resumed.into());
        object.insert("certifiedAfterMs".into(), json!(certified));
        object.insert("settledAfterMs".into(), json!(settled));
    }
    let resumed = if receipt.resumed { " (ordered before, finished now)" } else { "" };
    let line = transfer_text(transfer, &money);
    let link = link.map(|link| format!("\nexplorer: {link}")).unwrap_or_default();
    let text = format!(
        "{line}{resumed}\ncertified after {certified} ms, settled after {settled} ms more\n\
         receipt: fastpay show {digest}{link}"
    );
    (json, text)
}

fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

pub async fn redeem(context: &Context, args: RedeemArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let entry = context.choose(args.from.as_deref(), None)?;
    // Before anything is signed.
    let config = context.folder.config()?;
    let payer = match config.ledger() {
        _ if !args.by_self => None,
        Some(_) => Some(args.gas_key.as_deref().map_or(Ok(entry.clone()), |name| context.choose(Some(name), None))?),
        None => Some(context.gas_payer(&entry, args.gas_key.as_deref())?),
    };
    let (certificate, mut json, mut text) = match args.sequence {
        Some(sequence) => ordered_before(&wallet, entry.account, SequenceNumber(sequence)).await?,
        None => {
            let (receipt, queue_until, offer) = order_redemption(context, &wallet, &entry, &args).await?;
            let (mut json, text) = describe(&wallet, &receipt).await;
            add(&mut json, [("expectedQueuedUntil", json!(queue_until)), ("offer", offer_json(offer.as_ref()))]);
            (receipt.certificate, json, text)
        }
    };
    if payer.is_some() || args.wait > 0 {
        let (fields, line) = if let Some(payer) = &payer {
            redeem_alone(context, &wallet, payer, &certificate).await?
        } else {
            let primary = wallet.any_primary().await?;
            let place = if config.ledger().is_some() { "ledger" } else { "contract" };
            context.screen.line(format!("waiting for a relayer to submit it to the {place}"));
            let (sequence, patience) = (certificate.transfer().sequence(), Duration::from_secs(args.wait));
            wait_for_redemption(&primary, entry.account, sequence, patience).await?;
            describe_payout(context, &primary, &certificate, None).await?
        };
        add(&mut json, fields);
        text = format!("{text}\n{line}");
    } else {
        add(&mut json, [("redeemed", json!(false)), ("queued", Value::Null)]);
    }
    Ok(Report::new(json, text))
}

/// The outcome of a redemption that was sent to the contract. `ours` is the transaction of this command or an earlier
/// one. The outcome is that of the contract's log: a spent number may be spent on another order.
async fn describe_payout(
    context: &Context,
    primary: &AnyPrimary,
    certificate: &VerifiedCertificate,
    ours: Option<(PrimaryAddress, Inclusion)>,
) -> Result<([(&'static str, Value); 2], String), WalletError> {
    let state = match (primary.redemption_state(certificate).await?, ours) {
        // Our own transaction had an effect, which it has on our order alone.
        (RedemptionState::Spent, Some((relayer, Inclusion { hash: transaction, block_number, .. }))) => {
            RedemptionState::Paid { relayer, transaction, block_number }
        }
        (state, _) => state,
    };
    let not_paid = json!(false);
    let (redeemed, queued, line) = match state {
        RedemptionState::Paid { relayer, transaction, block_number } => {
            let (json, line) = describe_paid(context, relayer, (transaction, block_number), ours)?;
            (json, Value::Null, line)
        }
        RedemptionState::Queued(queued) => {
            let until = utc(queued.executable_at);
            let line = format!(
                "on Ethereum, and queued until {until}, because it exceeds the outflow limit; it is safe. A relayer \
                 or `fastpay execute` pays it then"
            );
            (not_paid, queued_json(&queued), line)
        }
        RedemptionState::PaidOnLedger(Redeemed { relayer, index, .. }) => {
            let (json, line) = describe_paid_on_ledger(context, relayer, index)?;
            (json, Value::Null, line)
        }
        RedemptionState::Spent => (json!({ "by": null }), Value::Null, state_words(&state).1),
        RedemptionState::Open
        | RedemptionState::Displaced(_)
        | RedemptionState::DisplacedOnLedger(_)
        | RedemptionState::Released(_) => (not_paid, Value::Null, state_words(&state).1),
    };
    Ok(([("redeemed", redeemed), ("queued", queued)], line))
}

/// Describes who sent a paid redemption to the contract.
fn describe_paid(
    context: &Context,
    relayer: PrimaryAddress,
    (transaction, block): (B256, u64),
    ours: Option<(PrimaryAddress, Inclusion)>,
) -> Result<(Value, String), WalletError> {
    let keys = context.folder.keys().list()?;
    let is_own = keys.iter().any(|key| key.account.ethereum_address() == Some(relayer));
    let by = if is_own { "self" } else { "relayer" };
    let mut json = json!({ "by": by, "relayer": relayer, "transaction": transaction, "block": block });
    let line = match ours.filter(|(_, inclusion)| inclusion.hash == transaction) {
        Some((_, inclusion)) => {
            let gas = inclusion.gas_used;
            add(&mut json, [("gas", gas.into()), ("gasCost", gas_cost_json(&inclusion))]);
            format!("redeemed on Ethereum in block {block} with {gas} gas")
        }
        None if is_own => format!("redeemed on Ethereum by this wallet in block {block}"),
        None => "redeemed on Ethereum by a relayer".into(),
    };
    Ok((json, line))
}

/// Describes who handed a paid redemption to the ledger.
fn describe_paid_on_ledger(
    context: &Context,
    relayer: AccountId,
    event: TransactionIndex,
) -> Result<(Value, String), WalletError> {
    let is_own = context.folder.keys().list()?.iter().any(|key| key.account == relayer);
    let (by, whom) = if is_own { ("self", "this wallet") } else { ("relayer", "a relayer") };
    let json = json!({ "by": by, "relayer": relayer, "event": event });
    Ok((json, format!("redeemed on the ledger by {whom}, as event {event}")))
}

async fn order_redemption(
    context: &Context,
    wallet: &Wallet,
    entry: &KeyEntry,
    args: &RedeemArgs,
) -> Result<(Receipt, Option<u64>, Option<Offer>), WalletError> {
    let config = context.folder.config()?;
    if config.ledger().is_none() {
        config.primary()?;
    }
    let missing = || WalletError::Argument("an Ed25519 account has no Ethereum address; give one with --to 0x…".into());
    let recipient = args.to.or_else(|| entry.account.ethereum_address()).ok_or_else(missing)?;
    let (asset, memo) = (context.asset(&args.asset)?, args.memo);
    let amount = context.amount(wallet, entry.account, asset, args.amount.as_deref().unwrap_or_default()).await?;
    let intent = |fee| Intent::Redeem { recipient, asset, amount, fee, memo };
    let given = match &args.fee {
        Some(fee) => Some(wallet.read_amount(asset, fee).await?),
        None => wallet.unfinished_fee(entry.account, &intent(Amount::ZERO))?,
    };
    let (fee, offer) = choose_fee(context, wallet, args.by_self, (asset, amount, given)).await?;
    if fee > amount {
        let money = Money::of(wallet, asset).await;
        let (fee, amount) = (money.text(fee), money.text(amount));
        return Err(WalletError::Argument(format!("the fee of {fee} exceeds the amount of {amount}; lower the fee")));
    }
    let queue_until = match config.ledger() {
        Some(_) => None,
        None => preview(context, wallet, recipient, asset, amount).await?,
    };
    Ok((send(context, wallet, entry, &intent(fee), Expiry(None)).await?, queue_until, offer))
}

/// The fee that was given, or that the cheapest relayer takes, and the offer of a relayer that it covers.
async fn choose_fee(
    context: &Context,
    wallet: &Wallet,
    by_self: bool,
    (asset, amount, given): (Asset, Amount, Option<Amount>),
) -> Result<(Amount, Option<Offer>), WalletError> {
    if by_self {
        return Ok((given.unwrap_or(Amount::ZERO), None));
    }
    let Some(offer) = wallet.offers(asset).await?.into_iter().next() else {
        let fee = given.unwrap_or(Amount::ZERO);
        if fee == Amount::ZERO {
            context.screen.line(
                "no relayer of the endpoints file announces a fee; without one, perhaps none submits the redemption. \
                 Submit it yourself at any time with `fastpay redeem --sequence NUMBER --self`",
            );
        }
        return Ok((fee, None));
    };
    let money = Money::of(wallet, asset).await;
    let (takes, within) = (money.text(offer.fee), about(offer.paid_within));
    match given {
        Some(fee) if fee < offer.fee => {
            context.screen.line(format!(
                "the cheapest relayer takes {takes}; for less, perhaps none submits the redemption. Submit it \
                 yourself at any time with `fastpay redeem --sequence NUMBER --self`"
            ));
            Ok((fee, None))
        }
        Some(fee) => {
            context.screen.line(format!("a relayer pays it in about {within}"));
            Ok((fee, Some(offer)))
        }
        None if offer.fee.0 > amount.0 / FEE_DIVISOR_MIN => Err(WalletError::Argument(format!(
            "the cheapest relayer takes {takes}, more than a tenth of {}; agree with --fee, or submit it yourself \
             with --self",
            money.text(amount)
        ))),
        None => {
            context.screen.line(format!("fee: {takes}, the cheapest relayer's, which pays in about {within}"));
            Ok((offer.fee, Some(offer)))
        }
    }
}

/// For people, rounded up.
fn about(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=90 => format!("{seconds} seconds"),
        seconds @ 91..=5_400 => format!("{} minutes", seconds.div_ceil(60)),
        seconds => format!("{} hours", seconds.div_ceil(3_600)),
    }
}

fn offer_json(offer: Option<&Offer>) -> Value {
    let Some(Offer { url, relayer, fee, paid_within }) = offer else { return Value::Null };
    json!({ "url": url, "relayer": relayer, "fee": fee.to_string(), "paidWithinSeconds": paid_within.as_secs() })
}

/// Before anything is signed: refuses while the contract is paused and where the money would be lost, and warns where
/// the redemption will be queued. While the Primary cannot be asked, a redemption can be ordered all the same.
async fn preview(
    context: &Context,
    wallet: &Wallet,
    recipient: PrimaryAddress,
    asset: Asset,
    amount: Amount,
) -> Result<Option<u64>, WalletError> {
    let asked = async {
        let primary = wallet.primary().await?;
        check_not_paused(&primary).await?;
        check_recipient(&primary, recipient).await?;
        would_queue(&primary, asset, amount).await
    };
    match asked.await {
        Ok(None) => Ok(None),
        Ok(Some(until)) => {
            let about = utc(until);
            context.screen.line(format!(
                "this exceeds the contract's current outflow limit: it will be queued until about {about}"
            ));
            Ok(Some(until))
        }
        Err(WalletError::Primary(error)) if error.is_retryable() => {
            context.screen.line(format!("Ethereum: {error}; cannot find out whether the redemption will be queued"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub async fn ordered_before(
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
    payer: &KeyEntry,
    certificate: &VerifiedCertificate,
) -> Result<([(&'static str, Value); 2], String), WalletError> {
    let Transfer::Redemption(redemption) = certificate.transfer() else {
        return Err(WalletError::Argument("this is a payment, not a redemption".into()));
    };
    let primary = match wallet.any_primary().await? {
        AnyPrimary::Contract(primary) => *primary,
        AnyPrimary::Ledger(ledger) => {
            let instructions = context.folder.instructions(payer.account);
            let reserve = Reserve::new(instructions, *ledger.clone(), context.unlock(payer)?);
            return match wallet.redeem_from(&reserve, certificate).await? {
                Some(event) => {
                    let (json, line) = describe_paid_on_ledger(context, payer.account, event)?;
                    Ok(([("redeemed", json), ("queued", Value::Null)], line))
                }
                None => describe_payout(context, &AnyPrimary::Ledger(ledger), certificate, None).await,
            };
        }
    };
    check_not_paused(&primary).await?;
    let call = wallet.redemption_call(&primary, certificate).await?;
    let chain = context.chain_account(primary.clone(), payer)?;
    let finished = chain.redeem(redemption, call).await?;
    let ours = finished.map(|Finished { inclusion, .. }| (chain.address(), inclusion));
    describe_payout(context, &AnyPrimary::Contract(Box::new(primary)), certificate, ours).await
}

pub async fn resume(context: &Context, args: ResumeArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let entries = match args.from.as_deref() {
        Some(name) => vec![context.choose(Some(name), None)?],
        None => context.folder.keys().list()?,
    };
    let (mut orders, mut transactions, mut queued, mut lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for entry in &entries {
        for resumed in wallet.resume(entry.account).await? {
            let (json, line) = describe_resumed(&wallet, resumed).await;
            orders.push(json);
            lines.push(line);
        }
        for item in queued_of(context, &wallet, entry.account).await? {
            let (sequence, until) = (item.redemption.sequence, utc(item.queued.executable_at));
            let what = if item.is_due { "due since" } else { "queued until" };
            lines.push(format!("redemption #{sequence} is {what} {until}; `fastpay execute` pays it"));
            let mut json = queued_json(&item.queued);
            add(&mut json, [("sequence", json!(sequence)), ("due", item.is_due.into())]);
            queued.push(json);
        }
        let Some(address) = entry.account.ethereum_address() else { continue };
        if context.folder.transactions(address).pending()?.is_empty() {
            continue;
        }
        let chain = context.chain_account(wallet.primary().await?, entry)?;
        for finished in chain.finish_pending().await? {
            let (errand, transaction) = (finished.entry.errand, finished.inclusion.hash);
            let mut json = json!({ "errand": errand, "transaction": transaction });
            lines.push(format!("transaction {transaction} is final"));
            if let Some((fields, line)) = await_credit(context, &wallet, &errand, args.wait).await? {
                add(&mut json, fields);
                lines.push(line);
            }
            transactions.push(json);
        }
    }
    if lines.is_empty() {
        lines.push("nothing was unfinished".into());
    }
    Ok(Report::new(json!({ "orders": orders, "transactions": transactions, "queued": queued }), lines.join("\n")))
}

/// The account's redemptions in the contract's queue, if there is a contract and a node answers.
async fn queued_of(
    context: &Context,
    wallet: &Wallet,
    account: AccountId,
) -> Result<Vec<QueuedRedemption>, WalletError> {
    if context.folder.config()?.primary().is_err() || context.folder.orders(account).entries()?.is_empty() {
        return Ok(Vec::new());
    }
    let asked = async { wallet.queued(&wallet.primary().await?, account).await };
    match asked.await {
        Err(WalletError::Primary(error)) if error.is_retryable() => {
            context.screen.line(format!("Ethereum: {error}"));
            Ok(Vec::new())
        }
        outcome => outcome,
    }
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
                "not executed: {}\nexecuted in its place: {}",
                transfer_text(&order, &money),
                transfer_text(certificate.transfer(), &happened)
            );
            (json, text)
        }
        Resumed::Archived { order, settled, checkpoint } => {
            let money = Money::of(wallet, order.asset()).await;
            let happened = Money::of(wallet, settled.asset()).await;
            let json = json!({
                "state": if order == settled { "settled" } else { "superseded" },
                "order": transfer_json(&order, &money),
                "happened": transfer_json(&settled, &happened),
                "checkpoint": checkpoint,
            });
            (json, format!("settled, as checkpoint {checkpoint} proves: {}", transfer_text(&settled, &happened)))
        }
        Resumed::Voided { order } => {
            let money = Money::of(wallet, order.asset()).await;
            let json = json!({ "state": "voided", "order": transfer_json(&order, &money) });
            (json, format!("void, so nothing was paid: {}", transfer_text(&order, &money)))
        }
        Resumed::Paid { order } => {
            let money = Money::of(wallet, order.asset()).await;
            let json = json!({ "state": "paid", "order": transfer_json(&order, &money) });
            (json, format!("paid by the contract before the recovery: {}", transfer_text(&order, &money)))
        }
    }
}
