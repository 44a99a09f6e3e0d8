//! The wire between clients and authorities: gRPC, one service per shard.
//!
//! ```text
//!  core's types ──convert──► protobuf ──tonic──► protobuf ──convert──► core's types, unverified
//! ```
//!
//! The schema is `proto/fastpay.proto`. `answers` has an authority's answers in core's types, `json` the forms of the
//! HTTP API, and `http` the common parts of all HTTP ports. Messages decode to core's *unverified* types; the receiver
//! verifies them. Every part whose length a peer chooses is bounded here by name.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod answers;
mod archived;
mod convert;
mod endpoint;
pub mod http;
pub mod json;
mod refusal;

/// The generated code of `fastpay.proto`.
#[allow(missing_docs, clippy::all, clippy::indexing_slicing, clippy::unwrap_used)]
pub mod proto {
    tonic::include_proto!("fastpay.v1");
}

pub use answers::{
    AccountState, ArchiveFile, ArchivePart, BatchAnswer, Certificates, ConfirmedPage, Joining, Page, PaymentName,
    Received, ShardStatus, UnlockAnswer,
};
pub use archived::{ARCHIVED_BYTES_MAX, ArchivedRequest};
pub use convert::{Malformed, TransferName};
pub use endpoint::{ENDPOINTS_BYTES_MAX, endpoints_that_fit};
pub use refusal::{Refusal, printable};

/// The longest message that either side accepts, in bytes. Pages are cut to fit.
pub const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The longest request that an authority accepts, in bytes, for this quorum (a number of votes). An authority may hold
/// one request for each stream of each connection, so the bound is no larger than a certificate or a batch.
#[must_use]
pub const fn request_bytes_max(quorum: usize) -> usize {
    // With the votes of f + 1 members that it exists, of about 110 bytes each.
    let certificate = certificate_bytes_max(fastpay_core::PAYOUT_OUTPUTS_MAX, quorum) + quorum * 128;
    let batch = REDEMPTION_BATCH_MAX * 48;
    if certificate > batch { certificate } else { batch }
}
/// The longest certificate with this many outputs and votes, in bytes.
#[must_use]
pub const fn certificate_bytes_max(outputs: usize, votes: usize) -> usize {
    // An order with its envelope and outputs, 89 bytes each, and each vote with the longest Merkle path: about 440 bytes.
    1_024 + outputs * 96 + votes * 512
}
/// The maximum number of redemptions in one batch vote: a transaction with them fits into a tenth of a block.
pub const REDEMPTION_BATCH_MAX: usize = 256;
/// The maximum number of entries in one page of history.
pub const PAGE_ENTRIES_MAX: u32 = 100;
/// In the metadata of a gRPC status: what was asked for is pruned, and the list begins with the entry of this number.
pub const PRUNED_FIRST_KEY: &str = "fastpay-pruned-first";
/// As above: the number of the checkpoint up to which the committee's archive has what is pruned.
pub const PRUNED_CHECKPOINT_KEY: &str = "fastpay-pruned-checkpoint";
/// The maximum number of names in one page of confirmed certificates.
pub const CONFIRMED_PAGE_MAX: usize = 1_000;
/// The longest answer with several certificates, in bytes. JSON takes about three times as much.
pub const CERTIFICATES_BYTES_MAX: usize = 1 << 18;
/// The bytes in one answer with a part of an archive's file.
pub const ARCHIVE_PART_BYTES: usize = 1 << 19;
/// The maximum number of requests in flight on one stream; the server reads no further.
pub const STREAM_REQUESTS_IN_FLIGHT_MAX: usize = 1024;
