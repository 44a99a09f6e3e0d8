//! Proofs of the statement: Groth16 over BLS12-381.

mod assignment;
mod key_error;
mod keys;
mod points;
mod proof;
mod prove;
mod verify;
mod verifying_key;

pub use key_error::KeyError;
pub use keys::{DEVELOPMENT_CHAIN, DevelopmentKeysRefused, ProvingKey};
pub use points::{MalformedPoint, decode_point};
pub use proof::{MalformedProof, PROOF_BYTES, Proof};
pub use prove::FalseStatement;
pub use verify::InvalidProof;
pub use verifying_key::VerifyingKey;
