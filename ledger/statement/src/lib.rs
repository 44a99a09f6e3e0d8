//! What the clusters of the ledger certify, and the checks by which everyone else believes it: other clusters,
//! clients, and the followers of FastPay committees.
//!
//! ```text
//!  a height's messages ─► Group for each receiver ─► Outputs (Merkle root) ─► Header ─► votes ─► QuorumCertificate
//!                                                                                                        │
//!  receiver ◄─ VerifiedGroup ◄─ StatementVerifier::open ◄─ CompactDecision = header, group, path, certificate
//!  client   ◄─ ProvenAnswer  ◄─ AnswerProof::verify        (one message of the group to the clients)
//!  anyone   ◄─ Reading       ◄─ ReadProof::verify          (a value, or its absence, under the header's state root)
//! ```
//!
//! The consensus engine agrees on a [`Header`]; its id is [`Header::id`]. A member signs [`VoteStatement::digest`] for
//! every vote, and [`QuorumCertificate`] checks precommits against exactly that, so a certificate of the engine is a
//! certificate here.
//!
//! Always true: a statement is valid in one deployment and one cluster only. Each has one encoding, of bounded length.
//! What is verified is another type than what came off the wire. Merkle nodes and signature equations are core's.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod answer;
mod certificate;
mod committee;
mod compact;
mod encoding;
mod entry;
mod fork;
mod genesis;
mod group;
mod header;
mod identity;
mod members;
mod message;
mod partition;
mod read;
mod rejection;
mod request;
mod verifier;
mod vote;

pub use answer::{AnswerError, AnswerProof, ProvenAnswer};
pub use certificate::{CertificateError, QuorumCertificate};
pub use committee::{
    Announced, Announcing, Bond, CurrentEpoch, FoundedCommittee, NextCommittee, Possession, SafetyParameters,
    UNLOCK_WINDOW_MS_MIN, UnlockDecision, UnlockEntry, UnlockRequest,
};
pub use compact::{CompactDecision, OpenError, VerifiedGroup};
pub use encoding::{DecodeError, Wire};
pub use entry::{
    Cursor, Entry, Evidence, Redeemed, SpentOn, StateKey, StateProof, branch_digest, key_bit, leaf_digest, value_digest,
};
pub use fork::Fork;
pub use genesis::{Genesis, GenesisError, Issue, Layout};
pub use group::{GROUP_BYTES_MAX, GROUP_MESSAGES_MAX, Group, GroupHead, MessagePath, Outputs, RECEIVERS_MAX};
pub use header::{CLOCK_AHEAD_MS_MAX, CLOCK_BEHIND_MS_MAX, Header, HeaderError, payload_digest};
pub use identity::{
    ClusterId, CommitteeNumber, Deployment, Height, MemberIndex, MemberKey, MemberKeys, Receiver, Time,
};
pub use members::{Members, MembersError};
pub use message::{Answer, CommitteeEvent, Credit, EventKind, Funding, Message, Outcome, Unlocking};
pub use partition::Partition;
pub use read::{ReadError, ReadProof, Reading};
pub use rejection::Rejection;
pub use request::{
    Action, Condition, Get, Instruction, KEY_BYTES_MAX, Key, NAMESPACE_BYTES_MAX, Namespace, Request, RequestError,
    SignedInstruction, VALUE_BYTES_MAX, Value, VerifiedRequest, Version,
};
pub use verifier::StatementVerifier;
pub use vote::{VoteKind, VoteStatement};
