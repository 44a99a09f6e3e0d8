//! A client of the ledger. It takes nothing on a member's word: answers and reads are proven, and it asks f + 1 members,
//! so one that is faulty can neither deceive nor ignore it.

use std::collections::BTreeMap;
use std::sync::Arc;

use borsh::BorshDeserialize;
use fastpay_core::{AccountId, AccountKey, Asset, Balance, SequenceNumber};
use fastpay_ledger_statement::{
    Action, AnswerProof, ClusterId, GenesisError, Instruction, Layout, MemberIndex, MemberKey, Members, Outcome,
    Partition, ProvenAnswer, ReadProof, Reading, Rejection, Request, StateKey, StatementVerifier, Time, Wire,
};
use tokio::task::JoinSet;

use crate::api::proto::ledger_client::LedgerClient;
use crate::api::proto::{ReadReply, ReadRequest, StatusReply, StatusRequest, SubmitRequest};
use crate::api::{ANSWER_TIMEOUT, MESSAGE_BYTES_MAX, channel, verify_status};
use crate::network::Network;
use crate::transport::{Carrier, Transport};

/// An instruction is sent again under the next number at most so often: others may use the same key.
const TRIES: usize = 5;
/// So long a member may take to read an entry.
const READ_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// Why the ledger did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The genesis.
    #[error("the genesis: {0}")]
    Genesis(#[from] GenesisError),
    /// No such cluster.
    #[error("there is no cluster {0} in this ledger")]
    UnknownCluster(ClusterId),
    /// No member gave a proven answer.
    #[error("no member of cluster {cluster} gave a proven answer: {last}")]
    NoAnswer {
        /// The cluster.
        cluster: ClusterId,
        /// Why the last one did not.
        last: String,
    },
    /// A cluster rejects it.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// A proven value is not what its key demands.
    #[error("a proven entry is not what its key demands; this client is of another version")]
    Malformed,
}

/// The way to a member.
pub type Connection = (MemberKey, Transport);

/// A client. A clone has the same connections.
#[derive(Clone, Debug)]
pub struct Client {
    layout: Layout,
    members: BTreeMap<ClusterId, Vec<Connection>>,
}

/// What a member says about itself.
#[derive(Clone, Debug)]
pub struct MemberStatus {
    /// Its key.
    pub key: MemberKey,
    /// Its place in the order of keys.
    pub member: MemberIndex,
    /// The height that it has decided, proven.
    pub height: u64,
    /// The member that leads.
    pub leader: u32,
    /// Whether it votes.
    pub votes: bool,
}

impl Client {
    /// A client of this ledger. It connects when it asks.
    ///
    /// # Errors
    /// [`ClientError::Genesis`].
    pub fn new(network: &Network) -> Result<Self, ClientError> {
        let layout = network.layout(network.genesis().partition.settlement)?;
        let connect = |key: &MemberKey| network.addresses(key).map(|at| Transport::Connection(channel(at.api)));
        Ok(Self::over(layout, connect))
    }

    /// A client whose calls are carried, such as by a simulated network.
    #[must_use]
    pub fn carried(layout: Layout, carrier: impl Fn(&MemberKey) -> Arc<dyn Carrier>) -> Self {
        Self::over(layout, |key| Some(Transport::Carried(carrier(key))))
    }

    fn over(layout: Layout, connect: impl Fn(&MemberKey) -> Option<Transport>) -> Self {
        let members = |cluster: &ClusterId| {
            let keys = layout.members(*cluster)?.keys().iter();
            Some((*cluster, keys.filter_map(|key| Some((*key, connect(key)?))).collect()))
        };
        let members = layout.genesis().clusters.keys().filter_map(members).collect();
        Self { layout, members }
    }

