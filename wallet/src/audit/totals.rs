//! The audit by totals: for each asset, the contract's total must equal what the accounts hold at an authority, what is
//! on its way between its shards, and what is certified but not yet redeemed.
//!
//! ```text
//!  contract's total = accounts + in flight + redeemable − ahead
//!  what it has      ≥ contract's total + claims
//! ```
//! *Redeemable* is certified and confirmed here but not paid on the Primary; *ahead* is paid on the Primary but not yet
//! confirmed here. A redemption in the contract's queue is not paid: until it is, the contract's total includes it.
//! Every redemption counted is a verified certificate.
//!
//! A spent number does not prove that its order was paid: a thief with redemption keys may have spent it on another
//! order, and a queued redemption may have been released (`Spending`). The digests in the contract's events tell these
//! cases apart.

use std::collections::{BTreeMap, BTreeSet};

use alloy::primitives::{B256, U256};
use fastpay_client::{AuthorityClient, ClientError, Network};
use fastpay_core::{
    AccountId, Amount, Asset, AuthorityName, Balance, Certificate, Digest, GenesisBalance, Redemption, SequenceNumber,
    TransactionIndex, Transfer,
};
use fastpay_ethereum::{OrderEvent, Payout, Primary, PrimaryError, Token};
use fastpay_rpc::ShardStatus;

use super::{AssetAudit, AuditReport, AuthorityAudit, Backing, Solvency};
use crate::error::WalletError;

/// The name of an order.
pub(super) type Name = (AccountId, SequenceNumber);

/// Redemptions, by the names of their orders.
pub(super) type Redemptions = BTreeMap<Name, Moved>;

/// The asset and amount of a redemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moved {
    pub(super) asset: Asset,
    pub(super) amount: Amount,
    pub(super) digest: Digest,
}

/// The order on which the contract spent a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spending {
    pub(super) on: Moved,
    pub(super) state: SpendingState,
}

impl Spending {
    /// Whether the contract has paid or queued the redemption that is certified under the number.
    pub(super) fn pays(&self, certified: &Moved) -> bool {
        self.on.digest == certified.digest && self.state != SpendingState::Released
    }
}

/// What the contract has done with a redemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SpendingState {
    /// It is in the queue.
    Waiting,
    /// It is paid, or can be claimed.
    Paid,
    /// It was removed from the queue, and the contract keeps the money.
    Released,
}

/// The numbers that the contract has spent.
pub(super) type Spendings = BTreeMap<Name, Spending>;

/// Notes the spending in an event of the contract.
pub(super) fn take_note(spendings: &mut Spendings, event: &OrderEvent) {
    let spend = |sender: B256, sequence, asset, amount, digest, state| {
        let on = Moved { asset: Asset(asset), amount: Amount(amount), digest };
        ((AccountId(sender.0), SequenceNumber(sequence)), Spending { on, state })
    };
    let (name, spending) = match event {
        OrderEvent::Redeemed(paid) => {
            spend(paid.sender, paid.sequence, paid.asset, paid.amount, paid.digest, SpendingState::Paid)
        }
        OrderEvent::RedemptionQueued(queued) => {
            spend(queued.sender, queued.sequence, queued.asset, queued.amount, queued.digest, SpendingState::Waiting)
        }
        OrderEvent::RedemptionReleased(released) => {
            let name = (AccountId(released.sender.0), SequenceNumber(released.sequence));
            if let Some(spending) = spendings.get_mut(&name) {
                spending.state = SpendingState::Released;
            }
            return;
        }
        _ => return,
    };
    spendings.insert(name, spending);
}

/// Numbers that the contract did not spend on paying their certificates.
#[derive(Debug, Default)]
pub(super) struct Misspent {
    /// Certified redemptions that are never paid but credited back: the number was spent on another order, or released.
    pub(super) displaced: Redemptions,
    /// Payments without a certificate that any authority returns.
    pub(super) unexplained: Redemptions,
    pub(super) findings: Vec<String>,
}

impl Misspent {
    pub(super) fn of(known: &Redemptions, spendings: &Spendings) -> Self {
        let mut misspent = Self::default();
        for (name, Spending { on, state }) in spendings {
            let certified = known.get(name);
            let is_same = certified.is_some_and(|certified| certified.digest == on.digest);
            let (account, sequence) = name;
            let spending = Spending { on: *on, state: *state };
            if let Some(certified) = certified.filter(|certified| !spending.pays(certified)) {
                misspent.displaced.insert(*name, *certified);
                let why = if is_same { "it was released from the queue" } else { "another order was spent under it" };
                misspent.findings.push(format!(
                    "number {sequence} of account {account} was certified for {} of {}, is never paid and was credited back: \
                     {why}",
                    certified.amount, certified.asset
                ));
            }
            if !is_same && *state != SpendingState::Released {
                let what = if *state == SpendingState::Paid { "paid" } else { "queued" };
                misspent.unexplained.insert(*name, *on);
                misspent.findings.push(format!(
                    "the contract {what} {} of {} under number {sequence} of account {account}, and no authority shows a \
                     certificate of that: keys are stolen, or its owner brought it there and nowhere else",
                    on.amount, on.asset
                ));
            }
        }
        misspent
            .unexplained
            .retain(|name, _| spendings.get(name).is_some_and(|spending| spending.state == SpendingState::Paid));
        misspent
    }
}

