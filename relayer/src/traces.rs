//! Spans of the traced redemptions: seen, submitted, included, paid.
//!
//! A span is reported when its stage is over, so the trace of a stuck redemption shows how far it came. Times that are
//! not on disk, such as that of a transaction, are lost in a restart; a stage then begins when the redemption was first
//! seen.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastpay_core::{Digest, Domain, Redemption};
use fastpay_ethereum::{Inclusion, Submission};
use fastpay_telemetry::{Attribute, Side, Span, Tracer};

use crate::pending::PendingRedemption;

/// The times of the relayer's transactions, and the tracer.
#[derive(Debug)]
pub(crate) struct Traces {
    tracer: Tracer,
    domain: Domain,
    /// The times, by nonce.
    sent: HashMap<u64, Sent>,
}

/// When a transaction was sent, and first seen in a block.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: SystemTime,
    included_at: Option<SystemTime>,
}

impl Traces {
    pub(crate) fn new(tracer: Tracer, domain: Domain) -> Self {
        Self { tracer, domain, sent: HashMap::new() }
    }

    pub(crate) fn tracer(&self) -> &Tracer {
        &self.tracer
    }

    /// The time, if the tracer is on.
    pub(crate) fn now(&self) -> Option<SystemTime> {
        self.tracer.now()
    }

    /// Records that a certificate from a redemption log became a pending redemption.
    pub(crate) fn seen(&self, item: &PendingRedemption, since: Option<SystemTime>) {
        if let Some(since) = since {
            self.record(&item.redemption, Span::new("fastpay.relay.seen", Side::Inside, since));
        }
    }

    /// Records that a transaction for these redemptions is on disk, and about to be sent.
    pub(crate) fn submitted(&mut self, submission: &Submission, items: &[PendingRedemption]) {
        let Some(now) = self.now() else { return };
        self.sent.insert(submission.nonce, Sent { at: now, included_at: None });
        let hash = submission.attempts.last().map(|attempt| attempt.hash).unwrap_or_default();
        for item in items {
            let span = Span::new("fastpay.relay.submitted", Side::Inside, seen_at(item));
            self.record(&item.redemption, span.with(Attribute::Transaction(hash)));
        }
    }

    /// Records that the transaction of this nonce is in a block, the first time only.
    pub(crate) fn included<'a>(
        &mut self,
        nonce: u64,
        inclusion: &Inclusion,
        items: impl Iterator<Item = &'a PendingRedemption>,
    ) {
        let Some(now) = self.now() else { return };
        let before = self.sent.get(&nonce).copied();
        if before.is_some_and(|sent| sent.included_at.is_some()) {
            return;
        }
        self.sent.insert(nonce, Sent { at: before.map_or(now, |sent| sent.at), included_at: Some(now) });
        for item in items {
            let start = before.map_or_else(|| seen_at(item), |sent| sent.at);
            let span = Span::new("fastpay.relay.included", Side::Inside, start);
            let span = span.with(Attribute::Transaction(inclusion.hash));
            self.record(&item.redemption, span.with(Attribute::Block(inclusion.block_number)));
        }
    }

    /// Removes the transaction of this nonce. Returns when it was first seen in a block.
    pub(crate) fn forget(&mut self, nonce: u64) -> Option<SystemTime> {
        self.sent.remove(&nonce).and_then(|sent| sent.included_at)
    }

    /// Records the outcome of a redemption in a final block, by a transaction that was in a block `since`.
    pub(crate) fn ended(
        &self,
        item: &PendingRedemption,
        since: Option<SystemTime>,
        outcome: Result<&'static str, &'static str>,
    ) {
        let span = Span::new("fastpay.relay.paid", Side::Inside, since.unwrap_or_else(|| seen_at(item)));
        self.record(
            &item.redemption,
            match outcome {
                Ok(outcome) => span.with(Attribute::Outcome(outcome)),
                Err(kind) => span.with(Attribute::Outcome("failed")).failed(kind),
            },
        );
    }

    /// Records a span that ends now.
    fn record(&self, redemption: &Redemption, span: Span) {
        if let Some(now) = self.now() {
            self.tracer.record(&self.digest(redemption), span.ended(now));
        }
    }

    fn digest(&self, redemption: &Redemption) -> Digest {
        self.domain.transfer_digest(&redemption.clone().into())
    }
}

fn seen_at(item: &PendingRedemption) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(item.seen_at_ms)).unwrap_or(UNIX_EPOCH)
}
