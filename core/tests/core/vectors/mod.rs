//! The files in `vectors/`: what is signed and what it is worth, for every program that signs or
//! checks for FastPay. Each file is built here from fixed keys and must equal the one in the tree; then
//! it is read back and judged as an outside program would judge it, from its text alone.
//!
//! After a change that is meant: `UPDATE_VECTORS=1 cargo test -p fastpay-core --test core vectors`.

mod archive;
mod checkpoints;
mod closings;
pub mod curve;
mod ecdsa;
mod endpoints;
mod json;
mod payments;
mod payouts;
mod redemptions;

use fastpay_core::Ed25519Signature;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Compares `built` with the file (or writes it, where asked to), and gives what the file says.
fn pinned<T: Serialize + DeserializeOwned>(file: &str, built: &T) -> T {
    let path = format!("{}/../vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(built).unwrap() + "\n";
    if std::env::var_os("UPDATE_VECTORS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == text, "vectors/{file} is not what the code builds; if that is meant, set UPDATE_VECTORS=1");
    serde_json::from_str(&found).unwrap()
}
