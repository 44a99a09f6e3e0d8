//! Verifying keys and their bytes.

use bellperson::groth16::VerifyingKey as Parameters;
use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Prepared, Gt};
use group::prime::PrimeCurveAffine;
use pairing::Engine;
use sha2::{Digest, Sha256};

use super::key_error::KeyError;
use super::keys::{DEVELOPMENT_CHAIN, DevelopmentKeysRefused};
use super::points::decode_point;
use crate::statement::Shape;

/// The first byte of a key whose trapdoor everybody can compute, and that of a key that a ceremony made.
const DEVELOPMENT: u8 = 0;
const CEREMONY: u8 = 1;

/// What proofs are checked with, for one shape of statement.
pub struct VerifyingKey {
    pub(super) shape: Shape,
    bytes: Vec<u8>,
    pub(super) alpha: G1Projective,
    /// e(α, β)
    pub(super) alpha_beta: Gt,
    pub(super) minus_beta: G2Prepared,
    pub(super) minus_gamma: G2Prepared,
    pub(super) minus_delta: G2Prepared,
    /// For the constant 1 and each public input.
    pub(super) inputs: Vec<G1Projective>,
}

impl VerifyingKey {
    pub(super) fn development(parameters: &Parameters<Bls12>, shape: Shape) -> Self {
        Self::new(DEVELOPMENT, parameters, shape)
    }

    /// The key that a ceremony made.
    pub(super) fn of_ceremony(parameters: &Parameters<Bls12>, shape: Shape) -> Result<Self, KeyError> {
        if parameters.ic.len() != 1 + shape.inputs() {
            return Err(KeyError::Length);
        }
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        let untouched = [parameters.beta_g2, parameters.delta_g2].iter().any(|point| *point == g2 || *point == -g2);
        if parameters.gamma_g2 != g2 || untouched || parameters.alpha_g1 == g1 || parameters.alpha_g1 == -g1 {
            return Err(KeyError::NoCeremony);
        }
        Ok(Self::new(CEREMONY, parameters, shape))
    }

    fn new(origin: u8, parameters: &Parameters<Bls12>, shape: Shape) -> Self {
        let mut bytes = vec![origin, u8::try_from(shape.members()).expect("at most 255 members")];
        bytes.extend(parameters.alpha_g1.to_uncompressed());
        for point in [&parameters.beta_g2, &parameters.gamma_g2, &parameters.delta_g2] {
            bytes.extend(point.to_uncompressed());
        }
        bytes.extend(parameters.ic.iter().flat_map(G1Affine::to_uncompressed));
        Self {
            shape,
            bytes,
            alpha: parameters.alpha_g1.to_curve(),
            alpha_beta: Bls12::pairing(&parameters.alpha_g1, &parameters.beta_g2),
            minus_beta: (-parameters.beta_g2).into(),
            minus_gamma: (-parameters.gamma_g2).into(),
            minus_delta: (-parameters.delta_g2).into(),
            inputs: parameters.ic.iter().map(PrimeCurveAffine::to_curve).collect(),
        }
    }

    /// 0 for a development key or 1 for one of a ceremony, the number of members, and the points α, β, γ, δ and those
    /// of the inputs, uncompressed.
    #[must_use]
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The key of these bytes, for a deployment on this chain. It is only as good as its origin: compare its
    /// [`hash`](Self::hash) with the one that the committee certified.
    ///
    /// # Errors
    /// [`KeyError`]: development keys on another chain than [`DEVELOPMENT_CHAIN`], bytes that are no key, and points
    /// that no ceremony ends with.
    pub fn from_bytes(bytes: &[u8], chain: u64) -> Result<Self, KeyError> {
        let (origin, shape, parameters) = decode(bytes)?;
        match origin {
            DEVELOPMENT if chain == DEVELOPMENT_CHAIN => Ok(Self::development(&parameters, shape)),
            DEVELOPMENT => Err(DevelopmentKeysRefused(chain).into()),
            CEREMONY => Self::of_ceremony(&parameters, shape),
            _ => Err(KeyError::Format),
        }
    }

    /// SHA-256 of the bytes: what a committee's certificate names.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }

    /// The bytes of a key for this shape.
    pub(super) const fn size(shape: Shape) -> usize {
        2 + 96 + 3 * 192 + 96 * (1 + shape.inputs())
    }
}

/// The first byte, the shape, and the points, with those that only the prover needs left out.
pub(super) fn decode(bytes: &[u8]) -> Result<(u8, Shape, Parameters<Bls12>), KeyError> {
    let (&[origin, members], points) = bytes.split_first_chunk().ok_or(KeyError::Length)?;
    let shape = Shape::of_committee(usize::from(members))?;
    if bytes.len() != VerifyingKey::size(shape) {
        return Err(KeyError::Length);
    }
    let (alpha, rest) = points.split_at(96);
    let (g2, inputs) = rest.split_at(3 * 192);
    let g2: Vec<G2Affine> = g2.chunks(192).map(decode_point).collect::<Result<_, _>>()?;
    let [beta_g2, gamma_g2, delta_g2] = g2[..] else { return Err(KeyError::Length) };
    let parameters = Parameters {
        alpha_g1: decode_point(alpha)?,
        beta_g1: G1Affine::identity(),
        beta_g2,
        gamma_g2,
        delta_g1: G1Affine::identity(),
        delta_g2,
        ic: inputs.chunks(96).map(decode_point).collect::<Result<_, _>>()?,
    };
    Ok((origin, shape, parameters))
}
