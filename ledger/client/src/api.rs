//! The gRPC schema, and what is signed in it.

use std::net::SocketAddr;
use std::time::Duration;

use borsh::BorshSerialize;
use fastpay_core::{Digest, DigestVerifier, Ed25519Signature, SignedDigest};
use fastpay_ledger_statement::{
    Deployment, Header, MemberIndex, MemberKeys, Members, QuorumCertificate, Receiver, StateKey, StatementVerifier,
};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

/// Generated from `proto/ledger.proto`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    tonic::include_proto!("fastpay.ledger.v1");
}

/// The longest message: a page of groups, or a batch of relayed requests.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// So many requests of one call to `SubmitAll` wait for answers at most. More are refused.
pub const BULK_REQUESTS_MAX: usize = 4_096;
/// A client waits this long for an answer. Its request may be carried out later: it sends the same one again to know.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// So long a call may take: longer than any wait.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// So long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest encoded state key: a namespace, a key, and their lengths.
const NAME_BYTES_MAX: usize = 512;

/// A connection to a member, made when it is first used.
#[must_use]
pub fn channel(address: SocketAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).expect("an address is a URL's host and port");
    endpoint.connect_timeout(CONNECT_TIMEOUT).timeout(CALL_TIMEOUT).tcp_nodelay(true).connect_lazy()
}

/// Reads a receiver.
///
/// # Errors
/// `invalid_argument`.
pub fn receiver(bytes: &[u8]) -> Result<Receiver, Status> {
    borsh::from_slice(bytes).map_err(|_| Status::invalid_argument("the receiver is not one in borsh"))
}

/// Reads a state key.
///
/// # Errors
/// `invalid_argument`.
pub fn state_key(bytes: &[u8]) -> Result<StateKey, Status> {
    let key = if bytes.len() <= NAME_BYTES_MAX { borsh::from_slice(bytes).ok() } else { None };
    key.ok_or_else(|| Status::invalid_argument("the key is not a state key in borsh"))
}

fn status_digest(deployment: Deployment, nonce: u64, head: &[u8]) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("fastpay ledger member status v1");
    (deployment, nonce, head).serialize(&mut hasher).expect("a hasher takes every write");
    Digest::new(*hasher.finalize().as_bytes())
}

/// Signs what [`verify_status`] checks.
#[must_use]
pub fn sign_status(keys: &MemberKeys, deployment: Deployment, nonce: u64, head: &[u8]) -> Vec<u8> {
    keys.sign(status_digest(deployment, nonce, head)).0.to_vec()
}

/// The height that a member of `members` says to have decided, in its answer to `nonce`. The member signs it, and a
/// quorum certified it. `None` if that does not hold.
#[must_use]
pub fn verify_status(reply: &proto::StatusReply, members: &Members, nonce: u64) -> Option<(MemberIndex, u64)> {
    let member = u8::try_from(reply.member).ok().map(MemberIndex)?;
    let digest = status_digest(members.deployment(), nonce, &reply.head);
    let signature = Ed25519Signature(reply.signature.as_slice().try_into().ok()?);
    let signed = SignedDigest { key: members.key(member)?.0, digest, signature };
    if DigestVerifier::new(1).verify(&[signed], &mut rand::rng()) != [true] {
        return None;
    }
    if reply.head.is_empty() {
        return Some((member, 0));
    }
    let (header, certificate): (Header, QuorumCertificate) = borsh::from_slice(&reply.head).ok()?;
    StatementVerifier::default().check(&header, &certificate, members, &mut rand::rng()).ok()?;
    Some((member, header.height.0))
}
