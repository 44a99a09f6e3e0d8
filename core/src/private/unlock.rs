//! Who may ask the contract to unlock a number of a nullifier. The contract takes the request of any account with an
//! authorization of at most 512 bytes, and authorities judge it by these bytes alone: otherwise two of them could judge one
//! request differently, and certify different states.
//!
//! ```text
//!  authorization = nullifier (32 bytes) ‖ proof (384)
//! ```

use super::order::PROOF_BYTES;
use super::transfer::{Nullifier, is_element};
use crate::Digest;
use crate::amount::SequenceNumber;
use crate::identity::AccountId;
use crate::statement::Domain;

/// A check of proofs that somebody owns an account nullifier. Its verifying key is one for the whole deployment, for ever:
/// a request is judged at any time, by its bytes alone.
pub trait OwnershipCheck {
    /// Whether the proof shows that its maker knows the key and the ρ of an account nullifier. It is bound to the digest of
    /// the request.
    fn is_owner(&self, nullifier: Nullifier, request: Digest, proof: &[u8; PROOF_BYTES]) -> bool;
}

/// Whether `authorization` counts as the owner's request to unlock number `sequence` of the nullifier whose account is
/// `account`.
#[must_use]
pub fn is_private_unlock_authorized(
    domain: &Domain,
    (account, sequence): (AccountId, SequenceNumber),
    authorization: &[u8],
    proofs: &impl OwnershipCheck,
) -> bool {
    let Some((nullifier, proof)) = authorization.split_first_chunk() else { return false };
    let Ok(proof) = proof.try_into() else { return false };
    let named = Nullifier((*nullifier).into());
    let is_of_account = is_element(nullifier) && named.account() == account;
    is_of_account && proofs.is_owner(named, domain.unlock_request_digest(account, sequence), proof)
}
