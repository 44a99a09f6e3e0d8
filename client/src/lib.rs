//! A client of a committee. All parts that call authorities use this crate.
//!
//! ```text
//!  CommitteeClient ─► quorum     an order to its certificate, a certificate to a quorum of confirmations
//!        │              ├─ tally, conflict   pure: what the answers so far amount to
//!        │              └─ catch_up          brings an authority the certificates that it lacks
//!        ▼
//!     Network ──────► agreement  pure: the agreed value of reads, some of which may be false
//!        ▼
//!  AuthorityClient ─► connection one gRPC connection and one stream of orders to each shard
//! ```
//!
//! Callers: the wallet (and with it the merchant), the relayer, a restored node that asks its peers, and tests.
//!
//! Invariants: an answer is verified, or agreed by f + 1 authorities, before anything acts on it. Every wait for an
//! authority has a deadline.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::indexing_slicing))]

mod agreement;
mod archived;
mod asked;
mod connection;
mod endpoints;
mod network;
mod quorum;

pub use agreement::{AgreedBalance, agreed_balances, claims_above, supported_balance};
pub use archived::{ArchiveFault, ArchivedReceipts};
pub use asked::Asked;
pub use connection::{AuthorityClient, Carrier, ClientError, ClientOptions, ShardClient};
pub use endpoints::{AuthorityEndpoints, Endpoints, EndpointsError};
pub use network::{
    Answers, BogusCertificate, GRACE, Names, Network, NetworkError, authority_status, verify_certificate,
};
pub use quorum::{
    Backoff, Ballot, CertificateSource, CommitteeClient, ConflictingOrder, Help, Helped, Inquiry, Listener,
    NoCertificates, OrderConflict, PeerAnswer, PeerFailure, Progress, QuorumError, QuorumOptions, Room, Settled, Step,
    Tally, Unattested, UnlockBallot, UnlockDecision, Verdict, Voidable, attest, short,
};
