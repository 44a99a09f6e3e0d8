//! The audit by totals: per asset, does what the contract holds equal what the accounts hold at an authority,
//! what is on its way between its shards, and what is certified but not yet redeemed?
//!
//! ```text
//!  contract's total = accounts + in flight + redeemable − ahead
//!  what it has      ≥ contract's total + claims
//! ```
//! *Redeemable* is certified and confirmed here but not paid on the Primary; *ahead* is paid on the Primary but not yet
//! confirmed here. What is in the contract's queue is not paid: the contract's total has it until it is. Every
//! redemption counted is a verified certificate.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::U256;
use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Balance, Certificate, GenesisBalance, SequenceNumber, TransactionIndex,
    Transfer,
};
use fastpay_ethereum::{Payout, Primary, PrimaryError, Token};
use fastpay_rpc::ShardStatus;

use super::{AssetAudit, AuditReport, AuthorityAudit, Backing, Solvency};
use crate::error::WalletError;
use fastpay_client::Network;

/// What names a redemption, and what it moved.
pub(super) type Redemptions = BTreeMap<(AccountId, SequenceNumber), (Asset, Amount)>;

/// One authority, as it was read.
pub(super) struct Reading {
    pub(super) statuses: Vec<ShardStatus>,
    pub(super) redemptions: Redemptions,
}

/// The other side: the contract, or the genesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) last_transaction_index: TransactionIndex,
    pub(super) totals: BTreeMap<Asset, Balance>,
    pub(super) backing: BTreeMap<Asset, Backing>,
}

pub(super) async fn read_authority(network: &Network, authority: &AuthorityClient) -> Result<Reading, ClientError> {
    let statuses = fastpay_client::authority_status(authority).await?;
    let mut redemptions = Redemptions::new();
    for (shard, status) in authority.shards().iter().zip(&statuses) {
        let mut start = 0_u64;
        while start < status.redemptions {
            let page = shard.redemptions(start).await?;
            if page.entries.is_empty() {
                break;
            }
            start = start.saturating_add(u64::try_from(page.entries.len()).unwrap_or(u64::MAX));
            for certificate in page.entries {
                count_redemption(network, authority.name(), certificate, &mut redemptions);
            }
        }
    }
    Ok(Reading { statuses, redemptions })
}

fn count_redemption(
    network: &Network,
    authority: AuthorityName,
    certificate: Certificate,
    redemptions: &mut Redemptions,
) {
    let (account, sequence) = (certificate.order.transfer.sender(), certificate.order.transfer.sequence());
    let verified = network.verify_certificate(certificate, account, sequence);
    match verified.as_ref().map(|certificate| certificate.transfer()) {
        Ok(Transfer::Redemption(redemption)) => {
            let value = (redemption.asset, redemption.amount);
            redemptions.insert((redemption.sender, redemption.sequence), value);
        }
        Ok(_) => tracing::warn!(%authority, "a payment in the feed of redemptions"),
        Err(error) => tracing::warn!(%authority, %error, "a bad certificate in the feed of redemptions"),
    }
}

/// Adds the sums of those `assets` that a shard's cut list leaves out.
pub(super) async fn add_totals(
    authority: &AuthorityClient,
    statuses: &mut [ShardStatus],
    assets: &BTreeSet<Asset>,
) -> Result<(), ClientError> {
    for (shard, status) in authority.shards().iter().zip(statuses) {
        if !status.truncated {
            continue;
        }
        let listed: BTreeSet<_> = status.totals.iter().map(|(asset, _)| *asset).collect();
        for asset in assets.difference(&listed) {
            status.totals.extend(shard.status_asset(*asset).await?.totals);
        }
    }
    Ok(())
}

/// The contract's side, those of the known redemptions that are paid, and whether all was read of one
/// block.
pub(super) async fn read_primary(
    primary: &Primary,
    assets: &BTreeSet<Asset>,
    readings: &BTreeMap<AuthorityName, Reading>,
) -> Result<(Ledger, Redemptions, bool), WalletError> {
    let before = primary.latest_head().await?;
    let last_transaction_index = primary.last_transaction_index().await?;
    let (mut totals, mut backing) = (BTreeMap::new(), BTreeMap::new());
    for asset in assets {
        totals.insert(*asset, to_balance(primary.total_balance(*asset).await?));
        backing.insert(*asset, read_backing(primary, *asset).await?);
    }
    let mut redeemed = Redemptions::new();
    for ((sender, sequence), value) in readings.values().flat_map(|reading| &reading.redemptions) {
        if !redeemed.contains_key(&(*sender, *sequence)) && primary.payout(*sender, *sequence).await? == Payout::Done {
            redeemed.insert((*sender, *sequence), *value);
        }
    }
    let is_still = primary.latest_head().await?.hash == before.hash;
    Ok((Ledger { last_transaction_index, totals, backing }, redeemed, is_still))
}

