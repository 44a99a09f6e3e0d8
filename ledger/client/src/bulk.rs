//! Many requests on one call to a member of a cluster. Answers are proven, so the member can only be slow: one that
//! fails, or settles nothing for two seconds while answers are due, is left for the next one, which gets all of them again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::Digest;
use fastpay_ledger_statement::{Answers, ClusterId, ProvenAnswer, Request, StatementVerifier, Wire};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::api::proto::ledger_client::LedgerClient;
use crate::api::proto::{SubmitAllReply, SubmitAllRequest};
use crate::api::{BULK_REQUESTS_MAX, MESSAGE_BYTES_MAX};
use crate::client::{Client, ClientError};

/// A member settles nothing for so long, or takes no requests, before the next one is asked.
const SILENCE: Duration = Duration::from_secs(2);
/// One message has at most so many bytes of requests.
const BATCH_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;

/// Requests that were sent to a cluster, and their answers.
#[derive(Debug)]
pub struct Bulk {
    client: Arc<Client>,
    cluster: ClusterId,
    /// The member that is asked, by its place in the order of keys.
    at: usize,
    call: Option<Call>,
    waiting: HashMap<Digest, Request>,
    verifier: StatementVerifier,
}

#[derive(Debug)]
struct Call {
    requests: mpsc::Sender<SubmitAllRequest>,
    replies: Streaming<SubmitAllReply>,
}

/// What became of requests.
#[derive(Debug, Default)]
pub struct Settled {
    /// The answer to each.
    pub answered: Vec<(Request, ProvenAnswer)>,
    /// The member is busy: send these again later.
    pub refused: Vec<Request>,
}

impl Bulk {
    /// Requests to a cluster, given to the member at this place in the order of keys first. Ask the leader: any other one
    /// passes them on to it.
    #[must_use]
    pub fn new(client: Arc<Client>, cluster: ClusterId, at: usize) -> Self {
        Self { client, cluster, at, call: None, waiting: HashMap::new(), verifier: StatementVerifier::default() }
    }

    /// The number of requests that await an answer.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sends requests, of which at most [`BULK_REQUESTS_MAX`] may wait. The answers come from [`Bulk::settled`], also if
    /// the member fails now.
    pub async fn send(&mut self, requests: Vec<Request>) {
        let encoded: Vec<Vec<u8>> = requests.iter().map(Wire::encode).collect();
        self.waiting.extend(requests.into_iter().map(|request| (request.digest(), request)));
        if let Some(call) = &self.call
            && !matches!(timeout(SILENCE, send(&call.requests, encoded)).await, Ok(Ok(())))
        {
            self.leave();
        }
    }

    /// Waits for answers.
    ///
    /// # Errors
    /// [`ClientError`] after every member has failed in turn. What waits may be carried out later; call again to ask them
    /// again.
    pub async fn settled(&mut self) -> Result<Settled, ClientError> {
        let mut last = "it has no members".to_owned();
        let members = self.client.cluster(self.cluster)?.1.len();
        for _ in 0..members {
            match self.next().await {
                Ok(settled) => return Ok(settled),
                Err(why) => last = why,
            }
            self.leave();
        }
        Err(ClientError::NoAnswer { cluster: self.cluster, last })
    }

    fn leave(&mut self) {
        self.call = None;
        self.at = self.at.wrapping_add(1);
    }

    async fn next(&mut self) -> Result<Settled, String> {
        if self.call.is_none() {
            let call = timeout(SILENCE, self.open()).await.map_err(|_| "it does not answer".to_owned())??;
            let again = self.waiting.values().map(Wire::encode).collect();
            let sent = timeout(SILENCE, send(&call.requests, again)).await;
            sent.map_err(|_| "it takes no requests".to_owned())??;
            self.call = Some(call);
        }
        timeout(SILENCE, self.progress()).await.map_err(|_| "it settles nothing".to_owned())?
    }

    /// Reads replies until one settles something: empty and repeated ones are no progress.
    async fn progress(&mut self) -> Result<Settled, String> {
        loop {
            let Some(call) = &mut self.call else { return Err("there is no call".to_owned()) };
            let reply = call.replies.message().await;
            let reply = reply.map_err(|status| status.message().to_owned())?.ok_or("it ended the call")?;
            let settled = self.settle(reply)?;
            if !settled.answered.is_empty() || !settled.refused.is_empty() {
                return Ok(settled);
            }
        }
    }

    fn settle(&mut self, reply: SubmitAllReply) -> Result<Settled, String> {
        let mut settled = Settled::default();
        for digest in reply.refused {
            let digest = digest.try_into().map(Digest::new).map_err(|_| "it refuses what is no digest")?;
            settled.refused.extend(self.waiting.remove(&digest));
        }
        if !reply.answers.is_empty() {
            let answers = Answers::decode(&reply.answers).map_err(|error| error.to_string())?;
            let (members, _) = self.client.cluster(self.cluster).map_err(|error| error.to_string())?;
            let certified = answers.verify(members, &mut self.verifier, &mut rand::rng());
            for answer in certified.map_err(|error| error.to_string())? {
                // A copy that another member was given may have been answered before.
                let Some(request) = self.waiting.remove(&answer.request()) else { continue };
                let proven = answer.answers(&request, self.client.partition()).map_err(|error| error.to_string())?;
                settled.answered.push((request, proven));
            }
        }
        Ok(settled)
    }

    async fn open(&self) -> Result<Call, String> {
        let (_, channels) = self.client.cluster(self.cluster).map_err(|error| error.to_string())?;
        let at = self.at.checked_rem(channels.len()).unwrap_or(0);
        let Some((_, channel)) = channels.get(at) else { return Err("it has no members".to_owned()) };
        let mut member = LedgerClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let (requests, sent) = mpsc::channel(16);
        let replies = member.submit_all(ReceiverStream::new(sent)).await;
        Ok(Call { requests, replies: replies.map_err(|status| status.message().to_owned())?.into_inner() })
    }
}

async fn send(to: &mpsc::Sender<SubmitAllRequest>, encoded: Vec<Vec<u8>>) -> Result<(), String> {
    let mut requests = Vec::new();
    let mut bytes = 0_usize;
    for request in encoded {
        bytes = bytes.saturating_add(request.len());
        requests.push(request);
        if bytes >= BATCH_BYTES_MAX || requests.len() >= BULK_REQUESTS_MAX {
            let full = std::mem::take(&mut requests);
            to.send(SubmitAllRequest { requests: full }).await.map_err(|_| "it ended the call")?;
            bytes = 0;
        }
    }
    if !requests.is_empty() {
        to.send(SubmitAllRequest { requests }).await.map_err(|_| "it ended the call")?;
    }
    Ok(())
}