/// The data read from one authority.
pub(super) struct Reading {
    pub(super) statuses: Vec<ShardStatus>,
    pub(super) redemptions: Redemptions,
    /// Whether the authority has pruned the beginning of its redemption log.
    pub(super) is_pruned: bool,
}

/// The authoritative side: the contract, or the genesis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ledger {
    pub(super) last_transaction_index: TransactionIndex,
    pub(super) totals: BTreeMap<Asset, Balance>,
    pub(super) backing: BTreeMap<Asset, Backing>,
}

pub(super) async fn read_authority(network: &Network, authority: &AuthorityClient) -> Result<Reading, ClientError> {
    let statuses = fastpay_client::authority_status(authority).await?;
    let (mut redemptions, mut is_pruned) = (Redemptions::new(), false);
    for (shard, status) in authority.shards().iter().zip(&statuses) {
        let mut start = 0_u64;
        while start < status.redemptions {
            let page = match shard.redemptions(start).await {
                // The contract had paid what is pruned. Other authorities may still have its certificates.
                Err(ClientError::Pruned(pruned)) if pruned.first > start => {
                    (start, is_pruned) = (pruned.first, true);
                    continue;
                }
                page => page?,
            };
            if page.entries.is_empty() {
                break;
            }
            start = start.saturating_add(u64::try_from(page.entries.len()).unwrap_or(u64::MAX));
            for certificate in page.entries {
                count_redemption(network, authority.name(), certificate, &mut redemptions);
            }
        }
    }
    Ok(Reading { statuses, redemptions, is_pruned })
}

fn count_redemption(
    network: &Network,
    authority: AuthorityName,
    certificate: Certificate,
    redemptions: &mut Redemptions,
) {
    let (account, sequence) = (certificate.order.transfer.sender(), certificate.order.transfer.sequence());
    let verified = network.verify_certificate(certificate, account, sequence);
    let digest = verified.as_ref().map(|certificate| certificate.digest()).unwrap_or_default();
    match verified.as_ref().map(|certificate| certificate.transfer()) {
        Ok(Transfer::Redemption(redemption)) => {
            let Redemption { asset, amount, .. } = *redemption;
            redemptions.insert((account, sequence), Moved { asset, amount, digest });
        }
        Ok(_) => tracing::warn!(%authority, "a payment in the redemption log"),
        Err(error) => tracing::warn!(%authority, %error, "a bad certificate in the redemption log"),
    }
}

/// Adds the sums of those `assets` that a shard's incomplete list lacks.
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

