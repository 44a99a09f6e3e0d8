//! One step after the other on one thread, each for a whole batch, with the thread's own processor time.

use std::hint::black_box;

use bytes::Bytes;
use fastpay_core::{
    Certificate, Committees, Decision, Deposit, Digest, Domain, Epoch, PrimaryView, Record, Request, SequenceNumber,
    Shard, ShardId, ShardLedger, Standing, SynchronizationOrder, TransactionIndex, TransferOrder, VerifiedRequest,
    Verifier, Vote, VoteFloor, sign_payment_votes,
};
use fastpay_e2e::{Failure, Place};
use fastpay_node::authority::storage::{Journal, JournalOptions, JournalPosition, JournalWrite};
use fastpay_rpc::proto::submit_request::Request as WireRequest;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{Confirmed, SubmitRequest, SubmitResponse};
use prost::Message;

use super::scene::{Scene, layout};
use super::{Extent, Stage};
use crate::meter::thread_time;
use crate::statistics::Spread;
use crate::workload::Prepared;

/// The stages of both kinds of requests.
pub struct Stages {
    pub order: Vec<Stage>,
    pub certificate: Vec<Stage>,
}

pub fn measure(scene: &Scene, extent: Extent) -> Result<Stages, Failure> {
    let place = Place::fixed("bench-stages")?;
    let mut bench = Bench::new(scene, &place)?;
    let (mut order, mut certificate) = (Clock::default(), Clock::default());
    for (number, batch) in scene.payments.chunks(extent.batch).enumerate() {
        // Discard the first round, which is a warm-up.
        if number * extent.batch == extent.accounts.next_multiple_of(extent.batch) {
            (order, certificate) = (Clock::default(), Clock::default());
        }
        bench.orders(batch, &mut order)?;
        bench.certificates(batch, &mut certificate)?;
    }
    Ok(Stages { order: order.stages(), certificate: certificate.stages() })
}

/// The time of each stage for each request of each batch, in microseconds.
#[derive(Default)]
struct Clock {
    stages: Vec<(&'static str, Vec<f64>)>,
}

impl Clock {
    fn time<T>(&mut self, stage: &'static str, requests: usize, work: impl FnOnce() -> T) -> T {
        let start = thread_time();
        let done = black_box(work());
        let micros = (thread_time() - start).as_secs_f64() * 1e6 / requests.max(1) as f64;
        match self.stages.iter_mut().find(|(name, _)| *name == stage) {
            Some((_, times)) => times.push(micros),
            None => self.stages.push((stage, vec![micros])),
        }
        done
    }

    /// Verifying an order computes its digest, which is measured separately. A certificate's digest is known by then.
    fn stages(self) -> Vec<Stage> {
        let digest = self.stages.iter().find(|(name, _)| *name == DIGEST).map_or_else(Vec::new, |(_, t)| t.clone());
        let stage = |(name, mut times): (&'static str, Vec<f64>)| {
            if name == VERIFY {
                times.iter_mut().zip(&digest).for_each(|(time, digest)| *time -= digest);
            }
            Stage { name: name.to_owned(), us: Spread::of(times).rounded(2) }
        };
        self.stages.into_iter().map(stage).collect()
    }
}

const DECODE: &str = "decode";
const DIGEST: &str = "digest";
const VERIFY: &str = "verify";
const RULES: &str = "rules";
const APPEND: &str = "append";
const SYNC: &str = "write and sync";
const SIGN: &str = "sign";
const ENCODE: &str = "encode";

struct Bench<'a> {
    scene: &'a Scene,
    verifier: Verifier,
    committees: Committees,
    shard: Shard,
    journal: Journal,
}

impl<'a> Bench<'a> {
    fn new(scene: &'a Scene, place: &Place) -> Result<Self, Failure> {
        let folder = place.path("journal");
        std::fs::create_dir_all(&folder).map_err(|error| Failure::Io { path: folder.clone(), error })?;
        let journal = Journal::create(&folder, JournalOptions::default()).map_err(Failure::wrong)?;
        let (verifier, committees) = (Verifier::new(scene.domain), scene.committees()?);
        let shard = Shard::new(ShardId(0), layout(), false, ShardLedger::default(), 2 * scene.accounts.ids().len());
        let mut bench = Self { scene, verifier, committees, shard, journal };
        bench.fund()?;
        Ok(bench)
    }

    fn fund(&mut self) -> Result<(), Failure> {
        for order in deposits(self.scene) {
            let record = decide(&mut self.shard, |shard| shard.synchronize(&order))?;
            self.shard.apply(&record, JournalPosition::default());
        }
        Ok(())
    }

    fn orders(&mut self, batch: &[Prepared], clock: &mut Clock) -> Result<(), Failure> {
        let count = batch.len();
        let wire = batch.iter().map(|payment| payment.order.clone());
        let orders = clock.time(DECODE, count, || wire.map(decode_order).collect::<Result<Vec<_>, _>>())?;
        clock.time(DIGEST, count, || orders.iter().for_each(|order| digest(&self.scene.domain, order)));
        let requests = orders.into_iter().map(Request::Order).collect();
        let verified = clock.time(VERIFY, count, || self.verifier.verify(requests, &self.committees, &mut rand::rng()));
        let mut orders = Vec::with_capacity(count);
        for verified in verified {
            match verified.map_err(Failure::wrong)? {
                VerifiedRequest::Order(order) => orders.push(order),
                _ => return Err(Failure::wrong("an order became a certificate")),
            }
        }
        let shard = &mut self.shard;
        let decided = clock.time(RULES, count, || {
            orders
                .iter()
                .map(|order| decide(shard, |shard| shard.lock(order, Epoch(0), VoteFloor::Zero, PrimaryView::Recent)))
                .collect::<Result<Vec<_>, _>>()
        })?;
        self.commit_and_apply(&decided, clock)?;
        let digests: Vec<Digest> = orders.iter().map(|order| order.digest()).collect();
        let (keys, domain) = (&self.scene.keys, &self.scene.domain);
        let signed = clock.time(SIGN, count, || sign_payment_votes(keys, domain, Epoch(0), &digests));
        let (votes, own) = signed.ok_or_else(|| Failure::wrong("too many votes for one signature"))?;
        self.verifier.remember(own);
        clock.time(ENCODE, count, || encode(votes.iter().map(vote)));
        Ok(())
    }

