//! Records the spans of payments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::time::SystemTime;

use fastpay_core::Digest;
use opentelemetry::InstrumentationScope;
use opentelemetry::trace::SpanKind;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SamplingDecision, ShouldSample, SpanData};

use crate::ids::trace_id;
use crate::settings::Ratio;
use crate::span::{Attribute, Side, Span};

/// Records the spans of traced payments. If tracing is off, a call costs one branch. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tracer(Option<Arc<Active>>);

#[derive(Debug)]
struct Active {
    sampler: Sampler,
    ids: RandomIdGenerator,
    scope: InstrumentationScope,
    queue: SyncSender<SpanData>,
    counts: Arc<Counts>,
}

/// Counts exported and dropped spans.
#[derive(Debug, Default)]
pub struct Counts {
    exported: AtomicU64,
    dropped: AtomicU64,
}

impl Counts {
    /// The spans that the collector accepted.
    #[must_use]
    pub fn exported_so_far(&self) -> u64 {
        self.exported.load(Ordering::Relaxed)
    }

    /// The spans that were dropped: the queue was full, or the collector did not accept them.
    #[must_use]
    pub fn dropped_so_far(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn exported(&self, spans: u64) {
        self.exported.fetch_add(spans, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }
}

impl Tracer {
    /// A tracer that records nothing.
    #[must_use]
    pub fn off() -> Self {
        Self(None)
    }

    /// A tracer whose spans go into `queue`, from which [`Export::start`](crate::Export::start) sends them.
    #[must_use]
    pub fn new(ratio: Ratio, queue: SyncSender<SpanData>, counts: Arc<Counts>) -> Self {
        let sampler = Sampler::TraceIdRatioBased(ratio.get());
        let scope = InstrumentationScope::builder("fastpay").with_version(env!("CARGO_PKG_VERSION")).build();
        Self(Some(Arc::new(Active { sampler, ids: RandomIdGenerator::default(), scope, queue, counts })))
    }

    /// The time at which a stage begins; `None` if nothing is traced.
    #[must_use]
    pub fn now(&self) -> Option<SystemTime> {
        #[expect(clippy::disallowed_methods, reason = "shown to people; nothing is decided by it")]
        self.0.as_ref().map(|_| SystemTime::now())
    }

    /// Whether the payment of this digest is traced. Programs with the same ratio trace the same payments.
    #[must_use]
    pub fn samples(&self, digest: &Digest) -> bool {
        let Some(active) = &self.0 else { return false };
        // By OpenTelemetry's own rule, which looks at the id alone.
        let sampled = active.sampler.should_sample(None, trace_id(digest), "", &SpanKind::Internal, &[], &[]);
        sampled.decision == SamplingDecision::RecordAndSample
    }

    /// Records the span of a completed stage if the payment is traced.
    pub fn record(&self, digest: &Digest, span: Span) {
        self.take(digest, span, false);
    }

    /// Records the span of the whole payment, the root of its trace. The wallet calls this once the payment is settled.
    pub fn record_root(&self, digest: &Digest, span: Span) {
        self.take(digest, span, true);
    }

    /// Begins a stage, which ends when the returned value is dropped in any way.
    #[must_use]
    pub fn open(&self, digest: &Digest, name: &'static str, side: Side) -> OpenSpan {
        let traced = self.samples(digest).then(|| self.now()).flatten();
        OpenSpan(traced.map(|start| (self.clone(), *digest, Span::new(name, side, start))))
    }

    /// The counts of exported and dropped spans.
    #[must_use]
    pub fn counts(&self) -> Option<&Counts> {
        self.0.as_deref().map(|active| &*active.counts)
    }

    /// Counts a span that was dropped before its stage completed because there was no room for it.
    pub fn count_dropped(&self) {
        if let Some(active) = &self.0 {
            active.counts.dropped(1);
        }
    }

    fn take(&self, digest: &Digest, span: Span, is_root: bool) {
        if !self.samples(digest) {
            return;
        }
        let Some(active) = &self.0 else { return };
        let own = (!is_root).then(|| active.ids.new_span_id());
        // Never wait for a queue that is full or that belongs to an ending program.
        if active.queue.try_send(span.into_data(digest, own, active.scope.clone())).is_err() {
            active.counts.dropped(1);
        }
    }
}

/// A stage in progress. It is empty if the payment is not traced.
#[derive(Debug)]
pub struct OpenSpan(Option<(Tracer, Digest, Span)>);

impl OpenSpan {
    /// Adds an attribute.
    pub fn add(&mut self, attribute: Attribute) {
        self.change(|span| span.with(attribute));
    }

    /// Adds a step within the stage.
    pub fn event(&mut self, name: &'static str) {
        if let Some(now) = self.0.as_ref().and_then(|(tracer, ..)| tracer.now()) {
            self.change(|span| span.event(name, now));
        }
    }

    /// Marks the stage as failed.
    pub fn fail(&mut self, kind: &'static str) {
        self.change(|span| span.failed(kind));
    }

    fn change(&mut self, change: impl FnOnce(Span) -> Span) {
        self.0 = self.0.take().map(|(tracer, digest, span)| (tracer, digest, change(span)));
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some((tracer, digest, span)) = self.0.take()
            && let Some(end) = tracer.now()
        {
            tracer.record(&digest, span.ended(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    fn tracer(ratio: f64, room: usize) -> (Tracer, Receiver<SpanData>) {
        let (queue, spans) = sync_channel(room);
        (Tracer::new(Ratio::try_from(ratio).unwrap(), queue, Arc::default()), spans)
    }

    /// OpenTelemetry's sampling rule as specified: the last 8 bytes of the id, less one bit, are below the ratio.
    fn is_below(digest: &Digest, ratio: f64) -> bool {
        let low = u64::from_be_bytes(digest[8..16].try_into().unwrap()) >> 1;
        ratio >= 1.0 || low < (ratio * (1_u64 << 63) as f64) as u64
    }

    #[test]
    fn payments_are_sampled_by_their_digest_alone_as_opentelemetry_does() {
        let seed = fastrand::u64(..);
        let mut random = fastrand::Rng::with_seed(seed);
        for ratio in [0.0, 0.01, 0.3, 1.0] {
            let (tracer, _spans) = tracer(ratio, 1);
            let (another, _) = self::tracer(ratio, 1);
            let mut sampled = 0_u32;
            for _ in 0..10_000 {
                let digest = Digest::from(std::array::from_fn(|_| random.u8(..)));
                let is_sampled = tracer.samples(&digest);
                assert_eq!(is_sampled, is_below(&digest, ratio), "seed {seed}: {digest} at {ratio}");
                assert_eq!(is_sampled, another.samples(&digest), "seed {seed}: {digest} at {ratio}");
                sampled += u32::from(is_sampled);
            }
            let (found, expected) = (f64::from(sampled), ratio * 10_000.0);
            assert!((found - expected).abs() <= 300.0, "seed {seed}: {found} of {expected}");
        }
    }

    #[test]
    fn a_tracer_that_is_off_does_nothing() {
        let tracer = Tracer::off();
        assert!(tracer.now().is_none() && tracer.counts().is_none() && !tracer.samples(&Digest::ZERO));
        tracer.record(&Digest::ZERO, Span::new("a", Side::Inside, SystemTime::UNIX_EPOCH));
        assert!(tracer.open(&Digest::ZERO, "a", Side::Inside).0.is_none());
    }

    #[test]
    fn what_the_queue_does_not_take_is_dropped_and_counted() {
        let (tracer, spans) = tracer(1.0, 2);
        let span = || Span::new("a", Side::Inside, SystemTime::UNIX_EPOCH);
        (0..5).for_each(|_| tracer.record(&Digest::ZERO, span()));
        assert_eq!(tracer.counts().unwrap().dropped_so_far(), 3);
        assert_eq!(spans.try_iter().count(), 2);
        drop(spans);
        tracer.record_root(&Digest::ZERO, span());
        assert_eq!(tracer.counts().unwrap().dropped_so_far(), 4);
    }

    #[test]
    fn an_open_span_is_recorded_when_it_is_dropped_and_only_where_it_is_sampled() {
        let (tracer, spans) = tracer(0.5, 9);
        let (low, high) = (Digest::ZERO, Digest::repeat_byte(0xff));
        assert!(tracer.samples(&low) && !tracer.samples(&high));
        let mut recorded = Vec::new();
        for digest in [low, high] {
            let mut open = tracer.open(&digest, "fastpay.vote", Side::Client);
            open.add(Attribute::Outcome("unheard"));
            open.event("busy");
            open.fail("busy");
            assert_eq!(spans.try_iter().count(), 0, "it is not over");
            drop(open);
            recorded.extend(spans.try_iter());
        }
        assert_eq!(recorded.len(), 1);
        assert!(recorded[0].end_time >= recorded[0].start_time && recorded[0].name == "fastpay.vote");
        assert_eq!(recorded[0].events[0].name, "busy");
        // Two spans of one payment have different ids.
        (0..2).for_each(|_| drop(tracer.open(&low, "fastpay.vote", Side::Client)));
        let ids: Vec<_> = spans.try_iter().map(|span| span.span_context.span_id()).collect();
        assert!(ids.len() == 2 && ids[0] != ids[1]);
    }
}
