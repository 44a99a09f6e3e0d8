//! The wallet: keeps every promise of the protocol on its owner's side.
//!
//! ```text
//!  send: lock ─► finish what is unfinished ─► where does the account stand? ─► sign ─► write down
//!        ─► certify ─► write down ─► settle ─► write down
//! ```
//! Invariants: an order is on disk before it is first sent; no second order is ever signed for a number; a
//! repetition of an unfinished transfer finishes that one instead of paying again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Certificate, Digest, Memo, Payment, PrimaryAddress, Redemption,
    SequenceNumber, Transfer, VerifiedCertificate, VerifiedOrder,
};
use fastpay_rpc::AccountState;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::drive::{Backoff, CertificateSource, DriveError, DriveOptions, Driver, Listener};
use crate::error::WalletError;
use crate::folder::{Folder, OrderEntry, OrderJournal};
use crate::network::{Answers, Network};
use crate::standing::{claims_above, supported_balance};

/// How long a command waits for another one that uses the same account.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How long reads may take in all.
pub(crate) const READ_PATIENCE: Duration = Duration::from_secs(5);

/// What the owner wants to happen; the wallet adds sender and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// To another FastPay account.
    Pay {
        /// Who is paid.
        recipient: AccountId,
        /// What.
        asset: Asset,
        /// How much.
        amount: Amount,
        /// Free for the user.
        memo: Memo,
    },
    /// To the Primary.
    Redeem {
        /// Who is paid there.
        recipient: PrimaryAddress,
        /// What.
        asset: Asset,
        /// How much is debited.
        amount: Amount,
        /// The relayer's part of it.
        fee: Amount,
        /// Free for the user.
        memo: Memo,
    },
}

impl Intent {
    /// What is moved.
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
    /// True where it had been ordered before and was only finished now.
    pub resumed: bool,
    /// From sending the order to holding the certificate; zero where that was held already.
    pub certified_after: Duration,
    /// From sending the certificate to a quorum's confirmation.
    pub settled_after: Duration,
    /// Goes on with the authorities beyond the quorum; see [`crate::Settled::rest`].
    pub rest: JoinHandle<usize>,
}

/// What became of an order that was unfinished.
#[derive(Debug)]
pub enum Resumed {
    /// It is settled now.
    Settled(Box<Receipt>),
    /// Another order of the same number is final; this one never will be.
    Superseded {
        /// What did not happen.
        order: Box<Transfer>,
        /// What happened in its place.
        certificate: Box<VerifiedCertificate>,
    },
}

/// An account holder's side of FastPay. Cheap to clone.
#[derive(Clone)]
pub struct Wallet {
    folder: Folder,
    driver: Driver,
}

/// The certificates in the wallet's folder.
struct StoredCertificates(Folder);

impl CertificateSource for StoredCertificates {
    fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<Certificate> {
        match self.0.orders(account).entry(sequence) {
            Ok(entry) => entry?.certificate,
            Err(error) => {
                tracing::warn!(%error, "a stored certificate cannot be read; authorities are asked for it");
                None
            }
        }
    }
}

impl Wallet {
    /// A wallet that keeps its files in `folder` and speaks to `network`.
    #[must_use]
    pub fn new(folder: Folder, network: Network, options: DriveOptions) -> Self {
        let source = Arc::new(StoredCertificates(folder.clone()));
        Self { driver: Driver::new(network, source, options), folder }
    }

    /// The same, which tells `listener` of the progress of its orders.
    #[must_use]
    pub fn with_listener(mut self, listener: Listener) -> Self {
        self.driver = self.driver.with_listener(listener);
        self
    }

    /// Its files.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The committee.
    #[must_use]
    pub fn network(&self) -> &Network {
        self.driver.network()
    }

    pub(crate) fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Makes a transfer and returns when it is settled. Where the same transfer is unfinished from before,
    /// that one is finished and no second one made.
    ///
    /// # Errors
    /// See [`WalletError`]. After [`WalletError::Drive`] the order may have been sent: [`Wallet::resume`], or
    /// the same call again, goes on with it.
    pub async fn send(&self, key: &AccountKey, intent: &Intent) -> Result<Receipt, WalletError> {
        let account = key.account();
        let journal = self.folder.orders(account).lock(LOCK_PATIENCE).await?;
        for entry in journal.orders().unfinished()? {
            let same = entry.transfer() == Some(&intent.transfer(account, entry.sequence));
            match self.finish(&journal, entry).await? {
                Resumed::Settled(receipt) if same => return Ok(*receipt),
                _ => {}
            }
        }
        let sequence = self.check_standing(&journal, intent).await?;
        let order = key.order(self.network().domain(), intent.transfer(account, sequence));
        let order = order.verify(self.network().domain())?;
        journal.create(&order)?;
        self.drive(&journal, &order, false).await
    }