async fn read_backing(primary: &Primary, asset: Asset) -> Result<Backing, WalletError> {
    let contract = primary.contract();
    let held = if asset == Asset::ETHER {
        Some(primary.ether_balance(contract).await?)
    } else {
        match Token::new(primary.clone(), asset.0).balance_of(contract).await {
            Err(PrimaryError::BadToken { .. }) => None,
            held => Some(held?),
        }
    };
    let queued = to_balance(primary.total_queued(asset).await?);
    let claims = to_balance(primary.total_claims(asset).await?);
    Ok(Backing { queued, claims, held: held.map(to_balance) })
}

pub(super) fn read_genesis_ledger(balances: &[GenesisBalance]) -> Ledger {
    let mut totals: BTreeMap<Asset, Balance> = BTreeMap::new();
    for balance in balances {
        let total = totals.entry(balance.asset).or_default();
        *total = total.credit(balance.amount);
    }
    let count = u64::try_from(balances.len()).unwrap_or(u64::MAX);
    Ledger { last_transaction_index: TransactionIndex(count), totals, backing: BTreeMap::new() }
}

fn to_balance(value: U256) -> Balance {
    Balance::from_be_bytes(value.to_be_bytes())
}

pub(super) fn sum(redemptions: &Redemptions, asset: Asset, other: &Redemptions) -> Balance {
    let rest = redemptions.iter().filter(|(name, _)| !other.contains_key(*name));
    rest.filter(|(_, (of, _))| *of == asset).fold(Balance::ZERO, |sum, (_, (_, amount))| sum.credit(*amount))
}

