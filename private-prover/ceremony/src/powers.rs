//! The first phase: powers of τ, which nobody knows, for circuits of any kind.
//!
//! Contributors multiply τ, α and β. The file has the transcript, and only the last state of the powers: they are
//! checked against the products that the transcript ends with, so that earlier states are of no use.

use blstrs::{G1Affine, G2Affine, Scalar};
use ff::Field;
use group::Curve;
use group::prime::PrimeCurveAffine;
use sha2::{Digest, Sha256};

use crate::check::{pairings_agree, require, sums};
use crate::flaw::{Flaw, Part, SecretName};
use crate::group::{Point, scale};
use crate::reader::{Reader, write_points};
use crate::secret::{Entropy, Secret};
use crate::transcript::Transcript;

const FORMAT: &[u8; 16] = b"fastpay-powers-1";
const SECRETS: &[SecretName] = &[SecretName::Tau, SecretName::Alpha, SecretName::Beta];
/// Where they stand in [`SECRETS`].
const TAU: usize = 0;
const ALPHA: usize = 1;
const BETA: usize = 2;

/// Powers of τ, alone and times α and β, for circuits of up to 2^size constraints.
#[derive(Clone)]
pub struct Powers {
    size: u8,
    transcript: Transcript,
    /// τ^i for i below 2·2^size − 1
    pub(crate) tau_g1: Vec<G1Affine>,
    /// τ^i for i below 2^size, and so the next two
    pub(crate) tau_g2: Vec<G2Affine>,
    pub(crate) alpha_g1: Vec<G1Affine>,
    pub(crate) beta_g1: Vec<G1Affine>,
    pub(crate) beta_g2: G2Affine,
}

impl Powers {
    /// Powers to which nobody has contributed: all secrets are 1. The size is a logarithm, from 1 to 20.
    #[must_use]
    pub fn begin(size: u8) -> Self {
        assert!((1..=20).contains(&size), "2^20 powers are 600 MB");
        let count = 1 << size;
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        Self {
            size,
            transcript: transcript(size),
            tau_g1: vec![g1; 2 * count - 1],
            tau_g2: vec![g2; count],
            alpha_g1: vec![g1; count],
            beta_g1: vec![g1; count],
            beta_g2: g2,
        }
    }

    /// Who contributed.
    #[must_use]
    pub const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// The number of constraints that a circuit may have.
    pub(crate) fn count(&self) -> usize {
        1 << self.size
    }

    /// Multiplies the secrets by new ones, which are wiped. The caller has verified the powers: to multiply false ones
    /// could reveal the secrets.
    ///
    /// # Errors
    /// [`Flaw::Name`], [`Flaw::Repeated`] and [`Flaw::Full`]; nothing is changed then.
    pub fn contribute(&mut self, name: &str, mut entropy: Entropy) -> Result<(), Flaw> {
        let (tau, alpha, beta) = (entropy.secret(), entropy.secret(), entropy.secret());
        self.transcript.contribute(name, &[&tau, &alpha, &beta])?;
        let one = Secret::new(Scalar::ONE);
        scale(&mut self.tau_g1, &one, &tau);
        scale(&mut self.tau_g2, &one, &tau);
        scale(&mut self.alpha_g1, &alpha, &tau);
        scale(&mut self.beta_g1, &beta, &tau);
        self.beta_g2 = (self.beta_g2 * beta.get()).to_affine();
        Ok(())
    }