    fn certificates(&mut self, batch: &[Prepared], clock: &mut Clock) -> Result<(), Failure> {
        let count = batch.len();
        let wire = batch.iter().map(|payment| payment.certificate.clone());
        let decoded = clock.time(DECODE, count, || wire.map(decode_certificate).collect::<Result<Vec<_>, _>>())?;
        let requests = decoded.into_iter().map(Request::Certificate).collect();
        let verified = clock.time(VERIFY, count, || self.verifier.verify(requests, &self.committees, &mut rand::rng()));
        let mut certificates = Vec::with_capacity(count);
        for verified in verified {
            match verified.map_err(Failure::wrong)? {
                VerifiedRequest::Certificate(certificate) => certificates.push(certificate),
                _ => return Err(Failure::wrong("a certificate became another request")),
            }
        }
        let shard = &mut self.shard;
        let decided = clock.time(RULES, count, || {
            let confirm =
                |certificate| decide(shard, |shard| shard.confirm(certificate, PrimaryView::Recent, Standing::Counts));
            certificates.iter().map(confirm).collect::<Result<Vec<_>, _>>()
        })?;
        self.commit_and_apply(&decided, clock)?;
        let next = |certificate: &fastpay_core::VerifiedCertificate| certificate.transfer().sequence().next();
        clock.time(ENCODE, count, || encode(certificates.iter().filter_map(next).map(confirmed)));
        Ok(())
    }

    /// Writes the records to disk and applies them. Applying counts as a rule.
    fn commit_and_apply(&mut self, records: &[Box<Record>], clock: &mut Clock) -> Result<(), Failure> {
        let (count, journal) = (records.len(), &mut self.journal);
        let positions = clock.time(APPEND, count, || {
            let append = |record| journal.append(&borsh::to_vec(record).expect("writing to memory does not fail"));
            records.iter().map(append).collect::<Result<Vec<_>, _>>()
        });
        let positions = positions.map_err(Failure::wrong)?;
        clock.time(SYNC, count, || journal.commit()).map_err(Failure::wrong)?;
        let shard = &mut self.shard;
        clock.time(APPLY, count, || {
            for (record, position) in records.iter().zip(positions) {
                shard.apply(record, position);
            }
        });
        Ok(())
    }
}

const APPLY: &str = "apply";

/// The initial balance of each account.
pub fn deposits(scene: &Scene) -> Vec<SynchronizationOrder> {
    let deposit = |(index, balance): (u64, fastpay_core::GenesisBalance)| SynchronizationOrder {
        after: TransactionIndex(index - 1),
        up_to: TransactionIndex(index),
        deposit: Some(Deposit {
            index: TransactionIndex(index),
            recipient: balance.account,
            asset: balance.asset,
            amount: balance.amount,
        }),
    };
    (1..).zip(scene.accounts.balances()).map(deposit).collect()
}

fn decide(shard: &mut Shard, rule: impl Fn(&Shard) -> Decision) -> Result<Box<Record>, Failure> {
    loop {
        match rule(shard) {
            Decision::Commit(record) => return Ok(record),
            Decision::Load(accounts) => accounts.into_iter().for_each(|id| shard.load(id, None)),
            other => return Err(Failure::Wrong(format!("the rules say {other:?}"))),
        }
    }
}

fn digest(domain: &Domain, order: &TransferOrder) {
    black_box(domain.transfer_digest(&order.transfer));
}

fn decode_order(bytes: Bytes) -> Result<TransferOrder, Failure> {
    match SubmitRequest::decode(bytes).map_err(Failure::wrong)?.request {
        Some(WireRequest::Order(order)) => order.try_into().map_err(Failure::wrong),
        _ => Err(Failure::wrong("not an order")),
    }
}

fn decode_certificate(bytes: Bytes) -> Result<Certificate, Failure> {
    match SubmitRequest::decode(bytes).map_err(Failure::wrong)?.request {
        Some(WireRequest::Certificate(certificate)) => certificate.try_into().map_err(Failure::wrong),
        _ => Err(Failure::wrong("not a certificate")),
    }
}

fn vote(vote: &Vote) -> Response {
    Response::Vote((Epoch(0), vote).into())
}

fn confirmed(next: SequenceNumber) -> Response {
    Response::Confirmed(Confirmed { next_sequence: next.0, epoch: Some(0) })
}

fn encode(responses: impl Iterator<Item = Response>) -> Vec<u8> {
    let mut buffer = Vec::new();
    for (id, response) in (0..).zip(responses) {
        let response = SubmitResponse { id, response: Some(response) };
        response.encode(&mut buffer).expect("a vector grows");
    }
    buffer
}
