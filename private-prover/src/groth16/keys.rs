//! Proving keys: of a ceremony, or for development. Everybody can compute the trapdoor of a development key, and with
//! it false proofs.

use std::sync::Arc;

use bellperson::groth16::{Parameters, VerifyingKey as Points, generate_random_parameters};
use blstrs::{Bls12, G1Affine};
use fastpay_private::parts::{VerifyingPoints, decode_on_curve};
use fastpay_private::{DEVELOPMENT_CHAIN, DevelopmentKeysRefused, KeyError, Shape, VerifyingKey};
use group::UncompressedEncoding;
use rand::SeedableRng;
use rand::rngs::StdRng;
use sha2::{Digest, Sha256};

use crate::circuit::Statement;

/// What a proving key's bytes begin with.
const FORMAT: &[u8; 16] = b"fastpay-proving1";

/// What proofs are made with, for one shape of statement.
pub struct ProvingKey {
    pub(super) parameters: Parameters<Bls12>,
    pub(super) verifying: VerifyingKey,
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
        let verifying = VerifyingKey::development(points_of(&parameters), shape, chain)
            .expect("the chain is for development, and a statement has as many inputs as its shape says");
        Ok(Self { parameters, verifying })
    }

    /// The key that a ceremony ended with. The caller has verified its transcript.
    ///
    /// # Errors
    /// [`KeyError::Length`] if the parameters are for another number of public inputs, and [`KeyError::NoCeremony`] if
    /// no ceremony ends with them.
    pub fn of_ceremony(shape: Shape, parameters: Parameters<Bls12>) -> Result<Self, KeyError> {
        let verifying = VerifyingKey::of_ceremony(points_of(&parameters), shape)?;
        Ok(Self { parameters, verifying })
    }

    /// What its proofs are checked with.
    #[must_use]
    pub const fn verifying(&self) -> &VerifyingKey {
        &self.verifying
    }

    /// The bytes that the key has in a file: "fastpay-proving1", the verifying key, β and δ in G1, and then h, l, a, b
    /// in G1 and b in G2, each after its number of points in 4 big-endian bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let Parameters { vk, h, l, a, b_g1, b_g2 } = &self.parameters;
        let mut bytes = FORMAT.to_vec();
        bytes.extend_from_slice(self.verifying.to_bytes());
        bytes.extend(vk.beta_g1.to_uncompressed());
        bytes.extend(vk.delta_g1.to_uncompressed());
        for points in [h, l, a, b_g1] {
            write_points(&mut bytes, points);
        }
        write_points(&mut bytes, b_g2);
        bytes
    }

    /// The key of a file, for a deployment on this chain. `hash` is the SHA-256 hash that the committee certified: an
    /// altered key can make a proof tell its witness.
    ///
    /// # Errors
    /// [`KeyError`]
    pub fn from_bytes(bytes: &[u8], hash: &[u8; 32], chain: u64) -> Result<Self, KeyError> {
        if Sha256::digest(bytes)[..] != hash[..] {
            return Err(KeyError::Hash);
        }
        let rest = bytes.strip_prefix(FORMAT).ok_or(KeyError::Format)?;
        let members = rest.get(1).ok_or(KeyError::Length)?;
        let shape = Shape::of_committee(usize::from(*members))?;
        let (verifying, mut rest) = rest.split_at_checked(VerifyingKey::size(shape)).ok_or(KeyError::Length)?;
        let verifying = VerifyingKey::from_bytes(verifying, chain)?;
        let [beta_g1, delta_g1] = [read_point(&mut rest)?, read_point(&mut rest)?];
        let parameters = Parameters {
            vk: with_g1(verifying.points(), beta_g1, delta_g1),
            h: Arc::new(read_points(&mut rest)?),
            l: Arc::new(read_points(&mut rest)?),
            a: Arc::new(read_points(&mut rest)?),
            b_g1: Arc::new(read_points(&mut rest)?),
            b_g2: Arc::new(read_points(&mut rest)?),
        };
        if !rest.is_empty() {
            return Err(KeyError::Length);
        }
        Ok(Self { parameters, verifying })
    }
}

/// The points that verifiers need.
fn points_of(parameters: &Parameters<Bls12>) -> VerifyingPoints {
    let Points { alpha_g1, beta_g2, gamma_g2, delta_g2, ic, .. } = &parameters.vk;
    VerifyingPoints { alpha: *alpha_g1, beta: *beta_g2, gamma: *gamma_g2, delta: *delta_g2, inputs: ic.clone() }
}

/// The same points with those that only the prover needs.
fn with_g1(points: &VerifyingPoints, beta_g1: G1Affine, delta_g1: G1Affine) -> Points<Bls12> {
    let VerifyingPoints { alpha, beta, gamma, delta, inputs } = points.clone();
    Points { alpha_g1: alpha, beta_g1, beta_g2: beta, gamma_g2: gamma, delta_g1, delta_g2: delta, ic: inputs }
}

fn write_points<P: UncompressedEncoding>(bytes: &mut Vec<u8>, points: &[P]) {
    bytes.extend(u32::try_from(points.len()).expect("a circuit has fewer variables than 2^32").to_be_bytes());
    for point in points {
        bytes.extend_from_slice(point.to_uncompressed().as_ref());
    }
}

fn read_point<P: UncompressedEncoding>(bytes: &mut &[u8]) -> Result<P, KeyError> {
    let size = P::Uncompressed::default().as_ref().len();
    let (point, rest) = bytes.split_at_checked(size).ok_or(KeyError::Length)?;
    *bytes = rest;
    Ok(decode_on_curve(point)?)
}

fn read_points<P: UncompressedEncoding>(bytes: &mut &[u8]) -> Result<Vec<P>, KeyError> {
    let (count, rest) = bytes.split_first_chunk().ok_or(KeyError::Length)?;
    *bytes = rest;
    (0..u32::from_be_bytes(*count)).map(|_| read_point(bytes)).collect()
}