    /// The genesis as the settlement cluster sees it.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Which cluster keeps what.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.layout.genesis().partition
    }

    /// The members of a cluster, and the way to each, in the order of their keys.
    ///
    /// # Errors
    /// [`ClientError::UnknownCluster`].
    pub fn cluster(&self, cluster: ClusterId) -> Result<(&Members, &[Connection]), ClientError> {
        let members = self.layout.members(cluster).zip(self.members.get(&cluster));
        members.map(|(members, channels)| (members, channels.as_slice())).ok_or(ClientError::UnknownCluster(cluster))
    }

    /// Has a cluster carry a request out: the one that executes it in one round, a coordinator in three. It asks f + 1 of
    /// its members at once, another one for each that fails, and takes the first proven answer.
    ///
    /// # Errors
    /// See [`ClientError`]. A rejection is in the answer.
    pub async fn submit(&self, cluster: ClusterId, request: &Request) -> Result<ProvenAnswer, ClientError> {
        let (members, channels) = self.cluster(cluster)?;
        let encoded = request.encode();
        let faulty_max = members.keys().len().saturating_sub(members.quorum());
        let first = fastrand::usize(0..channels.len().max(1));
        let mut others = channels.iter().cycle().skip(first).take(channels.len());
        let mut asked = JoinSet::new();
        let mut ask_another = |asked: &mut JoinSet<_>| {
            if let Some((_, channel)) = others.next() {
                let mut client = LedgerClient::new(channel.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
                let mut call = tonic::Request::new(SubmitRequest { request: encoded.clone() });
                call.set_timeout(ANSWER_TIMEOUT);
                asked.spawn(async move { client.submit(call).await });
            }
        };
        (0..=faulty_max).for_each(|_| ask_another(&mut asked));
        let mut last = "it has no members".to_owned();
        while let Some(Ok(answered)) = asked.join_next().await {
            let proven = answered.map_err(|status| status.message().to_owned()).and_then(|reply| {
                let proof = AnswerProof::decode(&reply.into_inner().answer).map_err(|error| error.to_string())?;
                let mut verifier = StatementVerifier::default();
                let verified = proof.verify(request, self.partition(), members, &mut verifier, &mut rand::rng());
                verified.map_err(|error| error.to_string())
            });
            match proven {
                Ok(answer) => return Ok(answer),
                Err(why) => {
                    last = why;
                    ask_another(&mut asked);
                }
            }
        }
        Err(ClientError::NoAnswer { cluster, last })
    }

    /// Reads an entry of a cluster's state from f + 1 members at least, and gives the newest of their states. One of them is
    /// honest, so no liar can show an older state than that one has.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn read(&self, cluster: ClusterId, key: &StateKey, oldest: Time) -> Result<Reading, ClientError> {
        let (members, channels) = self.cluster(cluster)?;
        let encoded = borsh::to_vec(key).expect("memory takes every write");
        let needed = members.keys().len().saturating_sub(members.quorum()).saturating_add(1);
        let mut asked = JoinSet::new();
        for (_, channel) in channels {
            let mut client = LedgerClient::new(channel.clone());
            let mut call = tonic::Request::new(ReadRequest { key: encoded.clone() });
            call.set_timeout(READ_TIMEOUT);
            asked.spawn(async move { client.read(call).await });
        }
        let (mut newest, mut answers, mut last) = (None::<Reading>, 0_usize, "it has no members".to_owned());
        while let Some(Ok(read)) = asked.join_next().await {
            match self.proven(read, key, oldest, members) {
                Ok(reading) => {
                    answers = answers.saturating_add(1);
                    newest = newest.filter(|newest| newest.height >= reading.height).or(Some(reading));
                }
                Err(why) => last = why,
            }
            if let Some(newest) = newest.take_if(|_| answers >= needed) {
                return Ok(newest);
            }
        }
        Err(ClientError::NoAnswer { cluster, last })
    }

    fn proven(
        &self,
        read: Result<tonic::Response<ReadReply>, tonic::Status>,
        key: &StateKey,
        oldest: Time,
        members: &Members,
    ) -> Result<Reading, String> {
        let reply = read.map_err(|status| status.message().to_owned())?;
        let proof = ReadProof::decode(&reply.into_inner().proof).map_err(|error| error.to_string())?;
        let mut verifier = StatementVerifier::default();
        let verified = proof.verify(key, oldest, self.partition(), members, &mut verifier, &mut rand::rng());
        verified.map_err(|error| error.to_string())
    }

    /// Reads an entry that is kept by the cluster of its name.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn entry<T: BorshDeserialize>(&self, key: &StateKey) -> Result<Option<T>, ClientError> {
        let cluster = self.partition().of_entry(key).unwrap_or(self.partition().settlement);
        self.entry_of(cluster, key, Time(0)).await
    }

    /// Reads an entry of a cluster, in a state of `oldest` or later.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn entry_of<T: BorshDeserialize>(
        &self,
        cluster: ClusterId,
        key: &StateKey,
        oldest: Time,
    ) -> Result<Option<T>, ClientError> {
        let value = self.read(cluster, key, oldest).await?.value;
        value.map(|value| borsh::from_slice(&value).map_err(|_| ClientError::Malformed)).transpose()
    }

    /// Signs an action under the next number and has it carried out by the shard, or through a coordinator.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn instruct(
        &self,
        key: &AccountKey,
        shard: ClusterId,
        via: Option<ClusterId>,
        action: &Action,
    ) -> Result<Outcome, ClientError> {
        let signer = key.account();
        let mut sequence: SequenceNumber =
            self.entry_of(shard, &StateKey::Sequence(signer), Time(0)).await.ok().flatten().unwrap_or_default();
        let mut rejected = Rejection::Busy;
        for _ in 0..TRIES {
            let deployment = self.layout.deployment();
            let instruction = Instruction { deployment, shard, signer, sequence, action: action.clone() };
            let request = Request::Instruct(Box::new(instruction.signed(key)));
            let answer = self.submit(via.unwrap_or(shard), &request).await?;
            match answer.result {
                Ok(outcome) => return Ok(outcome),
                Err(why) => rejected = why,
            }
            match rejected {
                // The state that was read was older.
                Rejection::SequenceGap(next)
                | Rejection::SequenceConflict(next)
                | Rejection::SequenceForgotten(next) => sequence = next,
                _ => break,
            }
        }
        Err(rejected.into())
    }

    /// What is in a reserve, open or not.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn reserve(&self, owner: AccountId, asset: Asset) -> Result<Balance, ClientError> {
        Ok(self.entry(&StateKey::Reserve(owner, asset)).await?.unwrap_or_default())
    }

    /// What each member of a cluster says about itself; `None` for one that does not answer, or whose answer does not
    /// hold.
    ///
    /// # Errors
    /// [`ClientError::UnknownCluster`].
    pub async fn status(&self, cluster: ClusterId) -> Result<Vec<(MemberKey, Option<MemberStatus>)>, ClientError> {
        let (members, channels) = self.cluster(cluster)?;
        let mut all = Vec::new();
        for (key, channel) in channels {
            let nonce: u64 = rand::random();
            let mut call = tonic::Request::new(StatusRequest { nonce });
            call.set_timeout(std::time::Duration::from_secs(2));
            let reply = LedgerClient::new(channel.clone()).status(call).await.ok().map(tonic::Response::into_inner);
            let status = reply.and_then(|reply| {
                let (member, height) = verify_status(&reply, members, nonce)?;
                let StatusReply { leader, votes, .. } = reply;
                (members.key(member) == Some(*key)).then_some(MemberStatus { key: *key, member, height, leader, votes })
            });
            all.push((*key, status));
        }
        Ok(all)
    }
}