/// Reads the contract's totals and those of the known redemptions that are paid. Also returns whether all was read at
/// one block.
pub(super) async fn read_primary(
    primary: &Primary,
    assets: &BTreeSet<Asset>,
    readings: &BTreeMap<AuthorityName, Reading>,
    spendings: &Spendings,
) -> Result<(Ledger, Redemptions, bool), WalletError> {
    let before = primary.latest_head().await?;
    let last_transaction_index = primary.last_transaction_index().await?;
    let (mut totals, mut backing) = (BTreeMap::new(), BTreeMap::new());
    for asset in assets {
        totals.insert(*asset, to_balance(primary.total_balance(*asset).await?));
        backing.insert(*asset, read_backing(primary, *asset).await?);
    }
    let mut redeemed = Redemptions::new();
    for (name, moved) in readings.values().flat_map(|reading| &reading.redemptions) {
        // A spending that is not final has no event here yet.
        let is_other = spendings.get(name).is_some_and(|spending| !spending.pays(moved));
        if !is_other && !redeemed.contains_key(name) && primary.payout(name.0, name.1).await? == Payout::Done {
            redeemed.insert(*name, *moved);
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
    rest.filter(|(_, moved)| moved.asset == asset).fold(Balance::ZERO, |sum, (_, moved)| sum.credit(moved.amount))
}

/// Compares the sums, and describes the contradictions.
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
                findings
                    .push(format!("authority {name}: its redemptions of {asset} are not those of its redemption log"));
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
    use fastpay_ethereum::IFastPay;

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
            restored: false,
            votes: true,
            joining: None,
        }
    }

    /// Two shards: 100 deposited, 30 forwarded of which 20 have arrived, 15 redeemed in two orders.
    fn reading() -> Reading {
        let first = AssetTotals {
            accounts: units(55),
            deposited: units(100),
            credited: units(0),
            forwarded: units(30),
            redeemed: units(15),
        };
        let second = AssetTotals { accounts: units(20), credited: units(20), ..AssetTotals::default() };
        let redemptions = [(0, 10), (1, 5)].map(|(sequence, amount)| (name(sequence), moved(amount)));
        Reading { statuses: vec![shard(0, first), shard(1, second)], redemptions: redemptions.into(), is_pruned: false }
    }

    fn moved(amount: u128) -> Moved {
        Moved { asset: ETHER, amount: Amount(amount), digest: digest(amount) }
    }

    fn digest(amount: u128) -> Digest {
        alloy::primitives::keccak256(amount.to_be_bytes())
    }

    fn name(sequence: u64) -> (AccountId, SequenceNumber) {
        (AccountId([7; 32]), SequenceNumber(sequence))
    }

    fn judged(reading: Reading, contract: u128, redeemed: &[(u64, u128)]) -> AuditReport {
        let totals = BTreeMap::from([(ETHER, units(contract))]);
        // The contract holds everything that it owes, to the unit.
        let held = Some(units(contract).plus(units(3)));
        let backing = BTreeMap::from([(ETHER, Backing { queued: units(4), claims: units(3), held })]);
        let ledger = Ledger { last_transaction_index: TransactionIndex(2), totals, backing };
        let redeemed = redeemed.iter().map(|(sequence, amount)| (name(*sequence), moved(*amount))).collect();
        judge(&ledger, &BTreeMap::from([(AuthorityName([1; 32]), reading)]), &redeemed, BTreeMap::new())
    }

    #[test]
    fn what_is_in_flight_and_what_is_to_be_redeemed_counts() {
        // With none, one, or both redeemed.
        for (contract, redeemed) in [(100, &[][..]), (90, &[(0, 10)]), (85, &[(0, 10), (1, 5)])] {
            let report = judged(reading(), contract, redeemed);
            assert!(report.ok, "{:?}", report.findings);
            assert_eq!(report.assets[0].authorities[0].in_flight, units(10));
        }
        // A redemption that this authority does not know is paid already.
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
        assert!(!judged(hidden, 90, &[]).ok, "its redemption log must explain what it counts as redeemed");
        let mut behind = reading();
        behind.statuses[1].synchronized = TransactionIndex(1);
        assert!(judged(behind, 100, &[]).findings[0].contains("at event 1 of 2"));
    }

    #[test]
    fn a_spent_number_counts_as_paid_only_where_its_own_order_was() {
        let paid = |sequence, amount| {
            OrderEvent::Redeemed(IFastPay::Redeemed {
                sender: B256::repeat_byte(7),
                recipient: Default::default(),
                asset: ETHER.0,
                index: 1,
                sequence,
                amount,
                fee: 0,
                relayer: Default::default(),
                digest: digest(amount),
            })
        };
        let queued = |sequence, amount| {
            OrderEvent::RedemptionQueued(IFastPay::RedemptionQueued {
                sender: B256::repeat_byte(7),
                recipient: Default::default(),
                asset: ETHER.0,
                index: 1,
                sequence,
                amount,
                fee: 0,
                relayer: Default::default(),
                digest: digest(amount),
                epoch: 0,
                executableAt: U256::ZERO,
            })
        };
        let released = |sequence| {
            let (sender, digest) = (B256::repeat_byte(7), B256::ZERO);
            OrderEvent::RedemptionReleased(IFastPay::RedemptionReleased { sender, index: 2, sequence, digest })
        };
        let known: Redemptions = (0..4).map(|sequence| (name(sequence), moved(10 + u128::from(sequence)))).collect();
        let misspent = |events: &[OrderEvent]| {
            let mut spendings = Spendings::new();
            events.iter().for_each(|event| take_note(&mut spendings, event));
            let misspent = Misspent::of(&known, &spendings);
            let numbers = |of: &Redemptions| of.keys().map(|(_, sequence)| sequence.0).collect::<Vec<_>>();
            (numbers(&misspent.displaced), numbers(&misspent.unexplained), misspent.findings)
        };
        let nothing = (vec![], vec![], vec![]);
        assert_eq!(misspent(&[]), nothing);
        assert_eq!(misspent(&[paid(0, 10), queued(1, 11), queued(2, 12), paid(2, 12)]), nothing);
        // Another order was paid; also one without any certificate.
        let (displaced, unexplained, findings) = misspent(&[paid(0, 99), paid(7, 5)]);
        assert_eq!((displaced, unexplained, findings.len()), (vec![0], vec![0, 7], 3));
        assert!(findings[0].contains("another order was spent under it") && findings[1].contains("paid 99"));
        // The other order is queued and may yet be released. Ours is displaced all the same, and nothing is lost.
        let (displaced, unexplained, findings) = misspent(&[queued(1, 99)]);
        assert_eq!((displaced, unexplained, findings.len()), (vec![1], vec![], 2));
        let (displaced, unexplained, findings) = misspent(&[queued(1, 99), released(1)]);
        assert_eq!((displaced, unexplained, findings.len()), (vec![1], vec![], 1));
        let (displaced, unexplained, findings) = misspent(&[queued(3, 13), released(3), queued(8, 8), released(8)]);
        assert_eq!((displaced, unexplained, findings.len()), (vec![3], vec![], 1));
        assert!(findings[0].contains("released from the queue"), "{findings:?}");
    }
}