/// The sums and what does not fit in them.
pub(super) fn judge(
    ledger: &Ledger,
    readings: &BTreeMap<AuthorityName, Reading>,
    redeemed: &Redemptions,
    silent: BTreeMap<String, String>,
) -> AuditReport {
    let mut findings = Vec::new();
    for (name, reading) in readings {
        for shard in &reading.statuses {
            if shard.synchronized != ledger.last_transaction_index {
                let (at, of) = (shard.synchronized, ledger.last_transaction_index);
                findings.push(format!("authority {name}, shard {}: at event {at} of {of}", shard.shard));
            }
            for (asset, totals) in &shard.totals {
                let flow = totals.deposited.plus(totals.credited);
                let gone = totals.forwarded.plus(totals.redeemed);
                if totals.accounts != flow.plus(gone.negated()) {
                    findings.push(format!("authority {name}, shard {}: its own sums of {asset} differ", shard.shard));
                }
            }
        }
    }
    let nothing = Redemptions::new();
    let mut assets = Vec::new();
    for (asset, contract_total) in &ledger.totals {
        let mut authorities = Vec::new();
        for (name, reading) in readings {
            let total = |part: fn(&fastpay_core::AssetTotals) -> Balance| {
                let of_asset = reading.statuses.iter().flat_map(|shard| &shard.totals).filter(|(of, _)| of == asset);
                of_asset.fold(Balance::ZERO, |sum, (_, totals)| sum.plus(part(totals)))
            };
            let accounts_total = total(|totals| totals.accounts);
            let in_flight = total(|totals| totals.forwarded.plus(totals.credited.negated()));
            if total(|totals| totals.redeemed) != sum(&reading.redemptions, *asset, &nothing) {
                findings.push(format!("authority {name}: its redemptions of {asset} are not those of its feed"));
            }
            let redeemable = sum(&reading.redemptions, *asset, redeemed);
            let ahead = sum(redeemed, *asset, &reading.redemptions);
            let found = accounts_total.plus(in_flight).plus(redeemable).plus(ahead.negated());
            let ok = found == *contract_total;
            if !ok {
                findings.push(format!("authority {name}: {found} of {asset}, the contract has {contract_total}"));
            }
            authorities.push(AuthorityAudit { authority: *name, accounts_total, in_flight, redeemable, ahead, ok });
        }
        let backing = ledger.backing.get(asset).copied();
        let is_backed = backing
            .is_none_or(|Backing { claims, held, .. }| held.is_none_or(|held| held >= contract_total.plus(claims)));
        if !is_backed {
            findings.push(format!("the contract has less of {asset} than it owes to accounts and claims"));
        }
        let ok = is_backed && authorities.iter().all(|authority| authority.ok);
        let (contract_total, solvency) = (*contract_total, Solvency::default());
        assets.push(AssetAudit { asset: *asset, contract_total, backing, authorities, solvency, ok });
    }
    let last_transaction_index = ledger.last_transaction_index;
    let cut = readings.iter().filter(|(_, reading)| reading.statuses.iter().any(|shard| shard.truncated));
    let truncated = cut.map(|(name, _)| *name).collect();
    let ok = findings.is_empty();
    AuditReport { ok, last_transaction_index, assets, silent, truncated, findings, ..AuditReport::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{AssetTotals, Epoch, PrimaryAddress, ShardId};

    const ETHER: Asset = Asset::ETHER;

    fn units(amount: u128) -> Balance {
        Balance::from(Amount(amount))
    }

    fn shard(number: u32, totals: AssetTotals) -> ShardStatus {
        ShardStatus {
            authority: AuthorityName([1; 32]),
            epoch: Epoch(0),
            chain_id: 1,
            contract: PrimaryAddress::ZERO,
            shard: ShardId(number),
            shard_count: 2,
            synchronized: TransactionIndex(2),
            redemptions: 0,
            totals: vec![(ETHER, totals)],
            credits_in_flight: 0,
            version: String::new(),
            committee: Vec::new(),
            truncated: false,
        }
    }

    /// Two shards: 100 deposited, 30 paid across of which 20 have arrived, 15 redeemed in two orders.
    fn reading() -> Reading {
        let first = AssetTotals {
            accounts: units(55),
            deposited: units(100),
            credited: units(0),
            forwarded: units(30),
            redeemed: units(15),
        };
        let second = AssetTotals { accounts: units(20), credited: units(20), ..AssetTotals::default() };
        let redemptions = [(0, 10), (1, 5)].map(|(sequence, amount)| (name(sequence), (ETHER, Amount(amount))));
        Reading { statuses: vec![shard(0, first), shard(1, second)], redemptions: redemptions.into() }
    }

    fn name(sequence: u64) -> (AccountId, SequenceNumber) {
        (AccountId([7; 32]), SequenceNumber(sequence))
    }

    fn judged(reading: Reading, contract: u128, redeemed: &[(u64, u128)]) -> AuditReport {
        let totals = BTreeMap::from([(ETHER, units(contract))]);
        // The contract has all that it owes, to the unit.
        let held = Some(units(contract).plus(units(3)));
        let backing = BTreeMap::from([(ETHER, Backing { queued: units(4), claims: units(3), held })]);
        let ledger = Ledger { last_transaction_index: TransactionIndex(2), totals, backing };
        let redeemed = redeemed.iter().map(|(sequence, amount)| (name(*sequence), (ETHER, Amount(*amount)))).collect();
        judge(&ledger, &BTreeMap::from([(AuthorityName([1; 32]), reading)]), &redeemed, BTreeMap::new())
    }

    #[test]
    fn what_is_in_flight_and_what_is_to_be_redeemed_counts() {
        // Nothing redeemed yet, one, both.
        for (contract, redeemed) in [(100, &[][..]), (90, &[(0, 10)]), (85, &[(0, 10), (1, 5)])] {
            let report = judged(reading(), contract, redeemed);
            assert!(report.ok, "{:?}", report.findings);
            assert_eq!(report.assets[0].authorities[0].in_flight, units(10));
        }
        // One that this authority has not heard of is redeemed already.
        let report = judged(reading(), 100 - 15 - 4, &[(0, 10), (1, 5), (2, 4)]);
        assert!(report.ok, "{:?}", report.findings);
        assert_eq!(report.assets[0].authorities[0].ahead, units(4));
    }

    #[test]
    fn what_is_to_be_claimed_must_be_there_too_and_what_is_queued_is_a_part_of_the_total() {
        let totals = BTreeMap::from([(ETHER, units(100))]);
        let judged = |held: Option<u128>| {
            let backing = Backing { queued: units(4), claims: units(3), held: held.map(units) };
            let backing = BTreeMap::from([(ETHER, backing)]);
            let ledger = Ledger { last_transaction_index: TransactionIndex(2), totals: totals.clone(), backing };
            let readings = BTreeMap::from([(AuthorityName([1; 32]), reading())]);
            judge(&ledger, &readings, &Redemptions::new(), BTreeMap::new())
        };
        assert!(judged(Some(103)).ok && judged(Some(1_000)).ok);
        assert!(judged(None).ok, "a token that does not say is no finding");
        let short = judged(Some(102));
        assert!(!short.ok && !short.assets[0].ok && short.findings[0].contains("than it owes"), "{short:?}");
    }

    #[test]
    fn a_missing_or_made_up_unit_is_found() {
        assert!(!judged(reading(), 99, &[]).ok);
        assert!(!judged(reading(), 101, &[]).ok);
        assert!(!judged(reading(), 100, &[(0, 10)]).ok);
        let mut made_up = reading();
        made_up.statuses[0].totals[0].1.accounts = units(56);
        let report = judged(made_up, 101, &[]);
        assert!(report.assets[0].ok && !report.ok, "its own sums differ");
        let mut hidden = reading();
        hidden.redemptions.pop_first();
        assert!(!judged(hidden, 90, &[]).ok, "its feed must explain what it counts as redeemed");
        let mut behind = reading();
        behind.statuses[1].synchronized = TransactionIndex(1);
        assert!(judged(behind, 100, &[]).findings[0].contains("at event 1 of 2"));
    }
}
