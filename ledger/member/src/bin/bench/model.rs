//! What more clusters would do, from what a decision of another cluster costs whatever it has. With N + N clusters a height
//! has the requests of its users in N groups: each member asks for N groups, opens them, and makes as many. So an operation
//! costs a fixed part, and N times a group's part over the requests of a height. With N the throughput approaches the
//! requests of a height over the cost of a group.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastpay_core::{Digest, Ed25519Signature};
use fastpay_ledger_client::api::proto::DecisionsRequest;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_member::localnet::{Localnet, Shape};
use fastpay_ledger_statement::{
    Answer, ClusterId, CompactDecision, Cursor, Deployment, Group, Header, Height, MemberIndex, MemberKeys, Members,
    Message, Outcome, Outputs, QuorumCertificate, Receiver, StatementVerifier, Time, VoteKind, VoteStatement,
};
use serde::Serialize;

use super::Failure;

/// The paper's clusters of each kind at its peak.
const CLUSTERS: u32 = 32;
/// The requests of a height.
const BATCH: u32 = 4_096;
/// The paper's peak, of 256 nodes.
const PAPER_OPS: f64 = 110_000.0;
const MEMBERS: f64 = 8.0;
const REPETITIONS: u32 = 20;
const CALLS: u32 = 4_000;
const IDLE: Duration = Duration::from_secs(4);

/// What is measured and what follows from it.
#[derive(Serialize)]
pub struct Model {
    /// Opening 32 decisions of 32 clusters in one batch: signatures, paths and 128 messages each, per decision.
    open_us_per_decision: f64,
    /// The same with a batch for each.
    open_alone_us_per_decision: f64,
    /// The same in one batch, without messages.
    open_us_per_empty_decision: f64,
    /// Asking a member for groups, at both ends.
    call_us: f64,
    points: Vec<Point>,
    /// What no number of clusters exceeds, with this many requests of a height.
    plateau_ops_per_second: f64,
}

#[derive(Serialize)]
struct Point {
    /// Of each kind.
    clusters: u32,
    cpu_us_per_op: f64,
    ops_per_second_per_node: f64,
    ops_per_second: f64,
}

impl Model {
    /// From the cost of an operation at 1 + 1 clusters, and of a call for groups.
    pub fn of(cpu_us_per_op: f64, call_us: f64) -> Result<Self, Failure> {
        let open_us_per_decision = open(BATCH / CLUSTERS, true)?;
        let open_alone_us_per_decision = open(BATCH / CLUSTERS, false)?;
        let open_us_per_empty_decision = open(0, true)?;
        // A member opens a group when it comes. It makes one of as many messages, which costs less than opening it.
        let per_group = call_us + 2.0 * open_us_per_empty_decision;
        // Each of the four members of its coordinator and of its shard does so once for the operations of a height.
        let per_cluster = MEMBERS * per_group / f64::from(BATCH);
        let point = |clusters: u32| {
            let cpu_us_per_op = cpu_us_per_op + per_cluster * f64::from(clusters.saturating_sub(1));
            let ops_per_second_per_node = 1e6 / cpu_us_per_op;
            let ops_per_second = ops_per_second_per_node * MEMBERS * f64::from(clusters);
            Point { clusters, cpu_us_per_op, ops_per_second_per_node, ops_per_second }
        };
        let points = [1, 2, 4, 8, 16, 32, 64, 128].map(point).into();
        let plateau_ops_per_second = 1e6 * MEMBERS / per_cluster;
        Ok(Self {
            open_us_per_decision,
            open_alone_us_per_decision,
            open_us_per_empty_decision,
            call_us,
            points,
            plateau_ops_per_second,
        })
    }

    pub fn print(&self) {
        println!(
            "opening {CLUSTERS} decisions of {} messages: {:.0} µs each in one batch, {:.0} µs alone; empty {:.0} µs; asking \
             for one {:.0} µs",
            BATCH / CLUSTERS,
            self.open_us_per_decision,
            self.open_alone_us_per_decision,
            self.open_us_per_empty_decision,
            self.call_us
        );
        println!("model, one core a node, {BATCH} requests a height; the paper's peak beside it");
        println!("clusters  CPU per op  op/s per node         op/s");
        for point in &self.points {
            let paper = if point.clusters == CLUSTERS {
                format!("   paper: {PAPER_OPS:.0}, {:.0} per node", PAPER_OPS / MEMBERS / f64::from(CLUSTERS))
            } else {
                String::new()
            };
            println!(
                "{:>3} + {:<3} {:>8.1} µs  {:>13.0}  {:>11.0}{paper}",
                point.clusters,
                point.clusters,
                point.cpu_us_per_op,
                point.ops_per_second_per_node,
                point.ops_per_second
            );
        }
        println!("plateau with this batch: {:.0} op/s", self.plateau_ops_per_second);
    }
}

