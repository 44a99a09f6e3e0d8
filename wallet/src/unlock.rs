//! Unlocks a number for which no order can get a quorum, because its owner signed two: the contract decides which order
//! holds, or that none does. docs/PROTOCOL.md, "Unlocking".
//!
//! ```text
//!  can an order still be finished? ─► resume: nothing to unlock
//!   no ─► request (bond) ─► final ─► ask all authorities ─┬─ a certificate exists ─► uphold ─► settle it
//!                                                         └─ none: all vote, or a quorum after the window ─► void
//! ```
//! Nothing is signed for the next number before the contract has decided.

use alloy::primitives::U256;
use fastpay_client::{QuorumError, UnlockBallot, UnlockDecision, Voidable};
use fastpay_core::{AccountId, AccountKey, SequenceNumber, UnlockVote};
use fastpay_ethereum::{Call, Primary, UnlockState};

use crate::chain::{ChainAccount, Finished};
use crate::error::WalletError;
use crate::folder::{Errand, TransactionEntry, TransactionState};
use crate::payout::check_not_paused;
use crate::wallet::{LOCK_PATIENCE, READ_PATIENCE, Resumed, Wallet};

/// A request that has been final for this many blocks, and that f + 1 authorities do not follow, is a stranger's:
/// authorities read final blocks within seconds. Repeating one's own request by mistake costs gas and changes nothing.
const READ_BLOCKS: u64 = 8;

/// How far the unlocking of a number is.
#[derive(Debug)]
pub enum Unlocking {
    /// Orders could be finished after all, among them one of this number.
    Finished(Vec<Resumed>),
    /// A relayer has the request and submits it to the contract.
    Requesting,
    /// The contract has the request.
    Waiting {
        /// The authorities' votes, if the request is final.
        ballot: Box<UnlockBallot>,
        /// The time from which a quorum can void the number, in seconds since 1970.
        voidable_from: u64,
    },
    /// The contract has decided, and too few authorities have read the decision yet.
    Deciding,
    /// The contract decided that no order has the number: the next one is free.
    Voided,
}

impl Wallet {
    /// The number at which an account may be stuck: that of the first order in this wallet that is unfinished, or that a
    /// recovery left out, or else its next one.
    ///
    /// # Errors
    /// If too few authorities answer.
    pub async fn first_open_number(&self, account: AccountId) -> Result<SequenceNumber, WalletError> {
        let journal = self.folder().orders(account).lock(LOCK_PATIENCE).await?;
        let answers = self.ask_account(account).await?;
        let left_out = self.left_out(&journal, journal.orders().next_sequence()?, &answers)?;
        let unfinished = journal.orders().unfinished()?;
        if let Some(first) = left_out.iter().chain(&unfinished).map(|entry| entry.sequence).min() {
            return Ok(first);
        }
        self.catch_up(&journal, &answers).await
    }

    /// Takes the next step to unlock a number, and returns how far it is. `payer` pays for gas and bond; without one, a
    /// relayer of the endpoints file pays, and also submits the decision. Call it again while it returns
    /// [`Unlocking::Waiting`]; a repetition sends nothing twice.
    ///
    /// # Errors
    /// If neither authorities nor Primary answer, or a transaction fails.
    pub async fn unlock(
        &self,
        primary: &Primary,
        key: &AccountKey,
        sequence: SequenceNumber,
        payer: Option<&ChainAccount>,
    ) -> Result<Unlocking, WalletError> {
        let account = key.account();
        match primary.unlock_state(account, sequence).await? {
            UnlockState::NotRequested => {
                if let Some(finished) = self.finish_instead(account, sequence).await? {
                    return Ok(Unlocking::Finished(finished));
                }
                let signed = || key.sign_unlock_request(self.network().domain(), sequence);
                let Some(payer) = payer else {
                    self.have_requested(account, sequence, signed()).await?;
                    return Ok(Unlocking::Requesting);
                };
                let is_owner = account.ethereum_address() == Some(payer.address());
                let authorization = if is_owner { Vec::new() } else { signed() };
                let (council, bond) = (primary.council().await?, primary.unlock_bond().await?);
                let call = Call::request_unlock(council, account, sequence, authorization, bond);
                payer.send_to_council(Errand::RequestUnlock { account, sequence }, call).await?;
                self.decide(primary, account, sequence, Some(payer)).await
            }
            UnlockState::Requested { .. } => {
                let step = self.decide(primary, account, sequence, payer).await?;
                let Unlocking::Waiting { ballot, .. } = &step else { return Ok(step) };
                // If no authority follows the request, a stranger may have sent it, without the owner's signature.
                match payer {
                    None if ballot.votes() == (0, 0) => {
                        let authorization = key.sign_unlock_request(self.network().domain(), sequence);
                        if let Err(error) = self.have_requested(account, sequence, authorization).await {
                            tracing::warn!(%error, "no relayer knows the request");
                        }
                    }
                    Some(payer) if ballot.is_ignored() => {
                        if let Err(error) = self.request_again(primary, key, sequence, payer).await {
                            tracing::warn!(%error, "the request could not be repeated with the owner's signature");
                        }
                    }
                    _ => {}
                }
                Ok(step)
            }
            UnlockState::Upheld => match self.resume(account).await {
                Ok(finished) => Ok(Unlocking::Finished(finished)),
                // The number is frozen until the authorities, too, have read the block with the decision.
                Err(WalletError::Quorum(error @ QuorumError::NoQuorum { .. })) => {
                    tracing::info!(%account, %sequence, %error, "too few authorities know the decision");
                    Ok(Unlocking::Deciding)
                }
                Err(error) => Err(error),
            },
            UnlockState::Voided => {
                // A certificate proves that the number was executed, whatever the Ethereum node answers, unless f + 1
                // authorities refuse it: a recovery has ended it, or they say, too, that the number is void.
                if self.find_counting_certificate(account, sequence).await.is_some() {
                    return Ok(Unlocking::Finished(self.resume(account).await?));
                }
                let answers = self.ask_account(account).await?;
                let journal = self.folder().orders(account).lock(LOCK_PATIENCE).await?;
                // The block may still change, and the authorities may not have read it yet.
                let is_void = self.note_void(&journal, sequence, &answers).await?;
                Ok(if is_void { Unlocking::Voided } else { Unlocking::Deciding })
            }
        }
    }

