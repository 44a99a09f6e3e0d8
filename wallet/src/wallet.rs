//! The wallet: follows the protocol on its owner's behalf.
//!
//! ```text
//!  send: lock ─► finish what is unfinished ─► what is the account's state? ─► sign ─► store
//!             ▲                                 │ another copy is at it            ─► bring home (`finish`):
//!             └── adopt what it left ◄──────────┘                                     certify ─► store
//!                                                                                     ─► settle ─► store
//! ```
//! Invariants: an order is on disk before it is first sent; no second order is ever signed for a number; a
//! repetition of an unfinished transfer finishes that one instead of paying again.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Certificate, Memo, Payment, PrimaryAddress, Redemption, Rejection,
    SequenceNumber, Transfer, VerifiedCertificate,
};
use fastpay_rpc::AccountState;
use fastpay_telemetry::Tracer;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use crate::error::WalletError;
use crate::folder::{Folder, FolderError, OrderJournal, OrderState};
use fastpay_client::{Answers, Network};
use fastpay_client::{CertificateSource, CommitteeClient, Listener, QuorumError, QuorumOptions, Settled};
use fastpay_client::{claims_above, supported_balance};

/// The maximum wait for another command that uses the same account.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of unfinished orders of other copies that are finished before a new one is signed.
pub(crate) const ADOPTIONS_MAX: usize = 8;
/// The maximum number of certificates submitted at a time.
const SETTLED_AT_ONCE: usize = 16;
/// The maximum number of certificates of one number that are tried, one after another: retired keys can make several.
pub(crate) const CERTIFICATES_MAX: usize = 8;
/// The maximum time for reads, in all.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(5);

/// A transfer as the owner intends it. The wallet adds sender and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A payment to another FastPay account.
    Pay {
        /// The account to pay.
        recipient: AccountId,
        /// The asset.
        asset: Asset,
        /// The amount, in the asset's smallest unit.
        amount: Amount,
        /// The user's own data.
        memo: Memo,
    },
    /// A redemption on the Primary.
    Redeem {
        /// The recipient's Ethereum address.
        recipient: PrimaryAddress,
        /// The asset.
        asset: Asset,
        /// The amount debited, in the asset's smallest unit.
        amount: Amount,
        /// The part of `amount` that the relayer gets.
        fee: Amount,
        /// The user's own data.
        memo: Memo,
    },
}

impl Intent {
    /// The asset.
    #[must_use]
    pub fn asset(&self) -> Asset {
        match self {
            Self::Pay { asset, .. } | Self::Redeem { asset, .. } => *asset,
        }
    }

    /// The transfer of this intent by `sender` with a number.
    #[must_use]
    pub fn transfer(&self, sender: AccountId, sequence: SequenceNumber) -> Transfer {
        match *self {
            Self::Pay { recipient, asset, amount, memo } => {
                Transfer::Payment(Payment { sender, recipient, asset, amount, sequence, memo })
            }
            Self::Redeem { recipient, asset, amount, fee, memo } => {
                Transfer::Redemption(Redemption { sender, recipient, asset, amount, fee, sequence, memo })
            }
        }
    }
}

/// A transfer that is settled.
#[derive(Debug)]
pub struct Receipt {
    /// The proof, which anyone can verify.
    pub certificate: VerifiedCertificate,
    /// Whether an earlier command had ordered it, and this one only finished it.
    pub resumed: bool,
    /// The time from sending the order to having the certificate; zero if the certificate was there already.
    pub certified_after: Duration,
    /// The time from sending the certificate to a quorum's confirmation.
    pub settled_after: Duration,
    /// Confirms it at the authorities beyond the quorum; see [`crate::Settled::rest`].
    pub rest: JoinHandle<usize>,
}

/// The outcome of an unfinished order.
#[derive(Debug)]
pub enum Resumed {
    /// It is settled now.
    Settled(Box<Receipt>),
    /// Another order of the same number is certified, so this one never will be.
    Superseded {
        /// The superseded order.
        order: Box<Transfer>,
        /// The certificate of the order that took the number.
        certificate: Box<VerifiedCertificate>,
    },
    /// Another copy finished the number, and its certificate is pruned since; a checkpoint proves what is settled.
    Archived {
        /// The order that was unfinished here.
        order: Box<Transfer>,
        /// What is settled under its number: this order, or the one that took its place.
        settled: Box<Transfer>,
        /// The number of the checkpoint.
        checkpoint: u64,
    },
    /// The contract voided its number, or spent it on another order, so it never happens.
    Voided {
        /// The void order.
        order: Box<Transfer>,
    },
    /// A redemption that the contract has paid or queued. A recovery debited it without its certificate, and the
    /// authorities have stepped over its number.
    Paid {
        /// The redemption.
        order: Box<Transfer>,
    },
}

