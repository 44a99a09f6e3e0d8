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
        // Skip a request whose caller has given up.
        if !first.1.is_closed() {
            serve(transport.clone(), first, &mut requests).await;
        }
    }
}

/// Serves one stream until it breaks or no caller is left. Dropping `waiting` fails the requests in flight.
async fn serve(transport: Transport, first: (Request, Reply), requests: &mut mpsc::Receiver<(Request, Reply)>) {
    let (stream, outgoing) = mpsc::channel(STREAM_REQUESTS_IN_FLIGHT_MAX);
    // By id: in the order of the requests, which is also the order in which they fail.
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
            // Requests queued meanwhile waited for the same attempt, so they fail too: one attempt each takes too long.
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
            // Answers first. They cannot starve the requests, because they run out when nothing new is sent.
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
            // A caller that gave up keeps its place, because the server still owes its answer …
            request = requests.recv(), if waiting.len() < STREAM_REQUESTS_IN_FLIGHT_MAX => match request {
                Some(request) => {
                    let request = enqueue(request, &mut waiting);
                    if stream.send(request).await.is_err() {
                        return;
                    }
                }
                None => return,
            },
            // … unless all callers gave up: then no progress can be expected on this stream.
            () = tokio::time::sleep(STUCK_CHECK_INTERVAL), if waiting.len() >= STREAM_REQUESTS_IN_FLIGHT_MAX => {
                if waiting.values().all(oneshot::Sender::is_closed) {
                    return;
                }
            }
        }
    }
}
