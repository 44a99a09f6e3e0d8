//! Private transfers: what is certified of them, and what a shard knows of those that are not executed.
//!
//! ```text
//!  bytes ─► ProvenOrder ─check─► CheckedPrivateOrder ─verify_proofs─► VerifiedPrivateOrder ─┐
//!           PrivateCertificate ─verify──────────────────────────► VerifiedPrivateCertificate ─┼─► Shard ─► Record ─► apply
//!           payments to the pool (ordinary rules) ─► its account's balance ────────────────┘
//! ```
//!
//! A transfer shows two nullifiers in place of the account and the coin that it replaces. A proof shows that it may: see
//! docs/PRIVATE.md. A nullifier is an account without a key, whose numbers obey the rules of all numbers: they are locked,
//! frozen, upheld, void, inherited and executed. A transfer takes a number of both its nullifiers at once, and an executed
//! number is a nullifier's last.
//!
//! Nothing here knows how proofs are checked. The rules of a shard are [`crate::Shard::lock_private`] and
//! [`crate::Shard::confirm_private`], which no program calls yet.

mod certificate;
mod order;
mod pool;
mod record;
mod statement;
mod transfer;
mod unlock;

pub use certificate::{PrivateCertificate, VerifiedPrivateCertificate};
pub use order::{
    CheckedPrivateOrder, NoProofs, OWN_NOTE_BYTES, PAYMENT_NOTE_BYTES, PROOF_BYTES, PrivateOrder, ProofCheck,
    ProofClaim, ProofError, ProvenOrder, VerifiedPrivateOrder, notes_hash, verify_proofs,
};
pub use pool::{Pool, PrivateRejection, Versions};
pub use record::{PrivateConfirmation, PrivateEvidence, PrivateLock, PrivateSeen};
pub use statement::{NullifierStatus, PrivateCommittee, PrivateRules, Status};
pub use transfer::{InvalidPrivateTransfer, Nullifier, PrivateTransfer, is_deposit_memo, is_element};
pub use unlock::{OwnershipCheck, is_private_unlock_authorized};