    /// Checks every contribution, and that the powers are those of the secrets that the contributions make.
    ///
    /// # Errors
    /// [`Flaw`], with the first thing that is wrong.
    pub fn verify(&self) -> Result<(), Flaw> {
        self.transcript.verify()?;
        let (g1, g2) = (G1Affine::generator(), G2Affine::generator());
        first(Part::TauG1, &self.tau_g1, &g1)?;
        first(Part::TauG2, &self.tau_g2, &g2)?;
        first(Part::AlphaG1, &self.alpha_g1, &self.transcript.product(ALPHA))?;
        first(Part::BetaG1, &self.beta_g1, &self.transcript.product(BETA))?;
        let tau_g1 = self.transcript.product(TAU);
        let Some(tau_g2) = self.tau_g2.get(1) else { return Err(Flaw::CutOff) };
        if self.tau_g1.get(1) != Some(&tau_g1) {
            return Err(Flaw::Value { part: Part::TauG1, index: 1 });
        }
        if !pairings_agree(&g1, tau_g2, &tau_g1, &g2) {
            return Err(Flaw::Value { part: Part::TauG2, index: 1 });
        }
        for (part, powers) in
            [(Part::TauG1, &self.tau_g1), (Part::AlphaG1, &self.alpha_g1), (Part::BetaG1, &self.beta_g1)]
        {
            follow(part, powers, |low, high| pairings_agree(low, tau_g2, high, &g2))?;
        }
        follow(Part::TauG2, &self.tau_g2, |low, high| pairings_agree(&tau_g1, low, &g1, high))?;
        if !pairings_agree(&g1, &self.beta_g2, &self.transcript.product(BETA), &g2) {
            return Err(Flaw::Value { part: Part::BetaG2, index: 0 });
        }
        Ok(())
    }

    /// The bytes of a file: "fastpay-powers-1", the size, the number of contributions (2), each contribution, and the
    /// points: τ in G1, τ in G2, α, β, and β in G2.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = FORMAT.to_vec();
        bytes.push(self.size);
        self.transcript.write(&mut bytes);
        write_points(&mut bytes, &self.tau_g1);
        write_points(&mut bytes, &self.tau_g2);
        write_points(&mut bytes, &self.alpha_g1);
        write_points(&mut bytes, &self.beta_g1);
        write_points(&mut bytes, &[self.beta_g2]);
        bytes
    }

    /// The powers of a file, which are still to be verified. All points are of the right groups.
    ///
    /// # Errors
    /// [`Flaw`]
    pub fn from_bytes(bytes: &[u8], size: u8) -> Result<Self, Flaw> {
        let mut reader = Reader(bytes.strip_prefix(FORMAT).ok_or(Flaw::Format)?);
        let found = reader.byte()?;
        if found != size {
            return Err(Flaw::Size { found, expected: size });
        }
        let count = 1 << size;
        let transcript = transcript(size).read(&mut reader)?;
        let powers = Self {
            size,
            transcript,
            tau_g1: reader.points(Part::TauG1, 2 * count - 1)?,
            tau_g2: reader.points(Part::TauG2, count)?,
            alpha_g1: reader.points(Part::AlphaG1, count)?,
            beta_g1: reader.points(Part::BetaG1, count)?,
            beta_g2: reader.point()?.map_err(|error| Flaw::Point { part: Part::BetaG2, index: 0, error })?,
        };
        reader.end().map(|()| powers)
    }
}

fn transcript(size: u8) -> Transcript {
    Transcript::new(Sha256::new().chain_update(FORMAT).chain_update([size]).finalize().into(), SECRETS)
}

fn first<P: Point>(part: Part, points: &[P], expected: &P) -> Result<(), Flaw> {
    if points.first() == Some(expected) { Ok(()) } else { Err(Flaw::Value { part, index: 0 }) }
}

/// That each point is τ times the one before, where `agree` decides it for two points.
fn follow<P: Point>(part: Part, powers: &[P], agree: impl Fn(&P, &P) -> bool) -> Result<(), Flaw> {
    let (Some((_, low)), Some((_, high))) = (powers.split_last(), powers.split_first()) else {
        return Err(Flaw::CutOff);
    };
    let follow = require(part, low.len(), |range| {
        let [low, high] = sums([low, high], &range);
        agree(&low, &high)
    });
    // What is wrong is the power that does not follow.
    follow.map_err(|flaw| match flaw {
        Flaw::Value { part, index } => Flaw::Value { part, index: index + 1 },
        flaw => flaw,
    })
}