    /// Finishes the order of the number if that is still possible; `None` if no order gets the votes of a quorum. A
    /// certificate that is not settled yet, a full disk or a new epoch is no reason to ask the contract.
    async fn finish_instead(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<Vec<Resumed>>, WalletError> {
        match self.resume(account).await {
            Ok(resumed) if self.first_open_number(account).await? > sequence => Ok(Some(resumed)),
            Ok(_) => {
                let error = format!("no order with sequence number {sequence} is pending: there is nothing to unlock");
                Err(WalletError::Argument(error))
            }
            Err(WalletError::Quorum(
                error @ (QuorumError::Conflict(_)
                | QuorumError::InsufficientBalance { .. }
                | QuorumError::NoQuorum { what: "votes", .. }),
            )) => {
                tracing::info!(%account, %sequence, %error, "no order with this number can be finished");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Repeats a stranger's request with the owner's signature, once, without a bond. For Ethereum accounts, the
    /// contract checks requests itself.
    async fn request_again(
        &self,
        primary: &Primary,
        key: &AccountKey,
        sequence: SequenceNumber,
        payer: &ChainAccount,
    ) -> Result<(), WalletError> {
        let account = key.account();
        let errand = Errand::RequestUnlock { account, sequence };
        if account.ethereum_address().is_some() || payer.has_done(&errand)? {
            return Ok(());
        }
        match primary.final_unlock_state(account, sequence, READ_BLOCKS).await {
            Ok(UnlockState::Requested { .. }) => {}
            // The authorities may not have read it yet.
            Ok(_) => return Ok(()),
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "cannot find out now since when the request is final");
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let authorization = key.sign_unlock_request(self.network().domain(), sequence);
        let call = Call::request_unlock(primary.council().await?, account, sequence, authorization, U256::ZERO);
        payer.send_to_council(errand, call).await.map(drop)
    }

    /// Asks the authorities, and submits the decision that has enough votes. Without a payer, a relayer does that.
    async fn decide(
        &self,
        primary: &Primary,
        account: AccountId,
        sequence: SequenceNumber,
        payer: Option<&ChainAccount>,
    ) -> Result<Unlocking, WalletError> {
        let now = primary.latest_head().await?.timestamp();
        let UnlockState::Requested { voidable_from, .. } = primary.unlock_state(account, sequence).await? else {
            return Ok(Unlocking::Deciding);
        };
        let voidable = Voidable { at_once: now >= primary.unanimous_from().await?, by_quorum: now >= voidable_from };
        let (ballot, decision) = self.client().decide_unlock((account, sequence), voidable, READ_PATIENCE).await;
        let (Some(UnlockDecision { vote, votes }), Some(payer)) = (decision, payer) else {
            return Ok(Unlocking::Waiting { ballot: Box::new(ballot), voidable_from });
        };
        // A pause stops voiding, but never upholding.
        if let UnlockVote::Void { .. } = vote {
            check_not_paused(primary).await?;
        }
        let call = Call::decide_unlock(primary.council().await?, account, sequence, vote, votes);
        payer.send_to_council(Errand::DecideUnlock { account, sequence }, call).await?;
        Ok(Unlocking::Deciding)
    }
}

impl ChainAccount {
    /// Whether a transaction of this errand has succeeded.
    fn has_done(&self, errand: &Errand) -> Result<bool, WalletError> {
        let is_done =
            |entry: &TransactionEntry| entry.errand == *errand && matches!(entry.state, TransactionState::Final(_));
        Ok(self.transactions().entries()?.iter().any(is_done))
    }

    /// Sends a call to the council. If the same errand was begun before, finishes that one instead.
    async fn send_to_council(&self, errand: Errand, call: Call) -> Result<Finished, WalletError> {
        let journal = self.begin().await?;
        let finished = self.finish_all(&journal).await?;
        if let Some(same) = finished.into_iter().find(|finished| finished.entry.errand == errand) {
            return Ok(same);
        }
        self.run(&journal, errand, call).await
    }
}
