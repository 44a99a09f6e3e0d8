//! Signatures on commitments: Schnorr on Jubjub, in 48 bytes, made so that a circuit checks them cheaply.
//!
//! A signature is (e, s) with `e = low 128 bits of H4(R.u, P.u, message, domain + kind)` and `R = s·G − (2e + 1 − 2^128)·P`.
//! The odd multiplier is a sum of ± powers of two, for which the circuit needs fewer constraints than for e itself. It
//! determines e and is determined by it, so nothing changes for a forger.

use std::sync::LazyLock;

use group::GroupEncoding;
use jubjub::{AffineNielsPoint, AffinePoint, ExtendedPoint};
use rand_core::{CryptoRng, RngCore};
use sha2::{Digest, Sha256, Sha512};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use thiserror::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::field::{Domain, Fr, field_to_bytes};
use crate::poseidon::h4;

type Multiplier = jubjub::Fr;

/// Digits to the base 8 that a response has in the circuit: 252 bits.
pub const DIGITS: usize = 84;

/// What a signature says of the element that it signs. A signature of one kind is none of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An authority: the coin with this commitment is settled.
    Coin,
    /// An authority: the private account with this commitment is settled.
    Account,
    /// A registrar: the person with this key has these limits.
    Credential,
}

impl Kind {
    /// The last input of the challenge.
    fn context(self, domain: Domain) -> Fr {
        domain.0 + self.number()
    }

    /// The kind's number, which is added to the domain in challenges.
    #[must_use]
    pub fn number(self) -> Fr {
        Fr::from(match self {
            Self::Coin => 1,
            Self::Account => 2,
            Self::Credential => 3,
        })
    }
}

/// 32 bytes that are no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("these 32 bytes are not a point of prime order on Jubjub in canonical form")]
pub struct InvalidKey;

/// A signature that the key did not make for this message, or bytes that are no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the signature is not valid")]
pub struct InvalidSignature;

/// A point of Jubjub found by hashing: nobody knows its logarithm.
fn point_from(label: &str, data: &[u8]) -> ExtendedPoint {
    (0_u32..)
        .filter_map(|attempt| {
            let mut hash = Sha256::new();
            hash.update((label.len() as u64).to_be_bytes());
            hash.update(label);
            hash.update(data);
            hash.update(attempt.to_be_bytes());
            Option::<AffinePoint>::from(AffinePoint::from_bytes(hash.finalize().into()))
        })
        .map(|point| point.to_extended().mul_by_cofactor())
        .find(|point| !bool::from(point.is_identity()))
        .expect("every other hash is a point")
}

/// The point whose multiples keys are.
pub static GENERATOR: LazyLock<ExtendedPoint> = LazyLock::new(|| point_from("fastpay/private/generator", &[]));

/// The canonical form of the point whose multiples keys are.
#[must_use]
pub fn generator() -> [u8; 32] {
    GENERATOR.to_bytes()
}

/// For each of 63 digits of four bits, the 16 multiples of the generator that the digit chooses from.
static MULTIPLES: LazyLock<Vec<[AffineNielsPoint; 16]>> = LazyLock::new(|| {
    let mut unit = *GENERATOR;
    let digit = |unit: &mut ExtendedPoint| {
        let mut multiple = ExtendedPoint::identity();
        let row = [(); 16].map(|()| {
            let niels = AffinePoint::from(multiple).to_niels();
            multiple += *unit;
            niels
        });
        *unit = multiple;
        row
    };
    (0..63).map(|_| digit(&mut unit)).collect()
});

/// A multiple of the generator, in a time that does not depend on the multiplier.
fn multiple_of_generator(by: &Multiplier) -> ExtendedPoint {
    let digits = by.to_bytes().into_iter().flat_map(|byte| [byte & 15, byte >> 4]);
    MULTIPLES.iter().zip(digits).fold(ExtendedPoint::identity(), |sum, (row, digit)| {
        let mut chosen = AffineNielsPoint::identity();
        for (value, multiple) in (0_u8..).zip(row) {
            chosen.conditional_assign(multiple, value.ct_eq(&digit));
        }
        sum + chosen
    })
}

