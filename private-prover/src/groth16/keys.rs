//! Keys. So far there are development keys only: everybody can compute their trapdoor, and with it false proofs.

use bellperson::groth16::{Parameters, generate_random_parameters};
use blstrs::Bls12;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::verify::VerifyingKey;
use crate::circuit::Statement;
use crate::statement::Shape;

/// The only chain that development keys are for: local networks.
pub const DEVELOPMENT_CHAIN: u64 = 31337;

/// Development keys were asked for on a chain where money is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("development keys let everybody make money: they are for chain {DEVELOPMENT_CHAIN}, and not for {0}")]
pub struct DevelopmentKeysRefused(pub u64);

/// What proofs are made with, for one shape of statement.
pub struct ProvingKey {
    pub(super) parameters: Parameters<Bls12>,
    pub(super) verifying: VerifyingKey,
    pub(super) shape: Shape,
}

impl ProvingKey {
    /// The same keys for everybody, from a seed that everybody knows. This takes seconds.
    ///
    /// # Errors
    /// [`DevelopmentKeysRefused`] for any other chain than [`DEVELOPMENT_CHAIN`].
    pub fn development(shape: Shape, chain: u64) -> Result<Self, DevelopmentKeysRefused> {
        if chain != DEVELOPMENT_CHAIN {
            return Err(DevelopmentKeysRefused(chain));
        }
        let seed = Sha256::digest("fastpay/private/development-keys");
        let mut random = StdRng::from_seed(seed.into());
        let parameters = generate_random_parameters(Statement::blank(shape), &mut random)
            .expect("a blank statement has constraints and no values");
        let verifying = VerifyingKey::development(&parameters.vk, shape);
        Ok(Self { parameters, verifying, shape })
    }

    /// What its proofs are checked with.
    #[must_use]
    pub const fn verifying(&self) -> &VerifyingKey {
        &self.verifying
    }

    /// The bytes that the key has in a file.
    #[must_use]
    pub fn size(&self) -> usize {
        let mut bytes = vec![];
        self.parameters.write(&mut bytes).expect("a vector takes all bytes");
        bytes.len()
    }
}
