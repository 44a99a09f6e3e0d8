//! Proofs of the statement: Groth16 over BLS12-381. Here they are decoded and checked.

mod key_error;
mod points;
mod proof;
mod verify;
mod verifying_key;

pub use key_error::KeyError;
pub use points::{MalformedPoint, decode_on_curve, decode_point};
pub use proof::{MalformedProof, Proof};
pub use verify::InvalidProof;
pub use verifying_key::{DEVELOPMENT_CHAIN, DevelopmentKeysRefused, VerifyingKey, VerifyingPoints};
