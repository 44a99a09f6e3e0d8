//! Arithmetic on eight points of edwards25519 at a time with AVX-512 IFMA, for batch verification of signatures.
//!
//! ```text
//!  encodings ─► Wide::decode ─► Affine ─┬─► Wide::sum ─► Point ─► Wide::difference, Wide::vanishes_times_8
//!                    scalars ───────────┴─► Wide::each_vanishes_times_8: one answer for each signature
//! ```
//!
//! A lane of a vector holds a point (decoding) or a digit of the scalars (sums), so all lanes do the same whatever the
//! values. Nothing here is secret: running time and memory accesses depend on points and scalars.
//!
//! Invariants: factors have limbs below 2⁵² (`field`'s types enforce it); formulas hold for all points (`point`);
//! instructions that the processor lacks are unreachable, since every operation needs a [`Wide`]. The tests compare
//! each step with plain integers and with curve25519-dalek, at the extremes of every bound.
#![cfg_attr(target_arch = "x86_64", allow(clippy::indexing_slicing, reason = "of arrays, by constants and lanes"))]
#![cfg_attr(test, allow(clippy::unwrap_used))]

#[cfg(target_arch = "x86_64")]
mod decode;
#[cfg(target_arch = "x86_64")]
mod each;
#[cfg(target_arch = "x86_64")]
mod field;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod point;
#[cfg(target_arch = "x86_64")]
mod single;
#[cfg(target_arch = "x86_64")]
mod sum;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(not(target_arch = "x86_64"))]
#[path = "absent.rs"]
mod wide;

pub use wide::{Affine, Point, Relation, Wide};
