//! ECDSA signatures that no honest signer makes.

use alloy_primitives::{U256, uint};
use fastpay_core::EcdsaSignature;

/// The order of secp256k1's group.
const SECP256K1_ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

/// The same ECDSA signature in its other form: s negated, v flipped.
pub fn high_s(signature: EcdsaSignature) -> EcdsaSignature {
    let mut bytes = signature.0;
    let s = U256::from_be_slice(&bytes[32..64]);
    bytes[32..64].copy_from_slice(&(SECP256K1_ORDER - s).to_be_bytes::<32>());
    bytes[64] = 27 + 28 - bytes[64];
    EcdsaSignature(bytes)
}
