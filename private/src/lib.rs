//! Private payments without the prover: the objects that docs/PRIVATE.md defines, notes, and the check of proofs, by which
//! core's rules judge orders. Authorities need this crate alone; wallets also the prover (`private-prover/`).
//!
//! Nothing here reads a clock, a file or the network. Randomness is the caller's. Amounts are in the smallest unit of
//! their asset. Field elements are scalars of BLS12-381, and travel as 32 big-endian bytes in canonical form.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod account;
mod address;
mod coin;
mod credential;
mod field;
mod groth16;
mod history;
mod notes;
mod owner;
mod poseidon;
mod public;
mod sanctions;
mod schnorr;
mod verifier;

pub use account::Account;
pub use address::{Address, ParseAddressError};
pub use coin::{Coin, deposit_rho};
pub use credential::{Credential, Limits};
pub use field::{Asset, Domain, Fr, NotCanonical, field_from_bytes, field_from_hash, field_from_u128, field_to_bytes};
pub use groth16::{
    DEVELOPMENT_CHAIN, DevelopmentKeysRefused, InvalidProof, KeyError, MalformedPoint, MalformedProof, Proof,
    VerifyingKey, decode_point,
};
pub use history::history_after;
pub use notes::{
    NoteKey, NotePurpose, OpenNoteError, Own, OwnNote, PaymentNote, Received, WeakNoteKey, dummy_payment_note,
};
pub use owner::{Owner, SpendingKey};
pub use poseidon::{h2, h4, h8};
pub use public::{CommitteeSize, Public, Shape};
pub use sanctions::{
    DEPTH as SANCTIONS_DEPTH, GapPath, LISTED_MAX, Sanctions, Tag, TooManyListed, WIDTH as SANCTIONS_WIDTH,
};
pub use schnorr::{InvalidKey, InvalidSignature, Kind, PublicKey, Signature, SigningKey, absent_key, generator};
pub use verifier::{NotInstalled, ProofVerifier};

/// What the circuit, the prover and the makers of keys need of the objects, and nobody else.
pub mod parts {
    pub use crate::field::{Secret, derive};
    pub use crate::groth16::{VerifyingPoints, decode_on_curve};
    pub use crate::owner::{ACCOUNT_NULLIFIER, COIN_NULLIFIER, OWNER};
    pub use crate::poseidon::{Constants, EIGHT, FOUR, PartialRound, TWO};
    pub use crate::sanctions::TAG_BITS;
    pub use crate::schnorr::{DIGITS, GENERATOR, coordinate};
}
