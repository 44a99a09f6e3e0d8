//! Field elements, and what becomes one: hashes, amounts, assets, the deployment.

use sha2::{Digest, Sha256};
use thiserror::Error;
use zeroize::DefaultIsZeroes;

/// An element of the scalar field of BLS12-381, of some 254.9 bits.
pub type Fr = blstrs::Scalar;

/// 32 bytes that are no field element in canonical form: the number is not below the modulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("these 32 bytes are not a field element in canonical form")]
pub struct NotCanonical;

/// The 32 big-endian bytes of an element.
#[must_use]
pub fn field_to_bytes(element: Fr) -> [u8; 32] {
    element.to_bytes_be()
}

/// The element of 32 big-endian bytes.
///
/// # Errors
/// [`NotCanonical`], so that each element has one encoding.
pub fn field_from_bytes(bytes: &[u8; 32]) -> Result<Fr, NotCanonical> {
    Option::from(Fr::from_bytes_be(bytes)).ok_or(NotCanonical)
}

/// The low 253 bits of a hash. Every value of 253 bits is below the modulus.
#[must_use]
pub fn field_from_hash(mut hash: [u8; 32]) -> Fr {
    if let Some(first) = hash.first_mut() {
        *first &= 0x1f;
    }
    field_from_bytes(&hash).expect("253 bits are below the modulus")
}

/// The element of an unsigned number.
#[must_use]
pub fn field_from_u128(number: u128) -> Fr {
    let mut bytes = [0; 32];
    bytes[16..].copy_from_slice(&number.to_be_bytes());
    field_from_bytes(&bytes).expect("128 bits are below the modulus")
}

/// SHA-256 of a label and parts, each after its length, as an element of 253 bits.
#[must_use]
pub fn derive(label: &str, parts: &[&[u8]]) -> Fr {
    let mut hash = Sha256::new();
    for part in [label.as_bytes()].iter().chain(parts) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    field_from_hash(hash.finalize().into())
}

/// An ERC-20 token's address on the Primary, or zero for ether.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Asset(pub [u8; 20]);

impl Asset {
    /// The address as a number.
    #[must_use]
    pub fn element(self) -> Fr {
        let mut bytes = [0; 32];
        bytes[12..].copy_from_slice(&self.0);
        field_from_bytes(&bytes).expect("160 bits are below the modulus")
    }
}

/// A deployment. Objects and signatures of one are worth nothing in another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain(pub(crate) Fr);

impl Domain {
    /// The domain of the deployment that has this EIP-712 domain separator.
    #[must_use]
    pub fn new(separator: &[u8; 32]) -> Self {
        Self(derive("fastpay/private/domain", &[separator]))
    }

    /// The element that proofs have as a public input.
    #[must_use]
    pub const fn element(self) -> Fr {
        self.0
    }
}

/// An element that is wiped when its owner asks for it.
#[derive(Clone, Copy, Default)]
pub struct Secret(pub Fr);

impl DefaultIsZeroes for Secret {}

#[cfg(test)]
mod tests {
    use ff::Field;

    use super::*;

    #[test]
    fn only_canonical_bytes_are_an_element() {
        let largest = field_to_bytes(-Fr::ONE);
        assert_eq!(field_from_bytes(&largest), Ok(-Fr::ONE));
        let mut modulus = largest;
        modulus[31] += 1;
        assert_eq!(field_from_bytes(&modulus), Err(NotCanonical));
        assert_eq!(field_from_bytes(&[0xff; 32]), Err(NotCanonical));
    }

    #[test]
    fn a_hash_keeps_253_bits() {
        let element = field_from_hash([0xff; 32]);
        assert_eq!(element + Fr::ONE, Fr::from(2).pow([253]));
        assert_eq!(field_from_u128(u128::MAX) + Fr::ONE, Fr::from(2).pow([128]));
    }

    #[test]
    fn parts_cannot_be_cut_elsewhere() {
        assert_ne!(derive("a", &[b"bc", b"d"]), derive("a", &[b"b", b"cd"]));
        assert_ne!(derive("a", &[b""]), derive("a", &[]));
    }
}
