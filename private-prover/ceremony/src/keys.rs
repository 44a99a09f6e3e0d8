//! The second phase: the keys of one circuit, made of the powers of the first, and of δ, which nobody knows.
//!
//! Contributors multiply δ, and divide L and H by it. All other points follow from the powers and the circuit.

use std::sync::Arc;

use bellperson::groth16::{Parameters, VerifyingKey};
use blstrs::{Bls12, G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use sha2::{Digest, Sha256};

use crate::constraints::{Constraints, Matrix};
use crate::flaw::{Flaw, Part, SecretName};
use crate::group::scale;
use crate::powers::Powers;
use crate::reader::{Reader, write_points};
use crate::secret::{Entropy, Secret};
use crate::specialize::{self, Points};
use crate::transcript::{Hash, Transcript};

const FORMAT: &[u8; 16] = b"fastpay-phase2-1";
const SECRETS: &[SecretName] = &[SecretName::Delta];

/// The keys of one circuit while contributors work on them.
#[derive(Clone)]
pub struct Keys {
    members: u8,
    /// Of the powers' transcript, and of the circuit.
    powers: Hash,
    circuit: Hash,
    transcript: Transcript,
    pub(crate) delta_g1: G1Affine,
    pub(crate) delta_g2: G2Affine,
    pub(crate) points: Points,
}

impl Keys {
    /// The keys of a circuit to which nobody has contributed: δ is 1. The caller has verified the powers. This takes
    /// minutes; `progress` is told what it does.
    ///
    /// # Errors
    /// [`Flaw::Nobody`] if nobody contributed to the powers, [`Flaw::TooLarge`] if they are too few.
    pub fn begin(members: u8, powers: &Powers, circuit: &Constraints, progress: &dyn Fn(&str)) -> Result<Self, Flaw> {
        powers.transcript().require_somebody()?;
        circuit.require_powers(powers.count())?;
        let (powers_hash, circuit_hash) = (powers.transcript().hash(), circuit.hash());
        Ok(Self {
            members,
            powers: powers_hash,
            circuit: circuit_hash,
            transcript: transcript(members, &powers_hash, &circuit_hash),
            delta_g1: G1Affine::generator(),
            delta_g2: G2Affine::generator(),
            points: specialize::points(powers, circuit, progress),
        })
    }

    /// Who contributed to this phase.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Multiplies δ by a new secret, which is wiped. The caller has verified the keys: to multiply false points could
    /// reveal the secret.
    ///
    /// # Errors
    /// [`Flaw::Name`], [`Flaw::Repeated`] and [`Flaw::Full`]; nothing is changed then.
    pub fn contribute(&mut self, name: &str, mut entropy: Entropy) -> Result<(), Flaw> {
        let delta = entropy.secret();
        self.transcript.contribute(name, &[&delta])?;
        self.delta_g1 = (self.delta_g1 * delta.get()).to_affine();
        self.delta_g2 = (self.delta_g2 * delta.get()).to_affine();
        let (inverse, one) = (delta.inverse(), Secret::new(Scalar::ONE));
        scale(&mut self.points.l, &inverse, &one);
        scale(&mut self.points.h, &inverse, &one);
        Ok(())
    }

    /// Checks every contribution, and that all points are those that powers, circuit and contributions make. The caller
    /// has verified the powers.
    ///
    /// # Errors
    /// [`Flaw`], with the first thing that is wrong.
    pub fn verify(&self, powers: &Powers, circuit: &Constraints) -> Result<(), Flaw> {
        circuit.require_powers(powers.count())?;
        if self.powers != powers.transcript().hash() {
            return Err(Flaw::Powers);
        }
        if self.circuit != circuit.hash() {
            return Err(Flaw::Circuit);
        }
        self.transcript.verify()?;
        specialize::verify(self, &self.transcript.product(0), powers, circuit)
    }

    /// The parameters that the ceremony ends with. The caller has verified the keys.
    ///
    /// # Errors
    /// [`Flaw::Nobody`] if nobody contributed to this phase.
    pub fn parameters(self, powers: &Powers) -> Result<Parameters<Bls12>, Flaw> {
        self.transcript.require_somebody()?;
        powers.transcript().require_somebody()?;
        let [alpha_g1, beta_g1] = [&powers.alpha_g1, &powers.beta_g1].map(|list| list.first().copied());
        let Points { a, b_g1, b_g2, inputs, l, h } = self.points;
        Ok(Parameters {
            vk: VerifyingKey {
                alpha_g1: alpha_g1.ok_or(Flaw::CutOff)?,
                beta_g1: beta_g1.ok_or(Flaw::CutOff)?,
                beta_g2: powers.beta_g2,
                gamma_g2: G2Affine::generator(),
                delta_g1: self.delta_g1,
                delta_g2: self.delta_g2,
                ic: inputs,
            },
            h: Arc::new(h),
            l: Arc::new(l),
            a: Arc::new(a),
            b_g1: Arc::new(b_g1),
            b_g2: Arc::new(b_g2),
        })
    }

    /// The bytes of a file: "fastpay-phase2-1", the number of members, the hashes of the powers' transcript and of the
    /// circuit, the number of contributions (2), each contribution, and the points: δ in G1 and G2, A, B in G1, B in
    /// G2, the inputs, L and H. The circuit says how many.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.to_vec();
        bytes.push(self.members);
        bytes.extend(self.powers);
        bytes.extend(self.circuit);
        self.transcript.write(&mut bytes);
        write_points(&mut bytes, &[self.delta_g1]);
        write_points(&mut bytes, &[self.delta_g2]);
        let Points { a, b_g1, b_g2, inputs, l, h } = &self.points;
        write_points(&mut bytes, a);
        write_points(&mut bytes, b_g1);
        write_points(&mut bytes, b_g2);
        for points in [inputs, l, h] {
            write_points(&mut bytes, points);
        }
        bytes
    }

    /// The keys of a file, which are still to be verified. All points are of the right groups.
    ///
    /// # Errors
    /// [`Flaw`]
    pub fn from_bytes(bytes: &[u8], members: u8, circuit: &Constraints) -> Result<Self, Flaw> {
        let mut reader = Reader(bytes.strip_prefix(FORMAT).ok_or(Flaw::Format)?);
        let found = reader.byte()?;
        if found != members {
            return Err(Flaw::Members { found, expected: members });
        }
        let (powers, circuit_hash) = (reader.array()?, reader.array()?);
        if circuit_hash != circuit.hash() {
            return Err(Flaw::Circuit);
        }
        let transcript = transcript(members, &powers, &circuit_hash).read(&mut reader)?;
        let filled = |matrix: &Matrix| matrix.columns().filter(|column| !column.is_empty()).count();
        let (a, b) = (filled(&circuit.a), filled(&circuit.b));
        let single = |part| move |error| Flaw::Point { part, index: 0, error };
        let keys = Self {
            members,
            powers,
            circuit: circuit_hash,
            transcript,
            delta_g1: reader.point()?.map_err(single(Part::DeltaG1))?,
            delta_g2: reader.point()?.map_err(single(Part::DeltaG2))?,
            points: Points {
                a: reader.points(Part::A, a)?,
                b_g1: reader.points(Part::BG1, b)?,
                b_g2: reader.points(Part::BG2, b)?,
                inputs: reader.points(Part::Inputs, circuit.inputs())?,
                l: reader.points(Part::L, circuit.variables() - circuit.inputs())?,
                h: reader.points(Part::H, circuit.domain() - 1)?,
            },
        };
        reader.end().map(|()| keys)
    }
}

fn transcript(members: u8, powers: &Hash, circuit: &Hash) -> Transcript {
    let context = Sha256::new().chain_update(FORMAT).chain_update([members]).chain_update(powers).chain_update(circuit);
    Transcript::new(context.finalize().into(), SECRETS)
}
