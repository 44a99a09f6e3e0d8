//! The load: one thread that sends prepared payments, follows each through its two round trips, and measures the time.
//!
//! ```text
//!  Flow (who may pay) ─► order ─► vote ─► certificate ─► confirmed: settled
//!        ▲                └─► busy: to the end of the line   └─► busy: again, after the requested delay
//!        └────────────────────────────────────────────────┘
//! ```
//! If a stream accepts no more bytes, a due order goes to the end of the line, like one that was refused. The load does
//! not pause between the parts of a run. After the last part, payments in flight are followed to their end; those
//! without an answer count as lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fastpay_e2e::Failure;
use fastpay_rpc::proto::refused::Code;
use fastpay_rpc::proto::submit_response::Response;
use serde::{Deserialize, Serialize};

use crate::flow::{Flow, PaymentIndex};
use crate::meter::{CoreTime, Usage, process_time};
use crate::pace::{Pace, Timetable};
use crate::statistics::Times;
use crate::wire::{Answer, Answers, MESSAGE_HEADER_BYTES, Streams};
use crate::workload::{Prepared, certificate_id, order_id, payment_of};

/// The interval between readings of the clock.
const TICK: Duration = Duration::from_millis(50);
/// An answer that has not come this long after the last payment began counts as lost.
const DRAIN_PATIENCE: Duration = Duration::from_secs(20);
/// The maximum number of answers handled between two readings of the clock.
const ANSWERS_AT_ONCE: usize = 256;

/// The end of a part of a run.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    Settled(usize),
    Elapsed(Duration),
}

/// A load: a warm-up, and then the measured parts.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub pace: Pace,
    pub warm_up: Until,
    pub part: Until,
    pub parts: usize,
}

/// What is measured in addition to the answers.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    pub process: u32,
    pub core: Option<usize>,
}

/// What happened in one part of a run.
#[derive(Default)]
pub struct Part {
    pub seconds: f64,
    pub counts: Counts,
    pub votes: Times,
    pub certificates: Times,
    pub settled: Times,
    /// How much later than scheduled payments began.
    pub lateness: Times,
    pub server: Used,
    /// This process's processor time, in seconds.
    pub generator: f64,
}

impl Part {
    /// The number of settled payments as a divisor, at least 1.
    pub fn settled_or_one(&self) -> f64 {
        self.counts.settled.max(1) as f64
    }
}

/// What the node used in one part of a run, in seconds.
#[derive(Default)]
pub struct Used {
    pub user: f64,
    pub system: f64,
    pub threads: std::collections::BTreeMap<String, f64>,
    /// The time for which its core worked for other processes.
    pub core_others: f64,
    pub core_stolen: f64,
}

impl Used {
    pub fn processor(&self) -> f64 {
        self.user + self.system
    }
}

/// The number of events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub offered: usize,
    pub votes: usize,
    pub settled: usize,
    pub orders_busy: usize,
    /// Orders offered while the node did not read the stream.
    pub orders_unsent: usize,
    pub certificates_busy: usize,
    pub bytes_sent: usize,
    pub bytes_received: usize,
}

impl Counts {
    pub fn plus(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            votes: self.votes + other.votes,
            settled: self.settled + other.settled,
            orders_busy: self.orders_busy + other.orders_busy,
            orders_unsent: self.orders_unsent + other.orders_unsent,
            certificates_busy: self.certificates_busy + other.certificates_busy,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            bytes_received: self.bytes_received + other.bytes_received,
        }
    }
}

/// A whole run.
pub struct Outcome {
    pub parts: Vec<Part>,
    /// All settled payments by sender, including the warm-up and the end.
    pub settled_by_sender: Vec<u64>,
    /// Requests that were never answered.
    pub lost: usize,
    /// Whether the prepared payments ran out before the node was saturated.
    pub ran_dry: bool,
}

/// The state of a payment.
#[derive(Clone, Copy)]
struct Open {
    /// The scheduled beginning.
    intended: Instant,
    certificate_sent: Instant,
}

