//! The public audit: is every asset solvent, and does every authority's state follow from certificates and deposits?
//!
//! ```text
//!  contract: deposits ─► crawl: accounts, certificates of every authority ─► books ─┬─► balances, authorities behind
//!                                                    (two for one number ─► proof)  └─► solvency, asset by asset
//!  authorities: own sums, redemptions ─► totals ◄─ contract: totals, queue, claims, what it has
//! ```
//! Nothing is believed: a deposit counts as the contract shows it, and a transfer by its certificate, verified by the
//! committee of its epoch, or by a checkpoint of the current one, if every authority has pruned the certificate. Modules in reading order: `books` (what accounts must hold), `crawl` (reading it), `proof`
//! (of two votes for one number), `totals` (the sums). Values that change during a count look wrong, so the audit
//! counts again until they fit, or the time is up.

mod books;
mod crawl;
mod ledger;
mod proof;
mod totals;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{AccountId, Asset, AuthorityName, Balance, Deposit, Genesis, SequenceNumber, TransactionIndex};
use fastpay_ethereum::{Cursor, DepositReader, OrderEvent, Primary, RANGE_BLOCKS_DEFAULT};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::error::WalletError;
use crate::open::read_genesis;
use crate::wallet::Wallet;

pub use books::Behind;
use books::Books;
use ledger::LedgerEvents;
pub use proof::{Proof, ProofError, SignedVote};
use totals::{Ledger, Misspent, Moved, Name, Reading, Redemptions, Spendings};

const POLL: Duration = Duration::from_millis(300);
/// The maximum number of findings that are listed; further ones are only counted.
const FINDINGS_MAX: usize = 1_000;

/// The outcome of an audit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// Whether a quorum of authorities answered and nothing that was read is wrong.
    pub ok: bool,
    /// The index of the contract's last event.
    pub last_transaction_index: TransactionIndex,
    /// The results by asset.
    pub assets: Vec<AssetAudit>,
    /// The number of accounts that were read one by one, at each authority.
    pub accounts: usize,
    /// The number of sequence numbers with a certificate, or a transfer that a checkpoint proves, as the certificate is
    /// pruned. Each was verified.
    pub certificates: u64,
    /// Authorities that lack certificates which others have. That is no fault: they get them when needed.
    pub behind: BTreeMap<AuthorityName, Behind>,
    /// Proofs that authorities voted for two orders of one number.
    pub misbehaviour: Vec<Proof>,
    /// Authorities that did not answer, and why.
    pub silent: BTreeMap<String, String>,
    /// Authorities that have more assets than they list. Of these, the audit covers the listed assets, ETH, and those
    /// that were deposited or that this wallet knows.
    pub truncated: Vec<AuthorityName>,
    /// The contradictions.
    pub findings: Vec<String>,
}

/// The audit of one asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AssetAudit {
    /// The asset.
    pub asset: Asset,
    /// The contract's balance for accounts.
    pub contract_total: Balance,
    /// The contract's other balances; `None` without a Primary.
    pub backing: Option<Backing>,
    /// The results by authority.
    pub authorities: Vec<AuthorityAudit>,
    /// Where all deposits are, by certificates alone.
    pub solvency: Solvency,
    /// Whether all of it balances.
    pub ok: bool,
}

/// Where all deposits of an asset are, by the contract's events and all certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Solvency {
    /// The sum of all deposits.
    pub deposited: Balance,
    /// The sum of all account balances.
    pub accounts: Balance,
    /// Certified redemptions that the contract has not paid: not submitted, or in its queue.
    pub redeemable: Balance,
    /// The part of `accounts` that was redeemed and credited back: the contract spent the number on another order, or
    /// released the redemption from its queue.
    pub displaced: Balance,
    /// Redemptions that the contract has paid, or that can be claimed there.
    pub redeemed: Balance,
    /// Payments by the contract for orders of which no authority returns a certificate.
    pub unexplained: Balance,
    /// Whether deposited = accounts + redeemable + redeemed, the contract counts all but the redeemed for accounts, and
    /// its token balance covers that and its other debts.
    pub solvent: bool,
}

