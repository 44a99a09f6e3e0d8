//! A span: one stage of a payment.

use std::borrow::Cow;
use std::time::SystemTime;

use fastpay_core::{AuthorityName, Digest, ShardId};
use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::ids::{root_span_id, trace_id};

/// The direction of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client that sends the request.
    Client,
    /// The program that answers the request.
    Server,
    /// A stage within one program.
    Inside,
}

/// The attributes of a stage besides its name and times: numbers, public names, and words from the code. Nothing
/// private and no text from a stranger reaches the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    /// The shard that performed the stage.
    Shard(ShardId),
    /// The shard that receives the money.
    ToShard(ShardId),
    /// The authority that received the request.
    Authority(AuthorityName),
    /// The outcome.
    Outcome(&'static str),
    /// How many requests were verified and committed together.
    Batch(usize),
    /// Whether an earlier run of the program began the stage.
    Resumed(bool),
    /// A transaction on the Primary.
    Transaction(Digest),
    /// A block of the Primary.
    Block(u64),
}

impl Attribute {
    fn pair(self) -> KeyValue {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        match self {
            Self::Shard(shard) => KeyValue::new("fastpay.shard", i64::from(shard.0)),
            Self::ToShard(shard) => KeyValue::new("fastpay.to_shard", i64::from(shard.0)),
            Self::Authority(name) => KeyValue::new("fastpay.authority", name.to_string()),
            Self::Outcome(outcome) => KeyValue::new("fastpay.outcome", outcome),
            Self::Batch(requests) => KeyValue::new("fastpay.batch", count(requests as u64)),
            Self::Resumed(resumed) => KeyValue::new("fastpay.resumed", resumed),
            Self::Transaction(hash) => KeyValue::new("fastpay.transaction", hash.to_string()),
            Self::Block(block) => KeyValue::new("fastpay.block", count(block)),
        }
    }
}

/// A completed stage of a payment.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    name: &'static str,
    side: Side,
    start: SystemTime,
    end: SystemTime,
    attributes: Vec<KeyValue>,
    events: Vec<Event>,
    status: Status,
}

impl Span {
    /// A stage that began at `start`.
    #[must_use]
    pub fn new(name: &'static str, side: Side, start: SystemTime) -> Self {
        let (attributes, events) = (Vec::new(), Vec::new());
        Self { name, side, start, end: start, attributes, events, status: Status::Unset }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn with(mut self, attribute: Attribute) -> Self {
        self.attributes.push(attribute.pair());
        self
    }

    /// Marks the stage as failed; `kind` is from a fixed list.
    #[must_use]
    pub fn failed(mut self, kind: &'static str) -> Self {
        self.attributes.push(KeyValue::new("error.type", kind));
        self.status = Status::Error { description: Cow::Borrowed(kind) };
        self
    }

    /// Adds a step within the stage. Steps stay in order even if the clock was set back in between.
    #[must_use]
    pub fn event(mut self, name: &'static str, at: SystemTime) -> Self {
        let before = self.events.last().map_or(self.start, |event| event.timestamp);
        self.events.push(Event::new(name, at.max(before), Vec::new(), 0));
        self
    }

    /// The time at which the stage ended.
    #[must_use]
    pub fn ended(mut self, end: SystemTime) -> Self {
        let last = self.events.last().map_or(self.start, |event| event.timestamp);
        self.end = end.max(last);
        self
    }

    /// The span in the form to be sent: a child of the root if it has its own id, else the root itself.
    pub(crate) fn into_data(self, digest: &Digest, own: Option<SpanId>, scope: InstrumentationScope) -> SpanData {
        let root = root_span_id(digest);
        let (id, parent) = own.map_or((root, SpanId::INVALID), |id| (id, root));
        let span_context = SpanContext::new(trace_id(digest), id, TraceFlags::SAMPLED, false, TraceState::default());
        let mut attributes = self.attributes;
        attributes.push(KeyValue::new("fastpay.digest", digest.to_string()));
        let mut events = SpanEvents::default();
        events.events = self.events;
        SpanData {
            span_context,
            parent_span_id: parent,
            // The root is the wallet's span, whichever program records this one.
            parent_span_is_remote: own.is_some(),
            span_kind: match self.side {
                Side::Client => SpanKind::Client,
                Side::Server => SpanKind::Server,
                Side::Inside => SpanKind::Internal,
            },
            name: Cow::Borrowed(self.name),
            start_time: self.start,
            end_time: self.end,
            attributes,
            dropped_attributes_count: 0,
            events,
            links: SpanLinks::default(),
            status: self.status,
            instrumentation_scope: scope,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_span_is_under_the_root_and_says_what_it_was_told() {
        let start = SystemTime::UNIX_EPOCH + Duration::from_secs(5);
        let span = Span::new("fastpay.order", Side::Server, start)
            .with(Attribute::Shard(ShardId(3)))
            .failed("order-pending")
            .ended(start + Duration::from_secs(1));
        let digest = Digest::repeat_byte(7);
        let data = span.clone().into_data(&digest, Some(SpanId::from(9)), InstrumentationScope::default());
        assert_eq!(data.parent_span_id, root_span_id(&digest));
        assert_eq!((data.span_context.trace_id(), data.span_context.span_id()), (trace_id(&digest), SpanId::from(9)));
        assert!(data.span_context.is_valid() && data.span_context.is_sampled());
        let says: Vec<_> = data.attributes.iter().map(|pair| format!("{}={}", pair.key, pair.value)).collect();
        let digest_says = format!("fastpay.digest={digest}");
        assert_eq!(says, ["fastpay.shard=3", "error.type=order-pending", &digest_says]);
        let root = span.into_data(&digest, None, InstrumentationScope::default());
        assert_eq!((root.span_context.span_id(), root.parent_span_id), (root_span_id(&digest), SpanId::INVALID));
    }

    #[test]
    fn steps_are_in_order_also_where_the_clock_was_set_back() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let span = Span::new("a", Side::Inside, at(10)).event("b", at(7)).event("c", at(12)).event("d", at(11));
        let data = span.ended(at(3)).into_data(&Digest::ZERO, None, InstrumentationScope::default());
        let times: Vec<_> = data.events.iter().map(|event| event.timestamp).collect();
        assert_eq!(times, [at(10), at(12), at(12)]);
        assert_eq!((data.start_time, data.end_time), (at(10), at(12)));
    }
}
