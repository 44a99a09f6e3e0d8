//! Statements that a committee signs for `Council`: the next committee, its acceptance, and everything else that a
//! quorum decides apart from redemptions. Node operators sign them by command; the running node signs none.
//!
//! ```text
//!  each member ── possession of both keys ──┐
//!  current quorum ── Announcement ──────────┴─► announced ── a day ──► next quorum ── Acceptance ──► installed
//! ```

use crate::committee::Authority;
use crate::contract_vote::ContractVote;
use crate::council_statement::CouncilStatement;
use crate::identity::AuthorityName;
use crate::keys::AuthorityKeys;
use crate::signature::{EcdsaSignature, Ed25519Signature, is_safe_ed25519_key, verify_ed25519};
use crate::statement::Domain;

/// Signs a statement with an authority's secp256k1 key.
#[must_use]
pub fn sign_council_vote(keys: &AuthorityKeys, domain: &Domain, statement: &CouncilStatement<'_>) -> ContractVote {
    let signature = keys.sign_ecdsa(domain.council_digest(statement));
    ContractVote { authority: keys.public().name, signature }
}

/// A member's proof of possession: each of its two keys signs the pair. Without it a member could register another
/// authority's voting key, or a committee could wait for keys that nobody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PossessionProof {
    /// The member that proves possession.
    pub authority: Authority,
    /// Signature by the secp256k1 key; the contract verifies it.
    pub redemption_signature: EcdsaSignature,
    /// Signature by the Ed25519 key. The contract cannot verify it, so authorities do before they sign.
    pub voting_signature: Ed25519Signature,
}

/// Why a proof of possession is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PossessionError {
    /// The voting key is of small order or malformed: anybody can sign in its name.
    #[error("the voting key {0} is a weak Ed25519 key: anybody could vote in its name; create another one")]
    UnsafeVotingKey(AuthorityName),
    /// The signature of the voting key is wrong.
    #[error("the proof of {0} is not signed by its voting key for this pair, chain and contract")]
    Voting(AuthorityName),
    /// The signature of the redemption key is wrong.
    #[error("the proof of {0} is not signed by its redemption key for this pair, chain and contract")]
    Redemption(AuthorityName),
}

impl PossessionProof {
    /// Proves possession of `keys` to the contract of this domain.
    #[must_use]
    pub fn new(keys: &AuthorityKeys, domain: &Domain) -> Self {
        let authority = keys.public();
        let digest = domain.possession_digest(&authority);
        let (redemption_signature, voting_signature) = (keys.sign_ecdsa(digest), keys.sign_ed25519(digest));
        Self { authority, redemption_signature, voting_signature }
    }

    /// Checks both signatures.
    ///
    /// # Errors
    /// See [`PossessionError`].
    pub fn verify(&self, domain: &Domain) -> Result<(), PossessionError> {
        let Authority { name, redemption_key } = self.authority;
        let digest = domain.possession_digest(&self.authority);
        if !is_safe_ed25519_key(&name.0) {
            return Err(PossessionError::UnsafeVotingKey(name));
        }
        if !verify_ed25519(&name.0, &self.voting_signature, digest) {
            return Err(PossessionError::Voting(name));
        }
        if self.redemption_signature.recover(digest) != Some(redemption_key) {
            return Err(PossessionError::Redemption(name));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PrimaryAddress;
    use curve25519_dalek::constants::EIGHT_TORSION;
    use curve25519_dalek::edwards::CompressedEdwardsY;

    fn keys(byte: u8) -> AuthorityKeys {
        AuthorityKeys::from_secrets([byte; 32], [byte; 32]).unwrap()
    }

    fn domain() -> Domain {
        Domain::new(31_337, PrimaryAddress::repeat_byte(7))
    }

    #[test]
    fn a_proof_counts_for_its_pair_chain_and_contract_alone() {
        let (proof, other) = (PossessionProof::new(&keys(1), &domain()), PossessionProof::new(&keys(2), &domain()));
        assert_eq!(proof.verify(&domain()), Ok(()));
        let name = proof.authority.name;
        for elsewhere in [Domain::new(1, domain().contract()), Domain::new(31_337, PrimaryAddress::repeat_byte(8))] {
            assert_eq!(proof.verify(&elsewhere), Err(PossessionError::Voting(name)));
        }
        // Another redemption key beside the same voting key, with the signature of its own pair.
        let mixed = Authority { name, redemption_key: other.authority.redemption_key };
        let rogue = PossessionProof { authority: mixed, ..proof };
        assert_eq!(rogue.verify(&domain()), Err(PossessionError::Voting(name)));
        let swapped = PossessionProof { redemption_signature: other.redemption_signature, ..proof };
        assert_eq!(swapped.verify(&domain()), Err(PossessionError::Redemption(name)));
        let swapped = PossessionProof { voting_signature: other.voting_signature, ..proof };
        assert_eq!(swapped.verify(&domain()), Err(PossessionError::Voting(name)));
    }

    #[test]
    fn voting_keys_of_small_order_and_no_keys_are_refused_though_a_signature_of_theirs_verifies() {
        for point in EIGHT_TORSION {
            let name = AuthorityName(point.compress().to_bytes());
            // R = 0, s = 0 satisfies 8(sB - R - kA) = 0 for every message.
            let mut signature = [0; 64];
            signature[0] = 1;
            let voting_signature = Ed25519Signature(signature);
            let authority = Authority { name, ..keys(1).public() };
            let digest = domain().possession_digest(&authority);
            assert!(verify_ed25519(&name.0, &voting_signature, digest), "ZIP-215 accepts it for every message");
            let proof =
                PossessionProof { authority, voting_signature, redemption_signature: keys(1).sign_ecdsa(digest) };
            assert_eq!(proof.verify(&domain()), Err(PossessionError::UnsafeVotingKey(name)));
        }
        let no_point =
            (0..=255).map(|byte| [byte; 32]).find(|key| CompressedEdwardsY(*key).decompress().is_none()).unwrap();
        let authority = Authority { name: AuthorityName(no_point), ..keys(1).public() };
        let proof = PossessionProof { authority, ..PossessionProof::new(&keys(1), &domain()) };
        assert_eq!(proof.verify(&domain()), Err(PossessionError::UnsafeVotingKey(authority.name)));
    }
}
