//! Decoding under the rules of ZIP-215, sixteen points at a time: two vectors, so that one computes while the other waits.

use core::arch::x86_64::__mmask8;

use crate::field::{Limbs, Tight};
use crate::point::{Affine, D2};

/// −121665/121666.
const D: Limbs = [0xb4dca135978a3, 0x4d4141d8ab75e, 0x779e89800700a, 0xfe738cc740797, 0x52036cee2b6f];
/// A square root of −1.
const I: Limbs = [0xe1b274a0ea0b0, 0x6ad2fe478c4e, 0xdfbd7a72f4318, 0xdf0b2b4d00993, 0x2b8324804fc1];
const ONE: Limbs = [1, 0, 0, 0, 0];

/// The number of vectors that are processed side by side.
const WIDTH: usize = 2;
/// The number of points that are decoded together.
pub(crate) const DECODED_TOGETHER: usize = 8 * WIDTH;

/// For each encoding the point, or none where no x fits y. As ZIP-215 has it, y is taken modulo p, and x = 0 may have either
/// sign.
#[target_feature(enable = "avx512dq,avx512ifma")]
pub(crate) fn decode(encodings: &[[u8; 32]; DECODED_TOGETHER]) -> [Option<Affine>; DECODED_TOGETHER] {
    let mut words = [[[0; 8]; 4]; WIDTH];
    let mut signs = [0; WIDTH];
    for (at, encoding) in encodings.iter().enumerate() {
        let (vector, lane) = (at / 8, at % 8);
        for (word, bytes) in words[vector].iter_mut().zip(encoding.as_chunks().0) {
            word[lane] = u64::from_le_bytes(*bytes);
        }
        signs[vector] |= (encoding[31] >> 7) << lane;
    }
    let mut y = [Tight::zero(); WIDTH];
    for (y, words) in y.iter_mut().zip(&words) {
        *y = Tight::from_words(words);
    }
    let (mut x, valid) = roots(&y);
    let mut points = [None; DECODED_TOGETHER];
    for (vector, points) in points.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        // Since −0 = 0, a sign that is impossible for x = 0 has no effect.
        x[vector] = x[vector].negated_where(x[vector].is_odd() ^ signs[vector]);
        let (x, y) = (x[vector], y[vector]);
        let minus = y.loose().minus(&x.loose()).to_limbs();
        let plus = y.loose().plus(&x.loose()).to_limbs();
        let t2d = x.times(&y).tight().times(&Tight::splat(&D2)).tight().to_limbs();
        for (lane, point) in points.iter_mut().enumerate() {
            let affine = Affine { minus: minus[lane], plus: plus[lane], t2d: t2d[lane] };
            *point = (valid[vector] >> lane & 1 == 1).then_some(affine);
        }
    }
    points
}

/// For each y an x with −x² + y² = 1 + d·x²·y², and where there is one: x² = u/v with u = y² − 1 and v = d·y² + 1, which is never
/// zero since −1/d is not a square.
///
/// r = u·v³·(u·v⁷)^((p − 5)/8) has v·r² = u·i^k for some k; for even k the root is r or i·r, for odd k there is none (Bernstein and
/// others, "High-speed high-security signatures", §5).
#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn roots(y: &[Tight; WIDTH]) -> ([Tight; WIDTH], [__mmask8; WIDTH]) {
    let one = Tight::splat(&ONE).loose();
    let zero = Tight::zero();
    let (mut u, mut v, mut uv3, mut uv7) = ([zero; WIDTH], [zero; WIDTH], [zero; WIDTH], [zero; WIDTH]);
    for at in 0..WIDTH {
        let yy = y[at].squared().tight();
        u[at] = yy.loose().minus(&one);
        v[at] = yy.times(&Tight::splat(&D)).loose().plus(&one);
        let v3 = v[at].squared().tight().times(&v[at]).tight();
        uv3[at] = u[at].times(&v3).tight();
        let v4 = v3.times(&v[at]).tight();
        uv7[at] = uv3[at].times(&v4).tight();
    }
    let power = power_p58(&uv7);
    let (mut x, mut valid) = ([zero; WIDTH], [0; WIDTH]);
    for at in 0..WIDTH {
        let r = uv3[at].times(&power[at]).tight();
        let vrr = v[at].times(&r.squared().tight()).loose();
        let u = u[at].loose();
        let (plain, turned) = (vrr.minus(&u).is_zero(), vrr.plus(&u).is_zero());
        x[at] = r.or(&r.times(&Tight::splat(&I)).tight(), turned);
        valid[at] = plain | turned;
    }
    (x, valid)
}

/// Raises to the power of (p − 5)/8 = 2²⁵² − 3.
#[inline]
#[target_feature(enable = "avx512dq,avx512ifma")]
fn power_p58(x: &[Tight; WIDTH]) -> [Tight; WIDTH] {
    // The names denote exponents: `ones_n` has the exponent 2ⁿ − 1.
    let two = squared(x, 1);
    let nine = times(&squared(&two, 2), x);
    let eleven = times(&two, &nine);
    let ones_5 = times(&squared(&eleven, 1), &nine);
    let ones_10 = times(&squared(&ones_5, 5), &ones_5);
    let ones_20 = times(&squared(&ones_10, 10), &ones_10);
    let ones_40 = times(&squared(&ones_20, 20), &ones_20);
    let ones_50 = times(&squared(&ones_40, 10), &ones_10);
    let ones_100 = times(&squared(&ones_50, 50), &ones_50);
    let ones_200 = times(&squared(&ones_100, 100), &ones_100);
    let ones_250 = times(&squared(&ones_200, 50), &ones_50);
    times(&squared(&ones_250, 2), x)
}

#[target_feature(enable = "avx512dq,avx512ifma")]
fn squared(x: &[Tight; WIDTH], times: u32) -> [Tight; WIDTH] {
    let mut x = *x;
    for _ in 0..times {
        for x in &mut x {
            *x = x.squared().tight();
        }
    }
    x
}

#[target_feature(enable = "avx512dq,avx512ifma")]
fn times(x: &[Tight; WIDTH], y: &[Tight; WIDTH]) -> [Tight; WIDTH] {
    let mut x = *x;
    for (x, y) in x.iter_mut().zip(y) {
        *x = x.times(y).tight();
    }
    x
}
