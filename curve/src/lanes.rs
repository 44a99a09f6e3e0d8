//! All access to memory: vectors of eight lanes, and rows of cells, one for each lane. All `unsafe` of the arithmetic
//! is here: loads and stores of whole arrays at any alignment.
#![allow(unsafe_code)]

use core::arch::x86_64::{
    __m128i, __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm512_extracti64x2_epi64, _mm512_inserti64x2,
    _mm512_loadu_si512, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
    _mm512_zextsi128_si512,
};

/// Eight 64-bit numbers.
pub(crate) type Lanes = __m512i;

#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn load(numbers: &[u64; 8]) -> Lanes {
    // SAFETY: the 64 bytes are readable, and the instruction requires no alignment.
    unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn store(lanes: Lanes) -> [u64; 8] {
    let mut numbers = [0; 8];
    // SAFETY: the 64 bytes are ours, and the instruction requires no alignment.
    unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), lanes) };
    numbers
}

/// A cell: the numbers of one lane, in pairs.
pub(crate) type Cell<const PAIRS: usize> = [[u64; 2]; PAIRS];

#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn load_pair(pair: &[u64; 2]) -> __m128i {
    // SAFETY: the 16 bytes are readable, and the instruction requires no alignment.
    unsafe { _mm_loadu_si128(pair.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn store_pair(pair: &mut [u64; 2], lanes: __m128i) {
    // SAFETY: the 16 bytes are writable, and the instruction requires no alignment.
    unsafe { _mm_storeu_si128(pair.as_mut_ptr().cast(), lanes) };
}

/// Reads two vectors for each pair of numbers of all eight cells: one of the first numbers and one of the second. This
/// is several times faster than the instructions that gather and scatter single numbers.
#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn read<const PAIRS: usize>(cells: [&Cell<PAIRS>; 8]) -> [[Lanes; 2]; PAIRS] {
    let mut words = [[_mm512_setzero_si512(); 2]; PAIRS];
    for (at, word) in words.iter_mut().enumerate() {
        let even = four(&cells[0][at], &cells[2][at], &cells[4][at], &cells[6][at]);
        let odd = four(&cells[1][at], &cells[3][at], &cells[5][at], &cells[7][at]);
        *word = [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)];
    }
    words
}

#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn four(a: &[u64; 2], b: &[u64; 2], c: &[u64; 2], d: &[u64; 2]) -> Lanes {
    let lanes = _mm512_zextsi128_si512(load_pair(a));
    let lanes = _mm512_inserti64x2::<1>(lanes, load_pair(b));
    let lanes = _mm512_inserti64x2::<2>(lanes, load_pair(c));
    _mm512_inserti64x2::<3>(lanes, load_pair(d))
}

/// The reverse of [`read`].
#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn write<const PAIRS: usize>(cells: &mut [Cell<PAIRS>], places: &[usize; 8], words: &[[Lanes; 2]; PAIRS]) {
    let mut even = [_mm512_setzero_si512(); PAIRS];
    let mut odd = even;
    for (at, [first, second]) in words.iter().enumerate() {
        even[at] = _mm512_unpacklo_epi64(*first, *second);
        odd[at] = _mm512_unpackhi_epi64(*first, *second);
    }
    for (lanes, quarter) in [(even, 0), (odd, 1)] {
        for at in 0..PAIRS {
            store_pair(&mut cells[places[quarter]][at], _mm512_extracti64x2_epi64::<0>(lanes[at]));
            store_pair(&mut cells[places[2 + quarter]][at], _mm512_extracti64x2_epi64::<1>(lanes[at]));
            store_pair(&mut cells[places[4 + quarter]][at], _mm512_extracti64x2_epi64::<2>(lanes[at]));
            store_pair(&mut cells[places[6 + quarter]][at], _mm512_extracti64x2_epi64::<3>(lanes[at]));
        }
    }
}
