//! The wallet's transactions on the Primary: deposits, redemptions without a relayer, claims. Each is on disk before it
//! is sent, and finished before the next one is made, so a command that crashed and is repeated does not pay twice.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{Address, B256, U256};
use alloy::signers::SignerSync;
use fastpay_core::{AccountId, AccountKey, Amount, Asset, Redemption};
use fastpay_ethereum::{
    Call, Inclusion, Payout, Primary, PrimaryError, PrivateKeySigner, Progress, SendError, Sender, SenderConfig, Token,
};
use tokio::sync::Notify;

use crate::error::WalletError;
use crate::folder::{Errand, Folder, KeyError, TransactionEntry, TransactionJournal, TransactionState, Transactions};
use crate::wallet::LOCK_PATIENCE;

/// The lifetime of a permit: a transaction may wait for fees to fall.
const PERMIT_LIFETIME: Duration = Duration::from_secs(24 * 3600);

/// Receives a transaction's progress.
pub type ChainListener = Arc<dyn Fn(&Errand, &Progress) + Send + Sync>;

/// An Ethereum key of this wallet, with a connection to the Primary.
pub struct ChainAccount {
    transactions: Transactions,
    sender: Sender,
    signer: PrivateKeySigner,
    listener: Option<ChainListener>,
}

/// A claim to money that the contract could not pay out earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claim {
    /// The asset: ETH, or a token.
    pub asset: Asset,
    /// The amount; `None` claims all.
    pub amount: Option<Amount>,
    /// The owner of the claim; by default the wallet's own address. The claim of another owner is paid to that owner
    /// only.
    pub owner: Option<Address>,
    /// The address to pay, for a claim of one's own; by default the owner.
    pub to: Option<Address>,
}

/// A transaction that is final.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The journal's entry with its purpose.
    pub entry: TransactionEntry,
    /// The block in which it is.
    pub inclusion: Inclusion,
    /// Whether an earlier command had begun it, and this one only finished it.
    pub resumed: bool,
}

impl ChainAccount {
    /// The Ethereum account of `key`, with its transactions in `folder`.
    ///
    /// # Errors
    /// If the key is not an Ethereum key.
    pub fn new(
        folder: &Folder,
        primary: Primary,
        name: &str,
        key: &AccountKey,
        config: SenderConfig,
    ) -> Result<Self, WalletError> {
        let AccountKey::Ethereum(_) = key else { return Err(KeyError::NotEthereum(name.into()).into()) };
        let signer = PrivateKeySigner::from_bytes(&B256::from(key.to_secret_bytes())).map_err(|_| KeyError::Secret)?;
        let transactions = folder.transactions(signer.address());
        Ok(Self { transactions, sender: Sender::new(primary, signer.clone(), config), signer, listener: None })
    }

    /// The same account, with progress reported to `listener`.
    #[must_use]
    pub fn with_listener(mut self, listener: ChainListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.signer.address()
    }

    /// The Primary.
    #[must_use]
    pub fn primary(&self) -> &Primary {
        self.sender.primary()
    }

    pub(crate) fn transactions(&self) -> &Transactions {
        &self.transactions
    }

    /// Finishes all unfinished transactions.
    ///
    /// # Errors
    /// The error of the first one that cannot be finished.
    pub async fn finish_pending(&self) -> Result<Vec<Finished>, WalletError> {
        let journal = self.begin().await?;
        self.finish_all(&journal).await
    }

    /// Takes the right to send. The journal provides the used nonces: a lagging Ethereum node would assign one again,
    /// and with the same fees, the same deposit would be the very transaction that is final already.
    pub(crate) async fn begin(&self) -> Result<TransactionJournal, WalletError> {
        let journal = self.transactions.lock(LOCK_PATIENCE).await?;
        if let Some(last) = self.transactions.last(|submission| self.sender.is_own(submission))? {
            self.sender.adopt(&last.submission);
        }
        Ok(journal)
    }

