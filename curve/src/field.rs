//! GF(2²⁵⁵ − 19), eight elements at a time: five limbs to base 2⁵², each a vector with a lane for each element.
//!
//! The instructions multiply the low 52 bits of their inputs and ignore the rest, so a factor must have limbs below 2⁵²
//! without exception: an adversary would find any exception. Types enforce this:
//!
//! | type | limbs 0 to 3 | limb 4 | comes from |
//! |---|---|---|---|
//! | [`Tight`] | < 2⁵² | < 2⁴⁷ + 2¹⁶ | [`carry`], bytes |
//! | [`Product`] | < 11·2⁵² | < 11·2⁵² | `Tight` × `Tight` |
//! | [`Loose`] | < 44·2⁵² | < 44·2⁵² | a `Product`, up to four times; a `Tight`, up to twice |
//!
//! Only a `Tight` can be multiplied; sums and differences of `Loose` are carried at once.

use core::arch::x86_64::{
    __mmask8, _mm512_add_epi64, _mm512_and_si512, _mm512_cmpeq_epi64_mask, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_mask_blend_epi64, _mm512_mask_sub_epi64, _mm512_maskz_mov_epi64, _mm512_or_si512,
    _mm512_permutex_epi64, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_sllv_epi64,
    _mm512_srli_epi64, _mm512_sub_epi64, _mm512_test_epi64_mask,
};

use crate::lanes::{Lanes, load, store};

const LIMB_BITS: u32 = 52;
const LIMB: u64 = (1 << LIMB_BITS) - 1;
/// 5·52 bits are 5 more than 255.
const TOP_LIMB_BITS: u32 = 47;
const TOP_LIMB: u64 = (1 << TOP_LIMB_BITS) - 1;
/// 2²⁶⁰ = 2⁵·2²⁵⁵ = 2⁵·19 modulo p.
const WRAP: u64 = 19 << 5;
/// 2048·p: every limb is at least 2⁵⁸ − 2¹¹ and below 2⁶³, so any `Loose` can be taken from it, limb by limb.
const BIAS: [u64; 5] = [((1 << 52) - 19) << 11, LIMB << 11, LIMB << 11, LIMB << 11, TOP_LIMB << 11];

/// Eight elements that can be multiplied. Not unique: the value may be up to 2²⁵⁵ + 2²²⁵.
#[derive(Clone, Copy)]
pub(crate) struct Tight(pub(crate) [Lanes; 5]);

/// Eight products, not carried.
#[derive(Clone, Copy)]
pub(crate) struct Product([Lanes; 5]);

/// Eight elements that can be added and subtracted.
#[derive(Clone, Copy)]
pub(crate) struct Loose(pub(crate) [Lanes; 5]);

/// The factor, as a power of two, by which a product may be multiplied before it must be carried.
#[derive(Clone, Copy)]
pub(crate) enum Times {
    One = 0,
    Two = 1,
    Four = 2,
}

/// One element's limbs as stored in memory: each limb as in [`Tight`].
pub(crate) type Limbs = [u64; 5];

#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn splat(number: u64) -> Lanes {
    _mm512_set1_epi64(number.cast_signed())
}

/// Carries limbs that are below 2⁶³ + 2⁶⁰.
///
/// First the part above 2²⁵⁵ is added 19 times to limb 0: less than 19·2¹⁷, so no limb overflows. Then each limb passes
/// the part above 52 bits, less than 2¹² each time, to the next: limb 4, cut to 47 bits before, ends below 2⁴⁷ + 2¹².
/// No limb passes on more than it has, so limbs 0 to 3 are below 2⁵² for any input.
#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn carry(limbs: [Lanes; 5]) -> Tight {
    let [mut z0, mut z1, mut z2, mut z3, mut z4] = limbs;
    let mask = splat(LIMB);
    z0 = _mm512_madd52lo_epu64(z0, _mm512_srli_epi64::<TOP_LIMB_BITS>(z4), splat(19));
    z4 = _mm512_and_si512(z4, splat(TOP_LIMB));
    z1 = _mm512_add_epi64(z1, _mm512_srli_epi64::<LIMB_BITS>(z0));
    z0 = _mm512_and_si512(z0, mask);
    z2 = _mm512_add_epi64(z2, _mm512_srli_epi64::<LIMB_BITS>(z1));
    z1 = _mm512_and_si512(z1, mask);
    z3 = _mm512_add_epi64(z3, _mm512_srli_epi64::<LIMB_BITS>(z2));
    z2 = _mm512_and_si512(z2, mask);
    z4 = _mm512_add_epi64(z4, _mm512_srli_epi64::<LIMB_BITS>(z3));
    z3 = _mm512_and_si512(z3, mask);
    Tight([z0, z1, z2, z3, z4])
}

