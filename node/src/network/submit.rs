//! One client's stream of orders and certificates.
//!
//! Flow: take the requests that have arrived, up to a bound → convert → verify their signatures as one
//! batch → queue them at the shard; answers come back over a channel with room for every request in
//! flight. A request is taken from the connection only when there is room for its answer, so a peer
//! that does not read is not read either.

use std::pin::Pin;
use std::sync::mpsc::TrySendError;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use fastpay_core::{Certificate, Deferred, TransferOrder, VerifiedRequest};
use fastpay_rpc::proto::submit_request::Request as WireRequest;
use fastpay_rpc::proto::submit_response::Response as WireResponse;
use fastpay_rpc::proto::{Confirmed, SubmitRequest, SubmitResponse};
use fastpay_rpc::{Refusal, STREAM_REQUESTS_IN_FLIGHT_MAX};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_stream::Stream;
use tonic::{Status, Streaming};

use super::ShardContext;
use crate::shard::{Answer, Command, ReplyTo};

/// At most so many requests are verified as one batch: bounds how long the first one waits, at about
/// 20 microseconds a signature.
const VERIFY_BATCH_MAX: usize = 64;

/// The answers to a stream's requests.
pub(super) struct Answers {
    channel: mpsc::Receiver<(u64, Answer)>,
    room: Arc<Semaphore>,
    failure: Arc<OnceLock<Status>>,
}

impl Stream for Answers {
    type Item = Result<SubmitResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.channel.poll_recv(cx).map(|answer| {
            let Some((id, answer)) = answer else {
                // The last word, after all answers: once, since tonic reads no further after an error.
                return self.failure.get().cloned().map(Err);
            };
            self.room.add_permits(1);
            let response = match answer {
                Answer::Vote(epoch, vote) => WireResponse::Vote((epoch, &vote).into()),
                Answer::Confirmed(next) => WireResponse::Confirmed(Confirmed { next_sequence: next.0 }),
                Answer::Refused(refusal) => WireResponse::Refused((&refusal).into()),
            };
            Some(Ok(SubmitResponse { id, response: Some(response) }))
        })
    }
}

/// Serves a stream in a task of its own, until its client ends it, sends what is not a request, or the
/// authority stops.
pub(super) fn serve(
    context: Arc<ShardContext>,
    requests: Streaming<SubmitRequest>,
    stop: watch::Receiver<bool>,
) -> Answers {
    let (answers, channel) = mpsc::channel(STREAM_REQUESTS_IN_FLIGHT_MAX);
    let room = Arc::new(Semaphore::new(STREAM_REQUESTS_IN_FLIGHT_MAX));
    let failure = Arc::new(OnceLock::new());
    let submission = Submission { context, requests, answers, room: room.clone(), failure: failure.clone() };
    tokio::spawn(submission.run(stop));
    Answers { channel, room, failure }
}

struct Submission {
    context: Arc<ShardContext>,
    requests: Streaming<SubmitRequest>,
    answers: mpsc::Sender<(u64, Answer)>,
    room: Arc<Semaphore>,
    /// Why no more requests are read, where they cannot be: the client hears of it behind its answers.
    failure: Arc<OnceLock<Status>>,
}

