//! The gRPC schema, and what is signed in it.

use fastpay_core::{Digest, DigestVerifier, Ed25519Signature, SignedDigest};
use fastpay_ledger_statement::{
    Deployment, Header, MemberIndex, MemberKeys, Members, QuorumCertificate, Receiver, StateKey, StatementVerifier,
};
use tonic::Status;

use crate::engine::digest;

/// Generated from `proto/ledger.proto`.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod proto {
    tonic::include_proto!("fastpay.ledger.v1");
}

/// The longest message: a page of groups, or a batch of relayed requests.
pub const MESSAGE_BYTES_MAX: usize = 8 << 20;
/// The longest encoded receiver or state key: a namespace, a key, and their lengths.
const NAME_BYTES_MAX: usize = 512;

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
    digest("fastpay ledger member status v1", &(deployment, nonce, head))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{chain, decide, keys};
    use proto::StatusReply;

    fn reply(by: usize, nonce: u64, head: Vec<u8>) -> StatusReply {
        let signature = sign_status(&keys()[by], chain().layout().deployment(), nonce, &head);
        StatusReply { member: by as u32, head, leader: 0, votes: true, signature }
    }

    #[test]
    fn a_height_is_believed_that_a_quorum_certified_and_the_member_signs_now() {
        let mut chain = chain();
        decide(&mut chain, 0, Vec::new());
        let (header, certificate) = chain.head().unwrap();
        let head = borsh::to_vec(&(header, certificate)).unwrap();
        let verify = |reply: &StatusReply| verify_status(reply, chain.members(), 5);
        assert_eq!(verify(&reply(2, 5, head.clone())), Some((MemberIndex(2), 1)));
        assert_eq!(verify(&reply(2, 5, Vec::new())), Some((MemberIndex(2), 0)));
        assert_eq!(verify(&reply(2, 4, head.clone())), None, "an older answer");
        assert_eq!(verify(&StatusReply { member: 1, ..reply(2, 5, head.clone()) }), None, "another member's");
        let higher = fastpay_ledger_statement::Header { height: fastpay_ledger_statement::Height(9), ..*header };
        let made_up = borsh::to_vec(&(higher, certificate)).unwrap();
        assert_eq!(verify(&reply(2, 5, made_up)), None, "no quorum certified it");
    }
}
