//! One client's stream of orders and certificates.
//!
//! Flow: take the requests that have arrived, up to a bound → admit as many as the shard has room for, refuse the
//! others as busy → convert → queue them at the shard. Answers come back over a channel with room for every request in
//! flight. A request is read from the connection only when there is room for its answer, so a peer that does not read
//! its answers is not read either.
//!
//! A refusal costs a fifth of a served request, nearly all of it before the shard is asked. A stream that was refused
//! as busy is therefore left unread for a while: a client that sends much more than the shard can serve is slowed down
//! by its own connection, and the time goes to the others.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use std::vec::IntoIter;

use fastpay_core::Request;
use fastpay_rpc::proto::submit_request::Request as WireRequest;
use fastpay_rpc::proto::submit_response::Response as WireResponse;
use fastpay_rpc::proto::transfer_order::Transfer as WireTransfer;
use fastpay_rpc::proto::{Confirmed, SubmitRequest, SubmitResponse};
use fastpay_rpc::{Malformed, Refusal, STREAM_REQUESTS_IN_FLIGHT_MAX};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::ShardContext;
use crate::authority::metrics::NetworkMetrics;
use crate::authority::shard::{self, Answer, ClientReputation, ClientStream, ShardHandle, Submission};

/// The maximum number of requests taken from one stream before the next stream's turn.
const REQUESTS_PER_TURN_MAX: usize = 256;
/// The number of busy refusals after which a stream is left unread.
const REFUSED_PER_TURN_MAX: usize = 8;
/// The longest time that a stream is left unread.
const UNREAD_MAX: Duration = Duration::from_millis(50);

/// The answers to a stream's requests.
pub(super) struct Answers {
    channel: mpsc::Receiver<shard::Answers>,
    /// The rest of the current batch.
    current: IntoIter<(u64, Answer)>,
    /// The size of the current batch.
    current_count: usize,
    room: Arc<Semaphore>,
    failure: Arc<OnceLock<Status>>,
}

impl Stream for Answers {
    type Item = Result<SubmitResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some((id, answer)) = self.current.next() {
                return Poll::Ready(Some(Ok(SubmitResponse { id, response: Some(response(answer)) })));
            }
            let said = std::mem::take(&mut self.current_count);
            if said > 0 {
                self.room.add_permits(said);
            }
            match std::task::ready!(self.channel.poll_recv(cx)) {
                Some(answers) => {
                    self.current_count = answers.len();
                    self.current = answers.into_iter();
                }
                // The failure comes last, after all answers, and once: tonic reads no further after an error.
                None => return Poll::Ready(self.failure.get().cloned().map(Err)),
            }
        }
    }
}

fn response(answer: Answer) -> WireResponse {
    match answer {
        Answer::Vote(epoch, vote) => WireResponse::Vote((epoch, &vote).into()),
        Answer::Confirmed(epoch, next) => {
            WireResponse::Confirmed(Confirmed { next_sequence: next.0, epoch: Some(epoch.0) })
        }
        Answer::Refused(refusal) => WireResponse::Refused((&refusal).into()),
    }
}

/// Serves a stream in a task of its own, until its client ends it or sends a malformed message, or the authority stops.
pub(super) fn serve(
    context: Arc<ShardContext>,
    peer: Arc<ClientReputation>,
    requests: Streaming<SubmitRequest>,
    stop: watch::Receiver<bool>,
) -> Answers {
    let (stream, channel) = ClientStream::of(peer, STREAM_REQUESTS_IN_FLIGHT_MAX);
    let room = Arc::new(Semaphore::new(STREAM_REQUESTS_IN_FLIGHT_MAX));
    let failure = Arc::new(OnceLock::new());
    let reader = RequestReader { context, requests, stream, room: room.clone(), failure: failure.clone() };
    tokio::spawn(reader.run(stop));
    Answers { channel, current: IntoIter::default(), current_count: 0, room, failure }
}

struct RequestReader {
    context: Arc<ShardContext>,
    requests: Streaming<SubmitRequest>,
    stream: Arc<ClientStream>,
    room: Arc<Semaphore>,
    /// Why no more requests are read. The client receives it after its answers.
    failure: Arc<OnceLock<Status>>,
}