/// The contract's debts in an asset, and whether it can pay them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Backing {
    /// The part of its balance for accounts that is in its queue.
    pub queued: Balance,
    /// The claims for payouts that could not be made.
    pub claims: Balance,
    /// The token balance of the contract; `None` if the token does not report it.
    pub held: Option<Balance>,
}

/// The audit of one asset at one authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorityAudit {
    /// The authority.
    pub authority: AuthorityName,
    /// The sum of all balances.
    pub accounts_total: Balance,
    /// Credits on the way between its shards.
    pub in_flight: Balance,
    /// Redemptions confirmed here and not paid on the Primary.
    pub redeemable: Balance,
    /// Redemptions paid on the Primary and not confirmed here.
    pub ahead: Balance,
    /// Whether the sum equals the contract's total.
    pub ok: bool,
}

/// How far an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditProgress {
    /// Accounts visited in this round.
    pub visited: usize,
    /// Known accounts that are not visited yet.
    pub waiting: usize,
    /// Certificates verified so far.
    pub certificates: u64,
}

/// Receives an audit's progress.
pub type AuditListener = dyn Fn(&AuditProgress) + Send + Sync;

/// The source of deposits.
enum Source {
    Primary { primary: Primary, reader: DepositReader, cursor: Cursor, spendings: Spendings },
    Ledger(Box<LedgerEvents>),
    Genesis(Genesis),
}

/// An audit under way. An entry that is read again is not counted twice.
struct Audit<'a> {
    wallet: &'a Wallet,
    source: Source,
    authorities: Vec<AuthorityClient>,
    books: Books,
    listener: &'a AuditListener,
}

impl Wallet {
    /// Audits the contract and the committee, every account at every authority. Waits up to `patience` for authorities
    /// to follow the contract's last event, and for a moment in which nothing changes.
    ///
    /// # Errors
    /// If the Primary or a quorum of authorities does not answer. Contradictions are no error here, but in the report.
    pub async fn audit(&self, patience: Duration, listener: &AuditListener) -> Result<AuditReport, WalletError> {
        let until = Instant::now() + patience;
        let mut audit = Audit::begin(self, listener).await?;
        loop {
            let (mut report, is_still) = audit.once().await?;
            if report.ok && is_still {
                return Ok(report);
            }
            if Instant::now() >= until {
                if !report.ok && !is_still {
                    report
                        .findings
                        .push("payments were made during the audit; audit again when there are fewer".into());
                }
                return Ok(report);
            }
            sleep(POLL).await;
        }
    }

    /// Verifies a proof of misbehaviour against the committees that this wallet knows, without network access.
    ///
    /// # Errors
    /// If the proof is not valid.
    pub fn verify_proof(&self, proof: &Proof) -> Result<(), ProofError> {
        proof.verify(self.network().domain(), &self.network().committees())
    }
}

impl<'a> Audit<'a> {
    async fn begin(wallet: &'a Wallet, listener: &'a AuditListener) -> Result<Self, WalletError> {
        let config = wallet.folder().config()?;
        let source = match (&config.genesis, wallet.ledger().await?) {
            (_, Some(ledger)) => Source::Ledger(Box::new(LedgerEvents::new(ledger)?)),
            (Some(path), None) => Source::Genesis(read_genesis(path)?),
            (None, None) => {
                let primary = wallet.primary().await?;
                let reader = DepositReader::new(primary.clone(), RANGE_BLOCKS_DEFAULT);
                let cursor = reader.start().await?;
                Source::Primary { primary, reader, cursor, spendings: Spendings::new() }
            }
        };
        let authorities = wallet.network().authorities().to_vec();
        let mut books = Books::new(authorities.iter().map(AuthorityClient::name).collect());
        if let Source::Genesis(genesis) = &source {
            genesis.deposits().for_each(|deposit: Deposit| books.deposit(&deposit));
        }
        Ok(Self { wallet, source, authorities, books, listener })
    }

