//! Many accounts of both kinds that pay one another concurrently through the wallet library.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastpay_client::{CommitteeClient, NoCertificates, QuorumOptions};
use fastpay_core::{AccountId, AccountKey, Amount, Asset, Memo, PrimaryAddress, SequenceNumber};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{ErrorKind, Intent, Wallet};
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::network::Network;

/// The time limit for one account's state, also on a busy machine.
const READ_PATIENCE: Duration = Duration::from_secs(120);
/// The number of attempts at one payment while too few authorities answer in time: on a busy machine one of them can be
/// late while another is dead.
const ATTEMPTS: usize = 10;

/// The accounts, with one wallet for all. Cheap to clone.
#[derive(Clone)]
pub struct Payers {
    wallet: Wallet,
    keys: Arc<Vec<AccountKey>>,
    settled: Arc<AtomicUsize>,
}

/// The figures of many payments.
#[derive(Clone, Debug, Default)]
pub struct PaymentReport {
    /// The number of settled payments.
    pub payments: usize,
    /// The time from the first order to the last settlement.
    pub elapsed: Duration,
    /// The times from order to certificate, ascending.
    pub certified_after: Vec<Duration>,
}

impl PaymentReport {
    /// A percentile of the times to a certificate.
    #[must_use]
    pub fn certified_percentile(&self, percent: usize) -> Duration {
        let last = self.certified_after.len().saturating_sub(1);
        self.certified_after.get(last * percent / 100).copied().unwrap_or_default()
    }
}

impl Payers {
    /// Creates this many accounts, every other one with an Ethereum key.
    ///
    /// # Errors
    /// If the file of endpoints is malformed.
    pub fn new(network: &Network, size: u8) -> Result<Self, Failure> {
        let key = |number: u8| {
            let secret = [number + 1; 32];
            if number.is_multiple_of(2) { Ok(AccountKey::ed25519(secret)) } else { AccountKey::ethereum(secret) }
        };
        let keys: Result<Vec<_>, _> = (0..size).map(key).collect();
        let folder = Folder::new(network.place().path("wallets/payers"));
        folder.create().map_err(Failure::wrong)?;
        let wallet = Wallet::new(folder, network.wallet_network()?, QuorumOptions::default());
        let keys = Arc::new(keys.map_err(Failure::wrong)?);
        Ok(Self { wallet, keys, settled: Arc::default() })
    }

    /// The accounts.
    #[must_use]
    pub fn accounts(&self) -> Vec<AccountId> {
        self.keys.iter().map(AccountKey::account).collect()
    }

    /// Their wallet.
    #[must_use]
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The number of payments settled so far.
    #[must_use]
    pub fn settled(&self) -> usize {
        self.settled.load(Ordering::Relaxed)
    }

    fn key(&self, member: usize) -> Result<&AccountKey, Failure> {
        self.keys.get(member).ok_or_else(|| Failure::Wrong(format!("there is no payer {member}")))
    }

    /// Makes one payment or redemption of a member. Returns the time to its certificate. Retries while too few
    /// authorities answer, which never pays twice.
    ///
    /// # Errors
    /// If it is not settled.
    pub async fn send(&self, member: usize, intent: Intent) -> Result<Duration, Failure> {
        let key = self.key(member)?;
        let mut receipt = self.wallet.send(key, &intent).await;
        for _ in 1..ATTEMPTS {
            if !receipt.as_ref().is_err_and(|error| error.kind() == ErrorKind::Unreachable) {
                break;
            }
            receipt = self.wallet.send(key, &intent).await;
        }
        let receipt = receipt.map_err(|error| Failure::Wrong(format!("member {member}: {error}")))?;
        self.settled.fetch_add(1, Ordering::Relaxed);
        Ok(receipt.certified_after)
    }

