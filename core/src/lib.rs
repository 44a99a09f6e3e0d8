//! FastPay's protocol, and nothing else: identities, what is signed, committees, certificates, and
//! the rules by which one shard of an authority turns a verified message into an outcome.
//!
//! ```text
//!  bytes ─► TransferOrder ──verify──► VerifiedOrder ───────┐
//!           Certificate ────verify──► VerifiedCertificate ─┤
//!           Deposit (own follower) ─► SynchronizationOrder ─┼─► Shard rules ─► Record ─► apply
//!           other shard of this authority ─► CrossShardCredit ┘   (pure)      (journal)
//! ```
//!
//! Deliberately absent: I/O, clocks, threads, randomness of its own. Whoever needs random numbers
//! (the batch equation of Ed25519) passes a generator in.
//!
//! Cited as [FP §n]: Baudet, Danezis, Sonnino, "FastPay: High-Performance Byzantine Fault Tolerant
//! Settlement", AFT 2020.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod account;
mod accounts;
mod amount;
mod attestation;
mod base;
mod certificate;
pub mod checkpoint;
mod committee;
mod contract_vote;
mod council;
mod council_statement;
mod epochs;
mod genesis;
pub mod handover;
mod history;
mod identity;
mod keys;
mod ledger;
mod member_endpoint;
mod merkle;
mod order;
pub mod private;
mod record;
mod rejection;
mod request;
mod shard;
mod signature;
mod signature_check;
mod standing;
mod statement;
mod transfer;
mod unlock;
mod verifier;
mod vote;

pub use account::{Account, Balances, PendingOrder};
pub use amount::{Amount, Asset, Balance, Epoch, Memo, ParseAmountError, SequenceNumber, TransactionIndex};
pub use attestation::{Attestation, AttestationError, AttestedCertificate};
pub use base::{ASSETS_PER_RECORD_MAX, Base, BaseAccount, BaseLedger, LedgerBase, Pruned, Unpaid};
pub use certificate::{Certificate, CertificateError, VerifiedCertificate};
pub use committee::{Authority, COMMITTEE_SIZE_MAX, COMMITTEE_SIZE_MIN, Committee, CommitteeError, quorum_of};
pub use contract_vote::{ContractVote, VerifiedContractVote, sign_batch_vote};
pub use council::{PossessionError, PossessionProof, sign_council_vote};
pub use council_statement::{Announcement, CouncilStatement};
pub use epochs::{Committees, EpochsError, Recovery};
pub use genesis::{Genesis, GenesisBalance};
pub use history::{Find, History, JournalPosition, Link};
pub use identity::{AccountId, AuthorityName, ParseIdentityError, PrimaryAddress, ShardId, ShardLayout};
pub use keys::{AccountKey, AuthorityKeys, InvalidKey};
pub use ledger::{AssetTotals, Outbox, ShardLedger};
pub use member_endpoint::{
    ENDPOINT_BYTES_MAX, ENDPOINT_SHARDS_MAX, EndpointError, MemberEndpoint, SignedEndpoint, VerifiedEndpoint,
    is_recent_member,
};
pub use merkle::{MERKLE_LEAVES_MAX, MERKLE_PATH_LENGTH_MAX, MerklePath, MerkleTree, merkle_leaf, merkle_node};
pub use order::{OrderError, TransferOrder, VerifiedOrder};
pub use record::{
    AppliedCredit, Chain, CrossShardCredit, Deposit, Destination, Effect, Forwarded, Record, ShardOutputs,
    SynchronizationOrder,
};
pub use rejection::Rejection;
pub use request::{Request, RequestError, VerifiedRequest};
pub use shard::{Decision, PrimaryView, PrivateDecision, Shard, VoteFloor};
pub use signature::{BadSignature, EcdsaSignature, Ed25519Signature, Signatory, is_safe_ed25519_key};
pub use signature_check::Authorization;
pub use standing::{EpochEnd, Moment, Standing};
pub use statement::Domain;
pub use transfer::{
    InvalidTransfer, Output, Outputs, PAYOUT_OUTPUTS_MAX, Payment, Payout, Receipt, Redemption, Transfer,
};
pub use unlock::{
    ExecutedRedemption, Installation, RELEASED, Unlock, UnlockEvent, UnlockEventKind, UnlockOutcome, UnlockVote,
    is_unlock_authorized, is_unlock_signed,
};
pub use verifier::{DigestVerifier, SignedDigest, Verifier};
pub use vote::{
    OwnSignature, VerifiedVote, Vote, VoteError, VoteSignature, encode_redemption_votes, sign_payment_votes,
    sign_redemption_vote, sign_vote,
};

/// A 32-byte hash: an EIP-712 digest, or a node of a Merkle tree.
pub type Digest = alloy_primitives::B256;