/// Reduces the ten columns of a product to five.
///
/// With n the number of halves of 52 bits in a column (1, 3, 5, 7, 9, 9, 7, 5, 3, 1), column k < 9 is below n·2⁵²; column 9 is the
/// high half of a product of two top limbs, (2⁴⁷ + 2¹⁶)² / 2⁵² < 2⁴² + 2¹². Columns 5 to 8 hand on what is above 52 bits, at
/// most 9, to the next. So 608 · column 9 < 2⁵¹·³ has no high half, and columns 0 to 4 end below
/// 2, 5, 7, 9 and 11 times 2⁵².
#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn fold(columns: [Lanes; 10]) -> Product {
    let [mut z0, mut z1, mut z2, mut z3, mut z4, z5, mut z6, mut z7, mut z8, mut z9] = columns;
    let wrap = splat(WRAP);
    z6 = _mm512_add_epi64(z6, _mm512_srli_epi64::<LIMB_BITS>(z5));
    z7 = _mm512_add_epi64(z7, _mm512_srli_epi64::<LIMB_BITS>(z6));
    z8 = _mm512_add_epi64(z8, _mm512_srli_epi64::<LIMB_BITS>(z7));
    z9 = _mm512_add_epi64(z9, _mm512_srli_epi64::<LIMB_BITS>(z8));
    // These multiplications use only the low 52 bits of columns 5 to 8, the bits that remained there.
    z0 = _mm512_madd52lo_epu64(z0, z5, wrap);
    z1 = _mm512_madd52hi_epu64(z1, z5, wrap);
    z1 = _mm512_madd52lo_epu64(z1, z6, wrap);
    z2 = _mm512_madd52hi_epu64(z2, z6, wrap);
    z2 = _mm512_madd52lo_epu64(z2, z7, wrap);
    z3 = _mm512_madd52hi_epu64(z3, z7, wrap);
    z3 = _mm512_madd52lo_epu64(z3, z8, wrap);
    z4 = _mm512_madd52hi_epu64(z4, z8, wrap);
    z4 = _mm512_madd52lo_epu64(z4, z9, wrap);
    Product([z0, z1, z2, z3, z4])
}

