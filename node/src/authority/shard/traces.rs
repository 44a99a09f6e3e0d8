//! Spans of the traced payments in a shard: when each was queued, taken, decided, durable and answered.
//!
//! Only valid orders and certificates make spans, so each span needs somebody's signature. A credit for another shard
//! is under way until that shard has it on disk.

use std::collections::VecDeque;
use std::time::SystemTime;

use fastpay_core::{Digest, ShardId};
use fastpay_rpc::Refusal;
use fastpay_rpc::http::ProblemKind as _;
use fastpay_rpc::json::ProblemCode;
use fastpay_telemetry::{Attribute, Side, Span, Tracer};

/// The maximum number of traced credits under way; further ones are not traced.
const CREDITS_MAX: usize = 1_024;

/// A shard's use of its tracer. If that is off, no times are read and nothing happens.
pub(super) struct Traces {
    tracer: Tracer,
    shard: ShardId,
    /// When the current requests were queued and taken.
    times: Option<(SystemTime, SystemTime)>,
    credits: VecDeque<Credit>,
}

/// A traced credit that is under way.
struct Credit {
    to: ShardId,
    number: u64,
    digest: Digest,
    since: SystemTime,
}

/// A request that was decided, and whose batch is not on disk yet.
pub(super) struct Decided {
    digest: Digest,
    span: Span,
}

impl Traces {
    pub fn new(tracer: Tracer, shard: ShardId) -> Self {
        Self { tracer, shard, times: None, credits: VecDeque::new() }
    }

    /// The time, if the tracer is on.
    pub fn now(&self) -> Option<SystemTime> {
        self.tracer.now()
    }

    /// Begins requests that arrived together.
    pub fn observe(&mut self, queued_at: Option<SystemTime>, taken_at: Option<SystemTime>) {
        self.times = queued_at.zip(taken_at);
    }

    /// The span of a decided request, if it is traced.
    pub fn decided(
        &self,
        name: &'static str,
        digest: &Digest,
        outcome: Result<&'static str, &Refusal>,
    ) -> Option<Decided> {
        let (queued_at, taken_at) = self.times?;
        if !self.tracer.samples(digest) {
            return None;
        }
        let span = Span::new(name, Side::Server, queued_at).with(Attribute::Shard(self.shard));
        let span = span.event("taken", taken_at).event("decided", self.tracer.now()?);
        let span = match outcome {
            Ok(outcome) => span.with(Attribute::Outcome(outcome)),
            Err(refusal) => span.with(Attribute::Outcome("refused")).failed(ProblemCode::from(refusal).as_str()),
        };
        Some(Decided { digest: *digest, span })
    }

    /// Notes a credit for another shard.
    pub fn forwarded(&mut self, digest: &Digest, to: ShardId, number: u64) {
        if self.times.is_none() || !self.tracer.samples(digest) {
            return;
        }
        match self.tracer.now() {
            Some(since) if self.credits.len() < CREDITS_MAX => {
                self.credits.push_back(Credit { to, number, digest: *digest, since });
            }
            _ => self.tracer.count_dropped(),
        }
    }

    /// Credits up to this number are on the other shard's disk.
    pub fn acknowledged(&mut self, by: ShardId, number: u64) {
        if self.credits.is_empty() {
            return;
        }
        let Some(now) = self.tracer.now() else { return };
        self.credits.retain(|credit| {
            let is_applied = credit.to == by && credit.number <= number;
            if is_applied {
                let span = Span::new("fastpay.credit", Side::Inside, credit.since);
                let span = span.with(Attribute::Shard(self.shard)).with(Attribute::ToShard(by));
                self.tracer.record(&credit.digest, span.ended(now));
            }
            !is_applied
        });
    }
}

/// The traced requests of a batch that is on disk.
pub(super) struct Durable {
    requests: usize,
    decided: Vec<Decided>,
    at: SystemTime,
}

impl Durable {
    /// The spans of a batch of this many requests.
    pub fn new(decided: Vec<Decided>, requests: usize, tracer: &Tracer) -> Option<Self> {
        tracer.now().map(|at| Self { requests, decided, at })
    }

    /// Ends the spans, after the answers were sent.
    pub fn answered(self, tracer: &Tracer) {
        let Some(now) = tracer.now() else { return };
        for Decided { digest, span } in self.decided {
            let span = span.with(Attribute::Batch(self.requests)).event("durable", self.at);
            tracer.record(&digest, span.ended(now));
        }
    }
}
