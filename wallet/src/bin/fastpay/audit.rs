//! `audit`.

use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use fastpay_client::short;
use fastpay_core::Balance;
use fastpay_wallet::{AssetAudit, AuditProgress, AuditReport, ErrorKind, Money, Proof, Wallet, WalletError};
use serde_json::json;

use crate::args::AuditArgs;
use crate::context::Context;
use crate::output::{Report, add};

pub async fn audit(context: &Context, args: AuditArgs) -> Result<Report, WalletError> {
    let wallet = context.wallet()?;
    if let Some(path) = &args.verify_proof {
        return verify(&wallet, path);
    }
    let screen = context.screen.clone();
    let report = move |progress: &AuditProgress| {
        let AuditProgress { visited, waiting, certificates } = progress;
        screen.line(format!("{visited} accounts visited, {waiting} more known, {certificates} certificates checked"));
    };
    let report = wallet.audit(Duration::from_secs(args.wait), &report).await?;
    let mut lines = Vec::new();
    for asset in &report.assets {
        describe_asset(&wallet, asset, &mut lines).await;
    }
    describe_committee(&report, &mut lines);
    let mut files = Vec::new();
    for proof in &report.misbehaviour {
        let path = context.folder.keep_proof(proof)?;
        lines.push(format!(
            "authority {} cheated, and {} proves it; check it with `fastpay audit --verify-proof FILE`",
            proof.authority,
            path.display()
        ));
        files.push(path.display().to_string());
    }
    lines.extend(report.findings.iter().map(|finding| format!("finding: {finding}")));
    lines.push(if report.ok { "the audit balances".into() } else { "THE AUDIT FAILS".to_owned() });
    let exit_code = if report.ok { 0 } else { ErrorKind::Audit.exit_code() };
    let mut json = json!(report);
    add(&mut json, [("proofFiles", json!(files))]);
    Ok(Report { exit_code, ..Report::new(json, lines.join("\n")) })
}

fn verify(wallet: &Wallet, path: &Path) -> Result<Report, WalletError> {
    let unreadable =
        |error: &dyn Display| WalletError::Argument(format!("{} is not a readable proof: {error}", path.display()));
    let content = std::fs::read(path).map_err(|error| unreadable(&error))?;
    let proof: Proof = serde_json::from_slice(&content).map_err(|error| unreadable(&error))?;
    wallet.verify_proof(&proof).map_err(|error| WalletError::Audit(format!("this proves nothing: {error}")))?;
    let (authority, account, sequence) = (proof.authority, proof.account, proof.sequence);
    let text = format!(
        "proven: authority {authority} voted for two orders of account {account} with sequence number {sequence}"
    );
    let json = json!({ "proven": true, "authority": authority, "account": account, "sequence": sequence });
    Ok(Report::new(json, text))
}

async fn describe_asset(wallet: &Wallet, asset: &AssetAudit, lines: &mut Vec<String>) {
    let money = Money::of(wallet, asset.asset).await;
    lines.push(format!("asset {}: the contract holds {}", asset.asset, money.text(asset.contract_total)));
    if let Some(backing) = &asset.backing {
        lines.push(format!(
            "  {} of it is queued; besides {} is to be claimed; in all it has {}",
            money.text(backing.queued),
            money.text(backing.claims),
            backing.held.map_or_else(|| "an unknown amount".into(), |held| money.text(held))
        ));
    }
    let solvency = &asset.solvency;
    lines.push(format!(
        "  deposited {} = accounts {} + to be redeemed {} + redeemed {}: {}",
        money.text(solvency.deposited),
        money.text(solvency.accounts),
        money.text(solvency.redeemable),
        money.text(solvency.redeemed),
        if solvency.solvent { "solvent" } else { "NOT SOLVENT" }
    ));
    for (amount, what) in [
        (
            solvency.displaced,
            "of the accounts was to be redeemed and is credited back: its numbers were spent on other orders, or released",
        ),
        (solvency.unexplained, "was paid for orders that no authority knows"),
    ] {
        if amount != Balance::ZERO {
            lines.push(format!("  {} {what}", money.text(amount)));
        }
    }
    for authority in &asset.authorities {
        let verdict = if authority.ok { "balances" } else { "DOES NOT BALANCE" };
        lines.push(format!(
            "  authority {}: accounts {}, in flight {}, to be redeemed {}, ahead {}: {verdict}",
            short(&authority.authority),
            money.text(authority.accounts_total),
            money.text(authority.in_flight),
            money.text(authority.redeemable),
            money.text(authority.ahead),
        ));
    }
}

fn describe_committee(report: &AuditReport, lines: &mut Vec<String>) {
    lines.push(format!("{} accounts, {} certificates", report.accounts, report.certificates));
    for (name, behind) in &report.behind {
        lines.push(format!(
            "authority {} is behind: it lacks {} certificates of {} accounts, which others have",
            short(name),
            behind.certificates,
            behind.accounts
        ));
    }
    if !report.truncated.is_empty() {
        let names: Vec<_> = report.truncated.iter().map(short).collect();
        lines.push(format!(
            "authorities {} have more assets than they list; audited are the listed ones, ETH, and those that were \
             deposited or that this wallet knows",
            names.join(", ")
        ));
    }
    lines.extend(report.silent.iter().map(|(name, error)| format!("authority {name} does not answer: {error}")));
}
