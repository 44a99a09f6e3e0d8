//! The field against plain integers: random elements, and every mix of limbs at the ends of their bounds.

use core::array::from_fn;
use core::ops::{Add, Mul, Sub};

use num_bigint::BigUint;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use super::{p, value, values, wide_test};
use crate::field::{Limbs, Loose, Tight};

const LIMB_MAX: u64 = (1 << 52) - 1;
/// The largest top limb of a `Tight`.
const TOP_MAX: u64 = (1 << 47) + (1 << 16) - 1;
/// The largest limb of a `Loose`.
const LOOSE_MAX: u64 = 44 * (1 << 52) - 1;

#[target_feature(enable = "avx512dq,avx512ifma")]
fn loose(elements: &[Limbs; 8]) -> Loose {
    // By its parts, since no operation leads to these limbs.
    Loose(Tight::of(elements).0)
}

/// Each limb zero, one or the largest, in every mix of the first and last of these; then random ones.
fn elements(random: &mut StdRng, max: Limbs, count: usize) -> Vec<Limbs> {
    let corners = (0..32).map(|mix| from_fn(|limb| if mix >> limb & 1 == 0 { 0 } else { max[limb] }));
    let edges = (0..count).map(|_| from_fn::<u64, 5, _>(|_| random.random_range(0..4)));
    let edges: Vec<Limbs> =
        edges.map(|pick| from_fn(|limb| [0, 1, max[limb] - 1, max[limb]][pick[limb] as usize])).collect();
    let anything: Vec<Limbs> = (0..count).map(|_| from_fn(|limb| random.random_range(0..=max[limb]))).collect();
    corners.chain(edges).chain(anything).collect()
}

const TIGHT: Limbs = [LIMB_MAX, LIMB_MAX, LIMB_MAX, LIMB_MAX, TOP_MAX];

/// Compares an operation on pairs of elements with that on integers modulo p.
#[target_feature(enable = "avx512dq,avx512ifma")]
fn compare(
    lefts: &[Limbs],
    rights: &[Limbs],
    wide: impl Fn(&[Limbs; 8], &[Limbs; 8]) -> [BigUint; 8],
    plain: impl Fn(BigUint, BigUint) -> BigUint,
) {
    for left in lefts.as_chunks::<8>().0 {
        // Each lane meets each element.
        for shift in 0..rights.len() {
            let right: [Limbs; 8] = from_fn(|lane| rights[(lane * 5 + shift) % rights.len()]);
            let found = wide(left, &right);
            for lane in 0..8 {
                let expected = plain(value(&left[lane]), value(&right[lane])) % p();
                assert_eq!(found[lane], expected, "{:x?} and {:x?}", left[lane], right[lane]);
            }
        }
    }
}

/// The first, but every other lane from `from` on as the second: that it is checked elsewhere.
fn every_other(mut found: [BigUint; 8], other: &[BigUint; 8], except: usize) -> [BigUint; 8] {
    for lane in (1 - except..8).step_by(2) {
        found[lane] = other[lane].clone();
    }
    found
}

/// A multiple of p above whatever is taken off.
fn over() -> BigUint {
    p() << 64
}

wide_test! {
    fn products_are_right_at_the_ends_of_the_bounds() {
        let mut random = StdRng::seed_from_u64(1);
        let elements = elements(&mut random, TIGHT, 32);
        compare(&elements, &elements, |a, b| values(Tight::of(a).times(&Tight::of(b)).tight()), Mul::mul);
        compare(&elements, &elements[..1], |a, _| values(Tight::of(a).squared().tight()), |a, _| &a * &a);
        let sums = |a: &[Limbs; 8], b: &[Limbs; 8]| values(Tight::of(a).times(&Tight::of(b)).loose().plus(&Tight::of(a).squared().loose()));
        compare(&elements, &elements, sums, |a, b| &a * (b + &a));
        let twice = |a: &[Limbs; 8], b: &[Limbs; 8]| values(Tight::of(a).loose().minus(&Tight::of(a).times(&Tight::of(b)).twice()));
        compare(&elements, &elements, twice, |a, b| over() + &a - ((&a * b) % p()) * 2_u8);
    }
}

