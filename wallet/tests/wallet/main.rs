//! The wallet and its command, with real gRPC, real folders and, where money is deposited or redeemed, a real chain.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

mod archived;
mod auditing;
mod command;
mod copies;
mod forged;
mod former;
mod many;
mod on_ledger;
mod onchain;
mod order_of_writes;
mod outdated;
mod quorum;
mod receiving;
mod recovered;
mod resuming;
mod rotation;
mod support;
mod unlocking;