    /// Finishes every order of `account` that is unfinished here, and one of another copy of this wallet
    /// that authorities are locked on.
    ///
    /// # Errors
    /// As [`Wallet::send`], for the first that cannot be finished.
    pub async fn resume(&self, account: AccountId) -> Result<Vec<Resumed>, WalletError> {
        let journal = self.folder.orders(account).lock(LOCK_PATIENCE).await?;
        let mut resumed = Vec::new();
        for entry in journal.orders().unfinished()? {
            resumed.push(self.finish(&journal, entry).await?);
        }
        let answers = self.ask_account(account).await?;
        let next = self.proven_next(account, journal.orders().next_sequence()?, &answers).await;
        if let Some(order) = self.foreign_orders(account, next, &answers).first() {
            journal.create(order)?;
            if let Some(entry) = journal.orders().entry(next)? {
                resumed.push(self.finish(&journal, entry).await?);
            }
        }
        Ok(resumed)
    }

    /// The verified certificate that `account` sent under `sequence`, from this wallet or an authority.
    pub async fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        match self.driver.certificate(account, sequence).await {
            None if self.follow_hint().await => self.driver.certificate(account, sequence).await,
            found => found,
        }
    }

    /// The same from the authorities alone.
    async fn find_certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        match self.network().find_certificate(account, sequence).await {
            None if self.follow_hint().await => self.network().find_certificate(account, sequence).await,
            found => found,
        }
    }

    /// An account's state at every authority that answers; at least a quorum.
    pub(crate) async fn ask_account(&self, account: AccountId) -> Result<Answers<AccountState>, WalletError> {
        self.enough(self.network().account(account, Instant::now() + READ_PATIENCE).await)
    }

    /// The same, with what it holds of one asset: a list of all may be cut before that one.
    pub(crate) async fn ask_account_asset(
        &self,
        account: AccountId,
        asset: Asset,
    ) -> Result<Answers<AccountState>, WalletError> {
        self.enough(self.network().account_asset(account, asset, Instant::now() + READ_PATIENCE).await)
    }

    fn enough(&self, answers: Answers<AccountState>) -> Result<Answers<AccountState>, WalletError> {
        let answered = answers.iter().filter(|(_, answer)| answer.is_ok()).count();
        let quorum = self.network().committee().quorum();
        if answered < quorum {
            return Err(WalletError::TooFewAnswers { answered, quorum });
        }
        Ok(answers)
    }

    /// Finishes an order that was written down before.
    async fn finish(&self, journal: &OrderJournal, entry: OrderEntry) -> Result<Resumed, WalletError> {
        let (account, sequence) = (journal.orders().account(), entry.sequence);
        if let Some(stored) = entry.certificate {
            match self.network().verify_certificate(stored, account, sequence) {
                Ok(certificate) => return Ok(Resumed::Settled(Box::new(self.settle(journal, certificate).await?))),
                Err(error) => tracing::warn!(%sequence, %error, "a stored certificate does not stand up"),
            }
        }
        let Some(order) = entry.order else {
            let error = "its certificate is not of this committee, and there is no order";
            return Err(WalletError::Argument(format!("sequence number {sequence}: {error}")));
        };
        let order = order.verify(self.network().domain())?;
        match self.drive(journal, &order, true).await {
            Ok(receipt) => Ok(Resumed::Settled(Box::new(receipt))),
            Err(WalletError::Drive(DriveError::Superseded { certificate })) => {
                Ok(Resumed::Superseded { order: Box::new(order.transfer().clone()), certificate })
            }
            Err(WalletError::Drive(DriveError::Conflict { other, locked, size })) => {
                self.finish_other(journal, &order, *other, (locked, size)).await
            }
            Err(error) => Err(error),
        }
    }

    /// Ours cannot get its quorum; perhaps the order that stands in its way can. Both are by the owner's
    /// key, and an account without either is of no use to anyone.
    async fn finish_other(
        &self,
        journal: &OrderJournal,
        ours: &VerifiedOrder,
        other: fastpay_core::TransferOrder,
        (locked, size): (usize, usize),
    ) -> Result<Resumed, WalletError> {
        let verified = other.clone().verify(self.network().domain())?;
        let Ok(certificate) = self.certify(&verified).await else {
            return Err(DriveError::Conflict { other: Box::new(other), locked, size }.into());
        };
        journal.certify(&certificate)?;
        self.driver.settle(&certificate).await?;
        Ok(Resumed::Superseded { order: Box::new(ours.transfer().clone()), certificate: Box::new(certificate) })
    }

    async fn drive(
        &self,
        journal: &OrderJournal,
        order: &VerifiedOrder,
        resumed: bool,
    ) -> Result<Receipt, WalletError> {
        let start = Instant::now();
        let certificate = match self.certify(order).await {
            Ok(certificate) => certificate,
            Err(DriveError::Superseded { certificate }) => {
                journal.certify(&certificate)?;
                return Err(DriveError::Superseded { certificate }.into());
            }
            Err(error) => return Err(error.into()),
        };
        let certified_after = start.elapsed();
        journal.certify(&certificate)?;
        let receipt = self.settle(journal, certificate).await?;
        Ok(Receipt { resumed, certified_after, ..receipt })
    }

    /// Drives an order to its certificate. Where the committee changes meanwhile, the order is voted for under the
    /// new keys: the authorities' locks outlive a rotation, and so does the order.
    async fn certify(&self, order: &VerifiedOrder) -> Result<VerifiedCertificate, DriveError> {
        let until = Instant::now() + self.driver.options().deadline;
        let mut backoff = Backoff::new(*self.driver.options());
        loop {
            match self.driver.certify(order).await {
                Err(DriveError::NewEpoch { epoch, .. }) if Instant::now() < until => {
                    if let Err(error) = self.follow().await {
                        tracing::warn!(%epoch, %error, "the committee has changed, and the Primary cannot be asked");
                    }
                    if self.network().committee().epoch() < epoch {
                        // Its block is final for the authorities, and for this wallet soon.
                        backoff.wait().await;
                    }
                }
                outcome => return outcome,
            }
        }
    }

    async fn settle(&self, journal: &OrderJournal, certificate: VerifiedCertificate) -> Result<Receipt, WalletError> {
        let start = Instant::now();
        let settled = self.driver.settle(&certificate).await?;
        journal.settle(certificate.transfer().sequence())?;
        let (certified_after, settled_after) = (Duration::ZERO, start.elapsed());
        Ok(Receipt { certificate, resumed: true, certified_after, settled_after, rest: settled.rest })
    }

    /// The number for a new order, after checking that nothing stands in its way: better to find out
    /// before a number is bound to an order that cannot be paid.
    async fn check_standing(&self, journal: &OrderJournal, intent: &Intent) -> Result<SequenceNumber, WalletError> {
        let account = journal.orders().account();
        let asset = intent.asset();
        let answers = self.ask_account_asset(account, asset).await?;
        let sequence = self.proven_next(account, journal.orders().next_sequence()?, &answers).await;
        if !self.foreign_orders(account, sequence, &answers).is_empty() {
            return Err(WalletError::ForeignOrder { account, sequence });
        }
        let needed = intent.transfer(account, sequence).amount();
        let Some(available) = self.available(journal, sequence, asset, &answers) else { return Ok(sequence) };
        if available.covers(needed) {
            return Ok(sequence);
        }
        // A payment to this account may be known to few authorities: take it in and look again.
        self.collect(account).await?;
        let answers = self.ask_account_asset(account, asset).await?;
        match self.available(journal, sequence, asset, &answers) {
            Some(available) if !available.covers(needed) => {
                Err(WalletError::Funds { account, asset, needed, available })
            }
            _ => Ok(sequence),
        }
    }

    fn available(
        &self,
        journal: &OrderJournal,
        sequence: SequenceNumber,
        asset: Asset,
        answers: &Answers<AccountState>,
    ) -> Option<fastpay_core::Balance> {
        let states: Vec<_> = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok()).collect();
        supported_balance(&states, sequence, asset, self.network().trusted_count(), |sequence| {
            let entry = journal.orders().entry(sequence).ok()??;
            entry.transfer().map(|transfer| (transfer.asset(), transfer.amount()))
        })
    }

    /// The highest next number that is proven by the certificate before it; `known` at least.
    pub(crate) async fn proven_next(
        &self,
        account: AccountId,
        known: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> SequenceNumber {
        for claim in claims_above(answers, known) {
            let Some(previous) = claim.0.checked_sub(1).map(SequenceNumber) else { continue };
            if self.find_certificate(account, previous).await.is_some() {
                return claim;
            }
            tracing::warn!(%account, %claim, "an authority claims a sequence number that it cannot prove");
        }
        known
    }

    /// Orders with the next number that authorities are locked on and that this wallet did not write down,
    /// the one with most locks first.
    fn foreign_orders(
        &self,
        account: AccountId,
        next: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Vec<VerifiedOrder> {
        let mut found: BTreeMap<Digest, (usize, VerifiedOrder)> = BTreeMap::new();
        for (name, answer) in answers {
            let Ok(AccountState { pending: Some(pending), .. }) = answer else { continue };
            if pending.transfer.sender() != account || pending.transfer.sequence() != next {
                continue;
            }
            match pending.clone().verify(self.network().domain()) {
                Ok(order) => found.entry(order.digest()).or_insert((0, order)).0 += 1,
                Err(error) => tracing::warn!(authority = %name, %error, "an authority shows a false pending order"),
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        found.sort_by_key(|(locks, _)| std::cmp::Reverse(*locks));
        found.into_iter().map(|(_, order)| order).collect()
    }
}
