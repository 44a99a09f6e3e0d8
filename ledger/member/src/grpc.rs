//! The gRPC service of a member. Everything is bounded: the length of messages, the calls of a connection, what waits.

use std::collections::HashSet;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fastpay_ledger_client::api::proto::ledger_server::Ledger;
use fastpay_ledger_client::api::proto::{
    DecisionsReply, DecisionsRequest, ReadReply, ReadRequest, RelayReply, RelayRequest, StatePart, StateRequest,
    StatusReply, StatusRequest, SubmitAllReply, SubmitAllRequest, SubmitReply, SubmitRequest,
};
use fastpay_ledger_client::api::{ANSWER_TIMEOUT, receiver, sign_status, state_key};
use fastpay_ledger_statement::{
    AnswerProof, Answers, Deployment, MemberKeys, Request as LedgerRequest, VerifiedRequest, Wire,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::checker::{Checker, decoded};
use crate::command::{Command, Handle, Unavailable, Waiter};
use crate::places::Places;
use crate::pool::Added;

/// A receiver waits this long for a group.
const GROUPS_WAIT_MAX: Duration = Duration::from_secs(10);
/// So many requests are passed on in one call.
const RELAYED_MAX: usize = 1_024;
const STATE_PART_BYTES: usize = 1 << 20;
/// So many states, each encoded in memory, are handed over to strangers at once, and to one address.
const STATES_MAX: (usize, usize) = (2, 1);
/// So long one may take.
const STATE_TIMEOUT: Duration = Duration::from_secs(120);
/// So many calls with many requests of strangers are open at once, and of one address.
const BULK_MAX: (usize, usize) = (64, 16);
/// So many batches of clients are checked at once, each on one core.
const CHECKED_AT_ONCE_MAX: usize = 2;
/// So many replies of one wait for a client that reads slowly.
const BULK_REPLIES_MAX: usize = 16;
/// So many strangers that ask for groups are answered, or wait, at once, and so many of one address. Members have as many
/// for each of their addresses: those of 64 clusters of four.
const DECISIONS_MAX: (usize, usize) = (256, 64);

/// The service of a member.
#[derive(Clone, Debug)]
pub struct Service {
    handle: Handle,
    deployment: Deployment,
    keys: MemberKeys,
    states: Places,
    decisions: Places,
    bulk: Places,
    /// Of requests that members pass on.
    relayed: Checker,
    /// Of requests that clients send many at once.
    checker: Checker,
    /// The number of the next one who waits for answers.
    waiters: Arc<AtomicU64>,
}

impl Service {
    /// The service of the member with these keys. `members` are where the ledger's members are.
    #[must_use]
    pub fn new(handle: Handle, deployment: Deployment, keys: MemberKeys, members: &Arc<HashSet<IpAddr>>) -> Self {
        let places = [STATES_MAX, DECISIONS_MAX, BULK_MAX];
        let [states, decisions, bulk] = places.map(|(all, of_each)| Places::new(all, of_each, members.clone()));
        let (relayed, checker) = (Checker::new(1), Checker::new(CHECKED_AT_ONCE_MAX));
        Self { handle, deployment, keys, states, decisions, bulk, relayed, checker, waiters: Arc::default() }
    }

    /// The way to the member's state.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Has a request carried out, and waits for its answer.
    ///
    /// # Errors
    /// See [`SubmitError`].
    pub async fn submit(&self, request: LedgerRequest) -> Result<AnswerProof, SubmitError> {
        let request = request.verify(self.deployment)?;
        let (waiter, mut answers) = self.waiter(1);
        if self.add(vec![request], false, Some(waiter)).await?.contains(&Added::Busy) {
            return Err(Unavailable::Busy.into());
        }
        let answers = timeout(ANSWER_TIMEOUT, answers.recv()).await.map_err(|_| SubmitError::NoAnswer)?;
        let proof = answers.and_then(|answers| answers.split().pop());
        proof.ok_or_else(|| Unavailable::Stopping.into())
    }

    /// Somebody who waits for answers of at most so many heights at once.
    pub(crate) fn waiter(&self, heights: usize) -> (Waiter, mpsc::Receiver<Answers>) {
        let (answers, answered) = mpsc::channel(heights);
        (Waiter { id: self.waiters.fetch_add(1, Ordering::Relaxed), answers }, answered)
    }

    pub(crate) async fn add(
        &self,
        requests: Vec<VerifiedRequest>,
        is_relayed: bool,
        waiter: Option<Waiter>,
    ) -> Result<Vec<Added>, Unavailable> {
        self.handle.ask(|reply| Command::Submit { requests, is_relayed, waiter, reply }).await
    }

    /// What checks the requests of one call of a stranger.
    pub(crate) fn checker(&self) -> Checker {
        self.checker.of_call()
    }

    /// What every statement here is signed for.
    pub(crate) fn deployment(&self) -> Deployment {
        self.deployment
    }
}

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SubmitError {
    /// The request does not hold.
    #[error(transparent)]
    Request(#[from] fastpay_ledger_statement::RequestError),
    /// The member does not answer now.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// It may still be carried out.
    #[error("no answer within {} s; send the same request again: it is carried out once", ANSWER_TIMEOUT.as_secs())]
    NoAnswer,
}

impl From<Unavailable> for Status {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::Busy => Self::resource_exhausted(unavailable.to_string()),
            Unavailable::Stopping => Self::unavailable(unavailable.to_string()),
        }
    }
}

