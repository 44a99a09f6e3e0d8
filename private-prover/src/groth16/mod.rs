//! Proofs of the statement: Groth16 over BLS12-381.

mod assignment;
mod keys;
mod proof;
mod prove;
mod verify;

pub use keys::{DEVELOPMENT_CHAIN, DevelopmentKeysRefused, ProvingKey};
pub use proof::{MalformedProof, PROOF_BYTES, Proof};
pub use prove::FalseStatement;
pub use verify::{InvalidProof, VerifyingKey};
