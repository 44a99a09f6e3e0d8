//! Brings redemption certificates to the contract.
