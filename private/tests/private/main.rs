//! The objects, messages, notes, and the check of proofs, as others use this crate.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod kept;
mod keys;
mod notes;
mod objects;
mod pool;
mod proofs;
mod vectors;

use fastpay_core::{Domain as Deployment, PrimaryAddress};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// A local network, and the contract that tests invent.
fn deployment() -> Deployment {
    Deployment::new(31337, PrimaryAddress::repeat_byte(0xfa))
}

/// A generator whose seed is printed, and can be given as `SEED`.
fn random() -> StdRng {
    let seed = std::env::var("SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    StdRng::seed_from_u64(seed)
}
