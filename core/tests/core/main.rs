//! The rules of the protocol: by example, as properties, as bytes that other programs share, and beside the contract.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod differential;
mod private_orders;
mod properties;
mod rules;
mod streamed;
mod vectors;
