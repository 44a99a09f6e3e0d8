//! Sums of many multiples of points, by buckets (Pippenger). A lane stands for a digit of the scalars, so each point is
//! added at once to one bucket in every lane, the one that its digit there names.
//!
//! ```text
//!  scalars ─► 32 signed bytes ─► 4 blocks of 8 digits, one for each lane ─► buckets ─► Σ digit · point, for each lane
//!                                  (few points: two nibbles of each byte)                  └─► Σ 256ⁿ · lane n ─► sum
//! ```

use core::arch::x86_64::{
    __mmask8, _mm_cvtsi64_si128, _mm512_abs_epi64, _mm512_add_epi64, _mm512_cvtepi8_epi64, _mm512_movepi64_mask,
    _mm512_set1_epi64, _mm512_slli_epi64, _mm512_srai_epi64, _mm512_sub_epi64,
};

use crate::lanes::store;
use crate::point::{Affine, IDENTITY, PointCell, Points};
use crate::single::{Single, addends};

/// A scalar below 2²⁵³ as Σ dᵢ·256ⁱ.
pub(crate) type Digits = [i8; 32];
/// A short scalar, as Σ dᵢ·256ⁱ.
pub(crate) type ShortDigits = [i8; 16];

/// Digits in a block: one for each lane.
const BLOCK: usize = 8;
/// The number of points from which buckets for bytes are cheaper than buckets for nibbles, as measured.
pub(crate) const BYTES_FROM_POINTS: usize = 340;
/// The maximum of |digit| for bytes.
const BYTE_MAX: usize = 128;
pub(crate) const NIBBLE_MAX: usize = 8;

/// The part of each digit that a pass over a block uses.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Byte,
    /// The low digit of a byte d: l = (d + 8 mod 16) − 8.
    LowNibble,
    /// (d − l) / 16, from −8 to 8.
    HighNibble,
}

/// Σ scalar · point. Each scalar is below 2²⁵³.
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn sum(long: &[(Affine, [u8; 32])], short: &[(Affine, ShortDigits)]) -> PointCell {
    let long: Vec<(Affine, Digits)> = long.iter().map(|(point, scalar)| (*point, signed_digits(scalar))).collect();
    let bytes = long.len() + short.len() >= BYTES_FROM_POINTS;
    let max = if bytes { BYTE_MAX } else { NIBBLE_MAX };
    let mut buckets = Buckets { cells: vec![IDENTITY; 8 * (1 + max)], max };
    let mut sum = Single::identity();
    for block in (0..4).rev() {
        let long = long.iter().map(|(point, digits)| (point, digits.as_chunks::<BLOCK>().0[block]));
        let short = short.iter().filter_map(|(point, d)| Some((point, *d.as_chunks::<BLOCK>().0.get(block)?)));
        let terms = long.chain(short);
        let of_block = if bytes {
            buckets.sum(terms, Part::Byte)
        } else {
            let high = buckets.sum(terms.clone(), Part::HighNibble);
            times_power_of_two(high, 4).add(&buckets.sum(terms, Part::LowNibble))
        };
        for digit in addends(&of_block).iter().rev() {
            for _ in 0..8 {
                sum = sum.double();
            }
            sum = sum.add(digit);
        }
    }
    sum.to_cell()
}

/// The signed digits of a scalar: those of scalar + Σ 128·256ⁱ, less 128 each. The sum is below 2²⁵³ + 2²⁵⁵·256/255 < 2²⁵⁶.
pub(crate) fn signed_digits(scalar: &[u8; 32]) -> Digits {
    assert!(scalar[31] < 0x20, "a scalar is below 2²⁵³");
    let mut carry = 0;
    scalar.map(|byte| {
        let sum = u16::from(byte) + 128 + carry;
        carry = sum >> 8;
        // The low byte less 128.
        (sum as u8 ^ 128).cast_signed()
    })
}

struct Buckets {
    /// The buckets, lane after lane. Bucket 0 takes the points whose digit is zero and is left out of sums.
    cells: Vec<PointCell>,
    max: usize,
}

impl Buckets {
    /// Σ digit · point in each lane.
    #[target_feature(enable = "avx512dq,avx512ifma")]
    fn sum<'a>(&mut self, terms: impl Iterator<Item = (&'a Affine, [i8; BLOCK])>, part: Part) -> Points {
        self.cells.fill(IDENTITY);
        for (point, digits) in terms {
            let (buckets, negative) = part.of(digits);
            let places = self.places(buckets);
            self.read(&places).add_affine(point, negative).write(&mut self.cells, &places);
        }
        // Σ b · bucket b: each bucket is in the running sums from its own number down to 1.
        let mut bucket_sum = self.read(&self.places([self.max as u64; 8]));
        let mut sum = bucket_sum;
        for number in (1..self.max as u64).rev() {
            bucket_sum = bucket_sum.add(&self.read(&self.places([number; 8])));
            sum = sum.add(&bucket_sum);
        }
        sum
    }

    /// The position of each lane's bucket, by the bucket's number there.
    #[inline]
    fn places(&self, buckets: [u64; 8]) -> [usize; 8] {
        let row = 1 + self.max;
        let mut places = [0, row, 2 * row, 3 * row, 4 * row, 5 * row, 6 * row, 7 * row];
        for (place, bucket) in places.iter_mut().zip(buckets) {
            *place += bucket as usize;
        }
        places
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    fn read(&self, places: &[usize; 8]) -> Points {
        Points::read(places.map(|place| &self.cells[place]))
    }
}

impl Part {
    /// The bucket of each lane's digit, and whether the digit is negative.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn of(self, digits: [i8; BLOCK]) -> ([u64; 8], __mmask8) {
        let bytes = i64::from_le_bytes(digits.map(i8::cast_unsigned));
        let byte = _mm512_cvtepi8_epi64(_mm_cvtsi64_si128(bytes));
        let high = _mm512_srai_epi64::<4>(_mm512_add_epi64(byte, _mm512_set1_epi64(8)));
        let digit = match self {
            Self::Byte => byte,
            Self::HighNibble => high,
            Self::LowNibble => _mm512_sub_epi64(byte, _mm512_slli_epi64::<4>(high)),
        };
        (store(_mm512_abs_epi64(digit)), _mm512_movepi64_mask(digit))
    }
}

#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn times_power_of_two(mut points: Points, power: u32) -> Points {
    for _ in 0..power {
        points = points.double();
    }
    points
}

#[target_feature(enable = "avx512dq,avx512ifma")]
fn lane_0(points: Points) -> PointCell {
    let mut cells = [IDENTITY; 8];
    points.write(&mut cells, &[0, 1, 2, 3, 4, 5, 6, 7]);
    cells[0]
}

/// `a` − `b`.
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn difference(a: &PointCell, b: &PointCell) -> PointCell {
    lane_0(Points::read([a; 8]).add(&Points::read([b; 8]).negated_where(0xFF)))
}

/// Whether 8 · `point` is the neutral point.
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn vanishes_times_8(point: &PointCell) -> bool {
    times_power_of_two(Points::read([point; 8]), 3).is_identity() == 0xFF
}