impl From<SubmitError> for Status {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Request(error) => Self::invalid_argument(error.to_string()),
            SubmitError::Unavailable(unavailable) => unavailable.into(),
            SubmitError::NoAnswer => Self::deadline_exceeded(error.to_string()),
        }
    }
}

fn address<T>(request: &Request<T>) -> Option<IpAddr> {
    request.remote_addr().map(|address| address.ip())
}

#[tonic::async_trait]
impl Ledger for Service {
    async fn submit(&self, request: Request<SubmitRequest>) -> Result<Response<SubmitReply>, Status> {
        let request = decoded(&request.into_inner().request)?;
        let answer = Service::submit(self, request).await?.encode();
        Ok(Response::new(SubmitReply { answer }))
    }

    type SubmitAllStream = ReceiverStream<Result<SubmitAllReply, Status>>;

    async fn submit_all(
        &self,
        request: Request<Streaming<SubmitAllRequest>>,
    ) -> Result<Response<Self::SubmitAllStream>, Status> {
        let place = self.bulk.take(address(&request)).ok_or(Unavailable::Busy)?;
        let (replies, sent) = mpsc::channel(BULK_REPLIES_MAX);
        let service = self.clone();
        tokio::spawn(async move {
            let _place = place;
            if let Err(status) = service.answer_all(request.into_inner(), &replies).await {
                // The client may have gone.
                let _ = replies.try_send(Err(status));
            }
        });
        Ok(Response::new(ReceiverStream::new(sent)))
    }

    async fn relay(&self, request: Request<RelayRequest>) -> Result<Response<RelayReply>, Status> {
        // Whoever is no member waits with all clients, so that members need not.
        let is_member = self.bulk.is_member(address(&request));
        let checker = if is_member { self.relayed.clone() } else { self.checker() };
        let requests = request.into_inner().requests;
        if requests.len() > RELAYED_MAX {
            return Err(Status::invalid_argument(format!("pass on at most {RELAYED_MAX} requests at once")));
        }
        let verified = checker.verified(requests, self.deployment).await?;
        if self.add(verified, true, None).await?.contains(&Added::Busy) {
            return Err(Unavailable::Busy.into());
        }
        Ok(Response::new(RelayReply {}))
    }

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<ReadReply>, Status> {
        let key = state_key(&request.into_inner().key)?;
        let proof = self.handle.ask(|reply| Command::Read(key, reply)).await?;
        let proof = proof.ok_or_else(|| Status::unavailable("nothing is decided yet; try again later"))?;
        Ok(Response::new(ReadReply { proof: proof.encode() }))
    }

