//! Observes messages between clients and an honest authority: the authority must never contradict a vote that left it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastpay_core::{AccountId, Digest, TransferOrder};
use fastpay_rpc::proto::refused::Code;
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{SubmitRequest, SubmitResponse};
use prost::Message;

use super::link::payload;
use super::world::{World, lock};

/// A request on a stream.
#[derive(Clone, Copy)]
enum Asked {
    /// A vote for an order: its sender, its number, its digest.
    Vote(AccountId, u64, Digest),
    /// A request for confirmation.
    Confirmation,
}

/// The requests of one stream by the client's request IDs.
pub struct StreamObserver {
    world: Arc<World>,
    authority: usize,
    /// Whether the authority was honest when the stream began. The stream ends when it turns.
    is_honest: bool,
    asked: Mutex<BTreeMap<u64, Asked>>,
}

impl StreamObserver {
    /// Creates an observer of a new stream.
    #[must_use]
    pub fn new(world: Arc<World>, authority: usize) -> Self {
        Self { is_honest: world.role_of(authority).is_none(), world, authority, asked: Mutex::default() }
    }

    /// Notes a request that arrives at the authority.
    pub fn arrives(&self, message: &Bytes) {
        let Ok(SubmitRequest { id, request: Some(request) }) = SubmitRequest::decode(payload(message)) else { return };
        let asked = match request {
            Request::Certificate(_) | Request::Attested(_) => Asked::Confirmation,
            Request::Order(order) => {
                let Ok(TransferOrder { transfer, .. }) = TransferOrder::try_from(order) else { return };
                let digest = self.world.domain.transfer_digest(&transfer);
                Asked::Vote(transfer.sender(), transfer.sequence().0, digest)
            }
        };
        lock(&self.asked).insert(id, asked);
    }

    /// Checks an answer that leaves the authority.
    pub fn leaves(&self, message: &Bytes) {
        if !self.is_honest {
            return;
        }
        let Ok(SubmitResponse { id, response: Some(response) }) = SubmitResponse::decode(payload(message)) else {
            return;
        };
        let asked = lock(&self.asked).get(&id).copied();
        match (response, asked) {
            (Response::Vote(voted), Some(Asked::Vote(account, sequence, digest))) => {
                let vote = (account, sequence, digest);
                self.world.check(|oracle| oracle.vote_leaves(self.authority, voted.epoch, vote));
            }
            (Response::Vote(_), _) => {
                self.world.trace.violation(format_args!("a{} votes for what was not asked", self.authority));
            }
            (Response::Refused(refused), Some(Asked::Confirmation)) if !may_refuse(refused.code()) => {
                let (authority, code) = (self.authority, refused.code().as_str_name());
                self.world.trace.violation(format_args!("authority {authority} refuses a certificate: {code}"));
            }
            _ => {}
        }
    }
}

/// Counts a message of a correct client to an authority.
pub fn leaves_a_wallet(world: &World, client: usize, message: &Bytes) {
    let Ok(SubmitRequest { request: Some(request), .. }) = SubmitRequest::decode(payload(message)) else { return };
    let order = match request {
        Request::Certificate(_) | Request::Attested(_) => {
            return world.sent(client).send_modify(|sent| sent.certificates += 1);
        }
        Request::Order(order) => order,
    };
    world.sent(client).send_modify(|sent| sent.orders += 1);
    match TransferOrder::try_from(order) {
        Ok(order) => world.check(|oracle| oracle.wallet_sends(&order)),
        Err(error) => world.trace.violation(format_args!("a wallet sends what is no order: {error}")),
    }
}

/// Whether this refusal of a certificate is allowed: the certificate is invalid, or must wait.
fn may_refuse(code: Code) -> bool {
    use Code::WrongShard;
    use Code::{Busy, Frozen, Invalid, Malformed, MissingCertificate, PrimaryTooOld, Stopping, UnknownEpoch, Voided};
    let is_of_numbers = matches!(code, Frozen | PrimaryTooOld | Voided);
    is_of_numbers
        || matches!(code, Busy | Invalid | Malformed | MissingCertificate | Stopping | UnknownEpoch | WrongShard)
}
