//! `link`, and how `pay` reads a link: docs/PAYMENT_LINKS.md.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use fastpay_core::{AccountId, Asset, Memo};
use fastpay_ethereum::utc;
use fastpay_wallet::{Intent, Money, PaymentLink, Wallet, WalletError, format_memo, parse_memo};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use serde_json::json;
use url::Url;

use crate::args::{AccountArgs, AssetName, PayArgs, parse_asset};
use crate::context::Context;
use crate::output::Report;

/// The payment to request.
#[derive(Debug, Args)]
pub struct LinkArgs {
    #[command(flatten)]
    pub account: AccountArgs,
    /// The amount, such as 1.5 [default: the payer chooses].
    #[arg(long, value_name = "AMOUNT", allow_negative_numbers = true)]
    pub amount: Option<String>,
    /// The asset: ETH, a token's symbol or its address.
    #[arg(long, default_value = "ETH", value_parser = parse_asset)]
    pub asset: AssetName,
    /// The payment's memo: up to 32 bytes of text, or 0x and 64 hexadecimal digits.
    #[arg(long, value_parser = parse_memo)]
    pub memo: Option<Memo>,
    /// Your name, shown to the payer.
    #[arg(long)]
    pub label: Option<String>,
    /// The time until the link expires, in seconds [default: never].
    #[arg(long, value_name = "SECONDS")]
    pub expires_in: Option<u64>,
    /// The page of a web wallet that opens the link, for payers without a wallet program.
    #[arg(long, value_name = "URL")]
    pub web: Option<Url>,
    /// Also show a QR code.
    #[arg(long)]
    pub qr: bool,
}

pub async fn link(context: &Context, args: LinkArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let account = context.account_of(&args.account)?;
    let asset = context.asset(&args.asset)?;
    let amount = match &args.amount {
        Some(text) => Some(wallet.read_amount(asset, text).await?),
        None => None,
    };
    let link = PaymentLink {
        amount,
        memo: args.memo,
        label: args.label,
        expires: args.expires_in.map(|seconds| now().saturating_add(seconds)),
        ..PaymentLink::new(account, wallet.network().domain(), asset)
    }
    .check()?;
    let text = args.web.as_ref().map_or_else(|| link.to_string(), |page| link.behind(page));
    let shown = if args.qr { format!("{}\n{text}", qr_code(&text)?) } else { text.clone() };
    let json = json!({
        "link": text,
        "account": link.account,
        "asset": link.asset,
        "units": link.amount.map(|amount| amount.to_string()),
        "memo": link.memo.map(|memo| format_memo(&memo)),
        "label": link.label,
        "expires": link.expires,
    });
    Ok(Report::new(json, shown))
}