impl Resumed {
    /// The outcome of the transfer ordered under a number, by the receipt of the number's certificate.
    pub(crate) fn of(ordered: Option<Transfer>, receipt: Receipt) -> Self {
        match ordered {
            Some(order) if &order != receipt.certificate.transfer() => {
                Self::Superseded { order: Box::new(order), certificate: Box::new(receipt.certificate) }
            }
            _ => Self::Settled(Box::new(receipt)),
        }
    }
}

/// An account holder's side of FastPay. Cheap to clone.
#[derive(Clone)]
pub struct Wallet {
    folder: Folder,
    client: CommitteeClient,
    /// Held by the one attempt that follows the contract on an authority's word.
    pub(crate) following: Arc<tokio::sync::Mutex<()>>,
}

/// The certificates in the wallet's folder.
struct StoredCertificates(Folder);

impl CertificateSource for StoredCertificates {
    fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<Certificate> {
        match self.0.orders(account).entry(sequence) {
            Ok(entry) => entry?.certificate,
            Err(error) => {
                tracing::warn!(%error, "a stored certificate cannot be read; asking the authorities for it");
                None
            }
        }
    }
}

impl Wallet {
    /// A wallet with its files in `folder`, which calls the authorities of `network`.
    #[must_use]
    pub fn new(folder: Folder, network: Network, options: QuorumOptions) -> Self {
        let source = Arc::new(StoredCertificates(folder.clone()));
        Self { client: CommitteeClient::new(network, source, options), folder, following: Arc::default() }
    }

