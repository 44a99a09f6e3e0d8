//! The client side of FastPay: a library, and the `fastpay` command on top of it.
//!
//! ```text
//!  Wallet ──┬─► folder           (files: keys, orders written ahead, received certificates)
//!           └─► fastpay-client   (the committee: quorums, and the verdict on its answers)
//!  ChainAccount ─► the Primary: deposit, redeem without a relayer, claim; written ahead as well
//!  Reserve      ─► the same on a ledger: deposit, redeem (of `fastpay_ledger_client`)
//! ```
//! Modules in reading order: `folder`, `wallet`, `finish`, `many`, `receive`, `view`, `chain`,
//! `payout`, `spent`, `relayers`, `fees`, `unlock`, `arrival`, `audit`, `open`, `memo`, `money`, `link`.
//!
//! Invariants: an authority's answer is verified, or agreed by f + 1, before the wallet acts on it; an order is on
//! disk before it is sent; no second order is ever signed for a sequence number; [`Wallet::resume`] finishes
//! everything that a crash leaves unfinished.
//!
//! A program without a folder, such as a bench, uses `fastpay-client` alone.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod any_primary;
mod arrival;
mod audit;
mod chain;
mod decimal;
mod error;
mod fees;
mod finish;
pub mod folder;
mod link;
mod many;
mod memo;
mod money;
mod open;
mod payout;
mod receive;
mod relayers;
mod spent;
mod unlock;
mod view;
mod voids;
mod wallet;

pub use any_primary::AnyPrimary;
pub use arrival::{take_credited, wait_for_redemption};
pub use audit::{
    AssetAudit, AuditListener, AuditProgress, AuditReport, AuthorityAudit, Backing, Behind, Proof, ProofError,
    SignedVote, Solvency,
};
pub use chain::{ChainAccount, ChainListener, Claim, Finished};
pub use decimal::{DecimalError, format_units, parse_amount};
pub use error::WalletError;
pub use fastpay_ledger_client::{CarriedOut, InstructionErrand, Reserve, ReserveError, StoredInstruction};
pub use fastpay_program::ErrorKind;
pub use fees::Offer;
pub use link::{LABEL_LENGTH_MAX, LINK_LENGTH_MAX, LabelTooLong, LinkError, PaymentLink, check_label};
pub use many::{PageState, PageStates, PayoutPage};
pub use memo::{MemoError, format_memo, parse_memo};
pub use money::Money;
pub use open::{learn_chain_id, read_genesis, set_up};
pub use payout::{
    QueuedRedemption, check_account, check_not_paused, check_recipient, parse_address, queued_redemption, would_queue,
};
pub use receive::Collected;
pub use spent::RedemptionState;
pub use unlock::Unlocking;
pub use view::{AccountView, AuthorityView, assets_of};
pub use voids::Uncertified;
pub use wallet::{Intent, LOCK_PATIENCE, Receipt, Resumed, Wallet};
