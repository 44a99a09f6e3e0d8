//! The statement, its proofs and the keys for them, as others use this crate.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod determined;
mod forgeries;
mod keys;
mod notes;
mod poseidon;
mod proofs;
mod recorder;
mod removal;
mod scene;
mod solver;
mod statement;
mod transfers;

use rand::SeedableRng;
use rand::rngs::StdRng;

/// A generator whose seed is printed, and can be given as `SEED`.
fn random() -> StdRng {
    let seed = std::env::var("SEED").map_or_else(|_| rand::random(), |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    StdRng::seed_from_u64(seed)
}
