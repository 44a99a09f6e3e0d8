//! Batch-verifies Ed25519 signatures on digests of other crates' statements, such as the ledger's certificates. The
//! keys are those of few signers who come back, and are remembered as points.

use rand_core::CryptoRng;

use super::recent::Recent;
use crate::Digest;
use crate::signature::{Batch, Ed25519Signature, Equation, KeyPoint};

/// A signature, by the key with this encoding.
#[derive(Clone, Copy, Debug)]
pub struct SignedDigest {
    /// The verification key.
    pub key: [u8; 32],
    /// What was signed.
    pub digest: Digest,
    /// The signature.
    pub signature: Ed25519Signature,
}

/// Checks signatures in batches. See the [module](self).
#[derive(Debug)]
pub struct DigestVerifier {
    keys: Recent<[u8; 32], KeyPoint>,
}

impl DigestVerifier {
    /// A verifier that remembers at least `keys_max` keys, and at most twice as many.
    #[must_use]
    pub fn new(keys_max: usize) -> Self {
        Self { keys: Recent::new(keys_max) }
    }

    /// Whether each signature is valid, in their order. Each verdict is the one that the signature would get alone.
    pub fn verify(&mut self, signed: &[SignedDigest], rng: &mut impl CryptoRng) -> Vec<bool> {
        let mut batch = Batch::default();
        let mut in_batch = Vec::with_capacity(signed.len());
        for SignedDigest { key, digest, signature } in signed {
            let equation = Equation::new(key, signature, *digest);
            in_batch.push(equation.is_some());
            if let Some(equation) = equation {
                batch.push(equation, self.keys.get(self.keys.hash(key), key));
            }
        }
        let mut verdicts = batch.verdicts(rng).into_iter();
        signed
            .iter()
            .zip(in_batch)
            .map(|(SignedDigest { key, .. }, in_batch)| {
                let Some(verdict) = in_batch.then(|| verdicts.next()).flatten() else { return false };
                if let (true, Some(point)) = (verdict.holds, verdict.new_key) {
                    self.keys.insert(self.keys.hash(key), *key, point);
                }
                verdict.holds
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::AuthorityKeys;
    use crate::signature::verify_ed25519;

    #[test]
    fn verdicts_are_those_of_single_checks_whether_or_not_keys_are_remembered() {
        let mut rng = rand::rng();
        let keys: Vec<_> = (1..=9).map(|byte| AuthorityKeys::from_secrets([byte; 32], [byte; 32]).unwrap()).collect();
        let mut verifier = DigestVerifier::new(4);
        for round in 0..20_u8 {
            let mut signed: Vec<_> = (0..round)
                .map(|at| {
                    let (key, digest) = (&keys[usize::from(at % 9)], Digest::repeat_byte(at));
                    SignedDigest { key: key.public().name.0, digest, signature: key.sign_ed25519(digest) }
                })
                .collect();
            for (at, signed) in signed.iter_mut().enumerate() {
                match (at + usize::from(round)) % 7 {
                    0 => signed.digest.0[0] ^= 1,
                    1 => signed.key[3] ^= 1,
                    // s is above the group's order: there is no equation.
                    2 => signed.signature.0[63] = 0xff,
                    _ => {}
                }
            }
            let alone: Vec<bool> =
                signed.iter().map(|one| verify_ed25519(&one.key, &one.signature, one.digest)).collect();
            assert_eq!(verifier.verify(&signed, &mut rng), alone, "round {round}");
        }
    }
}