/// The requests taken from a stream in one turn, and how many of them the shard has room for.
struct Turn {
    arrived: Vec<SubmitRequest>,
    admitted: usize,
}

impl RequestReader {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let stream = self.stream.clone();
        let mut unread = Duration::ZERO;
        loop {
            let turn = tokio::select! {
                // Stop takes precedence over requests.
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                // The client has disconnected, so nobody would receive the answers.
                () = stream.closed() => return,
                turn = async {
                    if !unread.is_zero() {
                        tokio::time::sleep(unread).await;
                    }
                    stream.peer().pause().await;
                    self.take_turn().await
                } => turn,
            };
            let Some(turn) = turn else { return };
            unread = self.queue(turn);
            if self.failure.get().is_some() {
                return;
            }
        }
    }

    /// Waits for a request, and takes the others that have arrived: as many as the shard has room for, and a few more.
    /// `None` if the stream ends.
    async fn take_turn(&mut self) -> Option<Turn> {
        // Take room for the answer before reading the request. The answer returns the room.
        let mut arrived = Vec::new();
        self.room.acquire().await.ok()?.forget();
        match self.requests.message().await {
            Ok(Some(first)) => arrived.push(first),
            Ok(None) => return None,
            Err(status) => {
                self.fail(status);
                return None;
            }
        }
        let admitted = self.context.handle.admit(&self.stream, REQUESTS_PER_TURN_MAX);
        let mut taken = arrived.first().map_or(0, weight_of);
        while taken < REQUESTS_PER_TURN_MAX.min(admitted.saturating_add(REFUSED_PER_TURN_MAX)) {
            let Ok(permit) = self.room.try_acquire() else { break };
            match poll_now(&mut self.requests) {
                Poll::Ready(Some(Ok(request))) => {
                    permit.forget();
                    taken = taken.saturating_add(weight_of(&request));
                    arrived.push(request);
                }
                Poll::Ready(Some(Err(status))) => {
                    // Serve the requests read before. The stream is out of step, so nothing more is read from it.
                    self.fail(status);
                    break;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Some(Turn { arrived, admitted })
    }

    fn fail(&self, status: Status) {
        tracing::debug!(%status, "a stream of requests cannot be read on");
        let _ = self.failure.set(status);
    }

    /// Queues the requests of a turn. Returns how long to leave the stream unread.
    fn queue(&self, Turn { arrived, admitted }: Turn) -> Duration {
        let handle = &self.context.handle;
        let retry_after = handle.retry_after();
        let arrived = arrived.into_iter().map(|SubmitRequest { id, request }| (id, request));
        let refused = queue(handle, &self.context.metrics, &self.stream, arrived, admitted, convert);
        let is_full = refused.iter().any(|(_, answer)| matches!(answer, Answer::Refused(Refusal::Busy(_))));
        if !refused.is_empty() {
            self.stream.send(refused);
        }
        if is_full { unread_for(retry_after) } else { Duration::ZERO }
    }
}

/// How much of the admitted room a request takes.
fn weight_of(request: &SubmitRequest) -> usize {
    let order = match &request.request {
        Some(WireRequest::Order(order)) => Some(order),
        Some(WireRequest::Certificate(certificate)) => certificate.order.as_ref(),
        Some(WireRequest::Attested(attested)) => {
            attested.certificate.as_ref().and_then(|certificate| certificate.order.as_ref())
        }
        None => None,
    };
    match order.and_then(|order| order.transfer.as_ref()) {
        Some(WireTransfer::Payout(payout)) => shard::weight_of_outputs(payout.outputs.len()),
        _ => 1,
    }
}

/// Queues the requests for which `admitted` has room, and refuses the others before any work is done for them. The last
/// request with room may exceed it; otherwise a payout would find no room where little is left.
fn queue<R>(
    handle: &ShardHandle,
    metrics: &NetworkMetrics,
    stream: &Arc<ClientStream>,
    arrived: impl Iterator<Item = (u64, R)>,
    admitted: usize,
    convert: impl Fn(R) -> Result<Request, String>,
) -> shard::Answers {
    let (retry_after, mut malformed) = (handle.retry_after(), 0_usize);
    let room = admitted.min(arrived.size_hint().0);
    let (mut ids, mut requests, mut refused) = (Vec::with_capacity(room), Vec::with_capacity(room), Vec::new());
    let mut taken = 0_usize;
    for (id, request) in arrived {
        if taken >= admitted {
            metrics.busy.inc();
            refused.push((id, Answer::Refused(Refusal::Busy(retry_after))));
            continue;
        }
        match convert(request) {
            Ok(request) => {
                taken = taken.saturating_add(shard::weight(&request));
                ids.push(id);
                requests.push(request);
            }
            Err(reason) => {
                metrics.malformed.inc();
                (taken, malformed) = (taken.saturating_add(1), malformed.saturating_add(1));
                refused.push((id, Answer::Refused(Refusal::Malformed(reason))));
            }
        }
    }
    stream.peer().judge(malformed, true);
    let submission = Submission { stream: stream.clone(), ids, requests };
    if let Err(back) = handle.submit(submission, admitted) {
        refused.extend(back.into_iter().map(|id| (id, Answer::Refused(Refusal::Stopping))));
    }
    refused
}

/// How long a busy stream is left unread: half of the time that it was asked to wait, in which half of the queue is
/// served.
fn unread_for(retry_after: Duration) -> Duration {
    (retry_after / 2).min(UNREAD_MAX)
}

/// Submits requests without a stream, within the same bounds, and returns their answers in order.
pub(crate) async fn submit_all(
    handle: &ShardHandle,
    metrics: &NetworkMetrics,
    peer: Arc<ClientReputation>,
    requests: Vec<Request>,
) -> Vec<Answer> {
    let (count, wanted) = (requests.len(), requests.iter().map(shard::weight).fold(0, usize::saturating_add));
    let (stream, mut answers) = ClientStream::of(peer, count.max(1));
    let admitted = handle.admit(&stream, wanted);
    let mut answered = queue(handle, metrics, &stream, (0..).zip(requests), admitted, Ok);
    drop(stream);
    while answered.len() < count {
        // No more answers come if the shard has ended.
        let Some(more) = answers.recv().await else { break };
        answered.extend(more);
    }
    let mut answered: BTreeMap<u64, Answer> = answered.into_iter().collect();
    (0..count as u64).map(|id| answered.remove(&id).unwrap_or(Answer::Refused(Refusal::Stopping))).collect()
}

/// Submits one request of a client without a stream. A busy refusal is delayed, so that the client's connection is left
/// unread for a while, too.
pub(crate) async fn submit_one(
    handle: &ShardHandle,
    metrics: &NetworkMetrics,
    peer: Arc<ClientReputation>,
    request: Request,
) -> Answer {
    let answer = submit_all(handle, metrics, peer, vec![request]).await.pop();
    if let Some(Answer::Refused(Refusal::Busy(retry_after))) = &answer {
        tokio::time::sleep(unread_for(*retry_after)).await;
    }
    answer.unwrap_or(Answer::Refused(Refusal::Stopping))
}

/// Converts a request to core's types, or returns what is wrong with it.
fn convert(request: Option<WireRequest>) -> Result<Request, String> {
    let malformed = |error: Malformed| error.to_string();
    match request {
        None => Err("the request is neither an order nor a certificate".into()),
        Some(WireRequest::Order(order)) => order.try_into().map(Request::Order).map_err(malformed),
        Some(WireRequest::Certificate(certificate)) => {
            certificate.try_into().map(Request::Certificate).map_err(malformed)
        }
        Some(WireRequest::Attested(attested)) => {
            attested.try_into().map(Box::new).map(Request::Attested).map_err(malformed)
        }
    }
}

/// The next request, if it has arrived already.
fn poll_now(requests: &mut Streaming<SubmitRequest>) -> Poll<Option<Result<SubmitRequest, Status>>> {
    // The next poll registers its own waker and sees the end of the stream again.
    let mut cx = Context::from_waker(std::task::Waker::noop());
    Pin::new(requests).poll_next(&mut cx)
}
