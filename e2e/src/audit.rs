//! The audit of the demo and the tests, from public data: per asset and authority it compares the accounts, the shards'
//! own totals, the redemption log, and the contract.
//!
//! The wallet has its own audit; this one is written separately, so that each can reveal the other's mistakes.

use std::collections::BTreeMap;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{AccountId, Asset, Balance, Committees, Epoch, SequenceNumber, Transfer};
use fastpay_ethereum::{Primary, PrimaryConfig};

use crate::failure::{Failure, PATIENCE, wait_for};
use crate::network::Network;

/// The audit of one asset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssetLine {
    /// The asset.
    pub asset: Asset,
    /// The amount that the contract holds for accounts.
    pub contract_total: Balance,
    /// The sum of all accounts, which is the same at every authority if `ok`.
    pub accounts_total: Balance,
    /// The sum of redemptions that are certified and not yet paid by the contract.
    pub redeemable: Balance,
    /// Whether the contract's total is the sum of the other two at every authority.
    pub ok: bool,
    /// The contradictions.
    pub findings: Vec<String>,
}

/// Audits all authorities once no payment is in flight. `accounts` must be all that ever held anything. A payer waits
/// for a quorum only, so the audit first brings each authority the certificates that it missed, as any wallet would.
///
/// # Errors
/// If an authority or the contract does not answer. Sums that differ are part of the result, not an error.
pub async fn audit(network: &Network, accounts: &[AccountId], assets: &[Asset]) -> Result<Vec<AssetLine>, Failure> {
    bring_all_up_to_date(network, accounts).await?;
    let primary = primary(network).await?;
    let committees = committees(&primary).await?;
    let clients = network.clients()?;
    let mut last = Vec::new();
    let balanced = wait_for(PATIENCE, async || {
        let mut lines = Vec::new();
        for &asset in assets {
            let line = audit_asset(&primary, &committees, &clients, accounts, asset).await;
            lines.push(line.map_err(|error| error.to_string())?);
        }
        let findings: Vec<_> = lines.iter().flat_map(|line| line.findings.clone()).collect();
        if findings.is_empty() { Ok(lines) } else { Err(findings.join("; ")) }
    });
    match balanced.await {
        Ok(lines) => Ok(lines),
        Err(_) => {
            for &asset in assets {
                last.push(audit_asset(&primary, &committees, &clients, accounts, asset).await?);
            }
            Ok(last)
        }
    }
}

/// Confirms at all authorities the certificates of these accounts that any authority has confirmed.
///
/// # Errors
/// If an authority does not answer, or returns an invalid certificate.
pub async fn bring_all_up_to_date(network: &Network, accounts: &[AccountId]) -> Result<(), Failure> {
    let committees = committees(&primary(network).await?).await?;
    let clients = network.clients()?;
    for &account in accounts {
        let mut next = Vec::new();
        for client in &clients {
            next.push(client.shard_of(&account).account(account).await.map_err(Failure::wrong)?.next_sequence);
        }
        let Some((ahead, end)) = clients.iter().zip(&next).max_by_key(|(_, next)| **next) else { continue };
        for (client, start) in clients.iter().zip(&next) {
            for sequence in start.0..end.0 {
                let certificate = ahead.shard_of(&account).certificate(account, SequenceNumber(sequence)).await;
                let certificate = certificate.map_err(Failure::wrong)?;
                let committee = committees.get(certificate.epoch).ok_or_else(|| Failure::wrong("an unknown epoch"))?;
                certificate.clone().verify(network.domain(), committee).map_err(Failure::wrong)?;
                client.shard_of(&account).confirm(&certificate).await.map_err(Failure::wrong)?;
            }
        }
    }
    Ok(())
}

async fn primary(network: &Network) -> Result<Primary, Failure> {
    let url = network.chain()?.url().parse().map_err(Failure::wrong)?;
    let config = PrimaryConfig::new(vec![url], network.domain().chain_id(), network.contract()?);
    Primary::connect(config).await.map_err(Failure::wrong)
}

