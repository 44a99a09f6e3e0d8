//! `show` and `verify`: one transfer with its proof, as a receipt.

use std::io::Read;
use std::path::Path;

use fastpay_client::short;
use fastpay_core::{AccountId, Certificate, Digest, SequenceNumber, Transfer, VerifiedCertificate};
use fastpay_ethereum::utc;
use fastpay_rpc::PaymentName;
use fastpay_wallet::folder::{FolderError, OrderState};
use fastpay_wallet::{Money, Wallet, WalletError, format_memo};
use serde_json::json;

use crate::args::ShowArgs;
use crate::context::Context;
use crate::output::{Report, add, state_words, transfer_json, transfer_text};

/// No certificate is longer: a payout of 256 outputs with the votes of a hundred authorities.
const CERTIFICATE_BYTES_MAX: u64 = 1 << 20;

/// A certificate that was found, and what this wallet knows beside it.
struct Found {
    certificate: VerifiedCertificate,
    /// Whether a quorum confirmed it, as this wallet knows.
    is_settled: bool,
    /// When this wallet had it first, in milliseconds since 1970.
    at_ms: Option<u64>,
    /// Whether somebody else ordered it: then it was ordered by that time.
    is_received: bool,
}

pub async fn show(context: &Context, args: ShowArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let found = match args.transfer.split_once('/') {
        Some((sender, number)) => {
            let wrong = |_| WalletError::Argument(format!("{number:?} is not the number of an order, such as 7"));
            let sequence = SequenceNumber(number.parse().map_err(wrong)?);
            of_number(context, &wallet, context.account(sender)?, sequence).await?
        }
        None => {
            let wrong = || {
                WalletError::Argument(format!(
                    "{:?} is no digest (0x and 64 hexadecimal digits); or give SENDER/NUMBER, such as alice/7",
                    args.transfer
                ))
            };
            of_digest(context, &wallet, args.transfer.parse().map_err(|_| wrong())?)?
        }
    };
    let mut report = describe(&wallet, &found).await?;
    if let (Transfer::Redemption(_), Some(_)) = (found.certificate.transfer(), context.folder.config()?.primary) {
        let asked = async { wallet.any_primary().await?.redemption_state(&found.certificate).await };
        match asked.await {
            Ok(state) => {
                let (name, words) = state_words(&state);
                add(&mut report.json, [("ethereum", name.into())]);
                report.text = format!("{}\n  Primary   {words}", report.text);
            }
            Err(error) => context.screen.line(format!("Primary: {error}")),
        }
    }
    if args.certificate {
        report.text = encode(&found.certificate);
    }
    Ok(report)
}

pub async fn verify(context: &Context, path: &Path) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let io = |error| FolderError::Io { path: path.into(), error };
    let mut text = String::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(CERTIFICATE_BYTES_MAX).read_to_string(&mut text)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(CERTIFICATE_BYTES_MAX).read_to_string(&mut text))
    };
    read.map_err(io)?;
    let bytes = hex::decode(text.trim().trim_start_matches("0x")).ok();
    let certificate: Option<Certificate> = bytes.and_then(|bytes| borsh::from_slice(&bytes).ok());
    let malformed = || WalletError::Argument(format!("{} holds no certificate; ask for it again", path.display()));
    let certificate = check(&wallet, certificate.ok_or_else(malformed)?)?;
    describe(&wallet, &Found { certificate, is_settled: false, at_ms: None, is_received: true }).await
}

fn encode(certificate: &VerifiedCertificate) -> String {
    let bytes = borsh::to_vec(certificate.certificate()).expect("memory takes every certificate");
    format!("0x{}", hex::encode(bytes))
}

/// A quorum of its epoch's committee, as this wallet knows it, voted for it.
fn check(wallet: &Wallet, certificate: Certificate) -> Result<VerifiedCertificate, WalletError> {
    let transfer = &certificate.order.transfer;
    let (sender, sequence) = (transfer.sender(), transfer.sequence());
    let verified = wallet.network().verify_certificate(certificate, sender, sequence);
    verified.map_err(|error| WalletError::Argument(format!("the certificate is not valid here: {error}")))
}

async fn of_number(
    context: &Context,
    wallet: &Wallet,
    sender: AccountId,
    sequence: SequenceNumber,
) -> Result<Found, WalletError> {
    let nobody = || {
        WalletError::Argument(format!(
            "neither this wallet nor an authority has a certificate of #{sequence} of {sender}"
        ))
    };
    if context.folder.orders(sender).is_voided(sequence)? {
        return Err(voided(sequence));
    }
    let certificate = wallet.certificate(sender, sequence).await.ok_or_else(nobody)?;
    let entry = context.folder.orders(sender).entry(sequence)?;
    let is_settled = entry.as_ref().is_some_and(|entry| entry.state == OrderState::Settled);
    Ok(Found { certificate, is_settled, at_ms: entry.map(|entry| entry.created_at_ms), is_received: false })
}

