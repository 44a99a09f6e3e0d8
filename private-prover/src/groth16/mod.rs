//! Making proofs of the statement, and the keys for them: Groth16 over BLS12-381.

mod assignment;
mod keys;
mod prove;

pub use keys::ProvingKey;
pub use prove::FalseStatement;
