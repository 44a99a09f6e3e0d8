//! ERC-20 tokens as a wallet uses them. Strangers write tokens, so every answer is bounded, and a token that does not
//! answer as it should causes a typed error.

use alloy::primitives::{Address, B256, U256, keccak256};
use alloy::sol_types::{SolCall, SolStruct};

use crate::contract::{IToken, Permit as PermitStatement};
use crate::error::PrimaryError;
use crate::primary::Primary;
use crate::submission::Call;

/// The maximum length of a displayed symbol, in characters.
const SYMBOL_LENGTH_MAX: usize = 16;

/// A token's symbol and decimals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenMetadata {
    /// Its symbol, shortened and without control characters. Anyone can deploy a token with the symbol USDC: only the
    /// address identifies a token.
    pub symbol: String,
    /// The number of its decimals.
    pub decimals: u8,
}

/// An ERC-20 token.
#[derive(Clone, Debug)]
pub struct Token {
    primary: Primary,
    address: Address,
}

/// The statement that an owner signs so that a contract may take tokens without an earlier transaction (ERC-2612).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permit {
    /// The digest to sign: the signature, with v 27 or 28, goes into `depositTokenWithPermit`.
    pub digest: B256,
    /// The value that is permitted, in the token's smallest unit.
    pub value: U256,
    /// The time until which the permit is valid, in seconds since 1970.
    pub deadline: U256,
}

impl Token {
    /// The token at `address`. This asks it nothing yet.
    #[must_use]
    pub fn new(primary: Primary, address: Address) -> Self {
        Self { primary, address }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Its symbol and decimals.
    ///
    /// # Errors
    /// [`PrimaryError::BadToken`] if it has no readable ones, or no node answers.
    pub async fn metadata(&self) -> Result<TokenMetadata, PrimaryError> {
        let decimals = self.view(&IToken::decimalsCall {}, "it does not return its decimals").await?;
        if decimals > 77 {
            return Err(self.bad("it has more decimals than a number has digits"));
        }
        let symbol = self.view(&IToken::symbolCall {}, "it does not return its symbol").await?;
        let symbol: String = symbol.chars().filter(|c| !c.is_control()).take(SYMBOL_LENGTH_MAX).collect();
        Ok(TokenMetadata { symbol, decimals })
    }

    /// The balance of `owner`, in the smallest unit.
    ///
    /// # Errors
    /// [`PrimaryError::BadToken`] if the token does not report it, or no node answers.
    pub async fn balance_of(&self, owner: Address) -> Result<U256, PrimaryError> {
        self.view(&IToken::balanceOfCall { account: owner }, "it does not return balances").await
    }

    /// How much of `owner`'s tokens the FastPay contract may take, in the smallest unit.
    ///
    /// # Errors
    /// [`PrimaryError::BadToken`] if the token does not report it, or no node answers.
    pub async fn allowance(&self, owner: Address) -> Result<U256, PrimaryError> {
        let call = IToken::allowanceCall { owner, spender: self.primary.contract() };
        self.view(&call, "it does not return allowances").await
    }

    /// The call by which its sender allows the FastPay contract to take up to `value`. Some tokens require an allowance
    /// to be set to zero before it is changed.
    #[must_use]
    pub fn approve(&self, value: U256) -> Call {
        let call = IToken::approveCall { spender: self.primary.contract(), value };
        Call { to: self.address, value: U256::ZERO, data: call.abi_encode().into() }
    }

    /// The permit for `owner` to sign, which allows the FastPay contract to take `value` until `deadline`.
    ///
    /// # Errors
    /// [`PrimaryError::BadToken`] if the token has no permits, or no node answers.
    pub async fn permit(&self, owner: Address, value: U256, deadline: U256) -> Result<Permit, PrimaryError> {
        let nonce = self.view(&IToken::noncesCall { owner }, "it has no permits (ERC-2612)").await?;
        let separator = self.view(&IToken::DOMAIN_SEPARATORCall {}, "it has no permits (ERC-2612)").await?;
        let statement = PermitStatement { owner, spender: self.primary.contract(), value, nonce, deadline };
        let hash = statement.eip712_hash_struct();
        let digest = keccak256([[0x19, 0x01].as_slice(), separator.as_slice(), hash.as_slice()].concat());
        Ok(Permit { digest, value, deadline })
    }

    async fn view<C: SolCall>(&self, call: &C, reason: &'static str) -> Result<C::Return, PrimaryError> {
        self.primary.view(self.address, call).await.map_err(|error| match error {
            PrimaryError::Reverted(_) | PrimaryError::BadAnswer { .. } => self.bad(reason),
            error => error,
        })
    }

    fn bad(&self, reason: &'static str) -> PrimaryError {
        PrimaryError::BadToken { token: self.address, reason }
    }
}