    /// The payments that [`Payers::pay`] makes: payer, recipient, asset and amount. Each member in turn pays a
    /// different member and the next asset. The amounts are 1, 2, 3 … of the asset's smallest unit, so that a lost or
    /// doubled payment shows in the balances.
    #[must_use]
    pub fn plan(&self, each: usize, assets: &[Asset]) -> Vec<Vec<(AccountId, Asset, Amount)>> {
        let accounts = self.accounts();
        let one = |member: usize, round: usize| {
            let step = 1 + round % accounts.len().saturating_sub(1).max(1);
            let recipient = accounts.get((member + step) % accounts.len())?;
            let asset = assets.get((member + round) % assets.len())?;
            Some((*recipient, *asset, Amount(1 + round as u128)))
        };
        (0..accounts.len()).map(|member| (0..each).filter_map(|round| one(member, round)).collect()).collect()
    }

    /// Makes the payments of [`Payers::plan`]: all members concurrently, each one payment at a time.
    ///
    /// # Errors
    /// The first payment that is not settled.
    pub async fn pay(&self, each: usize, assets: &[Asset]) -> Result<PaymentReport, Failure> {
        let start = Instant::now();
        let mut paying = JoinSet::new();
        for (member, payments) in self.plan(each, assets).into_iter().enumerate() {
            let payers = self.clone();
            paying.spawn(async move {
                let mut certified_after = Vec::new();
                for (recipient, asset, amount) in payments {
                    let intent = Intent::Pay { recipient, asset, amount, memo: Memo::ZERO };
                    certified_after.push(payers.send(member, intent).await?);
                }
                Ok(certified_after)
            });
        }
        let mut report = PaymentReport::default();
        while let Some(done) = paying.join_next().await {
            let times: Result<_, Failure> = done.map_err(Failure::wrong)?;
            report.certified_after.extend(times?);
        }
        report.certified_after.sort_unstable();
        (report.payments, report.elapsed) = (report.certified_after.len(), start.elapsed());
        Ok(report)
    }

    /// Redeems a member's money to an address on the chain.
    ///
    /// # Errors
    /// If it is not settled.
    pub async fn redeem(
        &self,
        member: usize,
        recipient: PrimaryAddress,
        asset: Asset,
        amount: Amount,
        fee: Amount,
    ) -> Result<(), Failure> {
        self.send(member, Intent::Redeem { recipient, asset, amount, fee, memo: Memo::ZERO }).await.map(drop)
    }

    /// Brings every authority up to date with the transfers of `accounts`, as a wallet does with a lagging authority:
    /// sends their last certificates to all, and then the missing earlier ones.
    ///
    /// # Errors
    /// If an authority does not accept them.
    pub async fn bring_all_up_to_date(&self, accounts: &[AccountId]) -> Result<(), Failure> {
        let network = self.wallet.network();
        // One that was away may lack many earlier ones.
        let options = QuorumOptions { background: READ_PATIENCE, ..QuorumOptions::default() };
        let client = CommitteeClient::new(network.clone(), Arc::new(NoCertificates), options);
        for &account in accounts {
            let answers = network.account(account, tokio::time::Instant::now() + READ_PATIENCE).await;
            let next = answers.iter().filter_map(|(_, answer)| Some(answer.as_ref().ok()?.next_sequence)).max();
            let next = next.ok_or_else(|| Failure::Wrong(format!("no authority tells of {account}")))?;
            let Some(last) = next.0.checked_sub(1) else { continue };
            let certificate = network.find_certificate(account, SequenceNumber(last)).await;
            let lost = || Failure::Wrong(format!("nobody has certificate {last} of {account}"));
            let settled = client.settle(&certificate.ok_or_else(lost)?).await.map_err(Failure::wrong)?;
            let confirmed = settled.rest.await.map_err(Failure::wrong)?;
            if confirmed < network.authorities().len() {
                return Err(Failure::Wrong(format!(
                    "only {confirmed} authorities have certificate {last} of {account}"
                )));
            }
        }
        Ok(())
    }
}