/// The committees of all epochs, as the contract lists them.
async fn committees(primary: &Primary) -> Result<Committees, Failure> {
    let first = primary.committee(Epoch(0)).await.map_err(Failure::wrong)?;
    let mut committees = Committees::new(first).map_err(Failure::wrong)?;
    for epoch in 1..=primary.epoch().await.map_err(Failure::wrong)?.0 {
        let next = primary.committee(Epoch(epoch)).await.map_err(Failure::wrong)?;
        committees.install(next).map_err(Failure::wrong)?;
    }
    Ok(committees)
}

async fn audit_asset(
    primary: &Primary,
    committees: &Committees,
    clients: &[AuthorityClient],
    accounts: &[AccountId],
    asset: Asset,
) -> Result<AssetLine, Failure> {
    let total = primary.total_balance(asset).await.map_err(Failure::wrong)?;
    let contract_total = Balance::from_be_bytes(total.to_be_bytes());
    let mut findings = Vec::new();
    let mut found = Vec::new();
    for client in clients {
        let name = client.name();
        let (mut by_account, mut by_shard) = (Balance::ZERO, Balance::ZERO);
        for account in accounts {
            let state = client.shard_of(account).account(*account).await.map_err(Failure::wrong)?;
            by_account = by_account.plus(state.balance(asset));
        }
        for shard in client.shards() {
            let status = shard.status().await.map_err(Failure::wrong)?;
            if status.credits_in_flight > 0 {
                findings.push(format!("{name}: {} credits are in flight", status.credits_in_flight));
            }
            let totals = status.totals.iter().filter(|(of, _)| *of == asset);
            by_shard = totals.fold(by_shard, |sum, (_, totals)| sum.plus(totals.accounts));
        }
        if by_account != by_shard {
            findings.push(format!("{name}: accounts sum to {by_account} of {asset}, its shards say {by_shard}"));
        }
        let redeemable = redeemable(primary, committees, client, asset).await?;
        if by_account.plus(redeemable) != contract_total {
            findings.push(format!(
                "{name}: accounts {by_account} and redeemable {redeemable} of {asset}, the contract has {contract_total}"
            ));
        }
        found.push((by_account, redeemable));
    }
    let (accounts_total, redeemable) = found.first().copied().unwrap_or_default();
    if found.iter().any(|other| *other != (accounts_total, redeemable)) {
        findings.push(format!("the authorities disagree on {asset}"));
    }
    Ok(AssetLine { asset, contract_total, accounts_total, redeemable, ok: findings.is_empty(), findings })
}

/// The redemptions that an authority has confirmed and the contract has not paid.
async fn redeemable(
    primary: &Primary,
    committees: &Committees,
    client: &AuthorityClient,
    asset: Asset,
) -> Result<Balance, Failure> {
    let mut open: BTreeMap<(AccountId, SequenceNumber), Balance> = BTreeMap::new();
    for shard in client.shards() {
        let mut start = 0;
        loop {
            let page = match shard.redemptions(start).await {
                // Those that the contract had not paid are listed from there on.
                Err(ClientError::Pruned(pruned)) if pruned.first > start => {
                    start = pruned.first;
                    continue;
                }
                page => page.map_err(Failure::wrong)?,
            };
            start += page.entries.len() as u64;
            let is_last = page.entries.is_empty() || start >= page.total;
            for certificate in page.entries {
                let epoch = certificate.epoch;
                let committee = committees.get(epoch).ok_or_else(|| Failure::wrong(format!("{epoch} never was")))?;
                let verified = certificate.verify(&primary.domain(), committee).map_err(Failure::wrong)?;
                let Transfer::Redemption(redemption) = verified.transfer() else { continue };
                if redemption.asset == asset {
                    open.insert((redemption.sender, redemption.sequence), redemption.amount.into());
                }
            }
            if is_last {
                break;
            }
        }
    }
    let mut sum = Balance::ZERO;
    for ((sender, sequence), amount) in open {
        if !primary.is_redeemed(sender, sequence).await.map_err(Failure::wrong)? {
            sum = sum.plus(amount);
        }
    }
    Ok(sum)
}
