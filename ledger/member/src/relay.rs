//! Passes clients' requests on within the cluster: to the leader when they come and when the leader changes, so that it
//! can propose them; to all members when they have waited for long, and when a leader leaves one out, so that all know
//! what it leaves out. A client can do the same: it sends a request to f + 1 members.

use std::collections::BTreeMap;
use std::time::Duration;

use fastpay_ledger_client::api::MESSAGE_BYTES_MAX;
use fastpay_ledger_client::api::proto::RelayRequest;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_statement::{MemberKey, VerifiedRequest, Wire};
use tokio::sync::mpsc;
use tonic::transport::Channel;

/// So many requests wait for a member that is slow: all that a member keeps. More are not passed on to it.
const WAITING_MAX: usize = 16_384;
/// One call passes on so many.
const BATCH_MAX: usize = 256;
/// And so many bytes.
const BATCH_BYTES_MAX: usize = MESSAGE_BYTES_MAX / 2;
const TIMEOUT: Duration = Duration::from_secs(5);

/// The way to the other members.
#[derive(Clone, Debug, Default)]
pub struct Relay(BTreeMap<MemberKey, mpsc::Sender<Vec<u8>>>);

impl Relay {
    /// Starts to pass on to these members. Needs a runtime.
    #[must_use]
    pub fn start(members: impl IntoIterator<Item = (MemberKey, Channel)>) -> Self {
        let start = |(key, member): (MemberKey, Channel)| {
            let (requests, waiting) = mpsc::channel(WAITING_MAX);
            tokio::spawn(pass_on(LedgerClient::new(member), waiting));
            (key, requests)
        };
        Self(members.into_iter().map(start).collect())
    }

    /// The way to one member, for tests.
    #[cfg(test)]
    pub(crate) fn to(key: MemberKey, member: mpsc::Sender<Vec<u8>>) -> Self {
        Self(BTreeMap::from([(key, member)]))
    }

    /// Passes an encoded request on to one other member, if that is not far behind.
    pub fn pass_on_to(&self, member: MemberKey, encoded: Vec<u8>) {
        if let Some(member) = self.0.get(&member) {
            // This member keeps the request, and passes it on again later.
            let _ = member.try_send(encoded);
        }
    }

    /// Passes a request on to all other members.
    pub fn pass_on(&self, request: &VerifiedRequest) {
        let encoded = request.request().encode();
        self.0.keys().for_each(|member| self.pass_on_to(*member, encoded.clone()));
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
