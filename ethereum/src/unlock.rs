//! The contract's state of a number that its owner asked to unlock.

use alloy::primitives::{Address, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{AccountId, SequenceNumber, UnlockVote};

use crate::contract::{ICouncil, UnlockOutcome};
use crate::endpoint::At;
use crate::error::PrimaryError;
use crate::finality::BlockHead;
use crate::primary::Primary;
use crate::submission::Call;

/// The contract's state of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnlockState {
    /// Nobody has asked to unlock it.
    NotRequested,
    /// A request is undecided.
    Requested {
        /// The time from which a quorum can void it, in seconds since 1970.
        voidable_from: u64,
        /// The payer of the bond; zero once it has been paid out.
        payer: Address,
    },
    /// One order holds.
    Upheld,
    /// No order holds.
    Voided,
}

impl Primary {
    /// The state of a number in the newest block.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn unlock_state(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<UnlockState, PrimaryError> {
        self.unlock_state_at(account, sequence, At::Latest).await
    }

    /// The state of a number in the block `blocks_before` blocks before the newest final one.
    ///
    /// # Errors
    /// If no node answers, or none has the state of that block any more.
    pub async fn final_unlock_state(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        blocks_before: u64,
    ) -> Result<UnlockState, PrimaryError> {
        let number = self.final_head().await?.number().saturating_sub(blocks_before);
        self.unlock_state_at(account, sequence, At::Number(number)).await
    }

    /// The state of a number in a block.
    ///
    /// # Errors
    /// If no node answers, or none has the state of that block any more.
    pub async fn unlock_state_in(
        &self,
        block: &BlockHead,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<UnlockState, PrimaryError> {
        self.unlock_state_at(account, sequence, At::Hash(block.hash)).await
    }

    async fn unlock_state_at(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        at: At,
    ) -> Result<UnlockState, PrimaryError> {
        let call = ICouncil::unlockOfCall { account: account.0.into(), sequence: sequence.0 };
        let unlock = self.view_at(self.council().await?, &call, at).await?;
        Ok(match unlock.outcome {
            UnlockOutcome::Upheld => UnlockState::Upheld,
            UnlockOutcome::Voided => UnlockState::Voided,
            _ if unlock.voidableFrom.is_zero() => UnlockState::NotRequested,
            _ => UnlockState::Requested { voidable_from: unlock.voidableFrom.saturating_to(), payer: unlock.payer },
        })
    }

    /// The bond in wei that the first request to unlock a number pays to the contract. Whoever upholds an order of the
    /// number receives it; if the number is voided, the requester gets it back.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn unlock_bond(&self) -> Result<U256, PrimaryError> {
        self.view(self.council().await?, &ICouncil::unlockBondCall {}).await
    }

    /// The time from which all members of the current committee can void a number at once, in seconds since 1970.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn unanimous_from(&self) -> Result<u64, PrimaryError> {
        Ok(self.view(self.council().await?, &ICouncil::unanimousFromCall {}).await?.saturating_to())
    }
}

impl Call {
    /// Requests that the council unlock a number: with the owner's signature, or without if the owner of an Ethereum
    /// account sends it. `bond` is [`Primary::unlock_bond`] for the first request, and zero for a later one.
    #[must_use]
    pub fn request_unlock(
        council: Address,
        account: AccountId,
        sequence: SequenceNumber,
        authorization: Vec<u8>,
        bond: U256,
    ) -> Self {
        let (account, sequence, authorization) = (account.0.into(), sequence.0, authorization.into());
        let data = ICouncil::requestUnlockCall { account, sequence, authorization }.abi_encode().into();
        Self { to: council, value: bond, data }
    }

    /// Submits the votes about a number to the council, which upholds the order that they name, or voids the number.
    #[must_use]
    pub fn decide_unlock(
        council: Address,
        account: AccountId,
        sequence: SequenceNumber,
        vote: UnlockVote,
        votes: Vec<u8>,
    ) -> Self {
        let (account, sequence, votes) = (account.0.into(), sequence.0, votes.into());
        let data: Vec<u8> = match vote {
            UnlockVote::Certificate(digest) => {
                ICouncil::upholdSequenceCall { account, sequence, digest, votes }.abi_encode()
            }
            UnlockVote::Void { unanimous } => {
                ICouncil::voidSequenceCall { account, sequence, unanimous, votes }.abi_encode()
            }
        };
        Self { to: council, value: U256::ZERO, data: data.into() }
    }
}