impl Tight {
    /// The same element in all lanes.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn splat(limbs: &Limbs) -> Self {
        Self(limbs.map(|limb| splat(limb)))
    }

    /// An element for each lane.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn of(elements: &[Limbs; 8]) -> Self {
        let limb = |limb: usize| load(&elements.map(|element| element[limb]));
        Self([limb(0), limb(1), limb(2), limb(3), limb(4)])
    }

    /// Zero in all lanes.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn zero() -> Self {
        Self([_mm512_setzero_si512(); 5])
    }

    /// The low 255 bits of eight numbers, given word by word: first the lowest word of all eight, and so on. Values of
    /// p or more are accepted and reduced modulo p.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn from_words(words: &[[u64; 8]; 4]) -> Self {
        let [w0, w1, w2, w3] = [load(&words[0]), load(&words[1]), load(&words[2]), load(&words[3])];
        let mask = splat(LIMB);
        Self([
            _mm512_and_si512(w0, mask),
            _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<52>(w0), _mm512_slli_epi64::<12>(w1)), mask),
            _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<40>(w1), _mm512_slli_epi64::<24>(w2)), mask),
            _mm512_and_si512(_mm512_or_si512(_mm512_srli_epi64::<28>(w2), _mm512_slli_epi64::<36>(w3)), mask),
            _mm512_and_si512(_mm512_srli_epi64::<16>(w3), splat(TOP_LIMB)),
        ])
    }

    /// The limbs of each lane.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn to_limbs(self) -> [Limbs; 8] {
        let [l0, l1, l2, l3, l4] = self.0.map(|limb| store(limb));
        core::array::from_fn(|lane| [l0[lane], l1[lane], l2[lane], l3[lane], l4[lane]])
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn times(&self, other: &Self) -> Product {
        let (x, y) = (&self.0, &other.0);
        let mut z = [_mm512_setzero_si512(); 10];
        for i in 0..5 {
            for j in 0..5 {
                z[i + j] = _mm512_madd52lo_epu64(z[i + j], x[i], y[j]);
                z[i + j + 1] = _mm512_madd52hi_epu64(z[i + j + 1], x[i], y[j]);
            }
        }
        fold(z)
    }

    /// The square. Products of different limbs are computed once and doubled, which yields the same columns as `times`.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn squared(&self) -> Product {
        let x = &self.0;
        let mut z = [_mm512_setzero_si512(); 10];
        for i in 0..5 {
            for j in i + 1..5 {
                z[i + j] = _mm512_madd52lo_epu64(z[i + j], x[i], x[j]);
                z[i + j + 1] = _mm512_madd52hi_epu64(z[i + j + 1], x[i], x[j]);
            }
        }
        for column in &mut z {
            *column = _mm512_add_epi64(*column, *column);
        }
        for i in 0..5 {
            z[2 * i] = _mm512_madd52lo_epu64(z[2 * i], x[i], x[i]);
            z[2 * i + 1] = _mm512_madd52hi_epu64(z[2 * i + 1], x[i], x[i]);
        }
        fold(z)
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn loose(self) -> Loose {
        Loose(self.0)
    }

    /// The double, below 2⁵³.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn twice(self) -> Loose {
        Loose(self.0.map(|limb| _mm512_add_epi64(limb, limb)))
    }

    /// Negates the lanes where the mask has a one.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn negated_where(self, mask: __mmask8) -> Self {
        self.or(&Self::zero().loose().minus(&self.loose()), mask)
    }

    /// Permutes the lanes within each half: the pairs of bits in `LANES` name the sources, lowest first.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn rearranged<const LANES: i32>(&self) -> Self {
        Self(self.0.map(|limb| _mm512_permutex_epi64::<LANES>(limb)))
    }

    /// Takes `other` in the lanes where the mask has a one.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn or(&self, other: &Self, mask: __mmask8) -> Self {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(other.0) {
            *limb = _mm512_mask_blend_epi64(mask, *limb, other);
        }
        Self(limbs)
    }

    /// The one representative below p. The value is below 2²⁵⁵ + 2²²⁵ < 2p, so p is to be taken off once at most: where
    /// adding 19 reaches 2²⁵⁵.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn canonical(self) -> Self {
        let [z0, z1, z2, z3, z4] = self.0;
        let mut over = _mm512_srli_epi64::<LIMB_BITS>(_mm512_add_epi64(z0, splat(19)));
        for limb in [z1, z2, z3] {
            over = _mm512_srli_epi64::<LIMB_BITS>(_mm512_add_epi64(limb, over));
        }
        over = _mm512_srli_epi64::<TOP_LIMB_BITS>(_mm512_add_epi64(z4, over));
        let z0 = _mm512_madd52lo_epu64(z0, over, splat(19));
        let mask = splat(LIMB);
        let z1 = _mm512_add_epi64(z1, _mm512_srli_epi64::<LIMB_BITS>(z0));
        let z2 = _mm512_add_epi64(z2, _mm512_srli_epi64::<LIMB_BITS>(z1));
        let z3 = _mm512_add_epi64(z3, _mm512_srli_epi64::<LIMB_BITS>(z2));
        let z4 = _mm512_add_epi64(z4, _mm512_srli_epi64::<LIMB_BITS>(z3));
        let [z0, z1, z2, z3] = [z0, z1, z2, z3].map(|limb| _mm512_and_si512(limb, mask));
        Self([z0, z1, z2, z3, _mm512_and_si512(z4, splat(TOP_LIMB))])
    }

    /// The lanes in which the element is zero.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn is_zero(self) -> __mmask8 {
        let [z0, z1, z2, z3, z4] = self.canonical().0;
        let low = _mm512_or_si512(_mm512_or_si512(z0, z1), _mm512_or_si512(z2, z3));
        _mm512_cmpeq_epi64_mask(_mm512_or_si512(low, z4), _mm512_setzero_si512())
    }

    /// The lanes in which the representative below p is odd.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn is_odd(self) -> __mmask8 {
        _mm512_test_epi64_mask(self.canonical().0[0], splat(1))
    }
}