    /// The same wallet, which reports the progress of its orders to `listener`.
    #[must_use]
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.client = self.client.with_listener(listener);
        self
    }

    /// The same wallet, which traces its orders with `tracer`.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Self {
        self.client = self.client.with_tracer(tracer);
        self
    }

    /// Its files.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The committees, and the clients of the authorities.
    #[must_use]
    pub fn network(&self) -> &Network {
        self.client.network()
    }

    pub(crate) fn client(&self) -> &CommitteeClient {
        &self.client
    }

    /// Makes a transfer and returns when it is settled. If the same transfer is unfinished from before, it finishes
    /// that one and makes no second.
    ///
    /// # Errors
    /// See [`WalletError`]. After [`WalletError::Quorum`], the order may have been sent: [`Wallet::resume`], or the
    /// same call again, continues with it.
    pub async fn send(&self, key: &AccountKey, intent: &Intent) -> Result<Receipt, WalletError> {
        let account = key.account();
        let journal = self.folder.orders(account).lock(LOCK_PATIENCE).await?;
        for _ in 0..ADOPTIONS_MAX {
            for entry in journal.orders().unfinished()? {
                // Only an order that was begun here can be this very transfer, not a certificate of another copy.
                let ordered = entry.order.as_ref().map(|order| &order.transfer);
                let sequence = entry.sequence;
                let same = ordered == Some(&intent.transfer(account, sequence));
                match self.finish(&journal, entry, &mut Vec::new()).await? {
                    Resumed::Settled(receipt) if same => return Ok(*receipt),
                    // It is done, and must not be done twice.
                    Resumed::Archived { order, settled, checkpoint } if same && order == settled => {
                        return Err(WalletError::SettledBefore { account, sequence, checkpoint });
                    }
                    Resumed::Paid { .. } if same => return Err(WalletError::PaidBefore { account, sequence }),
                    _ => {}
                }
            }
            let Some(sequence) = self.check_standing(&journal, intent).await? else { continue };
            let transfer = intent.transfer(account, sequence);
            // Authorities refuse it: it must not occupy a number.
            if matches!(&transfer, Transfer::Payment(payment) if payment.is_lost_in_pool()) {
                return Err(WalletError::Argument(Rejection::NoDepositMemo.to_string()));
            }
            let order = key.order(self.network().domain(), transfer);
            let order = order.verify(self.network().domain())?;
            journal.create(&order)?;
            let receipt = self.bring_home(&journal, &order, order.clone(), false).await?;
            if receipt.certificate.transfer() == order.transfer() {
                return Ok(receipt);
            }
            return Err(QuorumError::Superseded { certificate: Box::new(receipt.certificate) }.into());
        }
        Err(WalletError::OtherCopy { account })
    }

    /// Finishes every order of `account` that is unfinished here, and those of other copies of this wallet that
    /// authorities are locked on.
    ///
    /// # Errors
    /// As [`Wallet::send`], for the first one that cannot be finished.
    pub async fn resume(&self, account: AccountId) -> Result<Vec<Resumed>, WalletError> {
        let journal = self.folder.orders(account).lock(LOCK_PATIENCE).await?;
        let mut resumed = Vec::new();
        for _ in 0..ADOPTIONS_MAX {
            for entry in journal.orders().unfinished()? {
                let finished = self.finish(&journal, entry, &mut resumed).await?;
                resumed.push(finished);
            }
            let answers = self.ask_account(account).await?;
            let renewed = self.renew(&journal, journal.orders().next_sequence()?, &answers).await?;
            if !renewed.is_empty() {
                resumed.extend(renewed);
                continue;
            }
            let next = self.catch_up(&journal, &answers).await?;
            // The certificate found last may still have to be settled.
            if !self.adopt(&journal, next, &answers)? && journal.orders().unfinished()?.is_empty() {
                return Ok(resumed);
            }
        }
        Err(WalletError::OtherCopy { account })
    }

    /// The verified certificate that `account` sent under `sequence`, from this wallet or an authority.
    pub async fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        match self.client.certificate(account, sequence).await {
            None if self.follow_hint().await => self.client.certificate(account, sequence).await,
            found => found,
        }
    }

    /// As [`Wallet::certificate`], from the authorities alone.
    pub(crate) async fn find_certificate(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Option<VerifiedCertificate> {
        match self.network().find_certificate(account, sequence).await {
            None if self.follow_hint().await => self.network().find_certificate(account, sequence).await,
            found => found,
        }
    }

    /// As [`Wallet::find_certificate`], without a certificate that does not prove that the number was executed: a recovery
    /// has ended its epoch, too few members attest it, or the contract has voided its number. That is only known once the
    /// certificate was sent to the authorities.
    pub(crate) async fn find_counting_certificate(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Option<VerifiedCertificate> {
        self.find_examined(account, sequence).await.map(|(found, _)| found)
    }

    /// The certificate that `account` sent under `sequence`, once it is settled: the folder's, if it was settled here, or an
    /// authority's. `None` also if that cannot be found out now.
    pub async fn find_settled(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        if let Ok(Some(own)) = self.folder().orders(account).entry(sequence)
            && own.state == OrderState::Settled
            && let Some(stored) = own.certificate
            && let Ok(settled) = self.network().verify_certificate(stored, account, sequence)
        {
            return Some(settled);
        }
        let (found, is_settled) = self.find_examined(account, sequence).await?;
        is_settled.then_some(found)
    }

    /// A certificate that may count, and whether it is settled. `None` also after so many that do not count that there may
    /// be more: then only proofs that need no certificate decide.
    pub(crate) async fn find_examined(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Option<(VerifiedCertificate, bool)> {
        let mut found = self.find_certificate(account, sequence).await?;
        for _ in 0..CERTIFICATES_MAX {
            match self.through_epochs(|| self.client().settle(&found)).await {
                // Keys of a retired committee may have made it. Another authority may have another one.
                Err(QuorumError::EpochEnded(_) | QuorumError::Outdated(_)) => {
                    found = self.find_certificate(account, sequence).await?;
                }
                // Its owner signed two orders, and an authority has kept the certificate of one hidden. Or an archive says
                // which order was executed.
                Err(QuorumError::Voided { .. } | QuorumError::Pruned { .. }) => return None,
                Ok(_) => return Some((found, true)),
                Err(_) => return Some((found, false)),
            }
        }
        None
    }

    /// Has certificates settled, many at a time, until `READ_PATIENCE` is over, and notes each outcome.
    pub(crate) async fn settle_many(
        &self,
        certificates: impl IntoIterator<Item = VerifiedCertificate>,
        mut note: impl FnMut(VerifiedCertificate, Result<Settled, QuorumError>) -> Result<(), FolderError>,
    ) -> Result<(), FolderError> {
        let (mut waiting, mut settling) = (certificates.into_iter(), JoinSet::new());
        let until = Instant::now() + READ_PATIENCE;
        loop {
            while settling.len() < SETTLED_AT_ONCE
                && let Some(certificate) = waiting.next()
            {
                let wallet = self.clone();
                settling.spawn(async move {
                    let settled = wallet.through_epochs(|| wallet.client().settle(&certificate)).await;
                    (certificate, settled)
                });
            }
            match timeout_at(until, settling.join_next()).await {
                Ok(Some(Ok((certificate, settled)))) => note(certificate, settled)?,
                Ok(Some(Err(_))) => {}
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    /// An account's state at every authority that answers; at least a quorum of members.
    pub(crate) async fn ask_account(&self, account: AccountId) -> Result<Answers<AccountState>, WalletError> {
        let ask = || self.network().account(account, Instant::now() + READ_PATIENCE);
        self.among_members(|| async { self.enough(ask().await) }).await
    }

    /// As `ask_account`, with the balance of one asset: a list of all assets may be incomplete.
    pub(crate) async fn ask_account_asset(
        &self,
        account: AccountId,
        asset: Asset,
    ) -> Result<Answers<AccountState>, WalletError> {
        let ask = || self.network().account_asset(account, asset, Instant::now() + READ_PATIENCE);
        self.among_members(|| async { self.enough(ask().await) }).await
    }

    /// Checks that a quorum of members has answered.
    pub(crate) fn enough<T>(&self, answers: Answers<T>) -> Result<Answers<T>, WalletError> {
        let answered = self.network().of_members(&answers).len();
        let quorum = self.network().committee().quorum();
        if answered < quorum {
            return Err(WalletError::TooFewAnswers { answered, quorum });
        }
        Ok(answers)
    }

    /// The number for a new order, after checking that the order can be paid: an error is better before a number is
    /// bound to an order. `None` if an order of another copy of this wallet must be finished first.
    async fn check_standing(
        &self,
        journal: &OrderJournal,
        intent: &Intent,
    ) -> Result<Option<SequenceNumber>, WalletError> {
        let answers = self.ask_account_asset(journal.orders().account(), intent.asset()).await?;
        let sequence = self.catch_up(journal, &answers).await?;
        self.check_covered(journal, intent, sequence, &answers).await
    }

    /// As `check_standing`, for a wallet that has caught up with these answers to this next number.
    pub(crate) async fn check_covered(
        &self,
        journal: &OrderJournal,
        intent: &Intent,
        sequence: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<Option<SequenceNumber>, WalletError> {
        let (account, asset) = (journal.orders().account(), intent.asset());
        if !self.renew(journal, journal.orders().next_sequence()?, answers).await?.is_empty() {
            return Ok(None);
        }
        if self.adopt(journal, sequence, answers)? || !journal.orders().unfinished()?.is_empty() {
            return Ok(None);
        }
        let needed = intent.transfer(account, sequence).amount();
        let Some(available) = self.available(journal, sequence, asset, answers) else { return Ok(Some(sequence)) };
        if available.covers(needed) {
            return Ok(Some(sequence));
        }
        // A payment to this account may be known to few authorities: receive it, and check again.
        self.collect(account).await?;
        let answers = self.ask_account_asset(account, asset).await?;
        match self.available(journal, sequence, asset, &answers) {
            Some(available) if !available.covers(needed) => {
                Err(WalletError::Funds { account, asset, needed, available })
            }
            _ => Ok(Some(sequence)),
        }
    }

    fn available(
        &self,
        journal: &OrderJournal,
        sequence: SequenceNumber,
        asset: Asset,
        answers: &Answers<AccountState>,
    ) -> Option<fastpay_core::Balance> {
        let states: Vec<_> = self.network().of_members(answers).into_values().collect();
        supported_balance(&states, sequence, asset, self.network().trusted_count(), |sequence| {
            if journal.orders().is_voided(sequence).ok()? {
                return Some((asset, Amount::ZERO));
            }
            let entry = journal.orders().entry(sequence).ok()??;
            entry.transfer().map(|transfer| (transfer.asset(), transfer.amount()))
        })
    }

    /// Whether an archive proves that a number was taken. What a recovery debited may stand behind numbers that are free:
    /// then f + 1 authorities must have stepped over it, too.
    async fn is_archived(&self, account: AccountId, sequence: SequenceNumber, answers: &Answers<AccountState>) -> bool {
        let deadline = Instant::now() + READ_PATIENCE;
        match self.network().archived_number(account, sequence, deadline).await {
            Some(entry) => !entry.is_paid || self.is_stepped_over(sequence, answers),
            None => false,
        }
    }

    /// The highest next number that is proven by the certificate before it, by an archive if that is pruned, or by the
    /// contract if the number before it is void, or spent and stepped over. It is at least `known`. All claims are examined
    /// at the same time: a false one delays no other.
    pub(crate) async fn proven_next(
        &self,
        account: AccountId,
        known: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> SequenceNumber {
        let answers = Arc::new(answers.clone());
        let (mut examined, mut proven) = (JoinSet::new(), known);
        for claim in claims_above(&answers, known) {
            let Some(previous) = claim.0.checked_sub(1).map(SequenceNumber) else { continue };
            let (wallet, answers) = (self.clone(), answers.clone());
            examined.spawn(async move { (claim, wallet.is_used(account, previous, &answers).await) });
        }
        while let Some(outcome) = examined.join_next().await {
            match outcome {
                Ok((claim, true)) => proven = proven.max(claim),
                Ok((claim, false)) => {
                    tracing::warn!(%account, %claim, "an authority claims a sequence number that it cannot prove");
                }
                Err(_) => {}
            }
        }
        proven
    }

    /// Whether a number is proven to be used.
    async fn is_used(&self, account: AccountId, sequence: SequenceNumber, answers: &Answers<AccountState>) -> bool {
        self.find_certificate(account, sequence).await.is_some()
            || self.is_archived(account, sequence, answers).await
            || self.is_void(account, sequence, answers).await
            || self.is_spent_unexecuted(account, sequence, answers).await
    }
}