/// A QR code of half blocks, light on dark as most terminals are; cameras read both.
fn qr_code(text: &str) -> Result<String, WalletError> {
    let code = QrCode::new(text)
        .map_err(|error| WalletError::Argument(format!("the link does not fit into a QR code: {error}")))?;
    Ok(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

/// The payment that `pay` makes and its deadline: from the arguments, or from the link once the payer has agreed.
pub async fn intent(
    context: &Context,
    wallet: &Wallet,
    sender: AccountId,
    args: &PayArgs,
) -> Result<(Intent, Expiry), WalletError> {
    let recipient = args.recipient.as_deref().unwrap_or_default();
    if PaymentLink::is_claimed_by(recipient) {
        let link: PaymentLink = recipient.parse()?;
        check_usable(wallet, &link, args)?;
        check_other(sender, link.account)?;
        let intent = linked_intent(context, wallet, sender, &link, args).await?;
        agree(context, wallet, &link, &intent, args.yes).await?;
        return Ok((intent, Expiry(link.expires)));
    }
    let missing = || WalletError::Argument("give the amount: fastpay pay ACCOUNT AMOUNT".into());
    let recipient = context.account(recipient)?;
    check_other(sender, recipient)?;
    let asset = args.asset.as_ref().map_or(Ok(Asset::ETHER), |asset| context.asset(asset))?;
    let amount = context.amount(wallet, sender, asset, args.amount.as_deref().ok_or_else(missing)?).await?;
    let intent = Intent::Pay { recipient, asset, amount, memo: args.memo.unwrap_or_default() };
    Ok((intent, Expiry(None)))
}

/// The web wallet refuses it, too: a payment to oneself is a mistaken name.
pub fn check_other(sender: AccountId, recipient: AccountId) -> Result<(), WalletError> {
    if sender == recipient {
        let why = "the recipient is the paying account itself; name another one. Nothing was signed";
        return Err(WalletError::Argument(why.into()));
    }
    Ok(())
}

/// Until when a recipient expects a payment, in seconds since 1970, if that has an end.
#[derive(Clone, Copy, Debug)]
pub struct Expiry(pub Option<u64>);

impl Expiry {
    /// Looked at when a link is read, and again when nothing more is asked: a person may be away for a while.
    pub fn check(self) -> Result<(), WalletError> {
        match self.0.filter(|expires| *expires < now()) {
            Some(expires) => {
                let at = utc(expires);
                let why = format!("the link expired at {at}; ask for another one. Nothing was signed");
                Err(WalletError::Argument(why))
            }
            None => Ok(()),
        }
    }
}

fn check_usable(wallet: &Wallet, link: &PaymentLink, args: &PayArgs) -> Result<(), WalletError> {
    let refused = |why: String| Err(WalletError::Argument(why));
    let domain = wallet.network().domain();
    let (chain_id, contract) = (domain.chain_id(), domain.contract());
    if (link.chain_id, link.contract) != (chain_id, contract) {
        return refused(format!(
            "the link is for contract {} on chain {}, and this wallet uses {contract} on chain {chain_id}; nothing was \
             signed",
            link.contract, link.chain_id
        ));
    }
    Expiry(link.expires).check()?;
    let fixed = [
        ("the asset", args.asset.is_some()),
        ("the amount", link.amount.is_some() && args.amount.is_some()),
        ("the memo", link.memo.is_some() && args.memo.is_some()),
    ];
    match fixed.into_iter().find(|(_, changed)| *changed) {
        Some((what, _)) => refused(format!("the link sets {what}; omit it, or pay the account without the link")),
        None => Ok(()),
    }
}

async fn linked_intent(
    context: &Context,
    wallet: &Wallet,
    sender: AccountId,
    link: &PaymentLink,
    args: &PayArgs,
) -> Result<Intent, WalletError> {
    let missing = || WalletError::Argument("the link has no amount; give it after the link".into());
    let amount = match link.amount {
        Some(amount) => amount,
        None => context.amount(wallet, sender, link.asset, args.amount.as_deref().ok_or_else(missing)?).await?,
    };
    let memo = link.memo.or(args.memo).unwrap_or_default();
    Ok(Intent::Pay { recipient: link.account, asset: link.asset, amount, memo })
}

/// A link is text from a stranger: nothing is paid before its payer has seen what it asks for, or has said `--yes`.
async fn agree(
    context: &Context,
    wallet: &Wallet,
    link: &PaymentLink,
    intent: &Intent,
    yes: bool,
) -> Result<(), WalletError> {
    let Intent::Pay { recipient, asset, amount, memo } = intent else { return Ok(()) };
    let money = Money::of(wallet, *asset).await.text(amount);
    let mut lines = vec![format!("the link asks for {money} to {recipient}")];
    if *memo != Memo::ZERO {
        lines.push(format!("memo: {}", format_memo(memo)));
    }
    if let Some(label) = &link.label {
        lines.push(format!("it names the recipient {label:?}, which is not verified"));
    }
    lines.iter().for_each(|line| context.screen.show(format!("{line}\n")));
    context.agree(yes, "link", "payment", "it")
}

/// In seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "a link says until when it is to be paid; a wrong clock pays nothing else"
)]
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qr_code_is_square_and_of_half_blocks() {
        let code = qr_code(&format!("fastpay:0x{}@31337/0x{}", "11".repeat(20), "22".repeat(20))).unwrap();
        let widths: Vec<_> = code.lines().map(|line| line.chars().count()).collect();
        assert!(widths.iter().all(|width| *width == widths[0] && width.div_ceil(2) == widths.len()), "{widths:?}");
        assert!(code.chars().all(|c| "█▀▄ \n".contains(c)), "{code}");
        assert!(qr_code(&"x".repeat(5_000)).is_err());
    }
}