    pub(crate) async fn finish_all(&self, journal: &TransactionJournal) -> Result<Vec<Finished>, WalletError> {
        let mut finished = Vec::new();
        for entry in self.transactions.pending()? {
            match self.stay(journal, entry).await {
                Ok(done) => finished.push(Finished { resumed: true, ..done }),
                // Known never to happen now: note it, and continue with the next one.
                Err(WalletError::Send(error @ (SendError::RevertedOnChain { .. } | SendError::Superseded { .. }))) => {
                    tracing::warn!(%error, "an earlier transaction had no effect");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(finished)
    }

    /// Deposits for a FastPay account and returns when the deposit is final. If the same deposit is unfinished from
    /// before, it finishes that one and makes no second.
    ///
    /// # Errors
    /// See [`WalletError`]. Unless the error is [`SendError::RevertedOnChain`] or [`SendError::Superseded`], the
    /// deposit may still happen: the same call again continues with it.
    pub async fn deposit(&self, recipient: AccountId, asset: Asset, amount: Amount) -> Result<Finished, WalletError> {
        let journal = self.begin().await?;
        let is_same = |errand: &Errand| match errand {
            Errand::Deposit { recipient: to, asset: of, amount: much, .. } => {
                (*to, *of, *much) == (recipient, asset, amount)
            }
            _ => false,
        };
        let finished = self.finish_all(&journal).await?;
        if let Some(same) = finished.into_iter().find(|finished| is_same(&finished.entry.errand)) {
            return Ok(same);
        }
        let after = self.primary().last_transaction_index().await?;
        let errand = Errand::Deposit { recipient, asset, amount, after };
        let contract = self.primary().contract();
        if asset == Asset::ETHER {
            return self.run(&journal, errand, Call::deposit_ether(contract, recipient, amount)).await;
        }
        let token = Token::new(self.primary().clone(), asset.0);
        let plain = Call::deposit_token(contract, recipient, asset, amount);
        let allowance = token.allowance(self.address()).await?;
        if allowance >= U256::from(amount.0) {
            return self.run(&journal, errand, plain).await;
        }
        if let Some(call) = self.permitted(&token, recipient, asset, amount).await? {
            match self.run(&journal, errand.clone(), call).await {
                // Some tokens have permits of another kind: use an approval instead.
                Err(WalletError::Send(SendError::Primary(PrimaryError::Reverted(_)))) => {}
                outcome => return outcome,
            }
        }
        self.approve(&journal, &token, asset, amount, allowance).await?;
        let deposited = self.run(&journal, errand, plain).await?;
        // The approval was included before the deposit, so it is final, too: note it.
        self.finish_all(&journal).await?;
        Ok(deposited)
    }

    async fn permitted(
        &self,
        token: &Token,
        recipient: AccountId,
        asset: Asset,
        amount: Amount,
    ) -> Result<Option<Call>, WalletError> {
        // Use the chain's clock, as the token does.
        let now = self.primary().latest_head().await?.timestamp();
        let deadline = U256::from(now.saturating_add(PERMIT_LIFETIME.as_secs()));
        let permit = match token.permit(self.address(), U256::from(amount.0), deadline).await {
            Ok(permit) => permit,
            Err(PrimaryError::BadToken { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let signature = self.signer.sign_hash_sync(&permit.digest).map_err(SendError::Signing)?;
        let contract = self.primary().contract();
        Ok(Some(Call::deposit_token_with_permit(contract, recipient, asset, amount, deadline, &signature)))
    }

    /// Allows the contract to take `amount`. Waits for a block only, not for finality: the deposit that follows cannot
    /// happen without it.
    async fn approve(
        &self,
        journal: &TransactionJournal,
        token: &Token,
        asset: Asset,
        amount: Amount,
        allowance: U256,
    ) -> Result<(), WalletError> {
        let errand = |amount| Errand::Approve { asset, amount };
        let prepared = match self.sender.prepare(token.approve(U256::from(amount.0))).await {
            // Some tokens require the allowance to be set to zero before it is changed.
            Err(SendError::Primary(PrimaryError::Reverted(_))) if !allowance.is_zero() => {
                let reset = self.sender.prepare(token.approve(U256::ZERO)).await?;
                let entry = journal.create(errand(Amount::ZERO), reset)?;
                self.stay_until_included(journal, entry).await?;
                self.sender.prepare(token.approve(U256::from(amount.0))).await?
            }
            prepared => prepared?,
        };
        let entry = journal.create(errand(amount), prepared)?;
        self.stay_until_included(journal, entry).await
    }

    /// Redeems without a relayer, by the call of [`crate::Wallet::redemption_call`]. `None` if it has been redeemed
    /// already.
    ///
    /// # Errors
    /// If the Primary refuses.
    pub async fn redeem(&self, redemption: &Redemption, call: Call) -> Result<Option<Finished>, WalletError> {
        let (sender, sequence) = (redemption.sender, redemption.sequence);
        self.pay_out(Errand::Redeem { sender, sequence }, call, |payout| *payout == Payout::Open).await
    }

    /// Executes a due redemption in the contract's queue, by the call of [`crate::Wallet::execution_call`]. `None` if
    /// it has been paid already.
    ///
    /// # Errors
    /// If the Primary refuses.
    pub async fn execute(&self, redemption: &Redemption, call: Call) -> Result<Option<Finished>, WalletError> {
        let (sender, sequence) = (redemption.sender, redemption.sequence);
        self.pay_out(Errand::Execute { sender, sequence }, call, |payout| matches!(payout, Payout::Queued(_))).await
    }

    /// Sends a transaction that anyone can send, as long as the redemption's state has not changed.
    async fn pay_out(
        &self,
        errand: Errand,
        call: Call,
        stands: impl Fn(&Payout) -> bool,
    ) -> Result<Option<Finished>, WalletError> {
        let (Errand::Redeem { sender, sequence } | Errand::Execute { sender, sequence }) = errand else {
            return Err(WalletError::Argument("this pays nobody out".into()));
        };
        let journal = self.begin().await?;
        let finished = self.finish_all(&journal).await?;
        if let Some(same) = finished.into_iter().find(|finished| finished.entry.errand == errand) {
            return Ok(Some(same));
        }
        if !stands(&self.primary().payout(sender, sequence).await?) {
            return Ok(None);
        }
        match self.run(&journal, errand, call).await {
            // A relayer may have been faster.
            Err(WalletError::Send(
                SendError::RevertedOnChain { .. } | SendError::Primary(PrimaryError::Reverted(_)),
            )) if !stands(&self.primary().payout(sender, sequence).await?) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// Collects money that the contract could not pay out earlier. If an earlier transaction for the same claim is
    /// unfinished, it finishes that one and makes no second; the errand of the result names the claim collected.
    ///
    /// # Errors
    /// If there is nothing to claim, or the Primary refuses.
    pub async fn claim(&self, claim: &Claim) -> Result<Finished, WalletError> {
        let (journal, asset) = (self.begin().await?, claim.asset);
        let owner = claim.owner.unwrap_or_else(|| self.address());
        let to = claim.to.unwrap_or(owner);
        if owner != self.address() && to != owner {
            let error = format!("only {owner} can direct this claim to another address; omit --to");
            return Err(WalletError::Argument(error));
        }
        let finished = self.finish_all(&journal).await?;
        let left = self.primary().claim_of(owner, asset).await?;
        let is_same = |errand: &Errand| match errand {
            // A claim of everything counts if nothing is left, whichever address it paid.
            Errand::Claim { owner: of, asset: what, to: whereto, amount } => {
                let is_asked = |asked: Amount| (*whereto, *amount) == (to, U256::from(asked.0));
                (*of, *what) == (owner, asset) && claim.amount.map_or_else(|| left.is_zero(), is_asked)
            }
            _ => false,
        };
        if let Some(same) = finished.into_iter().find(|finished| is_same(&finished.entry.errand)) {
            return Ok(same);
        }
        let amount = claim.amount.map_or(left, |amount| U256::from(amount.0));
        let contract = self.primary().contract();
        let call = if owner == self.address() {
            Call::claim(contract, asset, to, amount)
        } else {
            Call::claim_for(contract, owner, asset, amount)
        };
        self.run(&journal, Errand::Claim { owner, asset, to, amount }, call).await
    }

    pub(crate) async fn run(
        &self,
        journal: &TransactionJournal,
        errand: Errand,
        call: Call,
    ) -> Result<Finished, WalletError> {
        let submission = self.sender.prepare(call).await?;
        let entry = journal.create(errand, submission)?;
        self.stay(journal, entry).await
    }

    /// Follows a stored transaction until it is final, and notes its outcome.
    async fn stay(&self, journal: &TransactionJournal, mut entry: TransactionEntry) -> Result<Finished, WalletError> {
        let outcome = {
            let mut store = |submission: &_| journal.store(&entry, submission).map_err(io::Error::other);
            let mut progress = |progress: Progress| self.report(&entry.errand, &progress);
            self.sender.confirm(entry.submission.clone(), &mut store, &mut progress).await
        };
        entry = journal.transactions().entry(entry.number)?;
        let state = match &outcome {
            Ok(inclusion) => TransactionState::Final(*inclusion),
            Err(SendError::RevertedOnChain { .. }) => TransactionState::Reverted,
            Err(SendError::Superseded { .. }) => TransactionState::Superseded,
            Err(_) => TransactionState::Pending,
        };
        if state != TransactionState::Pending {
            journal.finish(entry.number, state)?;
        }
        let inclusion = outcome?;
        Ok(Finished { entry: TransactionEntry { state, ..entry }, inclusion, resumed: false })
    }

    async fn stay_until_included(
        &self,
        journal: &TransactionJournal,
        entry: TransactionEntry,
    ) -> Result<(), WalletError> {
        let included = Notify::new();
        let mut store = |submission: &_| journal.store(&entry, submission).map_err(io::Error::other);
        let mut progress = |progress: Progress| {
            self.report(&entry.errand, &progress);
            if matches!(progress, Progress::Included { .. }) {
                included.notify_one();
            }
        };
        tokio::select! {
            biased;
            outcome = self.sender.confirm(entry.submission.clone(), &mut store, &mut progress) => match outcome {
                Ok(inclusion) => Ok(journal.finish(entry.number, TransactionState::Final(inclusion))?),
                Err(error) => Err(error.into()),
            },
            () = included.notified() => Ok(()),
        }
    }

    fn report(&self, errand: &Errand, progress: &Progress) {
        if let Some(listener) = &self.listener {
            listener(errand, progress);
        }
    }
}
