//! Who contributed what: a chain of contributions, each with proofs that its contributor knows the factors.
//!
//! A contribution multiplies each secret x by a factor f. It states the product [x·f]₁, the factor as [f]₁ and [f]₂,
//! and as proof of knowledge the multiple f·H of a point H, which is a hash of all contributions before, the name, and
//! these points. Nobody knows the logarithm of H, so only who knows f can make it (Kohlweiss, Maller, Siim and
//! Volkhov: Snarky Ceremonies, 2021). If one factor is unknown, so is the product, whatever the others did.

use blstrs::{G1Affine, G1Projective, G2Affine};
use fastpay_private_prover::MalformedPoint;
use group::Curve;
use group::prime::PrimeCurveAffine;
use sha2::{Digest, Sha256};

use crate::check::pairings_agree;
use crate::flaw::{Flaw, Place, SecretName};
use crate::reader::{Reader, write_points};
use crate::secret::Secret;

/// For hashes to points: the suite of RFC 9380, under a name of our own.
const HASH_TO_POINT: &[u8] = b"FASTPAY-CEREMONY-V1_BLS12381G1_XMD:SHA-256_SSWU_RO_";
/// The most contributions to one phase: four committees of the largest size.
pub const CONTRIBUTIONS_MAX: usize = 1020;
const NAME_BYTES_MAX: usize = 64;

/// SHA-256 of a transcript, up to some contribution.
pub type Hash = [u8; 32];

/// The chain of contributions to one phase.
#[derive(Clone)]
pub struct Transcript {
    /// A hash of what the phase begins with.
    context: Hash,
    secrets: &'static [SecretName],
    contributions: Vec<Contribution>,
}

#[derive(Clone, PartialEq)]
struct Contribution {
    name: String,
    /// In the order of the secrets.
    steps: Vec<Step>,
}

/// One secret's part of a contribution.
#[derive(Clone, PartialEq)]
struct Step {
    product: G1Affine,
    factor_g1: G1Affine,
    factor_g2: G2Affine,
    proof: G1Affine,
}

impl Step {
    fn stated(&self, bytes: &mut Vec<u8>) {
        write_points(bytes, &[self.product, self.factor_g1]);
        write_points(bytes, &[self.factor_g2]);
    }
}

impl Contribution {
    fn place(&self, at: usize) -> Place {
        Place { number: at + 1, name: self.name.clone() }
    }

    /// The point that proofs of knowledge of this secret are multiples of.
    fn challenge(&self, before: &Hash, secret: usize) -> G1Projective {
        let mut bytes = before.to_vec();
        self.write_name(&mut bytes);
        bytes.push(u8::try_from(secret).expect("a phase has at most three secrets"));
        self.steps.iter().for_each(|step| step.stated(&mut bytes));
        G1Projective::hash_to_curve(&bytes, HASH_TO_POINT, &[])
    }

    fn write_name(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::try_from(self.name.len()).expect("a name has at most 64 bytes"));
        bytes.extend_from_slice(self.name.as_bytes());
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        self.write_name(bytes);
        for step in &self.steps {
            step.stated(bytes);
            write_points(bytes, &[step.proof]);
        }
    }
}

impl Transcript {
    pub(crate) fn new(context: Hash, secrets: &'static [SecretName]) -> Self {
        Self { context, secrets, contributions: vec![] }
    }

    /// The name and the hash of each contribution: of the transcript up to it. A contributor compares its own with what
    /// it was told when it contributed.
    pub fn contributions(&self) -> impl Iterator<Item = (&str, Hash)> {
        let mut hash = self.context;
        self.contributions.iter().map(move |contribution| {
            hash = next(&hash, contribution);
            (contribution.name.as_str(), hash)
        })
    }