    /// Counts everything once. Also returns whether the sums stayed the same meanwhile.
    async fn once(&mut self) -> Result<(AuditReport, bool), WalletError> {
        self.read_deposits().await?;
        let (mut readings, mut silent) = (BTreeMap::new(), BTreeMap::new());
        for authority in &self.authorities {
            match totals::read_authority(self.wallet.network(), authority).await {
                Ok(reading) => drop(readings.insert(authority.name(), reading)),
                Err(error) => drop(silent.insert(authority.name().to_string(), error.to_string())),
            }
        }
        self.enough(&readings)?;
        for (sender, _) in readings.values().flat_map(|reading| reading.redemptions.keys()) {
            self.books.open(*sender);
        }
        // The second round reads states that are newer than everything that the first one counted.
        for _ in 0..2 {
            crawl::round(self.wallet.network(), &self.authorities, &mut self.books, self.listener).await;
        }
        for (name, reading) in readings.iter_mut().filter(|(_, reading)| reading.is_pruned) {
            reading.redemptions.extend(self.books.redemptions_confirmed_by(*name));
        }
        let assets = self.assets(&readings)?;
        for authority in &self.authorities {
            let Some(reading) = readings.get_mut(&authority.name()) else { continue };
            if let Err(error) = totals::add_totals(authority, &mut reading.statuses, &assets).await {
                readings.remove(&authority.name());
                silent.insert(authority.name().to_string(), error.to_string());
            }
        }
        self.enough(&readings)?;
        let (ledger, redeemed, is_still) = match &self.source {
            Source::Primary { primary, spendings, .. } => {
                totals::read_primary(primary, &assets, &readings, spendings).await?
            }
            Source::Ledger(events) => events.totals(&assets, &readings).await?,
            Source::Genesis(genesis) => (totals::read_genesis_ledger(&genesis.balances), Redemptions::new(), true),
        };
        let mut again = true;
        for authority in &self.authorities {
            let Some(reading) = readings.get(&authority.name()) else { continue };
            let now = async {
                let mut now = fastpay_client::authority_status(authority).await?;
                totals::add_totals(authority, &mut now, &assets).await?;
                Ok::<_, ClientError>(now)
            };
            again &= now.await.is_ok_and(|now| now == reading.statuses);
        }
        Ok((self.report(&ledger, readings, &redeemed, silent), is_still && again))
    }

    /// Reads the new deposits, up to the newest final block.
    async fn read_deposits(&mut self) -> Result<(), WalletError> {
        let (reader, cursor, spendings) = match &mut self.source {
            Source::Primary { reader, cursor, spendings, .. } => (reader, cursor, spendings),
            Source::Ledger(events) => return events.read(&mut self.books).await,
            Source::Genesis(_) => return Ok(()),
        };
        loop {
            let batch = reader.next(cursor).await?;
            batch.events.iter().for_each(|event| totals::take_note(spendings, event));
            batch.deposits.iter().for_each(|deposit| self.books.deposit(deposit));
            for event in &batch.events {
                match event {
                    OrderEvent::SequenceVoided(voided) => {
                        self.books.void(AccountId(voided.account.0), SequenceNumber(voided.sequence));
                    }
                    OrderEvent::CommitteeInstalled(installed) if installed.compromisedSince < installed.epoch => {
                        self.books.recovered();
                    }
                    _ => {}
                }
            }
            *cursor = batch.cursor;
            if cursor.block_number >= batch.final_block {
                return Ok(());
            }
        }
    }

    fn enough(&self, readings: &BTreeMap<AuthorityName, Reading>) -> Result<(), WalletError> {
        let committee = self.wallet.network().committee();
        let answered = readings.keys().filter(|name| committee.member(name).is_some()).count();
        let quorum = committee.quorum();
        if answered < quorum { Err(WalletError::TooFewAnswers { answered, quorum }) } else { Ok(()) }
    }