wide_test! {
    fn sums_and_differences_are_right_at_the_ends_of_the_bounds() {
        let mut random = StdRng::seed_from_u64(2);
        let elements = elements(&mut random, [LOOSE_MAX; 5], 32);
        compare(&elements, &elements, |a, b| values(loose(a).plus(&loose(b))), Add::add);
        compare(&elements, &elements, |a, b| values(loose(a).minus(&loose(b))), |a, b| over() + a - b);
        compare(&elements, &elements, |a, b| values(loose(a).twice_minus(&loose(b))), |a, b| over() + a * 2_u8 - b);
        let mixed = |a: &[Limbs; 8], b: &[Limbs; 8]| values(loose(a).minus_where(0b0101_0101, &loose(b)));
        let minus = |a: &[Limbs; 8], b: &[Limbs; 8]| every_other(mixed(a, b), &values(loose(a).plus(&loose(b))), 1);
        compare(&elements, &elements, minus, |a, b| a + b);
        let plus = |a: &[Limbs; 8], b: &[Limbs; 8]| every_other(mixed(a, b), &values(loose(a).minus(&loose(b))), 0);
        compare(&elements, &elements, plus, |a, b| over() + a - b);
        let tights = super::field::elements(&mut random, TIGHT, 32);
        compare(&tights, &tights, |a, b| values(Tight::of(a).twice().minus(&Tight::of(b).loose())), |a, b| over() + a * 2_u8 - b);
        compare(&tights, &tights[..1], |a, _| values(Tight::of(a).negated_where(0xFF)), |a, _| over() - a);
    }
}

wide_test! {
    fn the_smallest_representative_is_found() {
        let mut random = StdRng::seed_from_u64(3);
        let limbs = |number: &BigUint| -> Limbs {
            let mask = BigUint::from(LIMB_MAX);
            from_fn(|limb| {
                let part = if limb == 4 { number >> 208_u32 } else { (number >> (52 * limb)) & &mask };
                part.try_into().unwrap()
            })
        };
        let near_p = (0..64_u32).map(|near| limbs(&(p() + near - 32_u8)));
        let elements: Vec<Limbs> = elements(&mut random, TIGHT, 64).into_iter().chain(near_p).collect();
        for elements in elements.as_chunks::<8>().0 {
            let wide = Tight::of(elements);
            let (canonical, zero, odd) = (wide.canonical().to_limbs(), wide.is_zero(), wide.is_odd());
            for lane in 0..8 {
                let expected = value(&elements[lane]) % p();
                assert_eq!(value(&canonical[lane]), expected);
                assert_eq!(zero >> lane & 1 == 1, expected == BigUint::ZERO);
                assert_eq!(odd >> lane & 1 == 1, expected.bit(0));
            }
        }
        let zeros = [limbs(&p()), [0; 5], limbs(&BigUint::from(1_u8)), limbs(&(p() - 1_u8)), limbs(&(p() + 1_u8))];
        let [a, b, c, d, e] = zeros;
        assert_eq!(Tight::of(&[a, b, c, d, e, a, b, c]).is_zero(), 0b0110_0011);
    }
}

wide_test! {
    fn lanes_are_chosen_by_the_mask_and_bytes_are_read_as_they_are() {
        let mut random = StdRng::seed_from_u64(4);
        for _ in 0..200 {
            let mut words: [[u64; 8]; 4] = random.random();
            if random.random_range(0..4) == 0 {
                words.as_flattened_mut().fill(u64::MAX);
            }
            let read = values(Tight::from_words(&words));
            for lane in 0..8 {
                let bytes: Vec<u8> = words.iter().flat_map(|word| word[lane].to_le_bytes()).collect();
                let expected = BigUint::from_bytes_le(&bytes) % (BigUint::from(1_u8) << 255);
                assert_eq!(read[lane], expected % p());
            }
            let mask = random.next_u32() as u8;
            let (x, y): (Vec<Limbs>, Vec<Limbs>) = (0..8).map(|n| ([n; 5], [n + 8; 5])).unzip();
            let (x, y) = (x.try_into().unwrap(), y.try_into().unwrap());
            let mixed = Tight::of(&x).or(&Tight::of(&y), mask).to_limbs();
            for lane in 0..8 {
                assert_eq!(mixed[lane], if mask >> lane & 1 == 1 { y[lane] } else { x[lane] });
            }
        }
    }
}

#[test]
fn the_integers_agree_with_themselves() {
    assert_eq!(value(&[1, 0, 0, 0, 1]).sub(1_u8), BigUint::from(1_u8) << 208);
}