/// What it costs to ask a member for groups of which there are none, in microseconds. The member's half is measured; the
/// asker's is taken for as much.
pub async fn call_us(program: &Path) -> Result<f64, Failure> {
    let folder = tempfile::tempdir()?;
    let mut net = Localnet::new(program, folder.path(), &Shape { shards: vec![1], ..Shape::default() })?;
    net.start_and_wait().await?;
    let client = net.client();
    let (_, channels) = client.cluster(ClusterId(1))?;
    let (_, channel) = channels.first().ok_or("no member")?;
    let mut member = LedgerClient::new(channel.clone());
    let receiver = borsh::to_vec(&Receiver::Clients)?;
    let begun = (Instant::now(), net.processor_time()?);
    tokio::time::sleep(IDLE).await;
    let idle = net.processor_time()?.saturating_sub(begun.1).as_secs_f64() / begun.0.elapsed().as_secs_f64();
    let begun = (Instant::now(), net.processor_time()?);
    for _ in 0..CALLS {
        member.decisions(DecisionsRequest { receiver: receiver.clone(), from: u64::MAX, wait_ms: 0 }).await?;
    }
    let used = net.processor_time()?.saturating_sub(begun.1).as_secs_f64();
    let of_calls = used - idle * begun.0.elapsed().as_secs_f64();
    Ok(2.0 * of_calls.max(0.0) * 1e6 / f64::from(CALLS))
}

/// Microseconds for each of 32 decisions with so many messages.
fn open(messages: u32, in_one_batch: bool) -> Result<f64, Failure> {
    let receiver = Receiver::Cluster(ClusterId(1_000));
    let clusters: Vec<(Arc<CompactDecision>, Members)> = (1..=CLUSTERS)
        .map(|cluster| decision(cluster, receiver, messages))
        .collect::<Option<_>>()
        .ok_or("no cluster")?;
    let mut verifier = StatementVerifier::default();
    let mut opened = 0_usize;
    let mut begun = Instant::now();
    // The first turn remembers the keys.
    for turn in 0..=REPETITIONS {
        if turn == 1 {
            begun = Instant::now();
        }
        let batch = clusters.iter().map(|(decision, members)| (decision.clone(), members, Cursor::default()));
        let mut check = |batch| {
            let verdicts = verifier.open(receiver, batch, &mut rand::rng());
            opened += verdicts.into_iter().filter(Result::is_ok).count();
        };
        if in_one_batch { check(batch.collect()) } else { batch.for_each(|one| check(vec![one])) }
    }
    let count = CLUSTERS * REPETITIONS;
    let expected = usize::try_from(count + CLUSTERS)?;
    if opened != expected {
        return Err(format!("{opened} decisions of {expected} hold").into());
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(count))
}

/// A decision of a cluster of four with a group for this receiver and for 31 others.
fn decision(cluster: u32, receiver: Receiver, messages: u32) -> Option<(Arc<CompactDecision>, Members)> {
    let deployment = Deployment(Digest::repeat_byte(1));
    let seed = |member: u8| *blake3::hash(format!("{cluster} {member}").as_bytes()).as_bytes();
    let mut keys: Vec<MemberKeys> = (0..4).map(|member| MemberKeys::from_seed(seed(member))).collect();
    keys.sort_by_key(MemberKeys::public);
    let public = keys.iter().map(MemberKeys::public).collect();
    let members = Members::new(deployment, ClusterId(cluster), public).ok()?;
    let answer = |at: u32| {
        let request = Digest::new(*blake3::hash(&at.to_le_bytes()).as_bytes());
        Message::Answer(Answer { request, result: Ok(Outcome::Missing) })
    };
    let group =
        |to: Receiver| Group { to, number: 1, previous: Digest::ZERO, messages: (0..messages).map(answer).collect() };
    let others = (1..CLUSTERS).map(|other| Receiver::Cluster(ClusterId(2_000 + other)));
    let groups = std::iter::once(receiver).chain(others).map(group).collect();
    let outputs = Outputs::new(deployment, ClusterId(cluster), groups)?;
    let header = Header {
        deployment,
        cluster: ClusterId(cluster),
        height: Height(1),
        time: Time(1),
        parent: Digest::ZERO,
        inputs: Digest::ZERO,
        state: Digest::ZERO,
        outputs: outputs.root(),
        maker: MemberIndex(0),
        signature: Ed25519Signature([0; 64]),
    };
    let (of, value) = (ClusterId(cluster), Some(header.id()));
    let vote = VoteStatement { deployment, cluster: of, height: Height(1), round: 0, kind: VoteKind::Precommit, value };
    let votes = (0..3).zip(&keys).map(|(member, keys)| (MemberIndex(member), keys.sign(vote.digest()))).collect();
    let certificate = QuorumCertificate { round: 0, votes };
    Some((Arc::new(CompactDecision::of(&header, &outputs, &certificate, receiver)?), members))
}
