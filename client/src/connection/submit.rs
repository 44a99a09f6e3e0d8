//! The client's end of a stream of orders and confirmations: many in flight, answers matched to
//! requests by their id.
//!
//! One task owns the stream. It opens it for the first request and again after it broke; requests in
//! flight on a broken stream fail, and their senders decide whether to repeat them (the same bytes
//! can be sent any number of times).

use std::collections::BTreeMap;
use std::time::Duration;

use fastpay_rpc::proto::shard_client::ShardClient as Grpc;
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{SubmitRequest, SubmitResponse};
use fastpay_rpc::{MESSAGE_BYTES_MAX, STREAM_REQUESTS_IN_FLIGHT_MAX};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;

use super::ClientError;
use super::transport::Transport;

/// Interval at which a full stream is checked for progress.
const STUCK_CHECK_INTERVAL: Duration = Duration::from_millis(500);

type Reply = oneshot::Sender<Result<Response, ClientError>>;

/// A handle to the task. Dropping the last one ends it.
#[derive(Clone, Debug)]
pub(crate) struct Submitter {
    queue: mpsc::Sender<(Request, Reply)>,
}

impl Submitter {
    pub(crate) fn start(transport: Transport) -> Self {
        let (queue, requests) = mpsc::channel(STREAM_REQUESTS_IN_FLIGHT_MAX);
        tokio::spawn(run(transport, requests));
        Self { queue }
    }

    pub(crate) async fn submit(&self, request: Request) -> Result<Response, ClientError> {
        let (reply, answer) = oneshot::channel();
        let lost = || ClientError::Unreachable("the connection was closed".into());
        self.queue.send((request, reply)).await.map_err(|_| lost())?;
        answer.await.map_err(|_| lost())?
    }
}

async fn run(transport: Transport, mut requests: mpsc::Receiver<(Request, Reply)>) {
    while let Some(first) = requests.recv().await {
        // A caller that has given up needs no attempt.
        if !first.1.is_closed() {
            serve(transport.clone(), first, &mut requests).await;
        }
    }
}

/// Serves one stream until it breaks or no caller is left. Dropping `waiting` fails the requests in flight.
async fn serve(transport: Transport, first: (Request, Reply), requests: &mut mpsc::Receiver<(Request, Reply)>) {
    let (stream, outgoing) = mpsc::channel(STREAM_REQUESTS_IN_FLIGHT_MAX);
    // In the order in which they were asked, in which they fail together.
    let mut waiting: BTreeMap<u64, Reply> = BTreeMap::new();
    let mut next_id = 0_u64;
    let mut enqueue = |(request, reply): (Request, Reply), waiting: &mut BTreeMap<u64, Reply>| {
        next_id = next_id.wrapping_add(1);
        waiting.insert(next_id, reply);
        SubmitRequest { id: next_id, request: Some(request) }
    };
    let request = enqueue(first, &mut waiting);
    if stream.send(request).await.is_err() {
        return;
    }
    let mut grpc = Grpc::new(transport).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut answers = match grpc.submit(ReceiverStream::new(outgoing)).await {
        Ok(response) => response.into_inner(),
        Err(status) => {
            let error = ClientError::from_status(&status);
            // Those that queued meanwhile have waited for the same attempt: one each would be too slow.
            while let Ok((_, reply)) = requests.try_recv() {
                let _ = reply.send(Err(error.clone()));
            }
            for reply in waiting.into_values() {
                let _ = reply.send(Err(error.clone()));
            }
            return;
        }
    };
    loop {
        tokio::select! {
            // Answers come to an end where nothing new is asked, so requests have their turn.
            biased;
            answer = answers.message() => match answer {
                Ok(Some(SubmitResponse { id, response: Some(response) })) => {
                    if let Some(reply) = waiting.remove(&id) {
                        let _ = reply.send(Ok(response));
                    }
                }
                Ok(_) => return,
                Err(status) => {
                    for reply in waiting.into_values() {
                        let _ = reply.send(Err(ClientError::from_status(&status)));
                    }
                    return;
                }
            },
            // The server owes an answer to callers that gave up, too: they keep their place until then …
            request = requests.recv(), if waiting.len() < STREAM_REQUESTS_IN_FLIGHT_MAX => match request {
                Some(request) => {
                    let request = enqueue(request, &mut waiting);
                    if stream.send(request).await.is_err() {
                        return;
                    }
                }
                None => return,
            },
            // … unless there are no others: then nothing more can be hoped for on this stream.
            () = tokio::time::sleep(STUCK_CHECK_INTERVAL), if waiting.len() >= STREAM_REQUESTS_IN_FLIGHT_MAX => {
                if waiting.values().all(oneshot::Sender::is_closed) {
                    return;
                }
            }
        }
    }
}
