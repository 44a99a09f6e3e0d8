//! A shard's own threads, from the bytes of requests to the bytes of answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::JoinHandle;

use bytes::Bytes;
use fastpay_core::{Request, ShardId};
use fastpay_e2e::{Failure, Place};
use fastpay_node::authority::metrics::Metrics;
use fastpay_node::authority::shard::{
    self, ADDRESS_JOURNAL_BYTES_PER_DAY, Answer, Answers, AppliedCredits, ClientStream, Command, OrderStep, ShardError,
    ShardHandle, ShardLimits, ShardSettings, Submission, address_budgets,
};
use fastpay_node::authority::storage::{DataFolder, FolderIdentity};
use fastpay_node::authority::voter_status::VoterStatus;
use fastpay_rpc::proto::submit_request::Request as WireRequest;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{Confirmed, SubmitRequest, SubmitResponse};
use prost::Message;
use tokio::sync::{mpsc, oneshot, watch};

use super::Extent;
use super::scene::{Scene, layout};
use super::stages::deposits;
use crate::meter::process_time;
use crate::statistics::Spread;

/// The number of requests in flight, as under load over the network. Orders with many outputs cost more, so fewer.
const IN_FLIGHT: usize = 512;
/// The number of requests that arrive together from a stream.
const SUBMISSION: usize = 64;
/// The number of outputs that cost as much as a payment.
const OUTPUTS_PER_PAYMENT: usize = 8;

/// The processor time of all threads for each request, in microseconds.
pub struct Whole {
    pub order: Spread,
    pub certificate: Spread,
}

pub fn measure(scene: &Scene, extent: Extent) -> Result<Whole, Failure> {
    let place = Place::fixed("bench-whole")?;
    let mut bench = Bench::start(scene, &place, extent.outputs.div_ceil(OUTPUTS_PER_PAYMENT))?;
    let (mut orders, mut certificates) = (Vec::new(), Vec::new());
    for (number, round) in scene.payments.chunks(extent.accounts).enumerate() {
        let order = bench.run(round.iter().map(|payment| &payment.order))?;
        let certificate = bench.run(round.iter().map(|payment| &payment.certificate))?;
        if number > 0 {
            orders.push(order);
            certificates.push(certificate);
        }
    }
    bench.stop()?;
    Ok(Whole { order: Spread::of(orders).rounded(2), certificate: Spread::of(certificates).rounded(2) })
}

struct Bench {
    handle: ShardHandle,
    thread: JoinHandle<Result<(), ShardError>>,
    stream: Arc<ClientStream>,
    answers: mpsc::Receiver<Answers>,
    in_flight_max: usize,
    submission: usize,
    /// The view never changes here.
    _voter_status: watch::Sender<Arc<VoterStatus>>,
}

impl Bench {
    fn start(scene: &Scene, place: &Place, weight: usize) -> Result<Self, Failure> {
        let identity = FolderIdentity { names: vec!["bench".into()], shards: 1, chain_id: 0, contract: "bench".into() };
        let folder = DataFolder::create(&place.path("data"), &identity).map_err(Failure::wrong)?;
        let folders = folder.shard(0).ok_or_else(|| Failure::wrong("no shard"))?;
        let limits = ShardLimits::default();
        let recovered = shard::recover(&folders, ShardId(0), layout(), false, &limits, &AppliedCredits::default())
            .map_err(Failure::wrong)?;
        let metrics = Metrics::new(1).shards.first().cloned().ok_or_else(|| Failure::wrong("no shard"))?;
        let (handle, queue) = ShardHandle::new(&limits, metrics);
        let keys = Arc::new(scene.keys.clone());
        let name = keys.public().name;
        let voter_status =
            VoterStatus::new(scene.committees()?, vec![keys], &[name].as_slice().into()).map_err(Failure::wrong)?;
        let (voter_status, seen) = watch::channel(Arc::new(voter_status));
        let settings = ShardSettings {
            domain: scene.domain,
            voter_status: seen,
            limits,
            addresses: address_budgets(ADDRESS_JOURNAL_BYTES_PER_DAY),
            chain: None,
        };
        let thread =
            shard::start(settings, recovered, queue, handle.clone(), BTreeMap::new()).map_err(Failure::wrong)?;
        let (stream, answers) = ClientStream::new(IN_FLIGHT);
        let (in_flight_max, submission) = (IN_FLIGHT / weight, (SUBMISSION / weight).max(1));
        let bench = Self { handle, thread, stream, answers, in_flight_max, submission, _voter_status: voter_status };
        let (reply, done) = oneshot::channel();
        bench
            .handle
            .try_send(Command::Synchronize(deposits(scene).into_iter().map(OrderStep::Deposit).collect(), reply))
            .map_err(Failure::wrong)?;
        done.blocking_recv().map_err(Failure::wrong)?;
        Ok(bench)
    }

