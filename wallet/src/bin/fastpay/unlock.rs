//! `unlock`.

use std::time::Duration;

use fastpay_client::{UnlockBallot, short};
use fastpay_core::{Domain, SequenceNumber};
use fastpay_ethereum::utc;
use fastpay_wallet::{Resumed, Unlocking, WalletError};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::args::UnlockArgs;
use crate::context::Context;
use crate::output::Report;

/// How often the authorities are asked again.
const ASK_AGAIN: Duration = Duration::from_secs(3);

pub async fn unlock(context: &Context, args: UnlockArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    let primary = wallet.primary().await?;
    let entry = context.choose(args.from.as_deref(), None)?;
    let account = entry.account;
    let sequence = match args.sequence {
        Some(sequence) => SequenceNumber(sequence),
        None => wallet.first_open_number(account).await?,
    };
    let payer = match args.relayer {
        true => None,
        false => Some(context.chain_account(primary.clone(), &context.gas_payer(&entry, args.gas_key.as_deref())?)?),
    };
    let key = context.unlock(&entry)?;
    let deadline = Instant::now() + Duration::from_secs(args.wait);
    let mut last = String::new();
    loop {
        let step = wallet.unlock(&primary, &key, sequence, payer.as_ref()).await?;
        let (state, line, until) = match &step {
            Unlocking::Voided => {
                let text = format!("#{sequence} of {account} is void: nothing was paid with it. Order again");
                let json = json!({ "account": account, "sequence": sequence, "outcome": "voided" });
                return Ok(Report::new(json, text));
            }
            Unlocking::Finished(resumed) => return Ok(finished(wallet.network().domain(), account, sequence, resumed)),
            Unlocking::Requesting => ("requesting", "a relayer submits the request to the contract".into(), None),
            Unlocking::Deciding => ("deciding", "the contract has decided; waiting for the authorities".into(), None),
            Unlocking::Waiting { ballot, voidable_from } => {
                ("waiting", waiting_text(ballot, *voidable_from), Some(*voidable_from))
            }
        };
        if line != last {
            context.screen.line(format!("unlock: {line}"));
            last.clone_from(&line);
        }
        if Instant::now() + ASK_AGAIN > deadline {
            let json = json!({
                "account": account, "sequence": sequence, "outcome": Value::Null, "state": state, "voidableFrom": until,
            });
            return Ok(Report::new(json, format!("{line}\nrun the command again to continue")));
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
}

fn finished(
    domain: &Domain,
    account: fastpay_core::AccountId,
    sequence: SequenceNumber,
    resumed: &[Resumed],
) -> Report {
    let digests: Vec<_> = resumed
        .iter()
        .filter_map(|resumed| match resumed {
            Resumed::Settled(receipt) => Some(receipt.certificate.digest()),
            Resumed::Superseded { certificate, .. } => Some(certificate.digest()),
            Resumed::Archived { settled, .. } => Some(domain.transfer_digest(settled)),
            Resumed::Paid { order } => Some(domain.transfer_digest(order)),
            Resumed::Voided { .. } => None,
        })
        .collect();
    let json = json!({ "account": account, "sequence": sequence, "outcome": "upheld", "settled": digests });
    Report::new(json, format!("an order of #{sequence} of {account} is settled: the account is free"))
}

/// The event that it waits for, and its time.
fn waiting_text(ballot: &UnlockBallot, voidable_from: u64) -> String {
    let (attested, voided) = ballot.votes();
    let failures = ballot.failures().iter().map(|(name, failure)| format!("; {}: {failure}", short(name)));
    format!(
        "{attested} authorities have a certificate, {voided} vote to void the number; a quorum can void it from {} on{}",
        utc(voidable_from),
        failures.collect::<String>()
    )
}
