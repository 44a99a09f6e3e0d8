//! `SubmitAll`: a client's many requests on one call, and their answers as they are proven. What waits is bounded for each
//! call; a client that sends more, or that the member has no room for, is told which requests are not taken.

use fastpay_ledger_client::api::proto::{SubmitAllReply, SubmitAllRequest};
use fastpay_ledger_client::api::{BULK_REQUESTS_MAX, CALL_TIMEOUT};
use fastpay_ledger_statement::{Answers, VerifiedRequest, Wire};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Status, Streaming};

use crate::command::Waiter;
use crate::grpc::Service;
use crate::pool::Added;

/// Answers of so many heights wait for a call that sends slowly. Those of later ones are lost; the client asks again.
const HEIGHTS_MAX: usize = 256;
/// One reply has at most so many bytes of answers, unless one alone is longer.
const ANSWERS_BYTES_MAX: usize = 1 << 20;

type Replies = mpsc::Sender<Result<SubmitAllReply, Status>>;

enum Came {
    Requests(Option<SubmitAllRequest>),
    Answers(Option<Box<Answers>>),
}

impl Service {
    /// Carries out what a call sends until it ends and all is answered, or nothing has come or gone for a minute.
    pub(crate) async fn answer_all(
        &self,
        mut requests: Streaming<SubmitAllRequest>,
        replies: &Replies,
    ) -> Result<(), Status> {
        let (waiter, mut answered) = self.waiter(HEIGHTS_MAX);
        let checker = self.checker();
        let (mut waiting, mut has_ended) = (0_usize, false);
        while waiting > 0 || !has_ended {
            let came = timeout(CALL_TIMEOUT, async {
                tokio::select! {
                    message = requests.message(), if !has_ended => message.map(Came::Requests),
                    answers = answered.recv() => Ok(Came::Answers(answers.map(Box::new))),
                }
            });
            match came.await.map_err(|_| Status::deadline_exceeded("nothing came for a minute"))?? {
                Came::Requests(None) => has_ended = true,
                Came::Requests(Some(batch)) => {
                    if batch.requests.len() > BULK_REQUESTS_MAX {
                        let why = format!("send at most {BULK_REQUESTS_MAX} requests in a message");
                        return Err(Status::invalid_argument(why));
                    }
                    let verified = checker.verified(batch.requests, self.deployment()).await?;
                    let count = verified.len();
                    let refused = self.take(verified, waiting, &waiter).await?;
                    waiting = waiting.saturating_add(count.saturating_sub(refused.len()));
                    if !refused.is_empty() {
                        send(replies, SubmitAllReply { answers: Vec::new(), refused }).await?;
                    }
                }
                Came::Answers(None) => return Err(Status::unavailable("this member is stopping")),
                Came::Answers(Some(answers)) => {
                    waiting = waiting.saturating_sub(answers.answers.len());
                    for part in parts(*answers) {
                        send(replies, SubmitAllReply { answers: part.encode(), refused: Vec::new() }).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes requests, and gives the digests of those for which there is no room.
    async fn take(
        &self,
        mut requests: Vec<VerifiedRequest>,
        waiting: usize,
        waiter: &Waiter,
    ) -> Result<Vec<Vec<u8>>, Status> {
        let room = BULK_REQUESTS_MAX.saturating_sub(waiting).min(requests.len());
        let digest = |request: &VerifiedRequest| request.digest().0.to_vec();
        let digests: Vec<Vec<u8>> = requests.iter().map(digest).collect();
        let mut refused: Vec<Vec<u8>> = requests.split_off(room).iter().map(digest).collect();
        let added = self.add(requests, false, Some(waiter.clone())).await;
        let added = added.unwrap_or_else(|_| vec![Added::Busy; room]);
        let is_refused = |(digest, added)| (added == Added::Busy).then_some(digest);
        refused.extend(digests.into_iter().zip(added).filter_map(is_refused));
        Ok(refused)
    }
}

async fn send(replies: &Replies, reply: SubmitAllReply) -> Result<(), Status> {
    let sent = timeout(CALL_TIMEOUT, replies.send(Ok(reply))).await;
    sent.ok().and_then(Result::ok).ok_or_else(|| Status::cancelled("the client reads no longer"))
}

/// The answers in replies of bounded length.
fn parts(answers: Answers) -> Vec<Answers> {
    let without = answers.without_answers();
    let mut parts: Vec<Answers> = Vec::new();
    let mut bytes = usize::MAX;
    for answer in answers.answers {
        let length = borsh::object_length(&answer).unwrap_or(usize::MAX);
        bytes = bytes.saturating_add(length);
        if bytes > ANSWERS_BYTES_MAX {
            bytes = length;
            parts.push(without.clone());
        }
        if let Some(part) = parts.last_mut() {
            part.answers.push(answer);
        }
    }
    parts
}
