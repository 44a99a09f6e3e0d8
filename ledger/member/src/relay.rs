//! Passes clients' requests on to the other members, so that whoever leads can propose them, and all know what a leader
//! leaves out: when they come, again when they have waited for long, and again when a leader leaves one out. A client can
//! do the same: it sends a request to f + 1 members.

use std::time::Duration;

use fastpay_ledger_client::api::MESSAGE_BYTES_MAX;
use fastpay_ledger_client::api::proto::RelayRequest;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_statement::{VerifiedRequest, Wire};
use tokio::sync::mpsc;
use tonic::transport::Channel;

/// So many requests wait for a member that is slow. More are not passed on to it.
const WAITING_MAX: usize = 4_096;
/// One call passes on so many.
const BATCH_MAX: usize = 256;
/// And so many bytes.
const BATCH_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;
const TIMEOUT: Duration = Duration::from_secs(5);

/// The way to the other members.
#[derive(Clone, Debug, Default)]
pub struct Relay(Vec<mpsc::Sender<Vec<u8>>>);

impl Relay {
    /// Starts to pass on to these members. Needs a runtime.
    #[must_use]
    pub fn start(members: Vec<Channel>) -> Self {
        let start = |member: Channel| {
            let (requests, waiting) = mpsc::channel(WAITING_MAX);
            tokio::spawn(pass_on(LedgerClient::new(member), waiting));
            requests
        };
        Self(members.into_iter().map(start).collect())
    }

    /// The way to one member, for tests.
    #[cfg(test)]
    pub(crate) fn to(member: mpsc::Sender<Vec<u8>>) -> Self {
        Self(vec![member])
    }

    /// Passes a request on, if the others are not far behind.
    pub fn pass_on(&self, request: &VerifiedRequest) {
        let encoded = request.request().encode();
        for member in &self.0 {
            // This member keeps the request, and proposes it when it leads.
            let _ = member.try_send(encoded.clone());
        }
    }
}

async fn pass_on(mut member: LedgerClient<Channel>, mut waiting: mpsc::Receiver<Vec<u8>>) {
    while let Some(first) = waiting.recv().await {
        let mut bytes = first.len();
        let mut requests = vec![first];
        while requests.len() < BATCH_MAX
            && bytes < BATCH_BYTES_MAX
            && let Ok(next) = waiting.try_recv()
        {
            bytes = bytes.saturating_add(next.len());
            requests.push(next);
        }
        let mut call = tonic::Request::new(RelayRequest { requests });
        call.set_timeout(TIMEOUT);
        if let Err(error) = member.relay(call).await {
            tracing::debug!("requests could not be passed on: {error}");
        }
    }
}
