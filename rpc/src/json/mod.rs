//! Between core's types and the JSON of the HTTP API (docs/API.md). Towards JSON never fails; from JSON checks
//! lengths, ranges and unknown fields, and nothing else.
//!
//! Every number that can pass 2^53 is decimal text, everything that is bytes is `0x…` in lower case, an account has its
//! own text. Each value has one text: what is read and written again is the same, but for the case of hex digits.

mod archived;
mod endpoint;
mod order;
mod problem;
mod reads;
mod text;
mod vote;

pub use archived::{ArchiveCursor, ArchivedEntry, ArchivedPage, Checkpoint, CheckpointVote};
pub use endpoint::{MemberEndpoint, MemberEndpoints};
pub use order::{Authorization, Output, Outputs, Transfer, TransferOrder};
pub use problem::{Problem, ProblemCode};
pub use reads::{
    AccountState, AssetTotals, Committee, CommitteeMember, Confirmed, ConfirmedTransfer, Deposit, DepositPage,
    Follower, FollowerState, Holding, NewTransfer, NewTransfers, ReceivedPage, ReceivedPayment, RedemptionPage,
    SentPage, SentTransfer, ShardStatus, Status, VoteAnswer, WaitingRedemption, WaitingRedemptions,
};
pub use text::{Account, Bytes, Bytes20, Bytes32, Bytes64, Bytes65, Decimal, Hex, Int256, Uint64, Uint128};
pub use vote::{
    AttestedCertificate, Certificate, CertificateNames, CertificateVote, Certificates, RedemptionBatch,
    RedemptionBatchVote, TransferName, UnlockVote, UnlockVoteRequest, Vote,
};

/// The longest JSON of an order, a certificate with so many votes, or a batch of redemptions, in bytes.
#[must_use]
pub const fn json_bytes_max(votes: usize) -> usize {
    // An order takes about 800 bytes, an output 240, a vote with the longest path 1,100, a redemption's name 120; all
    // with room for spaces.
    let certificate = 4_096 + fastpay_core::PAYOUT_OUTPUTS_MAX * 512 + votes * 2_048;
    let batch = 1_024 + crate::REDEMPTION_BATCH_MAX * 160;
    if certificate > batch { certificate } else { batch }
}
