//! Recognises FastPay's own contracts: money paid to their addresses is lost.

use alloy::primitives::Address;
use alloy::sol_types::SolCall;

use crate::error::PrimaryError;
use crate::primary::Primary;

#[allow(missing_docs, clippy::too_many_arguments, clippy::indexing_slicing, clippy::unwrap_used)]
mod abi {
    alloy::sol! {
        interface IIdentity {
            function eip712Domain()
                external
                view
                returns (
                    bytes1 fields,
                    string memory name,
                    string memory version,
                    uint256 chainId,
                    address verifyingContract,
                    bytes32 salt,
                    uint256[] memory extensions
                );
            function fastPay() external view returns (address);
        }
    }
}

use abi::IIdentity;

impl Primary {
    /// Whether `address` is this FastPay or its Council, or those of another deployment on this chain.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_fastpay(&self, address: Address) -> Result<bool, PrimaryError> {
        if address == self.contract() || address == self.council().await? || self.is_named_fastpay(address).await? {
            return Ok(true);
        }
        match self.ask_stranger(address, &IIdentity::fastPayCall {}).await? {
            Some(owner) => self.is_named_fastpay(owner).await,
            None => Ok(false),
        }
    }

    async fn is_named_fastpay(&self, address: Address) -> Result<bool, PrimaryError> {
        let domain = self.ask_stranger(address, &IIdentity::eip712DomainCall {}).await?;
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
