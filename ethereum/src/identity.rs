//! Recognises FastPay's own contracts: money paid to their addresses is lost.

use alloy::primitives::Address;
use alloy::sol_types::SolCall;

use crate::contract::{ICouncil, IERC5267};
use crate::error::PrimaryError;
use crate::primary::Primary;

impl Primary {
    /// Whether `address` is this FastPay or its Council, or those of another deployment on this chain.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_fastpay(&self, address: Address) -> Result<bool, PrimaryError> {
        if address == self.contract() || address == self.council().await? || self.is_named_fastpay(address).await? {
            return Ok(true);
        }
        match self.ask_stranger(address, &ICouncil::fastPayCall {}).await? {
            Some(owner) => self.is_named_fastpay(owner).await,
            None => Ok(false),
        }
    }

    async fn is_named_fastpay(&self, address: Address) -> Result<bool, PrimaryError> {
        let domain = self.ask_stranger(address, &IERC5267::eip712DomainCall {}).await?;
        Ok(domain.is_some_and(|domain| domain.name == "FastPay" && domain.verifyingContract == address))
    }

    /// Calls a view at any address; `None` if it reverts or the answer is malformed.
    async fn ask_stranger<C: SolCall>(&self, address: Address, call: &C) -> Result<Option<C::Return>, PrimaryError> {
        match self.view(address, call).await {
            Ok(answer) => Ok(Some(answer)),
            Err(PrimaryError::Reverted(_) | PrimaryError::BadAnswer { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