    /// Sends all requests, with as many in flight as under load. Returns microseconds for each.
    fn run<'a>(&mut self, requests: impl ExactSizeIterator<Item = &'a Bytes>) -> Result<f64, Failure> {
        let count = requests.len();
        let mut requests = requests.cloned().peekable();
        let (mut in_flight, mut buffer) = (0_usize, Vec::new());
        let start = process_time();
        while requests.peek().is_some() || in_flight > 0 {
            while requests.peek().is_some() && in_flight + self.submission <= self.in_flight_max {
                in_flight += self.submit(requests.by_ref().take(self.submission))?;
            }
            let answers = self.answers.blocking_recv().ok_or_else(|| Failure::wrong("the shard has ended"))?;
            in_flight -= answers.len();
            for answer in answers {
                encode(answer, &mut buffer)?;
            }
            buffer.clear();
        }
        Ok((process_time() - start).as_secs_f64() * 1e6 / count.max(1) as f64)
    }

    fn submit(&self, requests: impl Iterator<Item = Bytes>) -> Result<usize, Failure> {
        let (mut ids, mut decoded) = (Vec::new(), Vec::new());
        for bytes in requests {
            let (id, request) = decode(bytes)?;
            ids.push(id);
            decoded.push(request);
        }
        let count = ids.len();
        if self.handle.admit(&self.stream, count) < count {
            return Err(Failure::wrong("the shard is busy"));
        }
        let submission = Submission { stream: self.stream.clone(), ids, requests: decoded };
        self.handle.submit(submission, count).map_err(|_| Failure::wrong("the shard has ended"))?;
        Ok(count)
    }

    fn stop(self) -> Result<(), Failure> {
        self.handle.try_send(Command::Stop).map_err(Failure::wrong)?;
        self.thread.join().map_err(|_| Failure::wrong("the shard panicked"))?.map_err(Failure::wrong)
    }
}

fn decode(bytes: Bytes) -> Result<(u64, Request), Failure> {
    let request = SubmitRequest::decode(bytes).map_err(Failure::wrong)?;
    let decoded = match request.request {
        Some(WireRequest::Order(order)) => Request::Order(order.try_into().map_err(Failure::wrong)?),
        Some(WireRequest::Certificate(certificate)) => {
            Request::Certificate(certificate.try_into().map_err(Failure::wrong)?)
        }
        Some(WireRequest::Attested(_)) => return Err(Failure::wrong("nobody attests what is new")),
        None => return Err(Failure::wrong("an empty request")),
    };
    Ok((request.id, decoded))
}

fn encode((id, answer): (u64, Answer), buffer: &mut Vec<u8>) -> Result<(), Failure> {
    let response = match answer {
        Answer::Vote(epoch, vote) => Response::Vote((epoch, &vote).into()),
        Answer::Confirmed(epoch, next) => {
            Response::Confirmed(Confirmed { next_sequence: next.0, epoch: Some(epoch.0) })
        }
        Answer::Refused(refusal) => return Err(Failure::Wrong(format!("request {id} was refused: {refusal}"))),
    };
    SubmitResponse { id, response: Some(response) }.encode(buffer).map_err(Failure::wrong)
}
