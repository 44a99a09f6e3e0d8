//! The audit of all clusters under their certificates [LEDGER 12].

use std::collections::BTreeMap;

use fastpay_core::{Asset, Balance};
use fastpay_ledger_client::api::MESSAGE_BYTES_MAX;
use fastpay_ledger_client::api::proto::StateRequest;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_client::{Client, ClientError, Transport};
use fastpay_ledger_state::{Overdraft, State, overdrafts};
use fastpay_ledger_statement::{ClusterId, Members, StatementVerifier};

use crate::store::Checkpoint;

/// The longest state that an audit reads.
const STATE_BYTES_MAX: usize = 1 << 30;

/// What an audit of all clusters found [LEDGER 12].
#[derive(Debug)]
pub struct Audit {
    /// What each cluster holds.
    pub states: BTreeMap<ClusterId, State>,
    /// What was issued less what all hold, by asset. Not zero: money was made or lost.
    pub differences: BTreeMap<Asset, Balance>,
    /// What clusters took and others did not send.
    pub overdrafts: Vec<Overdraft>,
}

/// Reads and checks the whole state of every cluster. The senders are read after the receivers, so that no honest
/// cluster seems to have taken what was not sent.
///
/// # Errors
/// See [`ClientError`].
pub async fn audit(client: &Client) -> Result<Audit, ClientError> {
    let mut states = BTreeMap::new();
    // Twice: in the second turn each is at least as new as what the others had taken from it in the first.
    let mut receivers = BTreeMap::new();
    for states in [&mut receivers, &mut states] {
        for cluster in client.layout().genesis().clusters.keys() {
            states.insert(*cluster, state(client, *cluster).await?);
        }
    }
    let mut held: BTreeMap<Asset, Balance> = BTreeMap::new();
    for (asset, holdings) in states.values().flat_map(State::holdings) {
        let sum = held.entry(asset).or_default();
        *sum = sum.plus(holdings.share());
    }
    for issue in &client.layout().genesis().issued {
        held.entry(issue.asset).or_default();
    }
    let difference = |(asset, held): (Asset, Balance)| {
        let issued = Balance::ZERO.credit(client.layout().issued(asset));
        (asset, issued.plus(held.negated()))
    };
    let differences = held.into_iter().map(difference).collect();
    let mut overdrawn = Vec::new();
    for (to, receiver) in receivers {
        let mut compared = states.clone();
        compared.insert(to, receiver);
        overdrawn.extend(overdrafts(&compared).into_iter().filter(|overdraft| overdraft.to == to));
    }
    Ok(Audit { states, differences, overdrafts: overdrawn })
}

async fn state(client: &Client, cluster: ClusterId) -> Result<State, ClientError> {
    let (members, channels) = client.cluster(cluster)?;
    let mut last = "it has no members".to_owned();
    for (_, channel) in channels {
        match state_of(LedgerClient::new(channel.clone()), members).await {
            Ok(state) => return Ok(state),
            Err(why) => last = why,
        }
    }
    Err(ClientError::NoAnswer { cluster, last })
}

async fn state_of(client: LedgerClient<Transport>, members: &Members) -> Result<State, String> {
    let mut client = client.max_decoding_message_size(MESSAGE_BYTES_MAX);
    let mut parts = client.state(StateRequest {}).await.map_err(|status| status.message().to_owned())?.into_inner();
    let mut encoded = Vec::new();
    while let Some(part) = parts.message().await.map_err(|status| status.message().to_owned())? {
        encoded.extend(part.part);
        if encoded.len() > STATE_BYTES_MAX {
            return Err("the state is longer than an audit reads".to_owned());
        }
    }
    let checkpoint = Checkpoint::decode(&encoded).ok_or("the state is not its header's")?;
    let mut verifier = StatementVerifier::default();
    let certified = verifier.check(&checkpoint.header, &checkpoint.certificate, members, &mut rand::rng());
    certified.map_err(|error| error.to_string())?;
    Ok(checkpoint.state)
}