/// There is no receipt of a number that the contract voided.
fn voided(sequence: SequenceNumber) -> WalletError {
    WalletError::Argument(format!(
        "the contract voided #{sequence}: nothing was paid with it, and there is no certificate"
    ))
}

/// A transfer that a checkpoint proves.
fn archived(checkpoint: u64) -> WalletError {
    WalletError::Argument(format!(
        "the authorities have pruned the certificate of this transfer, which is settled; checkpoint {checkpoint} of the \
         committee proves it. See `fastpay history`"
    ))
}

/// Among what the keys of this wallet sent and received.
fn of_digest(context: &Context, wallet: &Wallet, digest: Digest) -> Result<Found, WalletError> {
    for key in context.folder.keys().list()? {
        for entry in context.folder.orders(key.account).entries()? {
            let is_it = |transfer: &Transfer| wallet.network().domain().transfer_digest(transfer) == digest;
            if !entry.transfer().is_some_and(is_it) {
                continue;
            }
            if entry.state == OrderState::Voided {
                return Err(voided(entry.sequence));
            }
            if let Some(archived_in) = &entry.archived {
                return Err(archived(archived_in.checkpoint));
            }
            let Some(certificate) = entry.certificate else {
                let why = "this order has no certificate yet; continue it with `fastpay resume`";
                return Err(WalletError::Argument(why.into()));
            };
            let (is_settled, at_ms) = (entry.state == OrderState::Settled, Some(entry.created_at_ms));
            return Ok(Found { certificate: check(wallet, certificate)?, is_settled, at_ms, is_received: false });
        }
        let inbox = context.folder.inbox(key.account);
        for received in inbox.payments()? {
            let name: PaymentName = received.name();
            if let Some(checkpoint) = received.checkpoint()
                && received.digest(wallet.network().domain())? == digest
            {
                return Err(archived(checkpoint));
            }
            let Some(certificate) = inbox.certificate(&name)? else { continue };
            if wallet.network().domain().transfer_digest(&certificate.order.transfer) == digest {
                let certificate = check(wallet, certificate)?;
                // Only what is settled is taken in.
                let at_ms = Some(received.received_at_ms);
                return Ok(Found { certificate, is_settled: true, at_ms, is_received: true });
            }
        }
    }
    Err(WalletError::Argument(
        "this wallet has no transfer with this digest; fetch it with `fastpay receive`, or give its sender and \
         number, such as alice/7"
            .into(),
    ))
}

async fn describe(wallet: &Wallet, found: &Found) -> Result<Report, WalletError> {
    let Found { certificate, is_settled, at_ms, is_received } = found;
    let transfer = certificate.transfer();
    let money = Money::of(wallet, transfer.asset()).await;
    let state = if *is_settled { "settled" } else { "certified" };
    let (epoch, votes) = (certificate.certificate().epoch, &certificate.certificate().votes);
    let voters: Vec<_> = votes.iter().map(|vote| vote.authority).collect();
    let mut labels = wallet.labels()?;
    labels.retain(|name, _| voters.contains(name));
    let json = json!({
        "transfer": transfer_json(transfer, &money),
        "state": state,
        "atMs": at_ms,
        "digest": certificate.digest(),
        "epoch": epoch,
        "votes": voters,
        "labels": labels,
        "certificate": encode(certificate),
    });
    let mut lines = vec![transfer_text(transfer, &money), format!("  from      {}", transfer.sender())];
    if let Transfer::Payout(payout) = transfer {
        lines.extend(payout.outputs.iter().map(|output| {
            let memo = format_memo(&output.memo);
            format!("  pays      {} to {}  {memo}", money.text(output.amount), output.recipient)
        }));
    }
    let by = if *is_received { "by " } else { "" };
    lines.extend(at_ms.map(|at_ms| format!("  date      {by}{}", utc(at_ms / 1_000))));
    let name = |name| match labels.get(name) {
        Some(label) => format!("{label} ({})", short(name)),
        None => short(name),
    };
    let names: Vec<_> = voters.iter().map(name).collect();
    lines.extend([
        format!("  state     {state}"),
        format!("  digest    {}", certificate.digest()),
        format!("  proof     verified: {} votes of epoch {epoch}, by {}", names.len(), names.join(", ")),
    ]);
    Ok(Report::new(json, lines.join("\n")))
}