    /// The hash of the whole transcript.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.contributions.iter().fold(self.context, |hash, contribution| next(&hash, contribution))
    }

    /// Whether anybody contributed.
    ///
    /// # Errors
    /// [`Flaw::Nobody`]
    pub(crate) fn require_somebody(&self) -> Result<(), Flaw> {
        if self.contributions.is_empty() { Err(Flaw::Nobody) } else { Ok(()) }
    }

    /// The secret as all contributions make it, in G1.
    pub(crate) fn product(&self, secret: usize) -> G1Affine {
        let last = self.contributions.last().and_then(|last| last.steps.get(secret));
        last.map_or_else(G1Affine::generator, |step| step.product)
    }

    /// Adds a contribution with these factors, one for each secret.
    ///
    /// # Errors
    /// [`Flaw::Name`], [`Flaw::Repeated`] and [`Flaw::Full`].
    pub(crate) fn contribute(&mut self, name: &str, factors: &[&Secret]) -> Result<(), Flaw> {
        if self.contributions.len() == CONTRIBUTIONS_MAX {
            return Err(Flaw::Full(CONTRIBUTIONS_MAX));
        }
        let before = self.hash();
        let step = |(at, factor): (usize, &&Secret)| {
            let factor = factor.get();
            Step {
                product: (self.product(at) * factor).to_affine(),
                factor_g1: (G1Affine::generator() * factor).to_affine(),
                factor_g2: (G2Affine::generator() * factor).to_affine(),
                proof: G1Affine::identity(),
            }
        };
        let steps = factors.iter().enumerate().map(step).collect();
        let mut contribution = Contribution { name: name.to_owned(), steps };
        self.check_name(&contribution, self.contributions.len())?;
        let proofs: Vec<G1Affine> = (0..)
            .zip(factors)
            .map(|(at, factor)| (contribution.challenge(&before, at) * factor.get()).to_affine())
            .collect();
        for (step, proof) in contribution.steps.iter_mut().zip(proofs) {
            step.proof = proof;
        }
        self.contributions.push(contribution);
        Ok(())
    }

    /// That the name of a contribution is well-formed, and new among those before.
    fn check_name(&self, contribution: &Contribution, at: usize) -> Result<(), Flaw> {
        let name = &contribution.name;
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_valid) {
            return Err(Flaw::Name(at + 1));
        }
        let same = |other: &Contribution| other.name.eq_ignore_ascii_case(name);
        match self.contributions.iter().take(at).position(same) {
            Some(first) => Err(Flaw::Repeated { place: contribution.place(at), first: first + 1 }),
            None => Ok(()),
        }
    }

    /// Checks each contribution: that its name is new, that it continues the one before, and that its contributor knew
    /// the factors.
    ///
    /// # Errors
    /// [`Flaw`], with the first contribution that is wrong.
    pub(crate) fn verify(&self) -> Result<(), Flaw> {
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        let mut hash = self.context;
        let mut products = vec![g1; self.secrets.len()];
        for (at, contribution) in self.contributions.iter().enumerate() {
            self.check_name(contribution, at)?;
            let place = || contribution.place(at);
            let steps = || contribution.steps.iter().zip(self.secrets);
            for ((step, &secret), product) in steps().zip(&mut products) {
                if !pairings_agree(&step.factor_g1, &g2, &g1, &step.factor_g2) {
                    return Err(Flaw::Factor { place: place(), secret });
                }
                if !pairings_agree(&step.product, &g2, product, &step.factor_g2) {
                    return Err(Flaw::Order { place: place(), secret });
                }
                *product = step.product;
            }
            // Each proof is bound to all of these points.
            for (number, (step, &secret)) in steps().enumerate() {
                let challenge = contribution.challenge(&hash, number).to_affine();
                if !pairings_agree(&step.proof, &g2, &challenge, &step.factor_g2) {
                    return Err(Flaw::Proof { place: place(), secret });
                }
            }
            hash = next(&hash, contribution);
        }
        Ok(())
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        let count = u16::try_from(self.contributions.len()).expect("at most 1,020 contributions");
        bytes.extend(count.to_be_bytes());
        self.contributions.iter().for_each(|contribution| contribution.write(bytes));
    }

    /// The contributions of a file. Their points are of the right groups; more is to be verified.
    pub(crate) fn read(mut self, reader: &mut Reader<'_>) -> Result<Self, Flaw> {
        let count = usize::from(u16::from_be_bytes(reader.array()?));
        if count > CONTRIBUTIONS_MAX {
            return Err(Flaw::Full(CONTRIBUTIONS_MAX));
        }
        for at in 0..count {
            let length = reader.byte()?;
            let name = reader.take(usize::from(length))?;
            let name = str::from_utf8(name).map_err(|_| Flaw::Name(at + 1))?.to_owned();
            let mut contribution = Contribution { name, steps: vec![] };
            self.check_name(&contribution, at)?;
            for &secret in self.secrets {
                let place = contribution.place(at);
                let flaw = |error: MalformedPoint| Flaw::StepPoint { place: place.clone(), secret, error };
                contribution.steps.push(Step {
                    product: reader.point()?.map_err(flaw)?,
                    factor_g1: reader.point()?.map_err(flaw)?,
                    factor_g2: reader.point()?.map_err(flaw)?,
                    proof: reader.point()?.map_err(flaw)?,
                });
            }
            self.contributions.push(contribution);
        }
        Ok(self)
    }
}

fn next(hash: &Hash, contribution: &Contribution) -> Hash {
    let mut bytes = hash.to_vec();
    contribution.write(&mut bytes);
    Sha256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Entropy;

    #[test]
    fn a_phase_has_a_limit_of_contributions() {
        let mut transcript = Transcript::new([7; 32], &[SecretName::Delta]);
        let mut entropy = Entropy::from_parts(&[1; 64], b"");
        for number in 0..CONTRIBUTIONS_MAX {
            transcript.contribute(&number.to_string(), &[&entropy.secret()]).unwrap();
        }
        let more = transcript.contribute("more", &[&entropy.secret()]);
        assert_eq!(more, Err(Flaw::Full(CONTRIBUTIONS_MAX)));
        let mut bytes = vec![];
        transcript.write(&mut bytes);
        let empty = Transcript::new([7; 32], &[SecretName::Delta]);
        assert_eq!(empty.read(&mut Reader(&bytes)).unwrap().hash(), transcript.hash());
    }
}
