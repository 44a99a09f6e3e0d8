//! What the metrics say of how the journals end.

use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::PruningReport;

/// How the journals end.
#[derive(Debug, Default)]
pub struct PruningMetrics {
    base: Gauge,
    due_timestamp: Gauge,
    lacking: Gauge,
    timestamp: Gauge,
    pause_ms: Gauge,
    failures: Gauge,
}

impl PruningMetrics {
    /// Metrics that the registry shows.
    pub(crate) fn registered(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let Self { base, due_timestamp, lacking, timestamp, pause_ms, failures } = &metrics;
        registry.register("pruned_checkpoint_number", "The checkpoint at which the journals begin", base.clone());
        let help = "Since when the journals are to end at a later checkpoint; 0 where they are not";
        registry.register_with_unit("pruning_due_timestamp", help, Unit::Seconds, due_timestamp.clone());
        let help = "What is lacking on the disk for new journals that are due";
        registry.register_with_unit("pruning_room_lacking", help, Unit::Bytes, lacking.clone());
        let help = "When the node last ended its journals by itself; 0 for never";
        registry.register_with_unit("pruned_timestamp", help, Unit::Seconds, timestamp.clone());
        let help = "How long the node was away for that, in milliseconds";
        registry.register("pruning_pause_milliseconds", help, pause_ms.clone());
        registry.register("pruning_failures", "Failures to end the journals since the last success", failures.clone());
        metrics
    }

    /// Sets the checkpoint at which the journals begin.
    pub(super) fn begins_at(&self, checkpoint: u64) {
        self.base.set(signed(checkpoint));
    }

    /// Sets since when the journals are to end, in seconds since 1970, and the bytes that are lacking for that.
    pub(super) fn due(&self, since: u64, lacking: u64) {
        self.due_timestamp.set(signed(since));
        self.lacking.set(signed(lacking));
    }

    /// Sets how the last attempts went.
    pub(super) fn observe(&self, report: &PruningReport) {
        self.timestamp.set(signed(report.at_ms / 1_000));
        self.pause_ms.set(signed(report.pause_ms));
        self.failures.set(report.failure.as_ref().map_or(0, |failure| i64::from(failure.count)));
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
