//! Numbers that the contract voided at anybody's request: by another copy of this wallet, or a relayer. They paid
//! nothing, and the next number is free. docs/PROTOCOL.md, K12.

use fastpay_client::Answers;
use fastpay_core::{AccountId, SequenceNumber};
use fastpay_ethereum::UnlockState;
use fastpay_rpc::AccountState;
use tokio::time::Instant;

use crate::error::WalletError;
use crate::folder::OrderJournal;
use crate::wallet::{LOCK_PATIENCE, READ_PATIENCE, Wallet};

impl Wallet {
    /// Notes which unfinished orders of an account are void. If the Ethereum node does not answer, it notes none.
    ///
    /// # Errors
    /// If too few authorities answer, or the folder cannot be used.
    pub async fn note_voids(&self, account: AccountId) -> Result<(), WalletError> {
        let orders = self.folder().orders(account);
        if orders.unfinished()?.iter().all(|entry| entry.certificate.is_some()) {
            return Ok(());
        }
        let journal = orders.lock(LOCK_PATIENCE).await?;
        let answers = self.ask_account(account).await?;
        for entry in journal.orders().unfinished()? {
            if entry.certificate.is_none() {
                self.note_void(&journal, entry.sequence, &answers).await?;
            }
        }
        Ok(())
    }

    /// Whether a number of any account is void: f + 1 authorities have stepped over it, the contract confirms it, and a
    /// quorum answers that it has no certificate of it.
    ///
    /// # Errors
    /// If too few authorities answer.
    pub async fn is_voided(&self, account: AccountId, sequence: SequenceNumber) -> Result<bool, WalletError> {
        let answers = self.ask_account(account).await?;
        Ok(self.is_void(account, sequence, &answers).await)
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

    /// Whether a number is void: f + 1 authorities have stepped over it, the contract confirms it in a final block, and
    /// a quorum answers that it has no certificate of it. A certificate that no recovery has ended proves that the
    /// number was executed, whatever the Ethereum node answers, and a missing answer proves nothing. False if the
    /// Ethereum node does not answer.
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
            Ok(UnlockState::Voided) => {
                let deadline = Instant::now() + READ_PATIENCE;
                self.find_counting_certificate(account, sequence).await.is_none()
                    && self.network().is_without_certificate(account, sequence, deadline).await
            }
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

    /// Whether f + 1 authorities, so at least one honest one, are beyond a number.
    pub(crate) fn is_stepped_over(&self, sequence: SequenceNumber, answers: &Answers<AccountState>) -> bool {
        let states = answers.iter().filter_map(|(_, answer)| answer.as_ref().ok());
        states.filter(|state| state.next_sequence > sequence).count() >= self.network().trusted_count()
    }
}