    async fn decisions(&self, request: Request<DecisionsRequest>) -> Result<Response<DecisionsReply>, Status> {
        let _place = self.decisions.take(address(&request)).ok_or(Unavailable::Busy)?;
        let DecisionsRequest { receiver: to, from, wait_ms } = request.into_inner();
        let to = receiver(&to)?;
        let wait = Duration::from_millis(wait_ms.into()).min(GROUPS_WAIT_MAX);
        let deadline = Instant::now().checked_add(wait).unwrap_or_else(Instant::now);
        let mut heights = self.handle.heights();
        loop {
            heights.borrow_and_update();
            let decisions = self.handle.ask(|reply| Command::Groups(to, from, reply)).await?;
            let is_over = !decisions.is_empty() || timeout_at(deadline, heights.changed()).await.is_err();
            if is_over {
                return Ok(Response::new(DecisionsReply { decisions }));
            }
        }
    }

    async fn status(&self, request: Request<StatusRequest>) -> Result<Response<StatusReply>, Status> {
        let nonce = request.into_inner().nonce;
        let status = self.handle.ask(Command::Status).await?;
        let head = status.head.map(|head| borsh::to_vec(&head).expect("memory takes every write"));
        let head = head.unwrap_or_default();
        let signature = sign_status(&self.keys, self.deployment, nonce, &head);
        let (member, leader) = (status.member.0.into(), status.leader.0.into());
        Ok(Response::new(StatusReply { member, head, leader, votes: status.votes, signature }))
    }

    type StateStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<StatePart, Status>> + Send>>;

    async fn state(&self, request: Request<StateRequest>) -> Result<Response<Self::StateStream>, Status> {
        let place = self.states.take(address(&request)).ok_or(Unavailable::Busy)?;
        let checkpoint = self.handle.ask(Command::Checkpoint).await?;
        let checkpoint = checkpoint.ok_or_else(|| Status::unavailable("nothing is decided yet; try again later"))?;
        let encoded = tokio::task::spawn_blocking(move || checkpoint.encode()).await;
        let encoded = encoded.map_err(|_| Status::internal("the state could not be encoded"))?;
        let (parts, sent) = mpsc::channel(1);
        tokio::spawn(async move {
            let _place = place;
            let hand_over = async {
                for part in encoded.chunks(STATE_PART_BYTES) {
                    // The reader may have gone.
                    if parts.send(Ok(StatePart { part: part.to_vec() })).await.is_err() {
                        return;
                    }
                }
            };
            if timeout(STATE_TIMEOUT, hand_over).await.is_err() {
                // Without room for it the stream just ends, and what was read is no state.
                let _ = parts.try_send(Err(Status::deadline_exceeded("the state was read too slowly")));
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(sent))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::testing::{chain, decide, keys};
    use fastpay_core::Digest;
    use fastpay_ledger_client::api::verify_status;
    use fastpay_ledger_statement::MemberIndex;
    use tonic::Code;

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

    #[tokio::test]
    async fn who_comes_while_all_places_are_taken_is_told_busy() {
        let (handle, _commands, _height) = Handle::new(0);
        let keys = MemberKeys::from_seed([1; 32]);
        let service = Service::new(handle, Deployment(Digest::ZERO), keys, &Arc::default());
        let _states = service.states.take(None).unwrap();
        let _decisions: Vec<_> = (0..64).map(|_| service.decisions.take(None).unwrap()).collect();
        let state = service.state(Request::new(StateRequest {})).await.err().unwrap();
        assert_eq!(state.code(), Code::ResourceExhausted);
        let asked = DecisionsRequest { receiver: Vec::new(), from: 1, wait_ms: 0 };
        let decisions = service.decisions(Request::new(asked)).await.unwrap_err();
        assert_eq!(decisions.code(), Code::ResourceExhausted);
    }
}
