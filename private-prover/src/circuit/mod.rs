//! The statement as constraints: `a·b = c` over linear combinations of variables.
//!
//! `wire` has what everything is made of, `curve` points of Jubjub, `signature` and `listing` what is said with them, and
//! `statement` the whole. A variable whose name begins with `given` is the witness; all others follow from it.

mod curve;
mod listing;
mod poseidon;
mod signature;
mod statement;
mod wire;

pub use statement::Statement;
