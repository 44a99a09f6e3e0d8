//! The gas that the contract lets a payout spend, and the most that a transaction may have. Relayers plan with these
//! figures; a test compares them with `contracts/libraries/Payouts.sol`.

/// The most gas that a recipient of ETH may spend.
pub const ETHER_GAS: u64 = 115_000;

/// The most gas that a token may spend on one transfer.
pub const TOKEN_GAS: u64 = 300_000;

/// The contract pays only if this much gas is left besides the payout's own.
pub const CALL_GAS: u64 = 75_000;

/// The most gas of any transaction (EIP-7825).
pub const TRANSACTION_GAS_MAX: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowances_are_those_of_the_contract() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../contracts/libraries/Payouts.sol");
        let source = std::fs::read_to_string(path).unwrap();
        for (name, ours) in [("ETHER_GAS", ETHER_GAS), ("TOKEN_GAS", TOKEN_GAS), ("CALL_GAS", CALL_GAS)] {
            let (_, rest) = source.split_once(&format!("constant {name} = ")).unwrap();
            let (value, _) = rest.split_once(';').unwrap();
            assert_eq!(value.replace('_', "").parse(), Ok(ours), "{name}");
        }
    }
}
