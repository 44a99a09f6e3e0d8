//! What a liar shows in place of a certified state.

use fastpay_core::Amount;
use fastpay_core::checkpoint::{Leaf, StateReader};

/// The bytes before the first leaf of a stored state.
const MAGIC_BYTES: usize = 8;

/// A stored state with one unit more in its first balance. Its cut is the same.
#[must_use]
pub fn richer_state(stored: &[u8]) -> Vec<u8> {
    let (mut richer, mut was_credited) = (stored[..MAGIC_BYTES].to_vec(), false);
    for leaf in StateReader::new(stored).expect("the bytes are a state") {
        let leaf = match leaf.expect("the bytes are a state") {
            Leaf::Balance(account, asset, balance) if !was_credited => {
                was_credited = true;
                Leaf::Balance(account, asset, balance.credit(Amount(1)))
            }
            leaf => leaf,
        };
        let encoded = leaf.encoded();
        richer.extend(u32::try_from(encoded.len()).expect("leaves are short").to_le_bytes());
        richer.extend(encoded);
    }
    richer
}