    fn assets(&self, readings: &BTreeMap<AuthorityName, Reading>) -> Result<BTreeSet<Asset>, WalletError> {
        let totals = readings.values().flat_map(|reading| &reading.statuses).flat_map(|status| &status.totals);
        let mut assets: BTreeSet<_> = totals.map(|(asset, _)| *asset).collect();
        assets.insert(Asset::ETHER);
        assets.extend(self.books.assets());
        assets.extend(self.wallet.folder().known_assets()?);
        Ok(assets)
    }

    fn report(
        &mut self,
        ledger: &Ledger,
        mut readings: BTreeMap<AuthorityName, Reading>,
        redeemed: &Redemptions,
        silent: BTreeMap<String, String>,
    ) -> AuditReport {
        let nothing = Spendings::new();
        let spendings = match &self.source {
            Source::Primary { spendings, .. } => spendings,
            Source::Ledger(events) => events.spendings(),
            Source::Genesis(_) => &nothing,
        };
        self.books.credit_back(spendings);
        let is_paid = |name: &Name, moved: &Moved| spendings.get(name).is_none_or(|spending| spending.pays(moved));
        readings.values_mut().for_each(|reading| reading.redemptions.retain(|name, moved| is_paid(name, moved)));
        let mut known: Redemptions = self.books.redemptions().collect();
        let misspent = Misspent::of(&known, spendings);
        known.retain(|name, moved| is_paid(name, moved));
        let mut report = totals::judge(ledger, &readings, redeemed, silent);
        report.accounts = self.books.accounts().count();
        report.certificates = self.books.certificates();
        report.behind = self.books.behind();
        report.misbehaviour = self.books.proofs();
        report.findings.extend(self.books.findings(&readings));
        report.findings.extend(misspent.findings.iter().cloned());
        let sums = self.books.sums();
        for audit in &mut report.assets {
            let (deposited, accounts) = sums.get(&audit.asset).copied().unwrap_or_default();
            audit.solvency = solvency(audit, deposited, accounts, &known, redeemed, &misspent);
            if !audit.solvency.solvent {
                let Solvency { deposited, accounts, redeemable, redeemed, .. } = audit.solvency;
                report.findings.push(format!(
                    "{}: {deposited} were deposited, and certificates put {accounts} into accounts, {redeemable} are to \
                     be redeemed and {redeemed} are redeemed; the contract holds {} for accounts",
                    audit.asset, audit.contract_total
                ));
            }
            audit.ok &= audit.solvency.solvent;
        }
        let count = report.findings.len();
        if count > FINDINGS_MAX {
            report.findings.truncate(FINDINGS_MAX);
            report.findings.push(format!("and {} more", count.saturating_sub(FINDINGS_MAX)));
        }
        report.ok = count == 0;
        report
    }
}

/// Whether the contract's balance of an asset covers `deposited` and the balances of `accounts`.
fn solvency(
    audit: &AssetAudit,
    deposited: Balance,
    accounts: Balance,
    known: &Redemptions,
    redeemed: &Redemptions,
    misspent: &Misspent,
) -> Solvency {
    let nothing = Redemptions::new();
    let displaced = totals::sum(&misspent.displaced, audit.asset, &nothing);
    let redeemable = totals::sum(known, audit.asset, redeemed);
    let redeemed = totals::sum(redeemed, audit.asset, &nothing);
    let unexplained = totals::sum(&misspent.unexplained, audit.asset, &nothing);
    let for_accounts = accounts.plus(redeemable);
    let is_backed =
        audit.backing.is_none_or(|backing| backing.held.is_none_or(|held| held >= for_accounts.plus(backing.claims)));
    let solvent = is_backed && for_accounts == audit.contract_total && deposited == for_accounts.plus(redeemed);
    Solvency { deposited, accounts, redeemable, displaced, redeemed, unexplained, solvent }
}
