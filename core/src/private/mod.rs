//! Private transfers: what is certified of them, and the rules of the shard that owns the pool.
//!
//! ```text
//!  bytes ─► ProvenOrder ────────verify, with a ProofCheck──► VerifiedPrivateOrder ─────┐
//!           PrivateCertificate ─verify───────────────────► VerifiedPrivateCertificate ─┼─► Pool ─► PrivateRecord ─► apply
//!           payments to the pool (ordinary rules) ─► its account's balance ────────────┘
//! ```
//!
//! A transfer shows two nullifiers in place of the account and the coin that it replaces. A proof shows that it may: see
//! docs/PRIVATE.md. Nothing here knows how proofs are checked, and no shard calls the rules yet:
//! `Shard::lock` uses [`is_deposit_memo`] alone.

mod certificate;
mod order;
mod pool;
mod statement;
mod transfer;

pub use certificate::{PrivateCertificate, VerifiedPrivateCertificate};
pub use order::{
    OWN_NOTE_BYTES, PAYMENT_NOTE_BYTES, PROOF_BYTES, PrivateOrder, PrivateOrderError, ProofCheck, ProofClaim,
    ProofError, ProvenOrder, VerifiedPrivateOrder, notes_hash, verify_proven,
};
pub use pool::{
    NullifierUse, Pool, PoolDecision, PrivateConfirmation, PrivateLock, PrivateRecord, PrivateRejection, Versions,
    Withdrawal,
};
pub use statement::{NullifierStatus, PrivateCommittee, PrivateRules, Status};
pub use transfer::{InvalidPrivateTransfer, Nullifier, PrivateTransfer, is_deposit_memo, is_element};
