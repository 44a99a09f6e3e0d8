//! The paper's virtual users: each waits for the answer to its request before it sends the next one. Those of one entry
//! cluster share a few calls to its leader.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpay_core::{AccountKey, Digest, SequenceNumber};
use fastpay_ledger_client::{Bulk, Client};
use fastpay_ledger_statement::{
    Action, ClusterId, Condition, Get, Instruction, Key, Namespace, Rejection, Request, Value,
};
use tokio::time::sleep;

use super::Failure;

const VALUE_BYTES: usize = 64;
const PAUSE: Duration = Duration::from_millis(5);

/// A namespace's writer. It has one write under way.
pub struct Writer {
    pub namespace: Namespace,
    pub key: AccountKey,
    /// The next number at each shard.
    sequences: HashMap<ClusterId, SequenceNumber>,
}

impl Writer {
    pub fn new(number: usize) -> Self {
        let seed = *blake3::hash(format!("writer {number}").as_bytes()).as_bytes();
        let namespace = Namespace::new(format!("bench-{number}")).expect("it is a name");
        Self { namespace, key: AccountKey::ed25519(seed), sequences: HashMap::new() }
    }
}

/// One call's users.
pub struct Load {
    pub client: Arc<Client>,
    /// The cluster that they ask.
    pub entry: ClusterId,
    /// The member that they ask first.
    pub leader: usize,
    /// Keys are of this shard alone, where the users know which one keeps a key.
    pub shard: Option<ClusterId>,
    /// So many, and no more than a member lets wait.
    pub users: usize,
    /// Of a hundred requests, so many are writes.
    pub writes: u32,
    /// The namespaces that these users alone write.
    pub writers: Vec<Writer>,
}

/// What users did while it was counted.
#[derive(Default)]
pub struct Done {
    pub operations: u64,
    /// Of each.
    pub latencies: Vec<Duration>,
    /// Of the operations.
    pub rejected: u64,
}

struct UnderWay {
    since: Instant,
    writer: Option<(Writer, ClusterId)>,
}

impl Load {
    /// Asks until `end`, and counts what is answered after `begin`.
    pub async fn run(mut self, begin: Instant, end: Instant) -> Result<Done, Failure> {
        let mut bulk = Bulk::new(self.client.clone(), self.entry, self.leader);
        let mut under_way: HashMap<Digest, UnderWay> = HashMap::new();
        let mut done = Done::default();
        let mut again = Vec::new();
        while Instant::now() < end {
            let mut requests: Vec<Request> = std::mem::take(&mut again);
            while bulk.waiting() + requests.len() < self.users {
                let (request, writer) = self.next();
                under_way.insert(request.digest(), UnderWay { since: Instant::now(), writer });
                requests.push(request);
            }
            bulk.send(requests).await;
            let settled = bulk.settled().await?;
            if !settled.refused.is_empty() {
                sleep(PAUSE).await;
            }
            again = settled.refused;
            let now = Instant::now();
            for (request, answer) in settled.answered {
                let Some(UnderWay { since, writer }) = under_way.remove(&request.digest()) else { continue };
                if let Some((mut writer, shard)) = writer {
                    let sequence = writer.sequences.entry(shard).or_default();
                    match &answer.result {
                        Ok(_) => *sequence = SequenceNumber(sequence.0.saturating_add(1)),
                        Err(Rejection::SequenceGap(next) | Rejection::SequenceConflict(next)) => *sequence = *next,
                        Err(_) => {}
                    }
                    self.writers.push(writer);
                }
                if now >= begin && now < end {
                    done.operations += 1;
                    done.rejected += u64::from(answer.result.is_err());
                    done.latencies.push(now - since);
                }
            }
        }
        Ok(done)
    }

    fn next(&mut self) -> (Request, Option<(Writer, ClusterId)>) {
        let is_write = rand::random_range(0..100) < self.writes;
        let writer = if is_write { self.writers.pop() } else { None };
        match writer {
            Some(writer) => {
                let (request, shard) = self.write(&writer);
                (request, Some((writer, shard)))
            }
            None => (self.get(), None),
        }
    }

    /// A random key in a namespace, at the shard of these users.
    fn key(&self, namespace: &Namespace) -> (Key, ClusterId) {
        loop {
            let key = Key::new(rand::random::<[u8; 32]>().to_vec()).expect("it has 32 bytes");
            let shard = self.client.partition().of_value(namespace, &key);
            if self.shard.is_none_or(|wanted| wanted == shard) {
                return (key, shard);
            }
        }
    }

    fn get(&self) -> Request {
        let namespace = Namespace::new("bench-0".to_owned()).expect("it is a name");
        let (key, _) = self.key(&namespace);
        Request::Get(Get { namespace, key, nonce: rand::random() })
    }

    fn write(&self, writer: &Writer) -> (Request, ClusterId) {
        let (key, shard) = self.key(&writer.namespace);
        let value = Value::new(vec![rand::random(); VALUE_BYTES]);
        let namespace = writer.namespace.clone();
        let action = Action::Write { namespace, key, condition: Condition::Always, value };
        let sequence = writer.sequences.get(&shard).copied().unwrap_or_default();
        let (deployment, signer) = (self.client.layout().deployment(), writer.key.account());
        let instruction = Instruction { deployment, shard, signer, sequence, action };
        (Request::Instruct(Box::new(instruction.signed(&writer.key))), shard)
    }
}
