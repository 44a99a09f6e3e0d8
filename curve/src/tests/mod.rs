//! Each step compared with plain integers or with curve25519-dalek.
#![allow(unsafe_code, reason = "to call code for these processors where this is one")]

mod field;
mod points;
mod sums;

use std::io::Write;

use num_bigint::BigUint;

use crate::field::{Limbs, Tight};

/// Past the test harness, which keeps to itself what a test that passes prints.
fn say_not_tested(name: &str) {
    let _ = writeln!(std::io::stderr(), "NOT TESTED: {name}: this processor has no AVX-512 IFMA");
}

/// A test whose body runs with the instructions. If the processor has not got them it cannot run, and says so.
macro_rules! wide_test {
    ($(#[$attribute:meta])* fn $name:ident() $body:block) => {
        $(#[$attribute])*
        #[test]
        fn $name() {
            #[target_feature(enable = "avx512dq,avx512ifma")]
            fn body() $body
            if crate::Wide::detect().is_none() {
                return $crate::tests::say_not_tested(stringify!($name));
            }
            // SAFETY: the processor has the instructions.
            unsafe { body() }
        }
    };
}
use wide_test;

/// 2²⁵⁵ − 19.
fn p() -> BigUint {
    (BigUint::from(1_u8) << 255) - 19_u8
}

/// The number of which these are the limbs, not reduced.
fn value(limbs: &Limbs) -> BigUint {
    limbs.iter().rev().fold(BigUint::ZERO, |value, limb| (value << 52) + limb)
}

fn d() -> BigUint {
    let inverse = BigUint::from(121_666_u32).modpow(&(p() - 2_u8), &p());
    (p() - 121_665_u32) * inverse % p()
}

/// The eight numbers modulo p. Their limbs must be within the bounds of [`Tight`].
#[target_feature(enable = "avx512dq,avx512ifma")]
fn values(tight: Tight) -> [BigUint; 8] {
    tight.to_limbs().map(|limbs| {
        assert!(limbs[..4].iter().all(|limb| *limb < 1 << 52) && limbs[4] < (1 << 47) + (1 << 16), "{limbs:x?}");
        value(&limbs) % p()
    })
}
