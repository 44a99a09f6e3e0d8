//! Verifying keys and their bytes: of a ceremony, or for development. Everybody can compute the trapdoor of a
//! development key, and with it false proofs.

use blstrs::{Bls12, G1Affine, G1Projective, G2Affine, G2Prepared, Gt};
use group::prime::PrimeCurveAffine;
use pairing::Engine;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::key_error::KeyError;
use super::points::decode_point;
use crate::public::Shape;

/// The only chain that development keys are for: local networks.
pub const DEVELOPMENT_CHAIN: u64 = 31337;

/// The first byte of a key whose trapdoor everybody can compute, and that of a key that a ceremony made.
const DEVELOPMENT: u8 = 0;
const CEREMONY: u8 = 1;

/// Development keys were asked for on a chain where money is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("development keys let everybody make money: they are for chain {DEVELOPMENT_CHAIN}, and not for {0}")]
pub struct DevelopmentKeysRefused(pub u64);

/// The points of a verifying key, as makers of keys have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyingPoints {
    /// α
    pub alpha: G1Affine,
    /// β
    pub beta: G2Affine,
    /// γ
    pub gamma: G2Affine,
    /// δ
    pub delta: G2Affine,
    /// For the constant 1 and each public input.
    pub inputs: Vec<G1Affine>,
}

/// What proofs are checked with, for one shape of statement.
pub struct VerifyingKey {
    pub(super) shape: Shape,
    bytes: Vec<u8>,
    points: VerifyingPoints,
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
    /// A development key, for a deployment on this chain.
    ///
    /// # Errors
    /// [`KeyError::Development`] for any other chain than [`DEVELOPMENT_CHAIN`], and [`KeyError::Length`] if the points
    /// are for another number of public inputs.
    pub fn development(points: VerifyingPoints, shape: Shape, chain: u64) -> Result<Self, KeyError> {
        if chain == DEVELOPMENT_CHAIN {
            Self::new(DEVELOPMENT, points, shape)
        } else {
            Err(DevelopmentKeysRefused(chain).into())
        }
    }

    /// The key that a ceremony made.
    ///
    /// # Errors
    /// [`KeyError::NoCeremony`] if no ceremony ends with these points, and [`KeyError::Length`] if they are for another
    /// number of public inputs.
    pub fn of_ceremony(points: VerifyingPoints, shape: Shape) -> Result<Self, KeyError> {
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        let untouched = [points.beta, points.delta].iter().any(|point| *point == g2 || *point == -g2);
        if points.gamma != g2 || untouched || points.alpha == g1 || points.alpha == -g1 {
            return Err(KeyError::NoCeremony);
        }
        Self::new(CEREMONY, points, shape)
    }

    fn new(origin: u8, points: VerifyingPoints, shape: Shape) -> Result<Self, KeyError> {
        if points.inputs.len() != 1 + shape.inputs() {
            return Err(KeyError::Length);
        }
        let mut bytes = vec![origin, u8::try_from(shape.members()).expect("at most 255 members")];
        bytes.extend(points.alpha.to_uncompressed());
        for point in [&points.beta, &points.gamma, &points.delta] {
            bytes.extend(point.to_uncompressed());
        }
        bytes.extend(points.inputs.iter().flat_map(G1Affine::to_uncompressed));
        Ok(Self {
            shape,
            bytes,
            alpha: points.alpha.to_curve(),
            alpha_beta: Bls12::pairing(&points.alpha, &points.beta),
            minus_beta: (-points.beta).into(),
            minus_gamma: (-points.gamma).into(),
            minus_delta: (-points.delta).into(),
            inputs: points.inputs.iter().map(PrimeCurveAffine::to_curve).collect(),
            points,
        })
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
        let (&[origin, members], points) = bytes.split_first_chunk().ok_or(KeyError::Length)?;
        let shape = Shape::of_committee(usize::from(members))?;
        if bytes.len() != Self::size(shape) {
            return Err(KeyError::Length);
        }
        let points = VerifyingPoints::decode(points)?;
        match origin {
            DEVELOPMENT => Self::development(points, shape, chain),
            CEREMONY => Self::of_ceremony(points, shape),
            _ => Err(KeyError::Format),
        }
    }

    /// The shape of the statement.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The points.
    #[must_use]
    pub const fn points(&self) -> &VerifyingPoints {
        &self.points
    }

    /// SHA-256 of the bytes: what a committee's certificate names.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes).into()
    }

    /// The bytes of a key for this shape.
    #[must_use]
    pub const fn size(shape: Shape) -> usize {
        2 + 96 + 3 * 192 + 96 * (1 + shape.inputs())
    }
}

impl VerifyingPoints {
    fn decode(bytes: &[u8]) -> Result<Self, KeyError> {
        let (alpha, rest) = bytes.split_at_checked(96).ok_or(KeyError::Length)?;
        let (g2, inputs) = rest.split_at_checked(3 * 192).ok_or(KeyError::Length)?;
        let g2: Vec<G2Affine> = g2.chunks(192).map(decode_point).collect::<Result<_, _>>()?;
        let [beta, gamma, delta] = g2[..] else { return Err(KeyError::Length) };
        let inputs = inputs.chunks(96).map(decode_point).collect::<Result<_, _>>()?;
        Ok(Self { alpha: decode_point(alpha)?, beta, gamma, delta, inputs })
    }
}