/// A key that signatures are checked with: a point of prime order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicKey {
    point: ExtendedPoint,
    u: Fr,
    v: Fr,
}

impl PublicKey {
    fn new(point: ExtendedPoint) -> Self {
        let affine = AffinePoint::from(point);
        Self { point, u: coordinate(affine.get_u()), v: coordinate(affine.get_v()) }
    }

    /// The key of 32 bytes.
    ///
    /// # Errors
    /// [`InvalidKey`] unless they are the canonical form of a point of prime order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, InvalidKey> {
        let point = Option::<AffinePoint>::from(AffinePoint::from_bytes(*bytes)).ok_or(InvalidKey)?.to_extended();
        if bool::from(point.is_prime_order()) && point.to_bytes() == *bytes {
            Ok(Self::new(point))
        } else {
            Err(InvalidKey)
        }
    }

    /// The canonical form.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 32] {
        self.point.to_bytes()
    }

    /// The coordinates, which proofs have as public inputs.
    #[must_use]
    pub const fn coordinates(&self) -> [Fr; 2] {
        [self.u, self.v]
    }

    /// Checks a signature.
    ///
    /// # Errors
    /// [`InvalidSignature`] if this key did not make it for this element, kind and deployment.
    pub fn verify(
        &self,
        domain: Domain,
        kind: Kind,
        message: Fr,
        signature: &Signature,
    ) -> Result<(), InvalidSignature> {
        let nonce = multiple_of_generator(&signature.response) - self.point * multiplier(signature.challenge);
        if challenge(nonce, self, domain, kind, message) == signature.challenge {
            Ok(())
        } else {
            Err(InvalidSignature)
        }
    }
}

/// The key of a member that gave none: nobody can sign for it. A silent member so stops no rotation.
#[must_use]
pub fn absent_key(domain: Domain, epoch: u64, member: u8) -> PublicKey {
    let data = [&field_to_bytes(domain.0)[..], &epoch.to_be_bytes(), &[member]].concat();
    PublicKey::new(point_from("fastpay/private/absent-member", &data))
}

/// The base field of Jubjub is the scalar field of BLS12-381: two crates, one field.
#[must_use]
pub fn coordinate(element: jubjub::Fq) -> Fr {
    Option::from(Fr::from_bytes_le(&element.to_bytes())).expect("both fields have one modulus")
}

/// 2e + 1 − 2^128
fn multiplier(challenge: u128) -> Multiplier {
    let two = Multiplier::from(2);
    let mut bytes = [0; 32];
    bytes[..16].copy_from_slice(&challenge.to_le_bytes());
    let challenge = Option::<Multiplier>::from(Multiplier::from_bytes(&bytes)).expect("128 bits are below the order");
    challenge * two + Multiplier::one() - two.pow_vartime(&[128, 0, 0, 0])
}

fn challenge(nonce: ExtendedPoint, key: &PublicKey, domain: Domain, kind: Kind, message: Fr) -> u128 {
    let u = coordinate(AffinePoint::from(nonce).get_u());
    let hash = h4([u, key.u, message, kind.context(domain)]).to_bytes_le();
    u128::from_le_bytes(*hash.first_chunk().expect("a field element has 32 bytes"))
}

/// A signature of 48 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    challenge: u128,
    response: Multiplier,
}

impl Signature {
    /// The signature that nobody made: what a statement holds where no signature is needed.
    #[must_use]
    pub const fn none() -> Self {
        Self { challenge: 0, response: Multiplier::zero() }
    }

