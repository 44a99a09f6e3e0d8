//! The paper's generator of keys: Grain in its self-shrinking mode.

use crate::field::{Fr, field_from_bytes};

/// Bits of an element.
const FIELD_BITS: u128 = 255;
/// What the paper's reference program has for the field, the S-box (for fifth powers too), and full rounds.
const PRIME_FIELD: u128 = 1;
const S_BOX: u128 = 1;
const FULL_ROUNDS: u128 = 8;

/// A generator of the keys of one permutation.
pub(super) struct Grain {
    /// 80 bits, the next one highest.
    state: u128,
}

impl Grain {
    pub fn new(width: usize, partial_rounds: usize) -> Self {
        let fields = [
            (2, PRIME_FIELD),
            (4, S_BOX),
            (12, FIELD_BITS),
            (12, width as u128),
            (10, FULL_ROUNDS),
            (10, partial_rounds as u128),
            (30, (1 << 30) - 1),
        ];
        let state = fields.into_iter().fold(0, |state, (bits, field)| state << bits | field);
        let mut grain = Self { state };
        for _ in 0..160 {
            grain.step();
        }
        grain
    }

    fn step(&mut self) -> u128 {
        let bit = [62, 51, 38, 23, 13, 0].iter().fold(0, |sum, at| sum ^ self.state >> (79 - at)) & 1;
        self.state = (self.state << 1 | bit) & ((1 << 80) - 1);
        bit
    }

    /// Of each two steps, the second counts if the first gives 1.
    fn bit(&mut self) -> u8 {
        loop {
            let (counts, bit) = (self.step(), self.step());
            if counts == 1 {
                return u8::from(bit == 1);
            }
        }
    }

    /// The next number of 255 bits that is below the modulus.
    pub fn element(&mut self) -> Fr {
        loop {
            let mut bytes = [0; 32];
            for at in 1..=FIELD_BITS as usize {
                if let Some(byte) = bytes.get_mut(at / 8) {
                    *byte = *byte << 1 | self.bit();
                }
            }
            if let Ok(element) = field_from_bytes(&bytes) {
                return element;
            }
        }
    }
}
