//! Numbers that the contract voided at anybody's request, by another copy of this wallet or a relayer, and those that it
//! spent and that authorities stepped over after a recovery. The next number is free. docs/PROTOCOL.md, K12.

use fastpay_client::Answers;
use fastpay_core::{AccountId, Epoch, SequenceNumber, Transfer};
use fastpay_ethereum::{SpendingState, UnlockState};
use fastpay_rpc::AccountState;
use tokio::time::Instant;

use crate::error::WalletError;
use crate::folder::OrderJournal;
use crate::wallet::{LOCK_PATIENCE, READ_PATIENCE, Resumed, Wallet};

/// What is proven of a number without its certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncertified {
    /// A checkpoint proves that this is settled under it, and authorities have pruned its certificate; or that a recovery
    /// debited this redemption, because the contract had paid it.
    Settled(Box<Transfer>),
    /// A checkpoint, or the contract, says that it is void.
    Void,
}

impl Wallet {
    /// Notes which unfinished orders of an account are void. If the Ethereum node does not answer, it notes none.
    ///
    /// # Errors
    /// If too few authorities answer, or the folder cannot be used.
    pub async fn note_voids(&self, account: AccountId) -> Result<(), WalletError> {
        let orders = self.folder().orders(account);
        if orders.unfinished()?.is_empty() {
            return Ok(());
        }
        let journal = orders.lock(LOCK_PATIENCE).await?;
        let answers = self.ask_account(account).await?;
        for entry in journal.orders().unfinished()? {
            self.note_void(&journal, entry.sequence, &answers).await?;
        }
        Ok(())
    }

    /// What is proven, without a certificate, of a number of any account that f + 1 authorities are beyond. `None` if
    /// nothing is now.
    ///
    /// # Errors
    /// If too few authorities answer.
    pub async fn find_uncertified(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<Uncertified>, WalletError> {
        let answers = self.ask_account(account).await?;
        if !self.is_stepped_over(sequence, &answers) {
            return Ok(None);
        }
        let archived = self.network().archived_number(account, sequence, Instant::now() + READ_PATIENCE).await;
        if let Some(entry) = archived {
            return Ok(Some(
                entry.transfer.map_or(Uncertified::Void, |transfer| Uncertified::Settled(Box::new(transfer))),
            ));
        }
        Ok(self.is_void(account, sequence, &answers).await.then_some(Uncertified::Void))
    }

    /// Notes a number as void if it is.
    pub(crate) async fn note_void(
        &self,
        journal: &OrderJournal,
        sequence: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> Result<bool, WalletError> {
        let is_void = self.is_void(journal.orders().account(), sequence, answers).await;
        if is_void {
            journal.void(sequence)?;
        }
        Ok(is_void)
    }

    /// If the contract has spent the number of an order and authorities have stepped over it, notes that: nothing more
    /// happens under it. Which order was paid is known if a node still serves the event. If none does, a redemption counts
    /// as paid, so that nobody makes it a second time. Unless a recovery is known here, only the event counts that this
    /// order was paid.
    pub(crate) async fn note_spent(
        &self,
        journal: &OrderJournal,
        ordered: &Transfer,
        answers: &Answers<AccountState>,
    ) -> Result<Option<Resumed>, WalletError> {
        let (account, sequence) = (ordered.sender(), ordered.sequence());
        if !self.is_spent_unexecuted(account, sequence, answers).await {
            return Ok(None);
        }
        let logged = self.primary().await?.final_spending(account, sequence).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the Ethereum node does not return which order a number was spent on");
            None
        });
        let is_recovered = self.network().counting_since() > Epoch(0);
        let is_paid = match logged {
            Some(spending) => {
                spending.digest == self.network().domain().transfer_digest(ordered)
                    && spending.state != SpendingState::Released
            }
            None => is_recovered && matches!(ordered, Transfer::Redemption(_)),
        };
        let order = Box::new(ordered.clone());
        if is_paid {
            journal.note_paid(sequence)?;
            return Ok(Some(Resumed::Paid { order }));
        }
        if !is_recovered {
            return Ok(None);
        }
        journal.void(sequence)?;
        Ok(Some(Resumed::Voided { order }))
    }

    /// Whether the contract has spent a number that no authority has executed: f + 1 of them have stepped over it, the
    /// contract says so in a final block, and a quorum answers that it has no certificate of it. A recovery debits what the
    /// contract paid behind a gap, and authorities step over the number when they reach it (PROTOCOL, Recovery). False if
    /// the Ethereum node does not answer.
    pub(crate) async fn is_spent_unexecuted(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> bool {
        if !self.is_stepped_over(sequence, answers) {
            return false;
        }
        match self.is_spent(account, sequence).await {
            Ok(true) => self.is_unexecuted(account, sequence).await,
            Ok(false) => false,
            Err(error) => {
                tracing::debug!(%account, %sequence, %error, "cannot find out now whether a number is spent");
                false
            }
        }
    }

    /// Whether the contract has spent a number on a redemption in a final block. It also marks a void number as spent.
    async fn is_spent(&self, account: AccountId, sequence: SequenceNumber) -> Result<bool, WalletError> {
        let primary = self.primary().await?;
        let head = primary.final_head().await?;
        Ok(primary.is_redeemed_in(&head, account, sequence).await?
            && primary.unlock_state_in(&head, account, sequence).await? != UnlockState::Voided)
    }

    /// Whether no certificate of a number counts, as a quorum says.
    async fn is_unexecuted(&self, account: AccountId, sequence: SequenceNumber) -> bool {
        let deadline = Instant::now() + READ_PATIENCE;
        self.find_counting_certificate(account, sequence).await.is_none()
            && self.network().is_without_certificate(account, sequence, deadline).await
    }

    /// Whether a number is void: f + 1 authorities have stepped over it, the contract confirms it in a final block, and
    /// a quorum answers that it has no certificate of it. A certificate proves that the number was executed, whatever the
    /// Ethereum node answers, unless a recovery has ended it or f + 1 authorities refuse it because its number is void. A
    /// missing answer proves nothing. False if the Ethereum node does not answer.
    pub(crate) async fn is_void(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        answers: &Answers<AccountState>,
    ) -> bool {
        if !self.is_stepped_over(sequence, answers) {
            return false;
        }
        let asked = async { Ok(self.primary().await?.final_unlock_state(account, sequence, 0).await?) };
        match asked.await {
            Ok(UnlockState::Voided) => self.is_unexecuted(account, sequence).await,
            Ok(_) => false,
            Err(error @ WalletError::Config(_)) => {
                tracing::debug!(%error, "there is no contract to ask whether a number is void");
                false
            }
            Err(error) => {
                tracing::warn!(%account, %sequence, %error, "cannot find out now whether a number is void");
                false
            }
        }
    }

    /// Whether f + 1 members, so at least one honest one, are beyond a number.
    pub(crate) fn is_stepped_over(&self, sequence: SequenceNumber, answers: &Answers<AccountState>) -> bool {
        let states = self.network().of_members(answers).into_values();
        states.filter(|state| state.next_sequence > sequence).count() >= self.network().trusted_count()
    }
}
