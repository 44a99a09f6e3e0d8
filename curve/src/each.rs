//! Checks eight signature equations at once, each in its own lane (Straus), to find which of a few do not hold.

use core::arch::x86_64::__mmask8;

use crate::point::{Affine, IDENTITY, PointCell, Points};
use crate::sum::{Digits, NIBBLE_MAX, Part, signed_digits, times_power_of_two};

/// The number of equations that are checked together.
pub(crate) const EACH_TOGETHER: usize = 8;

/// R + k·A − s·B, which vanishes (times the cofactor) if a signature is valid. Scalars are below 2²⁵³, least
/// significant byte first.
#[derive(Clone, Copy, Debug)]
pub struct Relation {
    /// R.
    pub r: Affine,
    /// A.
    pub a: Affine,
    /// k.
    pub k: [u8; 32],
    /// s.
    pub s: [u8; 32],
}

/// The multiples of one point per lane, from 0 to 8 times, lane after lane.
struct Table(Vec<PointCell>);

impl Table {
    #[target_feature(enable = "avx512dq,avx512ifma")]
    fn new(points: &Points) -> Self {
        let mut cells = vec![IDENTITY; 8 * (1 + NIBBLE_MAX)];
        let mut multiple = *points;
        for number in 1..=NIBBLE_MAX {
            multiple.write(&mut cells, &places([number as u64; 8]));
            multiple = multiple.add(points);
        }
        Self(cells)
    }

    /// In each lane the multiple selected by the digit, negated where the mask has a one.
    #[target_feature(enable = "avx512dq,avx512ifma")]
    fn multiple(&self, digits: [u64; 8], negative: __mmask8) -> Points {
        Points::read(places(digits).map(|place| &self.0[place])).negated_where(negative)
    }
}

fn places(numbers: [u64; 8]) -> [usize; 8] {
    std::array::from_fn(|lane| lane * (1 + NIBBLE_MAX) + numbers[lane] as usize)
}

/// Computes which of these vanish times 8, as bits. `base` is B.
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn vanish_times_8(base: &Affine, relations: &[Relation; EACH_TOGETHER]) -> __mmask8 {
    let of_a = Table::new(&Points::of_affine(&relations.map(|relation| relation.a)));
    let of_b = Table::new(&Points::of_affine(&[*base; EACH_TOGETHER]));
    let k = relations.map(|relation| signed_digits(&relation.k));
    let s = relations.map(|relation| signed_digits(&relation.s));
    let mut sum = Points::read([&IDENTITY; 8]);
    for byte in (0..32).rev() {
        let of_byte = |digits: &[Digits; 8]| digits.map(|digits| digits[byte]);
        for part in [Part::HighNibble, Part::LowNibble] {
            sum = times_power_of_two(sum, 4);
            let (digits, negative) = part.of(of_byte(&k));
            sum = sum.add(&of_a.multiple(digits, negative));
            let (digits, negative) = part.of(of_byte(&s));
            sum = sum.add(&of_b.multiple(digits, !negative));
        }
    }
    let sum = sum.add(&Points::of_affine(&relations.map(|relation| relation.r)));
    times_power_of_two(sum, 3).is_identity()
}