impl Submission {
    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let answers = self.answers.clone();
        loop {
            let batch = tokio::select! {
                batch = self.take_batch() => batch,
                _ = stop.wait_for(|stop| *stop) => return,
                // The client is gone: nobody would hear the answers.
                () = answers.closed() => return,
            };
            let Some(batch) = batch else { return };
            self.verify_and_queue(batch);
            if self.failure.get().is_some() {
                return;
            }
        }
    }

    /// Waits for a request, and takes with it what else has arrived. None where the stream ends.
    async fn take_batch(&mut self) -> Option<Vec<SubmitRequest>> {
        // Room is taken before the request, and not given back: the answer does that.
        let mut batch = Vec::new();
        self.room.acquire().await.ok()?.forget();
        match self.requests.message().await {
            Ok(Some(first)) => batch.push(first),
            Ok(None) => return None,
            Err(status) => {
                self.fail(status);
                return None;
            }
        }
        while batch.len() < VERIFY_BATCH_MAX {
            let Ok(permit) = self.room.try_acquire() else { break };
            match poll_now(&mut self.requests) {
                Poll::Ready(Some(Ok(request))) => {
                    permit.forget();
                    batch.push(request);
                }
                Poll::Ready(Some(Err(status))) => {
                    // What was read before is served; the stream itself is out of step and not read on.
                    self.fail(status);
                    break;
                }
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Some(batch)
    }

    fn fail(&self, status: Status) {
        tracing::debug!(%status, "a stream of requests cannot be read on");
        let _ = self.failure.set(status);
    }

    fn verify_and_queue(&self, batch: Vec<SubmitRequest>) {
        let (mut replies, mut deferred) = (Vec::new(), Vec::new());
        for SubmitRequest { id, request } in batch {
            let reply = ReplyTo { id, stream: self.answers.clone() };
            match self.prepare(request) {
                Ok(checked) => {
                    replies.push(reply);
                    deferred.push(checked);
                }
                Err(refusal) => self.refuse(reply, refusal),
            }
        }
        let verified = Deferred::check_all(deferred, rand::rng());
        for (reply, verified) in replies.into_iter().zip(verified) {
            match verified {
                Ok(VerifiedRequest::Order(order)) => self.queue(reply, |reply| Command::Order(Box::new(order), reply)),
                Ok(VerifiedRequest::Certificate(certificate)) => {
                    self.queue(reply, |reply| Command::Confirm(Box::new(certificate), reply));
                }
                Err(bad) => self.refuse(reply, Refusal::Invalid(bad.to_string())),
            }
        }
    }

    fn prepare(&self, request: Option<WireRequest>) -> Result<Deferred<VerifiedRequest>, Refusal> {
        let malformed = |error: fastpay_rpc::Malformed| Refusal::Malformed(error.to_string());
        match request {
            None => Err(Refusal::Malformed("the request is neither an order nor a certificate".into())),
            Some(WireRequest::Order(order)) => {
                let order: TransferOrder = order.try_into().map_err(malformed)?;
                let prepared = order.prepare(&self.context.domain);
                prepared.map(Into::into).map_err(|error| Refusal::Invalid(error.to_string()))
            }
            Some(WireRequest::Certificate(certificate)) => {
                let certificate: Certificate = certificate.try_into().map_err(malformed)?;
                let standing = self.context.standing.borrow().clone();
                let committee = standing.committees().get(certificate.epoch);
                let committee = committee.ok_or(Refusal::UnknownEpoch(certificate.epoch))?;
                let prepared = certificate.prepare(&self.context.domain, committee);
                prepared.map(Into::into).map_err(|error| Refusal::Invalid(error.to_string()))
            }
        }
    }

    fn queue(&self, reply: ReplyTo, command: impl FnOnce(ReplyTo) -> Command) {
        let refuse = reply.clone();
        match self.context.handle.try_submit(command(reply)) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                self.context.metrics.busy.inc();
                refuse.send(Answer::Refused(Refusal::Busy));
            }
            Err(TrySendError::Disconnected(_)) => refuse.send(Answer::Refused(Refusal::Stopping)),
        }
    }

    fn refuse(&self, reply: ReplyTo, refusal: Refusal) {
        self.context.metrics.invalid.inc();
        reply.send(Answer::Refused(refusal));
    }
}

/// The next request where it has arrived already.
fn poll_now(requests: &mut Streaming<SubmitRequest>) -> Poll<Option<Result<SubmitRequest, Status>>> {
    // Whoever awaits the stream next registers its own waker, and meets the end of the stream again.
    let mut cx = Context::from_waker(std::task::Waker::noop());
    Pin::new(requests).poll_next(&mut cx)
}