    /// The challenge in little-endian bytes.
    #[must_use]
    pub fn challenge_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(&self.challenge.to_le_bytes());
        bytes
    }

    /// The response as the circuit takes it: [`DIGITS`] digits to the base 8, each ±1, ±3, ±5 or ±7, of three bits in
    /// little-endian order. The first two are half the absolute value, and the third is 1 for plus.
    #[must_use]
    pub fn digits(&self) -> [u8; 32] {
        // With s = Σ (2b_i − 1)·2^i, the b_i are the bits of (s + 2^252 − 1)/2, and each three of them are a digit.
        let half = Option::<Multiplier>::from(Multiplier::from(2).invert()).expect("2 is not 0");
        let all = Multiplier::from(2).pow_vartime(&[3 * DIGITS as u64, 0, 0, 0]) - Multiplier::one();
        let bits = ((self.response + all) * half).to_bytes();
        let bit = |at: usize| bits.get(at / 8).map_or(0, |byte| byte >> (at % 8) & 1);
        let mut digits = [0; 32];
        for at in 0..3 * DIGITS {
            let sign = bit(at / 3 * 3 + 2);
            // A negative digit has its absolute value in the complement.
            let digit = if at % 3 == 2 || sign == 1 { bit(at) } else { 1 - bit(at) };
            if let Some(byte) = digits.get_mut(at / 8) {
                *byte |= digit << (at % 8);
            }
        }
        digits
    }

    /// The challenge in 16 big-endian bytes, then the response in 32.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; 48] {
        let mut response = self.response.to_bytes();
        response.reverse();
        let mut bytes = [0; 48];
        bytes[..16].copy_from_slice(&self.challenge.to_be_bytes());
        bytes[16..].copy_from_slice(&response);
        bytes
    }

    /// The signature of 48 bytes.
    ///
    /// # Errors
    /// [`InvalidSignature`] if the response is not below the order of the group.
    pub fn from_bytes(bytes: &[u8; 48]) -> Result<Self, InvalidSignature> {
        let challenge = u128::from_be_bytes(*bytes.first_chunk().expect("16 of 48 bytes"));
        let mut response: [u8; 32] = *bytes.last_chunk().expect("32 of 48 bytes");
        response.reverse();
        let response = Option::from(Multiplier::from_bytes(&response)).ok_or(InvalidSignature)?;
        Ok(Self { challenge, response })
    }
}

/// A key that signs: of a member for one epoch, or of a registrar. It is wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub struct SigningKey {
    seed: [u8; 32],
    #[zeroize(skip)]
    public: PublicKey,
}

impl SigningKey {
    /// The key of a seed.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        let mut key = secret(&seed);
        let public = PublicKey::new(multiple_of_generator(&key));
        wipe(&mut key);
        Self { seed, public }
    }

    /// The key that its signatures are checked with.
    #[must_use]
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs an element. The nonce is a hash of key, message and fresh randomness, so that neither a broken generator
    /// nor a repeated message reveals the key.
    pub fn sign(&self, domain: Domain, kind: Kind, message: Fr, random: &mut (impl RngCore + CryptoRng)) -> Signature {
        let mut fresh = [0; 32];
        random.fill_bytes(&mut fresh);
        let mut nonce = wide(
            "fastpay/private/nonce",
            &[&self.seed, &field_to_bytes(message), &field_to_bytes(kind.context(domain)), &fresh],
        );
        let mut key = secret(&self.seed);
        let challenge = challenge(multiple_of_generator(&nonce), &self.public, domain, kind, message);
        let response = nonce + multiplier(challenge) * key;
        wipe(&mut key);
        wipe(&mut nonce);
        fresh.zeroize();
        Signature { challenge, response }
    }
}

fn secret(seed: &[u8; 32]) -> Multiplier {
    wide("fastpay/private/signing-key", &[seed])
}

/// 512 bits of a hash, reduced: close to uniform.
fn wide(label: &str, parts: &[&[u8]]) -> Multiplier {
    let mut hash = Sha512::new();
    hash.update((label.len() as u64).to_be_bytes());
    hash.update(label);
    for part in parts {
        hash.update(part);
    }
    let mut bytes: [u8; 64] = hash.finalize().into();
    let number = Multiplier::from_bytes_wide(&bytes);
    bytes.zeroize();
    number
}

fn wipe(secret: &mut Multiplier) {
    *secret = Multiplier::zero();
    std::hint::black_box(secret);
}
