//! FastPay's side of Ethereum: contract bindings, the reader of finalized deposits, and the sender of
//! transactions.
//!
//! ```text
//!                       ┌─► DepositReader ─► DepositBatch ─► an authority's follower
//!                       ├─► EpochReader ─► Committees ─────►
//!  RPC URLs ─► Primary ─┼─► views: committee, totals, is_redeemed, Token … ─► wallet, relayer
//!                       └─► Sender ◄─ Call (deposit, approve, redeem, claim) ─► Inclusion
//! ```
//! Modules in reading order: `contract` (bindings) and `revert` (its errors), `label` (names of nodes) and `error`,
//! `finality`, `endpoint` (one node) and `primary` (all of them), `events` (the rules of the contract's order) and
//! `deposits` (reading it), `epochs` (committees), `council` (announcements), `known_keys` (whose secrets are public),
//! `safety_parameters` (pause, outflow limit and queue), `spending` (the order on which a number was spent), `token`,
//! `allowance` (of gas), `fees`, `submission`, `nonces`, `sender` and `confirm`.
//!
//! Invariants: no event counts before the configured [`Finality`]. Deposits never depend on one node's answer if
//! several are configured. An error tells whether trying again can help ([`PrimaryError::is_retryable`],
//! [`DepositsError::is_retryable`], [`SendError::is_retryable`]).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod allowance;
mod confirm;
mod contract;
mod council;
mod deposits;
mod endpoint;
mod epochs;
mod error;
mod events;
mod fees;
mod finality;
mod identity;
mod known_keys;
mod label;
mod nonces;
mod paid;
mod primary;
mod revert;
mod safety_parameters;
mod sender;
mod spending;
mod submission;
mod token;
mod unlock;
mod utc;

pub use allowance::{CALL_GAS, ETHER_GAS, TOKEN_GAS, TRANSACTION_GAS_MAX};
pub use confirm::Progress;
pub use contract::{
    AssetCap, CapRaise, CertifiedRedemption, ContractAnnouncement, ContractAuthority, ContractRedemption, ICouncil,
    IFastPay, IToken, SafetyParameters, UnlockOutcome, Upholding, certified_redemption,
};
pub use council::{Clock, Step};
pub use deposits::{Cursor, DepositBatch, DepositReader, DepositsError, RANGE_BLOCKS_DEFAULT};
pub use epochs::EpochReader;
pub use error::PrimaryError;
pub use events::{Alarm, BlockRange, OrderEvent, check_logs};
pub use fees::{Fees, Offer, SenderConfig};
pub use finality::{BlockHead, Finality};
pub use known_keys::{LOCAL_CHAIN, known_key};
pub use paid::PaidRedemption;
pub use primary::{ORDERS_IN_A_WORD, Primary, PrimaryConfig, served_chain};
pub use revert::Revert;
pub use safety_parameters::{Payout, Queued};
pub use sender::{SendError, Sender, gas_limit};
pub use spending::{Spending, SpendingState};
pub use submission::{Attempt, Call, Inclusion, Status, Submission};
pub use token::{Permit, Token, TokenMetadata};
pub use unlock::UnlockState;
pub use utc::utc;

/// A secp256k1 key in memory that signs transactions.
pub use alloy::signers::local::PrivateKeySigner;
