//! Fetches the groups that other clusters have for this one. Any member of the sender can hand them over, so it asks
//! them in turn: one that withholds or alters them costs a second.

use std::time::Duration;

use fastpay_ledger_client::api::MESSAGE_BYTES_MAX;
use fastpay_ledger_client::api::proto::DecisionsRequest;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_statement::{
    ClusterId, CompactDecision, Cursor, Members, Receiver, StatementVerifier, VerifiedGroup, Wire,
};
use tokio::time::sleep;
use tonic::transport::Channel;

use crate::command::{Command, Handle, Unavailable};

/// A member is asked for so long before the next one is.
const WAIT: Duration = Duration::from_secs(1);
/// While enough groups wait, or the member is busy.
const PAUSE: Duration = Duration::from_millis(20);
/// After a member that does not answer or lies.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(200);

/// Fetches the groups of a cluster for cluster `us`, until the member stops.
pub async fn fetch(handle: Handle, us: ClusterId, members: Members, channels: Vec<Channel>) {
    let mut fetcher = Fetcher { us, members, verifier: StatementVerifier::default() };
    let clients =
        channels.into_iter().map(|channel| LedgerClient::new(channel).max_decoding_message_size(MESSAGE_BYTES_MAX));
    let mut clients: Vec<_> = clients.collect();
    // Another member after every answer: one that hands over a little of what is due is asked as often as the others.
    let mut turn: usize = rand::random_range(0..clients.len().max(1));
    loop {
        let due = match handle.ask(|reply| Command::Due(fetcher.members.cluster(), reply)).await {
            Ok(Some(due)) => due,
            Ok(None) | Err(Unavailable::Busy) => {
                sleep(PAUSE).await;
                continue;
            }
            Err(Unavailable::Stopping) => return,
        };
        let at = turn.checked_rem(clients.len()).unwrap_or(0);
        let Some(client) = clients.get_mut(at) else { return };
        turn = turn.wrapping_add(1);
        match fetcher.ask(client, due).await {
            Ok(groups) => {
                for group in groups {
                    // Where the member is busy, the group is asked for again.
                    if handle.tell(Command::Group(Box::new(group))).is_err() {
                        sleep(PAUSE).await;
                    }
                }
            }
            Err(failure) => {
                tracing::warn!("member {at} of cluster {}: {failure}", fetcher.members.cluster());
                sleep(PAUSE_AFTER_FAILURE).await;
            }
        }
    }
}

struct Fetcher {
    us: ClusterId,
    members: Members,
    verifier: StatementVerifier,
}

impl Fetcher {
    /// The groups from `due` on that a member hands over, checked.
    async fn ask(&mut self, client: &mut LedgerClient<Channel>, due: Cursor) -> Result<Vec<VerifiedGroup>, String> {
        let receiver = Receiver::Cluster(self.us);
        let request = DecisionsRequest {
            receiver: borsh::to_vec(&receiver).expect("memory takes every write"),
            from: due.next,
            wait_ms: u32::try_from(WAIT.as_millis()).unwrap_or(u32::MAX),
        };
        let mut call = tonic::Request::new(request);
        call.set_timeout(WAIT.saturating_mul(3));
        let reply = client.decisions(call).await.map_err(|status| status.to_string())?.into_inner();
        let mut groups = Vec::new();
        let mut cursor = due;
        for encoded in reply.decisions {
            let decision = CompactDecision::decode(&encoded).map_err(|error| error.to_string())?;
            let opened = self.verifier.open(receiver, vec![(decision, &self.members, cursor)], &mut rand::rng());
            for group in opened {
                let group = group.map_err(|error| error.to_string())?;
                cursor = group.cursor();
                groups.push(group);
            }
        }
        Ok(groups)
    }
}