impl Product {
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn tight(self) -> Tight {
        carry(self.0)
    }

    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn loose(self) -> Loose {
        Loose(self.0)
    }

    /// Below 22·2⁵².
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn twice(self) -> Loose {
        Loose(self.0.map(|limb| _mm512_add_epi64(limb, limb)))
    }

    /// Permutes the lanes within each half as [`Tight::rearranged`] does, and multiplies each by 1, 2 or 4.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn rearranged<const LANES: i32>(&self, times: [Times; 4]) -> Loose {
        let [a, b, c, d] = times.map(|times| times as u64);
        let shifts = load(&[a, b, c, d, a, b, c, d]);
        Loose(self.0.map(|limb| _mm512_sllv_epi64(_mm512_permutex_epi64::<LANES>(limb), shifts)))
    }
}

impl Loose {
    /// Limbs below 88·2⁵² are carried.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn plus(&self, other: &Self) -> Tight {
        let mut limbs = self.0;
        for (limb, other) in limbs.iter_mut().zip(other.0) {
            *limb = _mm512_add_epi64(*limb, other);
        }
        carry(limbs)
    }

    /// Limbs below 2⁶³ + 44·2⁵² are carried, and none below zero: 44·2⁵² < 2⁵⁸ − 2¹¹.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn minus(&self, other: &Self) -> Tight {
        let mut limbs = self.0;
        for ((limb, other), bias) in limbs.iter_mut().zip(other.0).zip(BIAS) {
            *limb = _mm512_sub_epi64(_mm512_add_epi64(*limb, splat(bias)), other);
        }
        carry(limbs)
    }

    /// 2·self − other: limbs below 2⁶³ + 88·2⁵² < 2⁶³ + 2⁵⁹ are carried.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn twice_minus(&self, other: &Self) -> Tight {
        let mut limbs = self.0;
        for ((limb, other), bias) in limbs.iter_mut().zip(other.0).zip(BIAS) {
            let twice = _mm512_add_epi64(*limb, *limb);
            *limb = _mm512_sub_epi64(_mm512_add_epi64(twice, splat(bias)), other);
        }
        carry(limbs)
    }

    /// Zero where the mask has no one.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn only_where(self, mask: __mmask8) -> Self {
        Self(self.0.map(|limb| _mm512_maskz_mov_epi64(mask, limb)))
    }

    /// self − other where the mask has a one, self + other elsewhere: limbs as in `minus`.
    #[inline]
    #[target_feature(enable = "avx512dq,avx512ifma")]
    pub(crate) fn minus_where(&self, minus: __mmask8, other: &Self) -> Tight {
        let mut limbs = self.0;
        for ((limb, other), bias) in limbs.iter_mut().zip(other.0).zip(BIAS) {
            *limb = _mm512_add_epi64(*limb, _mm512_mask_sub_epi64(other, minus, splat(bias), other));
        }
        carry(limbs)
    }
}
