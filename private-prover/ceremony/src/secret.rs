//! A contributor's secrets: drawn, used once, wiped.

use blstrs::Scalar;
use ff::Field;
use rand::RngCore;
use rand::rngs::OsRng;
use sha2::{Digest, Sha256, Sha512};
use zeroize::{DefaultIsZeroes, Zeroizing};

/// An element of the scalar field that is wiped when it is dropped.
pub(crate) struct Secret(Zeroizing<Element>);

#[derive(Clone, Copy, Default)]
struct Element(Scalar);

impl DefaultIsZeroes for Element {}

impl Secret {
    pub(crate) fn new(element: Scalar) -> Self {
        Self(Zeroizing::new(Element(element)))
    }

    pub(crate) fn get(&self) -> &Scalar {
        &self.0.0
    }

    /// 1/x, where x is not 0.
    pub(crate) fn inverse(&self) -> Self {
        Self::new(self.get().invert().expect("a secret is not 0"))
    }
}

/// What secrets are drawn from: 64 bytes of the operating system, and what the contributor typed.
pub struct Entropy {
    seed: Zeroizing<[u8; 64]>,
    drawn: u32,
}

impl Entropy {
    /// Entropy of the operating system, and of `typed`, which may be empty. Either of them suffices.
    ///
    /// # Errors
    /// Any of the operating system's generator.
    pub fn gather(typed: &[u8]) -> Result<Self, rand::Error> {
        let mut system = Zeroizing::new([0; 64]);
        OsRng.try_fill_bytes(&mut *system)?;
        Ok(Self::from_parts(&system, typed))
    }

    pub(crate) fn from_parts(system: &[u8; 64], typed: &[u8]) -> Self {
        let mut seed = Zeroizing::new([0; 64]);
        let hash = Sha512::new().chain_update("fastpay/ceremony/entropy").chain_update(system).chain_update(typed);
        hash.finalize_into((&mut *seed).into());
        Self { seed, drawn: 0 }
    }

    /// Another secret, uniform among the elements that are not 0.
    pub(crate) fn secret(&mut self) -> Secret {
        loop {
            let mut bytes = Zeroizing::new([0; 32]);
            let hash = Sha256::new().chain_update(*self.seed).chain_update(self.drawn.to_be_bytes());
            hash.finalize_into((&mut *bytes).into());
            self.drawn += 1;
            // The modulus has 255 bits. A number above it is drawn anew, which happens once in ten times.
            if let Some(first) = bytes.first_mut() {
                *first &= 0x7f;
            }
            let element = Option::<Scalar>::from(Scalar::from_bytes_be(&bytes)).map(Secret::new);
            if let Some(secret) = element.filter(|secret| !bool::from(secret.get().is_zero())) {
                return secret;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_and_each_draw_changes_the_secret() {
        let first = |system: &[u8; 64], typed: &[u8]| Entropy::from_parts(system, typed).secret().get().to_owned();
        assert_eq!(first(&[1; 64], b"a"), first(&[1; 64], b"a"));
        assert_ne!(first(&[1; 64], b"a"), first(&[2; 64], b"a"));
        assert_ne!(first(&[1; 64], b"a"), first(&[1; 64], b"b"));
        let mut entropy = Entropy::from_parts(&[1; 64], b"");
        assert_ne!(entropy.secret().get(), entropy.secret().get());
        let gathered = || Entropy::gather(b"").unwrap().secret();
        assert_ne!(gathered().get(), gathered().get());
    }
}
