//! The verdict on a signature is the same for every way of checking it: in any batch, eight points at a time or one by
//! one, singly, and by the library that defined the rules (ZIP-215).

use std::io::Write;
use std::sync::Once;

use alloy_primitives::B256;
use curve25519_dalek::scalar::Scalar;
use ed25519_zebra::{Signature, SigningKey, VerificationKey};
use fastpay_curve::Wide;
use rand::rngs::StdRng;
use rand::seq::{IndexedMutRandom, IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use super::Ed25519Signature;
use super::batch::{Verdict, judge};
use super::curve::{Curve, KeyPoint, OneByOne};
use super::ed25519::Equation;

#[path = "../../tests/core/vectors/curve.rs"]
mod odd;

/// A signature with an equation, and the verdict of the reference implementation.
#[derive(Clone)]
struct Case {
    equation: Equation,
    valid: bool,
}

/// None if s is not below the group's order, which every implementation must refuse.
fn case(key: [u8; 32], signature: Ed25519Signature, digest: B256) -> Option<Case> {
    let reference = VerificationKey::try_from(key)
        .and_then(|key| key.verify(&Signature::from_bytes(&signature.0), digest.as_slice()));
    let valid = reference.is_ok();
    let equation = Equation::new(&key, &signature, digest);
    assert!(equation.is_some() || !valid);
    let equation = equation?;
    assert_eq!(equation.holds(), valid, "a single check and the reference");
    Some(Case { equation, valid })
}

/// Good signatures by a few keys, of which some sign often.
fn good(random: &mut StdRng, count: usize) -> Vec<Case> {
    let keys: Vec<SigningKey> = (0..count.div_ceil(2)).map(|_| SigningKey::from(random.random::<[u8; 32]>())).collect();
    let one = |digest: B256, key: &SigningKey| {
        case(key.verification_key().into(), Ed25519Signature(key.sign(digest.as_slice()).to_bytes()), digest)
    };
    let cases: Option<Vec<Case>> =
        (0..count).map(|_| one(B256::from(random.random::<[u8; 32]>()), keys.choose(random)?)).collect();
    let cases = cases.unwrap();
    assert!(cases.iter().all(|case| case.valid));
    cases
}

/// One good signature with a bit turned, in each place of each part.
fn turned(random: &mut StdRng) -> Vec<Case> {
    let (digest, key) = (B256::from(random.random::<[u8; 32]>()), SigningKey::from(random.random::<[u8; 32]>()));
    let (name, signature) = (<[u8; 32]>::from(key.verification_key()), key.sign(digest.as_slice()).to_bytes());
    let with = |bit: usize| {
        let (mut name, mut signature, mut digest) = (name, signature, digest);
        let (byte, mask) = (bit / 8, 1 << (bit % 8));
        match byte {
            0..32 => name[byte] ^= mask,
            32..96 => signature[byte - 32] ^= mask,
            _ => digest[byte - 96] ^= mask,
        }
        case(name, Ed25519Signature(signature), digest)
    };
    let cases: Vec<Case> = (0..128 * 8).filter_map(with).collect();
    assert!(cases.iter().all(|case| !case.valid));
    cases
}

/// Keys and nonces of small and of mixed order, and all encodings that are not canonical, as key and as nonce.
fn odd_ones() -> Vec<Case> {
    let small = odd::small_order_encodings();
    let digest = B256::repeat_byte(3);
    let mut cases = Vec::new();
    for key in &small {
        cases.extend(small.iter().map(|r| case(*key, odd::with_parts(*r, [0; 32]), digest)));
    }
    for (torsion, nonce_torsion) in (0..8).flat_map(|key| (0..8).map(move |nonce| (key, nonce))) {
        let key = odd::MixedKey::new(12_345, torsion);
        let signature = key.sign(678, nonce_torsion, digest);
        cases.push(case(key.public(), signature, digest));
        cases.push(case(key.public(), signature, !digest));
        cases.push(case(key.public(), odd::s_not_reduced(signature), digest));
    }
    for last in 0xED..=0xFF {
        for sign in [0x7F, 0xFF] {
            let mut encoding = [0xFF; 32];
            (encoding[0], encoding[31]) = (last, sign);
            cases.push(case(encoding, odd::with_parts(small[0], [0; 32]), digest));
            cases.push(case(small[0], odd::with_parts(encoding, [0; 32]), digest));
        }
    }
    cases.push(case(odd::no_point(), odd::with_parts(small[0], [0; 32]), digest));
    cases.push(case(small[0], odd::with_parts(odd::no_point(), [0; 32]), digest));
    cases.into_iter().flatten().collect()
}

/// Two bad signatures of which the errors cancel: what one has too much in s, the other has too little.
fn cancelling(random: &mut StdRng) -> Vec<Case> {
    let digest = B256::from(random.random::<[u8; 32]>());
    let error = Scalar::from(random.random::<u64>());
    let with = |error: Scalar, secret: u64| {
        let key = odd::MixedKey::new(secret, 0);
        let Ed25519Signature(mut bytes) = key.sign(9, 0, digest);
        let s = Scalar::from_bytes_mod_order(bytes[32..].try_into().unwrap()) + error;
        bytes[32..].copy_from_slice(s.as_bytes());
        case(key.public(), Ed25519Signature(bytes), digest).unwrap()
    };
    // By one key and by two.
    let cases = vec![with(error, 5), with(-error, 5), with(error, 6), with(-error, 7)];
    assert!(cases.iter().all(|case| !case.valid));
    cases
}

/// The verdicts of one who sums up on this curve and remembers these keys. Gives the keys that it would remember.
fn check<C: Curve>(curve: C, batch: &[Case], known: &[Option<KeyPoint>], seed: u64) -> Vec<Option<KeyPoint>> {
    let equations: Vec<_> = batch.iter().map(|case| case.equation.clone()).zip(known.iter().copied()).collect();
    let verdicts = judge(curve, &equations, &mut StdRng::seed_from_u64(seed));
    for (at, (Verdict { holds, .. }, case)) in verdicts.iter().zip(batch).enumerate() {
        assert_eq!(*holds, case.valid, "{at} of {}, seed {seed}", batch.len());
    }
    verdicts.iter().zip(known).map(|(verdict, known)| verdict.new_key.or(*known)).collect()
}

/// Both ways, with nothing remembered, with the keys that it remembers itself, and with those of the other.
fn agree(batch: &[Case], seed: u64) {
    let nothing = vec![None; batch.len()];
    let one_by_one = check(OneByOne, batch, &nothing, seed);
    check(OneByOne, batch, &one_by_one, seed);
    let Some(wide) = wide_or_say() else { return };
    let eight = check(wide, batch, &nothing, seed);
    check(wide, batch, &eight, seed);
    check(wide, batch, &one_by_one, seed);
    check(OneByOne, batch, &eight, seed);
}

/// Says it once, past the test harness, which keeps to itself what a test that passes prints.
fn wide_or_say() -> Option<Wide> {
    static SAID: Once = Once::new();
    let wide = Wide::detect();
    if wide.is_none() {
        SAID.call_once(|| {
            let text = "NOT TESTED: signatures eight at a time: this processor has no AVX-512 IFMA";
            writeln!(std::io::stderr(), "{text}").unwrap();
        });
    }
    wide
}

fn seeded() -> StdRng {
    let seed = rand::rng().random();
    println!("seed {seed}");
    StdRng::seed_from_u64(seed)
}

#[test]
fn batches_of_every_size_agree_with_the_reference() {
    let mut random = seeded();
    let (good, odd) = (good(&mut random, 300), odd_ones());
    assert_eq!(odd.iter().filter(|case| case.valid).count(), 196 + 64 + 2 * 4);
    for size in (1..=40).chain([63, 64, 65, 99, 100, 101, 199, 200, 201, 300]) {
        agree(&good[..size], random.random());
        // One bad, somewhere; and any mix.
        let mut batch = good[..size].to_vec();
        *batch.choose_mut(&mut random).unwrap() = cancelling(&mut random)[0].clone();
        agree(&batch, random.random());
        let mixed: Vec<Case> = (0..size)
            .map(|_| [&good, &odd].choose(&mut random).unwrap().choose(&mut random).unwrap().clone())
            .collect();
        agree(&mixed, random.random());
    }
}

#[test]
fn a_turned_bit_is_found_wherever_it_is() {
    let mut random = seeded();
    let (good, turned) = (good(&mut random, 24), turned(&mut random));
    for bad in turned.chunks(12) {
        let mut batch = [good.as_slice(), bad].concat();
        batch.shuffle(&mut random);
        agree(&batch, random.random());
    }
}

#[test]
fn odd_signatures_are_judged_as_by_the_reference_all_at_once() {
    let mut random = seeded();
    let mut batch = odd_ones();
    batch.shuffle(&mut random);
    agree(&batch, random.random());
    let valid: Vec<Case> = batch.into_iter().filter(|case| case.valid).collect();
    agree(&valid, random.random());
}

#[test]
fn errors_that_cancel_are_found() {
    let mut random = seeded();
    for company in [0, 1, 4, 60, 200] {
        let mut batch = good(&mut random, company);
        batch.extend(cancelling(&mut random));
        batch.shuffle(&mut random);
        agree(&batch, random.random());
        // These and nothing else.
        for pair in cancelling(&mut random).chunks(2) {
            agree(pair, random.random());
        }
    }
}

/// Different random bytes give different coefficients, and the digits are those of the coefficient.
#[test]
fn coefficients_are_what_their_digits_say() {
    let Some(wide) = wide_or_say() else { return };
    let by_digits = |bytes: [u8; 16]| {
        bytes.iter().rev().fold(Scalar::ZERO, |sum, byte| {
            let digit = byte.cast_signed();
            let size = Scalar::from(digit.unsigned_abs());
            sum * Scalar::from(256_u16) + if digit < 0 { -size } else { size }
        })
    };
    let mut random = seeded();
    let edges = [[0; 16], [0x7F; 16], [0x80; 16], [0xFF; 16]];
    for bytes in edges.into_iter().chain((0..100).map(|_| random.random())) {
        assert_eq!(wide.coefficient(bytes).z, by_digits(bytes));
        assert_eq!(OneByOne.coefficient(bytes).z, Scalar::from(u128::from_le_bytes(bytes)));
    }
}

/// Microseconds of processor time for each signature, one by one and eight points at a time; the least of several runs. The batch is
/// summed up as it would be by an authority that has seen the senders before, or has not.
#[test]
#[ignore = "measures: cargo test --release -p fastpay-core what_a_signature_costs -- --ignored --nocapture"]
fn what_a_signature_costs() {
    let mut random = seeded();
    let pool: Vec<Case> = (0..1024).flat_map(|_| good(&mut random, 1)).collect();
    let mut some_bad = pool.clone();
    for (at, bad) in cancelling(&mut random).into_iter().enumerate() {
        some_bad[256 * at + 100] = bad;
    }
    println!("{:>5} {:>30} {:>30} {:>30}", "", "senders known", "senders not known", "4 in 1024 bad");
    for size in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024] {
        print!("{size:5}");
        for (batch, known) in [(&pool, true), (&pool, false), (&some_bad, true)] {
            if size < 512 && batch[100].valid != pool[100].valid {
                continue;
            }
            let one_by_one = cost(OneByOne, &batch[..size], known);
            let wide = Wide::detect().map_or(f64::NAN, |wide| cost(wide, &batch[..size], known));
            print!(" {one_by_one:10.2} / {wide:6.2} = {:6.2}", one_by_one / wide);
        }
        println!();
    }
}

fn cost<C: Curve>(curve: C, batch: &[Case], known: bool) -> f64 {
    let nothing = vec![None; batch.len()];
    let known = if known { check(curve, batch, &nothing, 1) } else { nothing };
    let equations: Vec<_> = batch.iter().map(|case| case.equation.clone()).zip(known).collect();
    let run = |_| {
        let (start, repeat) = (cpu_us(), 1 + 256 / batch.len());
        for seed in 0..repeat {
            std::hint::black_box(judge(curve, &equations, &mut StdRng::seed_from_u64(seed as u64)));
        }
        (cpu_us() - start) / (repeat * batch.len()) as f64
    };
    (0..15).map(run).fold(f64::INFINITY, f64::min)
}

/// Processor time of this thread so far, in microseconds.
fn cpu_us() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
}