/// Sends `payments` as the plan says.
///
/// # Errors
/// If a stream breaks, or the node refuses a valid request.
pub async fn run(
    plan: Plan,
    payments: &[Prepared],
    streams: Streams,
    answers: Answers,
    watched: Watched,
) -> Result<Outcome, Failure> {
    let now = Instant::now();
    let open = vec![Open { intended: now, certificate_sent: now }; payments.len()];
    let flow = Flow::new(payments.iter().map(|payment| payment.place).collect());
    let part = Part::default();
    let sheds = matches!(plan.pace, Pace::Open { .. });
    let run =
        Run { payments, streams, flow, open, part, retries: BTreeSet::new(), ran_dry: false, sheds, under_way: 0 };
    run.measure(plan, answers, watched).await
}

struct Run<'a> {
    payments: &'a [Prepared],
    streams: Streams,
    flow: Flow,
    open: Vec<Open>,
    part: Part,
    /// Certificates that were refused as busy, by the time of their next attempt.
    retries: BTreeSet<(Instant, PaymentIndex)>,
    ran_dry: bool,
    /// Whether the load is an open loop, which offers orders whether or not there is room.
    sheds: bool,
    /// Payments in flight.
    under_way: usize,
}

impl Run<'_> {
    async fn measure(mut self, plan: Plan, mut answers: Answers, watched: Watched) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let mut timetable = match plan.pace {
            Pace::Open { per_second } => Some(Timetable::new(start, per_second)),
            Pace::Closed { in_flight } => {
                for _ in 0..in_flight {
                    self.begin(start);
                }
                None
            }
        };
        let mut parts = Vec::new();
        for number in 0..=plan.parts {
            let until = if number == 0 { plan.warm_up } else { plan.part };
            let before = Sample::take(watched);
            while !self.is_over(until, before.usage.at) {
                self.step(&mut answers, timetable.as_mut()).await?;
                if self.ran_dry {
                    break;
                }
            }
            let mut part = std::mem::take(&mut self.part);
            before.finish(&Sample::take(watched), &mut part);
            if number > 0 && !self.ran_dry {
                parts.push(part);
            }
        }
        let lost = self.drain(&mut answers).await?;
        Ok(Outcome { parts, settled_by_sender: self.flow.settled_by_sender(), lost, ran_dry: self.ran_dry })
    }

    fn is_over(&self, until: Until, since: Instant) -> bool {
        match until {
            Until::Settled(count) => self.part.counts.settled >= count,
            Until::Elapsed(time) => since.elapsed() >= time,
        }
    }

    /// Begins due payments, and handles the answers that have arrived.
    async fn step(&mut self, answers: &mut Answers, timetable: Option<&mut Timetable>) -> Result<(), Failure> {
        let is_closed = timetable.is_none();
        let mut wake_at = Instant::now() + TICK;
        if let Some(timetable) = timetable {
            let now = Instant::now();
            while let Some(intended) = timetable.take_due(now) {
                if self.begin(intended) {
                    self.part.lateness.push(now - intended);
                }
            }
            wake_at = timetable.next();
        }
        self.repeat_due();
        if let Some((due, _)) = self.retries.first() {
            wake_at = wake_at.min(*due);
        }
        let mut taken = Vec::with_capacity(ANSWERS_AT_ONCE);
        tokio::select! {
            biased;
            count = answers.recv_many(&mut taken, ANSWERS_AT_ONCE) => if count == 0 {
                return Err(Failure::wrong("all streams are gone"));
            },
            () = tokio::time::sleep_until(wake_at.into()) => {}
        }
        for answer in taken {
            let ended = self.take(answer?)?;
            if ended && is_closed {
                self.begin(Instant::now());
            }
        }
        Ok(())
    }

    /// Waits for the answers to all payments in flight. Returns how many do not come.
    async fn drain(&mut self, answers: &mut Answers) -> Result<usize, Failure> {
        while self.under_way > 0 {
            self.repeat_due();
            let patience = if self.retries.is_empty() { DRAIN_PATIENCE } else { TICK };
            match tokio::time::timeout(patience, answers.recv()).await {
                Ok(Some(answer)) => {
                    self.take(answer?)?;
                }
                Ok(None) => return Err(Failure::wrong("all streams are gone")),
                Err(_) if self.retries.is_empty() => break,
                Err(_) => {}
            }
        }
        Ok(self.under_way)
    }

    /// Sends the next order. False if none can be sent.
    fn begin(&mut self, intended: Instant) -> bool {
        let Some(index) = self.flow.take() else {
            if self.sheds && 2 * self.under_way > self.flow.senders() {
                // Most accounts wait for an answer, and what is left is theirs: nobody can send now.
                self.part.counts.offered += 1;
                self.part.counts.orders_unsent += 1;
                return true;
            }
            self.ran_dry = true;
            return false;
        };
        self.part.counts.offered += 1;
        let shard = self.payments.get(index as usize).map_or(0, |payment| payment.shard);
        if self.sheds && !self.streams.has_room(shard, index) {
            self.part.counts.orders_unsent += 1;
            self.flow.refused(index);
            return true;
        }
        if let Some(open) = self.open.get_mut(index as usize) {
            open.intended = intended;
        }
        self.under_way += 1;
        self.send(order_id(index));
        true
    }

    fn send(&mut self, id: u64) {
        let (index, is_order) = payment_of(id);
        let Some(payment) = self.payments.get(index as usize) else { return };
        let request = if is_order { payment.order.clone() } else { payment.certificate.clone() };
        self.part.counts.bytes_sent += request.len() + MESSAGE_HEADER_BYTES;
        self.streams.send(payment.shard, index, request);
    }

    fn send_certificate(&mut self, index: PaymentIndex) {
        if let Some(open) = self.open.get_mut(index as usize) {
            open.certificate_sent = Instant::now();
        }
        self.send(certificate_id(index));
    }

    fn repeat_due(&mut self) {
        let now = Instant::now();
        while self.retries.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, index)) = self.retries.pop_first() {
                self.send_certificate(index);
            }
        }
    }

    /// Handles an answer. True if its payment has ended, settled or not.
    fn take(&mut self, answer: Answer) -> Result<bool, Failure> {
        let Answer { id, response, at, bytes } = answer;
        let (index, is_order) = payment_of(id);
        let open = *self.open.get(index as usize).ok_or_else(|| Failure::wrong("an answer to nothing"))?;
        let part = &mut self.part;
        part.counts.bytes_received += bytes;
        match response {
            Response::Vote(_) if is_order => {
                part.votes.push(at.saturating_duration_since(open.intended));
                part.counts.votes += 1;
                self.send_certificate(index);
                return Ok(false);
            }
            Response::Confirmed(_) if !is_order => {
                part.certificates.push(at.saturating_duration_since(open.certificate_sent));
                part.settled.push(at.saturating_duration_since(open.intended));
                part.counts.settled += 1;
                self.flow.settled(index);
            }
            Response::Refused(refused) if refused.code == i32::from(Code::Busy) && is_order => {
                part.counts.orders_busy += 1;
                self.flow.refused(index);
            }
            Response::Refused(refused) if refused.code == i32::from(Code::Busy) => {
                part.counts.certificates_busy += 1;
                let pause = Duration::from_millis(refused.retry_after_ms.max(1).into());
                self.retries.insert((Instant::now() + pause, index));
                return Ok(false);
            }
            other => return Err(Failure::Wrong(format!("request {id} was answered with {other:?}"))),
        }
        self.under_way = self.under_way.saturating_sub(1);
        Ok(true)
    }
}

/// The processor time used by the node and this process so far.
struct Sample {
    usage: Usage,
    core: CoreTime,
    generator: Duration,
}

impl Sample {
    fn take(watched: Watched) -> Self {
        let core = watched.core.map(CoreTime::of).unwrap_or_default();
        Self { usage: Usage::of(watched.process), core, generator: process_time() }
    }

    fn finish(self, end: &Self, part: &mut Part) {
        let (before, after) = (&self.usage, &end.usage);
        part.seconds = (after.at - before.at).as_secs_f64();
        part.generator = (end.generator.saturating_sub(self.generator)).as_secs_f64();
        let own = after.processor() - before.processor();
        let busy = end.core.busy - self.core.busy;
        let threads = after.threads.iter().map(|(name, time)| {
            let so_far = before.threads.get(name).copied().unwrap_or_default();
            (name.clone(), (time - so_far).max(0.0))
        });
        part.server = Used {
            user: after.user - before.user,
            system: after.system - before.system,
            threads: threads.collect(),
            core_others: (busy - own).max(0.0),
            core_stolen: end.core.stolen - self.core.stolen,
        };
    }
}
